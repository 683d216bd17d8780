# ruff: noqa: E501 - tables of types read better unbroken
"""Which types hold all values of another one: Delta's own widenings, and no others."""

from __future__ import annotations

import json

import pytest

from cachemgr.delta.base_columns import Fate, kept_columns, retyped_columns
from cachemgr.delta.widening import from_sql, holds_all_of, sql_type

WIDER = {
    ("byte", "short"), ("byte", "integer"), ("byte", "long"), ("short", "integer"), ("short", "long"),
    ("integer", "long"), ("byte", "double"), ("short", "double"), ("integer", "double"), ("float", "double"),
    ("date", "timestamp_ntz"), ("byte", "decimal(10,0)"), ("integer", "decimal(10,0)"), ("integer", "decimal(12,2)"),
    ("long", "decimal(20,0)"), ("long", "decimal(22,2)"), ("decimal(10,2)", "decimal(11,2)"),
    ("decimal(10,2)", "decimal(12,4)"),
}  # fmt: skip
SOME = {type_ for pair in WIDER for type_ in pair} | {
    "string", "boolean", "binary", "timestamp", "decimal(10,4)", "decimal(9,0)", "decimal(38,18)",
}  # fmt: skip


def test_wider_is_what_delta_widens_to_and_never_both_ways():
    for then in SOME:
        assert holds_all_of(then, then)
        for now in SOME - {then}:
            assert not (holds_all_of(then, now) and holds_all_of(now, then)), (then, now)
    assert all(holds_all_of(*pair) for pair in WIDER)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("long", "integer"), ("long", "double"), ("double", "float"), ("string", "integer"), ("integer", "string"),
        ("timestamp_ntz", "date"), ("date", "timestamp"), ("long", "decimal(20,2)"), ("integer", "decimal(9,0)"),
        ("decimal(10,2)", "decimal(10,4)"), ("decimal(12,2)", "decimal(12,1)"), ("decimal(10,2)", "double"),
    ],
)  # fmt: skip
def test_noop_a_narrower_or_other_type(then, now):
    assert not holds_all_of(then, now)


def schema(type_, **metadata):
    field = {"name": "x", "type": type_, "nullable": True, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})


def struct(**fields):
    return {
        "type": "struct",
        "fields": [
            {"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields.items()
        ],
    }


def array(type_):
    return {"type": "array", "elementType": type_, "containsNull": True}


CHAR = "__CHAR_VARCHAR_TYPE_STRING"
COLLATED = {"__COLLATIONS": {"x": "ICU.UNICODE_CI"}}


@pytest.mark.parametrize(
    ("then", "now", "fate"),
    [
        (schema("long"), schema("long", comment="other"), None),
        (schema("integer"), schema("long"), Fate.WIDENED),
        (schema("long"), schema("integer"), Fate.RETYPED),
        (schema(struct(a="integer")), schema(struct(b="string", A="long")), Fate.WIDENED),
        (schema(struct(a="long", b="long")), schema(struct(a="long")), Fate.RETYPED),
        (schema(array("integer")), schema(array("long")), Fate.WIDENED),
        (schema(array("integer")), schema(array("string")), Fate.RETYPED),
        (schema("string", **{CHAR: "varchar(5)"}), schema("string", **{CHAR: "varchar(9)"}), Fate.WIDENED),
        (schema("string", **{CHAR: "varchar(5)"}), schema("string"), Fate.WIDENED),
        (schema("string", **{CHAR: "varchar(5)"}), schema("string", **{CHAR: "varchar(4)"}), Fate.RETYPED),
        (schema("string", **{CHAR: "char(5)"}), schema("string", **{CHAR: "varchar(9)"}), Fate.RETYPED),
        (schema("string"), schema("string", **{CHAR: "varchar(9)"}), Fate.RETYPED),
        (schema("string"), schema("string", **COLLATED), Fate.RETYPED),
    ],
)  # fmt: skip
def test_what_became_of_a_column(then, now, fate):
    found = retyped_columns(kept_columns(then, {"x"}), now)
    assert [change.fate for change in found.values()] == ([] if fate is None else [fate])


def test_types_are_spelled_as_in_sql():
    (change,) = retyped_columns(
        kept_columns(schema(struct(a="short")), {"x"}), schema("byte")
    ).values()
    assert (change.then, change.now) == ("struct<a:smallint>", "tinyint")
    assert from_sql(sql_type("integer")) == "integer"
