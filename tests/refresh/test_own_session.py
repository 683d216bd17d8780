"""A refresh runs under the cache's settings, whatever the application was started with."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cachemgr.delta.own_session import own_session, refuse_readers_filter
from cachemgr.errors import RefreshError
from cachemgr.sparks import minor_of

ANSI = "spark.sql.ansi.enabled"


@pytest.mark.spark
def test_a_setting_of_the_application_does_not_leak_into_a_refresh(spark: SparkSession) -> None:
    """SparkConf's values are in every new session; the cache was created under the default."""
    context_conf = spark._jsc.sc().conf()
    context_conf.set(ANSI, "false")
    try:
        assert spark.newSession().conf.get(ANSI) == "false"
        assert own_session(spark, {"spark.sql.session.timeZone": "UTC"}).conf.get(ANSI) == "true"
        stored = {ANSI: "false", "spark.sql.session.timeZone": "UTC"}
        assert own_session(spark, stored).conf.get(ANSI) == "false"
    finally:
        context_conf.set(ANSI, "true")
    assert spark.newSession().conf.get(ANSI) == "true"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.sources.partitionOverwriteMode", "dynamic"),
        ("spark.sql.storeAssignmentPolicy", "LEGACY"),
        ("spark.sql.a.plug-in", "1"),
        ("spark.databricks.delta.checkLatestSchemaOnRead", "false"),
    ],
)
def test_what_decides_rows_or_a_write_does_not_leak_either(spark, key, value):
    context_conf = spark._jsc.sc().conf()
    context_conf.set(key, value)
    try:
        assert spark.newSession().conf.get(key) == value
        usual = spark.conf.get(key, None)  # of a session that was there before
        assert own_session(spark, {}).conf.get(key, None) == usual != value
    finally:
        context_conf.remove(key)


@pytest.mark.spark
def test_what_hadoop_has_of_parquets_reader_does_not_leak_either(spark):
    key = "parquet.strings.signed-min-max.enabled"
    context_conf = spark._jsc.sc().conf()
    context_conf.set(f"spark.hadoop.{key}", "true")
    try:
        assert own_session(spark, {}).conf.get(key) == "false"
        assert own_session(spark, {key: "true"}).conf.get(key) == "true"
    finally:
        context_conf.remove(f"spark.hadoop.{key}")


@pytest.mark.spark
def test_no_cache_is_computed_where_parquets_reader_leaves_rows_out(spark):
    session = own_session(spark, {})
    refuse_readers_filter(session)
    session.conf.set("parquet.read.filter", "some.Filter")
    with pytest.raises(RefreshError, match=r"started with parquet\.read\.filter"):
        refuse_readers_filter(session)


@pytest.mark.spark
def test_of_stored_settings_those_that_change_rows_are_set(spark):
    """An earlier version stored more."""
    stored = {
        "spark.sql.storeAssignmentPolicy": "LEGACY",
        "spark.sql.warehouse.dir": "/nowhere",  # static: it could not be set
        "spark.sql.legacy.timeParserPolicy": "legacy",
    }
    found = own_session(spark, stored).conf
    assert found.get("spark.sql.storeAssignmentPolicy") == "ANSI"
    assert found.get("spark.sql.legacy.timeParserPolicy").upper() == "LEGACY"


@pytest.mark.spark
def test_how_the_work_is_done_is_the_applications_to_say(spark):
    context_conf = spark._jsc.sc().conf()
    key = "spark.sql.autoBroadcastJoinThreshold"
    context_conf.set(key, "7b")
    try:
        assert own_session(spark, {}).conf.get(key) == "7b"
    finally:
        context_conf.remove(key)


@pytest.mark.spark
def test_a_setting_of_a_later_minor_is_not_taken_for_one_that_works(spark, monkeypatch):
    """Spark takes a value for any key; one that it does not have does nothing."""
    key = "spark.sql.of.a.later.minor"
    assert own_session(spark, {key: "true"}).conf.get(key) == "true", "a plug-in's, for all we know"
    monkeypatch.setattr("cachemgr.delta.own_session.is_of_spark", lambda key: True)
    with pytest.raises(RefreshError, match=f"{key} = true, which Spark {spark.version} does not"):
        own_session(spark, {key: "true"})
    assert own_session(spark, {ANSI: "false"}).conf.get(ANSI) == "false"


@pytest.mark.spark
def test_settings_of_this_minor_alone(spark):
    key = "spark.sql.analyzer.lowerEmptyGroupingSetToGlobalAggregate.enabled"
    usual = own_session(spark, {key: "true"})
    assert usual.conf.get(key) == "true"
    if minor_of(spark.version) in ("4.0", "4.1"):
        with pytest.raises(RefreshError, match="have a later Spark refresh it"):
            own_session(spark, {key: "false"})
    else:
        assert own_session(spark, {key: "false"}).conf.get(key) == "false"
