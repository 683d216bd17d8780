"""Types in types: as many as are read in time, however many there are beside each other."""

from __future__ import annotations

import pytest

from cachemgr.text.limits import check_text
from matcher.model.errors import InputCode, MatcherError, SqlInputError
from matcher.sql.parse import MAX_DEPTH, parse_statements
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

SCHEMA = Schema.parse("CREATE TABLE t (a INT, b ARRAY<ARRAY<INT>>)")


def nested(depth: int) -> str:
    return "ARRAY<" * depth + "INT" + ">" * depth


@pytest.mark.parametrize("end", [">", ""])
def test_types_nested_too_deeply_are_refused_before_they_are_parsed(end: str) -> None:
    text = "SELECT CAST(a AS " + "ARRAY<" * 1_500 + "INT" + end * 1_500 + ") AS x FROM t"
    with pytest.raises(MatcherError, match="types are nested more than 100 times"):
        parse_query(text, SCHEMA)
    with pytest.raises(SqlInputError) as found:
        check_text(text)
    assert found.value.code == InputCode.TEXT_TOO_DEEP


def test_types_beside_each_other_are_not_nested() -> None:
    many = ", ".join(f"CAST(NULL AS MAP<STRING, ARRAY<INT>>) AS x{i}" for i in range(2 * MAX_DEPTH))
    text = f"SELECT {many} FROM t WHERE a >> 2 > 1 AND a < 5"
    check_text(text)
    assert len(parse_statements(text)) == 1
    check_text(f"SELECT CAST(NULL AS {nested(MAX_DEPTH)}) AS x FROM t")
