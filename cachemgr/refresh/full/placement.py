"""Rows sent to the Spark partition that an expression names.

Spark 4.1 and later have an operator for it. Before, rows can only be sent by the hash of an
expression: then each partition's number is replaced by one whose hash leads there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_SEED = 42  # of `HashPartitioning`


def placed(rows: DataFrame, partitions: int, number: Column) -> DataFrame:
    """`rows` in so many partitions.

    Args:
        rows: In any.
        partitions: How many.
        number: Of each row: the partition's number, from 0.
    """
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(partitions, number)
    by_hash = F.array(*map(F.lit, leading_to(partitions)))
    return rows.repartition(partitions, F.element_at(by_hash, number + 1))


def leading_to(partitions: int) -> Sequence[int]:
    """For each partition: the smallest number that `repartition(partitions, number)` sends there.

    Args:
        partitions: How many.
    """
    found: dict[int, int] = {}
    for number in count():
        found.setdefault(murmur3(number) % partitions, number)
        if len(found) == partitions:
            return [found[i] for i in range(partitions)]
    raise AssertionError("count() has no end")


def murmur3(number: int) -> int:
    """Spark's hash of an INT, `org.apache.spark.sql.catalyst.expressions.Murmur3HashFunction`.

    Args:
        number: From 0 to 2³¹ - 1.
    """
    k = _times(_rotated(_times(number, 0xCC9E2D51), 15), 0x1B873593)
    h = (_times(_rotated(_SEED ^ k, 13), 5) + 0xE6546B64) & 0xFFFFFFFF
    h ^= 4  # the length in bytes
    h = _times(h ^ (h >> 16), 0x85EBCA6B)
    h = _times(h ^ (h >> 13), 0xC2B2AE35)
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _times(a: int, b: int) -> int:
    return a * b & 0xFFFFFFFF


def _rotated(x: int, by: int) -> int:
    return (x << by | x >> (32 - by)) & 0xFFFFFFFF
