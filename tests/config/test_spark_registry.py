"""The table of settings against the registries of Spark and Delta Lake themselves: a setting of a
new version fails a test here, and not a user."""

from __future__ import annotations

import json

import pytest

from cachemgr.config.judged.judge import JUDGED, judge
from cachemgr.config.judged.kinds import Kind
from cachemgr.config.judged.others import HADOOP_RESULTS, REMOVED, VENDORS
from cachemgr.config.judged.values import OLD_NAMES, as_read
from tests.config.spark_registry import FILE, entries, removed, values

pytestmark = pytest.mark.spark
_ELSEWHERE = ("parquet.", "spark.hadoop.")
SAMPLES = (
    "true",
    " TRUE",
    "False",
    "7",
    " 7",
    "+7",
    "07",
    "legacy",
    "LEGACY",
    "Corrected",
    "last_WIN",
)


@pytest.fixture(scope="module")
def registry(spark):
    found = entries(spark)
    assert {"spark.sql.ansi.enabled", "spark.sql.warehouse.dir", "spark.sql.hive.metastore.version",
            "spark.databricks.delta.stats.skipping"} <= found.keys()  # fmt: skip
    return found


def test_each_setting_of_spark_and_delta_is_judged(registry):
    table = {each.pattern for each in JUDGED}
    unjudged = sorted(key for key in registry if judge(key).pattern not in table)
    assert unjudged == []


def test_each_judgement_is_of_a_setting_that_there_is(registry):
    """But for those that Spark has no more, and those of others."""
    known = {key for key, _ in (*REMOVED, *VENDORS, *HADOOP_RESULTS)}
    used = {judge(key).pattern for key in registry} | known
    unused = [each.pattern for each in JUDGED if each.pattern not in used]
    assert [pattern for pattern in unused if not pattern.startswith(_ELSEWHERE)] == []


def test_each_setting_that_spark_has_no_more_stands_in_the_table(spark, registry):
    gone = removed(spark)
    assert gone == {key for key, _ in REMOVED}
    assert not gone & registry.keys()


def test_what_is_known_of_values_is_what_spark_says(registry):
    """`python -m tests.config.spark_registry` writes the file anew."""
    assert json.loads(FILE.read_text()) == values(registry)


def test_values_are_compared_as_spark_reads_them(registry):
    for key, entry in registry.items():
        if judge(key).kind is not Kind.RESULTS:
            continue
        read = {text: entry.read(text) for text in SAMPLES}
        for one in SAMPLES:
            for other in SAMPLES:
                if read[one] is not None and read[other] is not None:
                    alike = as_read(key, one) == as_read(key, other)
                    # of lists after commas Spark passes over blanks, which costs a hit at most
                    same = read[one] == read[other] and (alike or entry.spelled() != "texts")
                    assert alike == same, (key, one, other)
        if entry.default is not None and entry.read(entry.default) is not None:
            assert as_read(key, entry.default) == entry.default, key


def test_what_a_counting_setting_falls_back_to_counts_as_well(registry):
    for key, entry in registry.items():
        if entry.fallback is not None and judge(key).kind is Kind.RESULTS:
            assert judge(entry.fallback).kind is Kind.RESULTS, key


def test_old_names_are_sparks(registry):
    told = {
        old: key
        for key, entry in registry.items()
        for old in entry.alternatives
        if judge(key).kind is Kind.RESULTS
    }
    assert told == dict(OLD_NAMES)
