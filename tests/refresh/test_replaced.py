"""What became of base tables, for the reason of a refresh."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cachemgr.base_state import TableAt
from cachemgr.delta.base_columns import kept_columns
from cachemgr.metastore.records import SnapshotTableRecord
from cachemgr.refresh.replaced import replaced_tables


def schema(type_: str) -> str:
    field = {"name": "k", "type": type_, "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [field]})


NOW = TableAt("s.t", "file:/t", "id", 7, 0, "c", schema("integer"))
THEN = SnapshotTableRecord("s.T", "file:/t", "id", 3, 0, "b", kept_columns(NOW.columns, {"k"}))
ELSEWHERE = replace(NOW, location="file:/u", table_id="id-2")
WIDE = replace(NOW, columns=schema("long"))


@pytest.mark.parametrize(
    ("now", "code", "told"),
    [
        (WIDE, "COLUMNS_CHANGED", "column k of s.t was int and is bigint"),
        (replace(NOW, table_id="id-2"), "TABLE_RECREATED", "s.t was re-created"),
        (
            replace(WIDE, table_id="id-2"),
            "TABLE_RECREATED",
            "s.t was re-created; column k of s.t was int and is bigint",
        ),
        (ELSEWHERE, "TABLE_RECREATED", "s.t is another table now, at file:/u"),
    ],
)
def test_what_is_told(now: TableAt, code: str, told: str) -> None:
    found = replaced_tables((THEN,), (now,))
    assert found is not None and (found.code, str(found.told)) == (code, told)


@pytest.mark.parametrize(
    "now",
    [NOW, replace(NOW, version=9), replace(ELSEWHERE, name="s.other"), replace(NOW, name="x")],
)
def test_noop_the_same_table_or_one_that_has_nothing_to_do_with_it(now: TableAt) -> None:
    assert replaced_tables((THEN,), (now,)) is None


def test_another_table_of_no_other_columns_does_not_explain_another_plan() -> None:
    found = replaced_tables((THEN,), (replace(NOW, table_id="id-2"),))
    assert found is not None and not found.explains_all
