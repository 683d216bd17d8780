"""The columns of a Delta table as texts are read against them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cachemgr.delta.columns import read_columns

STRUCT = {
    "type": "struct",
    "fields": [
        {"name": "a", "type": "string", "nullable": True, "metadata": {}},
        {"name": "B", "type": "decimal(3,1)", "nullable": True, "metadata": {}},
    ],
}


@pytest.mark.parametrize(
    ("kind", "metadata", "expected"),
    [
        (STRUCT, {}, "struct<a:string,B:decimal(3,1)>"),
        # Spark pads the field in comparisons, of which the type says nothing
        (STRUCT, {"__CHAR_VARCHAR_TYPE_STRING": "struct<a:char(3),B:decimal(3,1)>"}, "unknown"),
        (STRUCT, {"__COLLATIONS": {"s.a": "icu.UNICODE_CI"}}, "unknown"),
        ("string", {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}, "char(3)"),
        ("string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}, "string"),
        ("string", {"__COLLATIONS": {"s": "icu.UNICODE_CI"}}, "unknown"),
        ("variant", {}, "unknown"),
    ],
)
def test_types(kind: Any, metadata: dict[str, Any], expected: str) -> None:
    field = {"name": "s", "type": kind, "nullable": True, "metadata": metadata}
    (column,) = read_columns(json.dumps({"type": "struct", "fields": [field]}))
    assert (column.name, column.type) == ("s", expected)
