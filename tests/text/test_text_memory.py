"""What is remembered of texts: what comes again and again, and no more than there is room for."""

from __future__ import annotations

import pytest

from cachemgr.text.limits import LONG_TEXT
from cachemgr.text.templates import MOST_SHAPES, Templates
from matcher.sql.reader import TextSettings, parse_query
from matcher.sql.schema import Schema

SCHEMA = Schema.parse("CREATE TABLE t (a INT, s STRING, v BIGINT)")
SETTINGS = TextSettings()
TEXT = "SELECT s, SUM(v) AS x FROM t WHERE a = 5 GROUP BY s"


def _learn(templates: Templates, text: str) -> None:
    templates.learn(text, parse_query(text, SCHEMA, SETTINGS), SCHEMA, SETTINGS)


def _is_known(templates: Templates, text: str) -> bool:
    return templates.read(text, SCHEMA, SETTINGS) is not None


@pytest.mark.parametrize("size", [LONG_TEXT, LONG_TEXT + 1])
def test_of_long_texts_nothing_is_remembered(size):
    templates = Templates()
    text = TEXT + " " * (size - len(TEXT))
    for _ in range(3):
        _learn(templates, text)
    assert _is_known(templates, text) is (size <= LONG_TEXT)
    assert len(templates._shapes) == (size <= LONG_TEXT)


def test_what_is_asked_for_all_the_time_does_not_make_room_for_what_came_once():
    templates, read = Templates(), parse_query(TEXT, SCHEMA, SETTINGS)
    rare = TEXT.replace("a = 5", "a > 5")
    for text in (TEXT, TEXT, rare, rare):
        _learn(templates, text)
    assert _is_known(templates, TEXT) and _is_known(templates, rare)
    for number in range(MOST_SHAPES + 10):
        templates.learn(TEXT.replace("AS x", f"AS x{number}"), read, SCHEMA, SETTINGS)
        assert number % 100 or _is_known(templates, TEXT), number
    assert _is_known(templates, TEXT) and not _is_known(templates, rare)
