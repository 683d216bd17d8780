"""The columns that a server is told of a statement before it is carried out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cachemgr.ddl import parse
from cachemgr.ddl.render import STATEMENTS
from cachemgr.statements import columns
from cachemgr.statements.columns import columns_of


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SHOW RELATIONAL CACHES", columns.CACHES),
        ("SHOW CREATE RELATIONAL CACHE c", columns.CREATE_TEXT),
        ("DESCRIBE RELATIONAL CACHE EXTENDED c", columns.DESCRIBED),
        ("SHOW RECORD PRESERVING JOINS", columns.JOINS),
        ("SHOW RESTRICTED BASE TABLES", columns.RESTRICTED),
        ("EXPLAIN REWRITE SELECT 1", columns.ITEMS),
        ("EXPLAIN REWRITE FORMAT JSON SELECT 1", columns.JSON),
        ("EXPLAIN REFRESH c", columns.STEPS),
        ("EXPLAIN CREATE RELATIONAL CACHE c AS SELECT a FROM t", columns.ITEMS),
        ("REFRESH RELATIONAL CACHE c", columns.REFRESHED),
        ("VALIDATE RECORD PRESERVING JOIN j", columns.VALIDATED),
        ("CREATE RELATIONAL CACHE c AS SELECT a FROM t", ("name", "result")),
        ("DROP RELATIONAL CACHE c", ("name", "result")),
        ("ALTER RELATIONAL CACHE c PAUSE", ("name", "result")),
        ("GRANT USE ON RELATIONAL CACHE c TO p", ("name", "result")),
        ("RESTRICT BASE TABLE t", ("name", "result")),
        ("GRANT SELECT ON BASE TABLE t TO p", columns.SELECT_GRANTED),
        ("REVOKE SELECT ON BASE TABLE t FROM p", ("name", "result")),
        ("SHOW SELECT GRANTS TO p", columns.SELECT_GRANTS),
    ],
)
def test_the_columns_follow_from_the_kind(text: str, names: tuple[str, ...]) -> None:
    found = columns_of(parse(text))
    assert [name for name, _ in found.columns] == [name.split()[0] for name in names]
    assert found.rows == ()


def test_rows_are_made_with_these_columns_alone() -> None:
    """What is carried out has the columns that were told before: nobody writes others down."""
    root = Path(columns.__file__).parents[1]
    places = [*root.glob("statements/*.py"), root / "spark/engine.py", root / "serving/explain.py"]
    for path in places:
        for node in ast.walk(ast.parse(path.read_text())):
            is_table = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "table"
            assert not (is_table and isinstance(node.args[0], ast.List | ast.Tuple)), path


def test_each_statement_has_columns() -> None:
    assert set(columns._BY_KIND) < set(STATEMENTS)
