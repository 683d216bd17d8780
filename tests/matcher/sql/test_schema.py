"""Declared tables, keys and views."""

from __future__ import annotations

import pytest

from matcher.model.errors import SqlInputError
from matcher.model.ir import RecordPreservingJoin
from matcher.sql.schema import Schema, Table, View

PARENT = "CREATE TABLE p (k INT NOT NULL PRIMARY KEY, u STRING, UNIQUE (u))"


def joins(child: str, parent: str = PARENT) -> tuple[RecordPreservingJoin, ...]:
    return Schema.parse(f"{parent};\n{child}").joins()


def test_all_that_create_table_may_say() -> None:
    schema = Schema.parse(
        """CREATE SCHEMA s LOCATION '/x'; CREATE DATABASE IF NOT EXISTS d2;
        -- a comment; with a semicolon
        CREATE TABLE IF NOT EXISTS s.T (
          a INT NOT NULL COMMENT 'it\\'s; so', B decimal(12, 2), c varchar(10), d char(3),
          e timestamp_ntz,
          f struct<x: int>, g array<string>, h bigint, i date,
          CONSTRAINT pk PRIMARY KEY (a) NOT ENFORCED RELY, UNIQUE (B, c))
        USING delta PARTITIONED BY (i) LOCATION '/y' COMMENT 'z' TBLPROPERTIES ('k' = 'v');
        USE s; CREATE TABLE t2 (a INT)"""
    )
    table = schema.find(("S", "t"))
    assert isinstance(table, Table)
    types = [c.type for c in table.columns]
    assert types[:5] == ["int", "decimal(12,2)", "string", "char(3)", "timestamp_ntz"]
    assert types[7:] == ["bigint", "date"]
    assert [c.nullable for c in table.columns][:2] == [False, True]
    assert table.primary_key == ("a",) and table.unique_keys == (frozenset({"b", "c"}),)
    assert schema.find(("t2",)) is schema.find(("spark_catalog", "s", "T2")) is not None
    assert schema.find(("other_catalog", "s", "t2")) is None
    assert schema.similar("t22") == "s.t2"


@pytest.mark.parametrize(
    "kind",
    [
        "STRING COLLATE UTF8_LCASE",
        "ARRAY<STRING COLLATE UTF8_LCASE>",
        "STRUCT<a: INT, b: STRING COLLATE UTF8_LCASE>",
        "MAP<STRING, STRUCT<a: STRING COLLATE UTF8_LCASE>>",
    ],
)
def test_a_type_with_a_collation_in_it_is_not_known(kind: str) -> None:
    table = Schema.parse(f"CREATE TABLE t (a {kind})").find(("t",))
    assert isinstance(table, Table)
    assert [c.type for c in table.columns] == ["unknown"]


def test_a_view_keeps_its_text_and_the_schema_that_was_current() -> None:
    schema = Schema.parse(
        "CREATE TABLE t (a INT); CREATE OR REPLACE VIEW v (x COMMENT 'as is') AS\nSELECT a  FROM t;"
        "CREATE TEMPORARY VIEW w AS (SELECT 1 AS a)"
    )
    view = schema.find(("v",))
    assert isinstance(view, View)
    assert (view.text, view.column_names) == ("SELECT a  FROM t", ("x",))
    assert isinstance(schema.find(("W",)), View)


@pytest.mark.parametrize("head", ["v COMMENT 'known ''as'' v'", "v COMMENT 'as'", "`as`"])
def test_the_query_of_a_view_is_not_looked_for_in_quotes(head: str) -> None:
    schema = Schema.parse(f"CREATE VIEW {head} AS SELECT 'it''s' AS a")
    assert [view.text for view in schema.views.values()] == ["SELECT 'it''s' AS a"]


def test_a_foreign_key_is_a_record_preserving_join() -> None:
    key = "CONSTRAINT fk FOREIGN KEY (k) REFERENCES p (k) NOT ENFORCED RELY"
    child = f"CREATE TABLE c (k INT NOT NULL, {key})"
    wanted = RecordPreservingJoin("fk", "default.c", "default.p", (("k", "k"),), True)
    assert joins(child) == (wanted,)
    assert joins(child.replace(" (k) NOT", " NOT")) == (wanted,)
    by_unique = "CREATE TABLE c (x STRING NOT NULL REFERENCES p (u) RELY)"
    assert joins(by_unique)[0].keys == (("x", "u"),)


def test_a_foreign_key_that_may_be_null_finds_one_row_or_none() -> None:
    (found,) = joins("CREATE TABLE c (k INT, FOREIGN KEY (k) REFERENCES p (k) RELY)")
    assert found.keys == (("k", "k"),) and not found.finds_each


@pytest.mark.parametrize(
    "child",
    [
        "CREATE TABLE c (k INT NOT NULL, FOREIGN KEY (k) REFERENCES p (k) NOT ENFORCED NORELY)",
        "CREATE TABLE c (k INT NOT NULL, FOREIGN KEY (k) REFERENCES p (k))",
        "CREATE TABLE c (k BIGINT NOT NULL, FOREIGN KEY (k) REFERENCES p (k) RELY)",
        "CREATE TABLE c (k INT NOT NULL, FOREIGN KEY (k) REFERENCES nowhere (k) RELY)",
        "CREATE TABLE c (k INT NOT NULL, s STRING NOT NULL, "
        "FOREIGN KEY (k, s) REFERENCES p (k, u) RELY)",
    ],
    ids=["norely", "not-rely", "other-type", "no-table", "not-a-key"],
)
def test_a_weaker_foreign_key_is_not(child: str) -> None:
    assert joins(child) == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TABLE t (a INT", "SYNTAX_ERROR"),
        ("CREATE TABLE t (a INT); CREATE TABLE T (a INT)", "TABLE_ALREADY_EXISTS"),
        ("CREATE TABLE t (a INT, A STRING)", "DUPLICATE_COLUMN"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", "COLUMN_NOT_FOUND"),
        ("CREATE TABLE nowhere.t (a INT)", "SCHEMA_NOT_FOUND"),
        ("CREATE TABLE a.b.c (a INT)", "CATALOG_NOT_SUPPORTED"),
        ("INSERT INTO t VALUES (1)", "SCHEMA_STATEMENT_NOT_SUPPORTED"),
        ("CREATE TABLE t AS SELECT 1 AS a", "COLUMNS_MISSING"),
    ],
)
def test_schemas_at_fault(text: str, code: str) -> None:
    with pytest.raises(SqlInputError) as caught:
        Schema.parse(text)
    assert caught.value.code == code
