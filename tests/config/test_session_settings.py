"""The settings' table, and the errors of values that are not accepted."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from cachemgr.config.session_settings import Settings
from cachemgr.config.setting import Mode
from cachemgr.config.setting_names import nearest
from cachemgr.config.setting_table import SETTINGS
from cachemgr.config.setting_table import setting as find
from cachemgr.config.settings_told import unknown_keys
from cachemgr.errors import ConfigurationError


def test_defaults_of_the_table_and_of_the_class_are_the_same():
    assert Settings.from_mapping({s.key: s.default for s in SETTINGS}) == Settings()
    assert sorted(s.field for s in SETTINGS) == sorted(f.name for f in fields(Settings))
    assert len({s.key for s in SETTINGS}) == len(SETTINGS)


def test_values_are_read_and_other_keys_ignored():
    found = Settings.from_mapping(
        {
            "spark.cachemgr.mode": "FAILFAST",
            "spark.cachemgr.pin.maxBytes": "1g",
            "spark.cachemgr.dropGrace": "2d",
            "spark.cachemgr.enabled": " False ",
            "spark.sql.ansi.enabled": "nonsense",
        }
    )
    assert found == Settings(
        enabled=False, mode=Mode.FAIL_FAST, pin_max_bytes=2**30, drop_grace_seconds=172800
    )


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("mode", "fast", "rewrite | planOnly | failFast | off"),
        ("enabled", "yes", "true or false"),
        ("pin.maxBytes", "256 elephants", "256m"),
        ("pin.maxRowsPerSet", "-1", "whole number"),
        ("dropGrace", "24 moons", "24h"),
        ("metastore.url", "  ", "not empty"),
    ],
)
def test_a_bad_value_names_key_value_and_what_is_accepted(name, value, accepted):
    with pytest.raises(ConfigurationError) as caught:
        Settings.from_mapping({f"spark.cachemgr.{name}": value})
    message = str(caught.value)
    assert f"spark.cachemgr.{name}" in message
    assert repr(value) in message
    assert accepted in message


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("metastore", "metastore.url"),
        ("metastoreUrl", "metastore.url"),
        ("pin", "pin.enabled"),
        ("DROPGRACE", "dropGrace"),
        ("decisionLog", "decisionLog.enabled"),
        ("something.else.altogether", None),
    ],
)
def test_the_setting_that_was_meant_is_named(given, meant):
    key = f"spark.cachemgr.{given}"
    expected = meant and f"spark.cachemgr.{meant}"
    assert unknown_keys([key]) == {key: expected}
    says = f"did you mean {re.escape(expected)}" if expected else "the settings are"
    with pytest.raises(ConfigurationError, match=says):
        find(key)


def test_every_setting_is_known_by_a_beginning_of_its_name_and_with_a_letter_lost():
    for setting in SETTINGS:
        assert nearest(setting.key[:-1], [s.key for s in SETTINGS]) == setting.key
