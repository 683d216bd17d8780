"""What is said of settings that do not exist, and of those that come too late."""

from __future__ import annotations

import pytest

from cachemgr.config import settings_told
from cachemgr.config.setting_table import STARTUP
from cachemgr.config.setting_table import setting as find
from cachemgr.config.settings_told import refuse_late, unknown_keys, warn_of_late, warn_of_unknown
from cachemgr.errors import ConfigurationError

URL = "spark.cachemgr.metastore.url"


@pytest.fixture(autouse=True)
def _nothing_told_yet(monkeypatch):
    monkeypatch.setattr(settings_told, "_warned", set())


def test_misspelt_keys_are_found():
    keys = ["spark.cachemgr.approximateFloat", "spark.cachemgr.mode", "spark.sql.x"]
    assert unknown_keys(keys) == {keys[0]: "spark.cachemgr.approximateFloats"}
    with pytest.raises(ConfigurationError, match=r"did you mean .*approximateFloats"):
        find(keys[0])


def test_one_is_told_once_and_again_to_who_sets_it_again(caplog):
    for _ in ("builder", "enable", "query"):
        warn_of_unknown(["spark.cachemgr.mod", "spark.cachemgr.mode"])
    assert len(caplog.records) == 1
    warn_of_unknown(["spark.cachemgr.mod"], again=True)
    assert len(caplog.records) == 2


def test_a_setting_of_the_start_is_not_taken_by_set_without_a_word():
    assert {URL, "spark.cachemgr.token"} < STARTUP and "spark.cachemgr.mode" not in STARTUP
    with pytest.raises(
        ConfigurationError, match=r"^\[BAD_SETTING\] spark.*disable\(spark\)"
    ) as told:
        refuse_late("spark.cachemgr.token", "secret words", None)
    assert "secret words" not in str(told.value)
    refuse_late(URL, "sqlite:///x.db", "sqlite:///x.db")
    refuse_late("spark.cachemgr.dropGrace", "24h", None)  # what it is anyway
    refuse_late("spark.cachemgr.mode", "off", None)


def test_nor_by_a_conf_with_the_next_query(caplog):
    then = {URL: "sqlite:///a.db", "spark.cachemgr.mode": "rewrite"}
    warn_of_late(then, {**then, "spark.cachemgr.mode": "off"})
    assert not caplog.records
    for _ in range(2):
        warn_of_late(then, {URL: "sqlite:///b.db"})
    (record,) = caplog.records
    assert URL in record.getMessage() and "b.db" not in record.getMessage()
