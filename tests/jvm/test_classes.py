"""Lists and maps of the JVM's: many texts are handed over as one, and arrive as they are."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cachemgr.jvm.classes import java_list, java_map

LISTS = {
    "none": [],
    "one that is empty": [""],
    "few": ["a", "b"],
    "one of many is empty": ["a", "", "b", "c", "d", ""],
    "one of many holds what parts them": ["a\0b"] * 6,
    "line ends and quotes": ["part=1/x\n", "\\n\t\r", "\u2028", "'\"", " e "],
    "beyond the basic plane": ["\U0001d4b3", "ü", "é", "\U00010348", "ß"],
    "thousands": [f"part={n}/file-{n}.parquet\n" for n in range(5000)],
}


@pytest.mark.parametrize("items", LISTS.values(), ids=LISTS)
def test_texts_arrive_as_they_are(spark: SparkSession, items: list[str]) -> None:
    assert list(java_list(spark._jvm, iter(items))) == items


@pytest.mark.parametrize("entries", [0, 1, 10, 11])
def test_entries_arrive_as_they_are(spark: SparkSession, entries: int) -> None:
    items = {f"`{n}`": f"value {n}" for n in range(entries)}
    made = java_map(spark._jvm, items)
    assert made.size() == entries
    assert {key: made.get(key) for key in items} == items
