"""All that Spark is told of a text case, as plain data: settings, tables with rows, and views.

Data of a case that has no schema of its own are further rows of the shared tables; those of a case
that has one are its tables' only rows, and no other case's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from matcher.sql.schema import Schema, Table
from tests.matcher.fixture_cases import FOLDER, Case

_INSERT = re.compile(r"INSERT INTO (\S+)\s+VALUES\s+(.*)", re.DOTALL)


def case_inputs(case: Case, **more: Any) -> dict[str, Any]:
    """What the judges of `spark_cases` are given of a case, and more that is theirs."""
    return {
        "conf": sorted((k, v) for k, v in case.conf.items() if k.startswith("spark.sql.")),
        "shared": _shared(() if case.all("schema") else tuple(case.all("data"))),
        "own": _own(case),
        "query": case.query,
        "ordered": case.is_ordered,
        **more,
    }


@cache
def _shared(more: tuple[str, ...]) -> dict[str, Any]:
    schema = Schema.parse((FOLDER / "_schema.sql").read_text())
    rows = _shared_rows()
    # what a case adds is not in the tables that have a schema in their name: they are all cases'
    real = [(table.key, _select(table, rows, ())) for table in schema.tables.values()]
    return {**_relations(schema, rows, more), "real": real}


@cache
def _shared_rows() -> Mapping[str, str]:
    return _inserted((FOLDER / "_data.sql").read_text().split(";\n"))


def _own(case: Case) -> dict[str, Any]:
    schema = Schema.parse(";\n".join(case.all("schema")))
    rows = {**_shared_rows(), **_inserted(case.all("data"))}
    text = (case.query + case.caches).lower()
    asked = [t for t in schema.tables.values() if "." in t.name or "default" in text]
    real = [(table.key, _select(table, rows, ())) for table in asked]
    return {**_relations(schema, rows, ()), "real": real}


def _relations(schema: Schema, rows: Mapping[str, str], more: tuple[str, ...]) -> dict[str, Any]:
    bare = [table for table in schema.tables.values() if "." not in table.name]
    return {
        "schemas": sorted(schema.schemas - {"default"}),
        "tables": [(table.name, _select(table, rows, more)) for table in bare],
        "views": [(view.name, view.text) for view in schema.views.values()],
    }


def _inserted(statements: Iterable[str]) -> dict[str, str]:
    """The VALUES by the table that they go to."""
    found = (_INSERT.fullmatch(statement.strip().rstrip(";")) for statement in statements)
    return {insert[1]: insert[2] for insert in found if insert}


def _select(table: Table, rows: Mapping[str, str], more: tuple[str, ...]) -> str:
    names = ", ".join(c.name for c in table.columns)
    casts = ", ".join(f"CAST({c.name} AS {c.type}) AS {c.name}" for c in table.columns)
    nothing = f"(SELECT {', '.join(f'NULL AS {c.name}' for c in table.columns)}) WHERE false"
    found = [f for f in map(_INSERT.fullmatch, more) if f and f[1] == table.name]
    own = [rows[table.name]] if table.name in rows else []
    values = ", ".join([*own, *(f[2] for f in found)])
    return f"SELECT {casts} FROM " + (f"VALUES {values} AS v({names})" if values else nothing)
