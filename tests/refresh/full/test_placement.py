"""Rows go to the partition that they are sent to, in each Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import functions as F

from cachemgr.refresh.full.placement import leading_to, murmur3, placed


@pytest.mark.parametrize("partitions", [1, 2, 7, 200])
def test_each_partition_has_a_number_that_leads_to_it(partitions: int) -> None:
    found = leading_to(partitions)
    assert [murmur3(number) % partitions for number in found] == list(range(partitions))


@pytest.mark.spark
@pytest.mark.parametrize("by_hash", [False, True])
@pytest.mark.parametrize("partitions", [1, 3, 40])
def test_rows_are_where_they_were_sent(spark: Any, partitions: int, by_hash: bool) -> None:
    rows = spark.range(200).repartition(5)
    number = (F.col("id") % partitions).cast("int")
    given = SimpleNamespace(repartition=rows.repartition) if by_hash else rows
    found = placed(given, partitions, number)
    assert found.rdd.getNumPartitions() == partitions
    wrong = found.where(F.spark_partition_id() != F.col("id") % partitions)
    assert wrong.count() == 0 and found.count() == 200


@pytest.mark.spark
def test_the_hash_is_that_of_spark(spark: Any) -> None:
    numbers = [0, 1, 2, 17, 12_345, 2**31 - 1]
    asked = spark.createDataFrame([(n,) for n in numbers], "n INT").select(F.hash("n"))
    assert [row[0] for row in asked.collect()] == [murmur3(n) for n in numbers]
