"""Which settings may differ between a session and a cache, and which must not."""

from __future__ import annotations

import pytest

from cachemgr.config.judged.judge import JUDGED, is_of_an_application, judge
from cachemgr.config.judged.kinds import Kind
from cachemgr.config.judged.values import default_in_spark
from cachemgr.config.result_settings import (
    SettingsComparer,
    agree,
    changes_results,
    fingerprint,
    result_settings,
)
from matcher.model.reasons import ReasonCode


def comparer(**defaults):
    asked = []

    def default(key):
        asked.append(key)
        return defaults.get(key.replace(".", "_"))

    found = SettingsComparer(default)
    return found, asked


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.ansi.enabled",
        "spark.sql.session.timeZone",
        "spark.sql.decimalOperations.allowPrecisionLoss",
        "spark.sql.legacy.timeParserPolicy",
        "spark.sql.legacy.parameterSubstitution.other",
        "spark.sql.caseSensitive",
        "spark.sql.files.ignoreMissingFiles",
        "spark.sql.some.setting.of.tomorrow",
        "spark.databricks.delta.some.setting.of.tomorrow",
        "spark.databricks.delta.changeDataFeed.unsafe",
        "spark.hadoop.parquet.strings.signed-min-max.enabled",
        "parquet.strings.signed-min-max.enabled",
        "spark.sql.mapKeyDedupPolicy",
    ],
)
def test_settings_that_nobody_cleared_change_results(key):
    assert changes_results(key)


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.shuffle.partitions",
        "spark.sql.adaptive.enabled",
        "spark.sql.adaptive.coalescePartitions.enabled",
        "spark.sql.autoBroadcastJoinThreshold",
        "spark.sql.codegen.wholeStage",
        "spark.sql.catalog.spark_catalog",
        "spark.sql.legacy.parameterSubstitution.constantsOnly",
        "spark.driver.memory",
        "spark.cachemgr.mode",
        "spark.sql.parquet.fieldId.read.enabled",
        "spark.sql.parquet.fieldId.write.enabled",
        "spark.databricks.delta.lastCommitVersionInSession",
        "spark.databricks.delta.properties.defaults.enableChangeDataFeed",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.sql.fromJsonForceNullableSchema",
        "spark.serializer",
    ],
)
def test_settings_on_the_list_do_not(key):
    assert not changes_results(key)


def test_each_setting_has_a_reason_and_stands_once():
    patterns = [each.pattern for each in JUDGED]
    assert len(patterns) == len(set(patterns))
    assert all(each.reason.strip() for each in JUDGED)
    assert all("*" not in pattern[:-1] for pattern in patterns)


def test_no_family_clears_settings_that_stand_among_others():
    cleared = {each.pattern for each in JUDGED if each.kind is not Kind.RESULTS}
    for key in ("spark.sql.legacy.", "spark.sql.files.", "spark.sql.optimizer.", "spark.sql.",
                "spark.sql.parquet.", "spark.sql.sources.", "spark.databricks.delta."):  # fmt: skip
        assert key + "*" not in cleared


def test_the_longest_family_decides():
    assert judge("spark.sql.legacy.anything").kind is Kind.RESULTS
    assert judge("spark.sql.legacy.oracle.anything").kind is Kind.OTHER_SOURCES
    assert judge("spark.sql.legacy.json.anything").functions


def test_only_result_settings_are_stored():
    explicit = {"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "2", "x": "1"}
    assert result_settings(explicit) == {"spark.sql.ansi.enabled": "false"}


def test_equal_settings_agree_without_a_look_up():
    found, asked = comparer()
    one = fingerprint({"spark.sql.ansi.enabled": "false"})
    assert found.compare(one, one) is None
    assert asked == []


def test_a_missing_setting_has_its_default():
    found, _ = comparer(spark_sql_ansi_enabled="true")
    explicit = fingerprint({"spark.sql.ansi.enabled": "TRUE"})
    assert found.compare(explicit, frozenset()) is None
    assert found.compare(frozenset(), explicit) is None


def test_ansi_means_the_same_in_all_processes_where_it_is_not_named():
    found, asked = comparer(spark_sql_ansi_enabled="false")  # SPARK_ANSI_SQL_MODE=false
    here = fingerprint({"spark.sql.ansi.enabled": "false"})
    reason = found.compare(here, frozenset())
    assert reason is not None and "and true in the cache" in reason.detail
    assert asked == []


def test_a_difference_names_the_key_and_both_values():
    found, _ = comparer(spark_sql_ansi_enabled="true")
    explicit = fingerprint({"spark.sql.ansi.enabled": "false"})
    reason = found.compare(explicit, frozenset())
    assert reason is not None and reason.code is ReasonCode.SETTINGS_DIFFER
    assert "spark.sql.ansi.enabled is false in this session and true in the cache" in reason.detail


def test_values_other_than_booleans_keep_their_case():
    found, _ = comparer()
    here = fingerprint({"spark.sql.session.timeZone": "europe/berlin"})
    there = fingerprint({"spark.sql.session.timeZone": "Europe/Berlin"})
    assert found.compare(here, there) is not None


@pytest.mark.parametrize(
    ("here", "there", "same"),
    [
        ("UTC", "Etc/UTC", True),
        ("UTC", "+00:00", True),
        ("UTC+1", "+01:00", True),
        ("UTC", "Europe/London", False),  # summer
        ("UTC", "Africa/Abidjan", False),  # had another offset once
        ("+01:00", "Etc/GMT-1", False),  # the same, and not known to be
        ("+01:00", "-01:00", False),
    ],
)
def test_one_zone_by_two_names_matters_where_names_are_shown(here, there, same):
    found, _ = comparer()
    zones = [fingerprint({"spark.sql.session.timeZone": zone}) for zone in (here, there)]
    assert found.compare(*zones) is not None  # whatever is called
    assert (found.compare(*zones, lambda: frozenset({"sum", "hour"})) is None) is same
    for function in ("date_format", "from_unixtime", "to_json"):
        assert found.compare(*zones, lambda: frozenset({"sum", function})) is not None  # noqa: B023


def test_an_unknown_setting_without_default_differs():
    found, _ = comparer()
    here = fingerprint({"spark.sql.unheard": "1"})
    reason = found.compare(here, frozenset())
    assert reason is not None and "not set in the cache" in reason.detail


SPELLED = [
    ("spark.sql.caseSensitive", " True", "true"),
    ("spark.sql.timestampType", "timestamp_ntz", "TIMESTAMP_NTZ"),
    ("spark.sql.legacy.timeParserPolicy", "legacy", "LEGACY"),
    ("spark.sql.mapKeyDedupPolicy", "last_win", "Last_Win"),
    ("spark.sql.pivotMaxValues", " 7", "+7"),
]


@pytest.mark.parametrize(("key", "one", "other"), SPELLED)
def test_values_that_spark_reads_alike_are_one(key, one, other):
    assert fingerprint({key: one}) == fingerprint({key: other})
    assert agree({key: one}, {key: other, "spark.sql.cbo.enabled": "true"})


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("spark.sql.columnNameOfCorruptRecord", "bad", "BAD"),
        ("spark.sql.columnNameOfCorruptRecord", "true", "TRUE"),
        ("spark.sql.pivotMaxValues", "7", "70"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY", "EXCEPTION"),
    ],
)
def test_other_values_are_not(key, one, other):
    assert fingerprint({key: one}) != fingerprint({key: other})


