"""Durations and sizes as settings and statements take them."""

from __future__ import annotations

import pytest

from cachemgr.config.setting_values import parse_bytes, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("10 min", 600), ("5m", 300), ("24H", 86400), ("1day", 86400)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("7", 7), ("7b", 7), ("2k", 2048), ("256m", 2**28), ("3 GB", 3 * 2**30)]
)
def test_sizes(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "h", "1.5h", "-1h", "1h 2m", "1e3"])
def test_neither_a_duration_nor_a_size(text):
    with pytest.raises(ValueError, match="a duration"):
        parse_duration(text)
    with pytest.raises(ValueError, match="a size"):
        parse_bytes(text)


def test_no_duration_is_longer_than_the_statements_take():
    assert parse_duration("36500d") == 36500 * 86400
    for text in ("36501d", "9999999999999s", "800000 days"):
        with pytest.raises(ValueError, match="a duration of at most 36500d"):
            parse_duration(text)
