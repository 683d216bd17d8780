"""Which settings may differ between a session and a cache, and which must not."""

from __future__ import annotations

import pytest

from cachemgr.config.result_settings import (
    ALLOWED,
    SettingsComparer,
    changes_results,
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
        "spark.sql.shuffle.partitions2",
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
    ],
)
def test_settings_on_the_list_do_not(key):
    assert not changes_results(key)


def test_each_allowed_setting_has_a_reason_and_stands_once():
    keys = [key for key, _ in ALLOWED]
    assert len(keys) == len(set(keys))
    assert all(reason.strip() for _, reason in ALLOWED)
    assert all("*" not in key[:-1] for key in keys)


def test_no_prefix_allows_a_setting_known_to_change_rows():
    for key in ("spark.sql.legacy.", "spark.sql.files.", "spark.sql.optimizer.", "spark.sql."):
        assert key + "*" not in [allowed for allowed, _ in ALLOWED]


def test_only_result_settings_are_stored():
    explicit = {"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "2", "x": "1"}
    assert result_settings(explicit) == {"spark.sql.ansi.enabled": "false"}


def test_equal_settings_agree_without_a_look_up():
    found, asked = comparer()
    one = found.fingerprint({"spark.sql.ansi.enabled": "false"})
    assert found.compare(one, one) is None
    assert asked == []


def test_a_missing_setting_has_its_default():
    found, _ = comparer(spark_sql_ansi_enabled="true")
    explicit = found.fingerprint({"spark.sql.ansi.enabled": "TRUE"})
    assert found.compare(explicit, frozenset()) is None
    assert found.compare(frozenset(), explicit) is None


def test_ansi_means_the_same_in_all_processes_where_it_is_not_named():
    found, asked = comparer(spark_sql_ansi_enabled="false")  # SPARK_ANSI_SQL_MODE=false
    here = found.fingerprint({"spark.sql.ansi.enabled": "false"})
    reason = found.compare(here, frozenset())
    assert reason is not None and "and true in the cache" in reason.detail
    assert asked == []


def test_a_difference_names_the_key_and_both_values():
    found, _ = comparer(spark_sql_ansi_enabled="true")
    explicit = found.fingerprint({"spark.sql.ansi.enabled": "false"})
    reason = found.compare(explicit, frozenset())
    assert reason is not None and reason.code is ReasonCode.SETTINGS_DIFFER
    assert "spark.sql.ansi.enabled is false in this session and true in the cache" in reason.detail


def test_values_other_than_booleans_keep_their_case():
    found, _ = comparer()
    here = found.fingerprint({"spark.sql.session.timeZone": "utc"})
    there = found.fingerprint({"spark.sql.session.timeZone": "UTC"})
    assert found.compare(here, there) is not None


def test_an_unknown_setting_without_default_differs():
    found, _ = comparer()
    here = found.fingerprint({"spark.sql.unheard": "1"})
    reason = found.compare(here, frozenset())
    assert reason is not None and "not set in the cache" in reason.detail