def test_a_default_that_falls_back_is_followed():
    key, other = "spark.sql.a.fork", "spark.sql.ansi.enabled"
    found, _ = comparer(spark_sql_a_fork=f"<value of {other}>")
    off, on = fingerprint({key: "false"}), fingerprint({key: "true"})
    assert found.compare(fingerprint({other: "false"}), off | fingerprint({other: "FALSE"})) is None
    assert found.compare(frozenset(), on) is None
    assert found.compare(frozenset(), off) is not None
    ring, _ = comparer(spark_sql_a="<value of spark.sql.b>", spark_sql_b="<value of spark.sql.a>")
    assert ring.compare(frozenset(), fingerprint({"spark.sql.a": "1"})) is not None


def test_an_old_name_counts_where_the_new_one_is_not_set():
    found, _ = comparer(spark_sql_parquet_datetimeRebaseModeInRead="CORRECTED")
    new = "spark.sql.parquet.datetimeRebaseModeInRead"
    old = "spark.sql.legacy.parquet.datetimeRebaseModeInRead"
    assert found.compare(fingerprint({old: "legacy"}), fingerprint({new: "LEGACY"})) is None
    both = fingerprint({old: "LEGACY", new: "CORRECTED"})
    assert found.compare(both, frozenset()) is None


def test_a_setting_of_hadoops_is_one_by_either_name():
    found, _ = comparer()
    key = "parquet.strings.signed-min-max.enabled"
    assert (
        found.compare(fingerprint({f"spark.hadoop.{key}": "true"}), fingerprint({key: "true"}))
        is None
    )
    assert default_in_spark(key) == "false"
    reason = found.compare(fingerprint({f"spark.hadoop.{key}": "true"}), frozenset())
    assert reason is not None and key in reason.detail


def test_what_holds_code_counts_and_is_never_kept():
    """A refresh in the service would make the user's object."""
    for key in ("parquet.read.filter", "spark.hadoop.parquet.private.read.filter.predicate"):
        assert changes_results(key) and is_of_an_application(key)
        assert result_settings({key: "rO0AB"}) == {} and fingerprint({key: "rO0AB"})
    key = "parquet.strings.signed-min-max.enabled"
    assert result_settings({f"spark.hadoop.{key}": "true"}) == {key: "true"}
    assert result_settings({f"spark.hadoop.{key}": "true", key: "false"}) == {key: "false"}


def test_what_matters_to_one_function_counts_where_that_is_called():
    found, _ = comparer(spark_sql_mapKeyDedupPolicy="EXCEPTION", spark_sql_legacy_sizeOfNull="true")
    here = fingerprint({"spark.sql.mapKeyDedupPolicy": "LAST_WIN",
                        "spark.sql.legacy.sizeOfNull": "false"})  # fmt: skip

    def compared(*functions):
        return found.compare(here, frozenset(), lambda: frozenset(functions))

    assert compared() is None and compared("sum", "year") is None
    assert "mapKeyDedupPolicy" in compared("map_concat").detail
    assert "sizeOfNull" in compared("size").detail
    assert found.compare(here, frozenset()) is not None  # whatever is called
    more = here | fingerprint({"spark.sql.session.timeZone": "Asia/Tokyo"})
    assert "timeZone" in found.compare(more, frozenset(), frozenset).detail


def test_functions_are_asked_for_only_where_they_matter():
    found, _ = comparer(spark_sql_ansi_enabled="true")

    def fail():
        raise AssertionError("asked")

    ansi = fingerprint({"spark.sql.ansi.enabled": "false"})
    assert found.compare(ansi, ansi, fail) is None
    assert found.compare(ansi, frozenset(), fail) is not None
