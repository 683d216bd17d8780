"""The columns of a Delta table from its log's `schemaString`, with types as Spark's catalog spells
them.

Format: Delta protocol, "Schema Serialization Format". A type that is not known here becomes
`unknown`, which no expression may use.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final

from matcher.sql.expressions.types import UNKNOWN
from matcher.sql.schema import Column

_SIMPLE: Final = {
    "string": "string", "long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint",
    "float": "float", "double": "double", "boolean": "boolean", "binary": "binary", "date": "date",
    "timestamp": "timestamp", "timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
_CHAR: Final = "__CHAR_VARCHAR_TYPE_STRING"
_COLLATED: Final = "__COLLATIONS"


@lru_cache(maxsize=4096)
def read_columns(schema: str) -> tuple[Column, ...]:
    """The columns of a table, in order.

    Args:
        schema: The JSON of `schemaString`.

    Raises:
        ValueError: It is none.

    >>> read_columns('{"type":"struct","fields":[{"name":"a","type":"long","nullable":false,'
    ...              '"metadata":{}}]}')
    (Column(name='a', type='bigint', nullable=False),)
    """
    try:
        fields = json.loads(schema)["fields"]
        return tuple(
            Column(str(field["name"]), _type_of(field), bool(field.get("nullable", True)))
            for field in fields
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"not a schema of a Delta table: {error!r}") from error


def _type_of(field: dict[str, Any]) -> str:
    metadata = field.get("metadata") or {}
    if _COLLATED in metadata:
        return UNKNOWN  # equal there is not the same
    declared = str(metadata.get(_CHAR, ""))
    if declared.startswith("char"):
        return declared  # Spark pads it in comparisons
    if "char(" in declared and not declared.startswith("varchar"):
        return UNKNOWN  # and what is inside of a struct or an array as well
    return _spelled(field["type"])


def _spelled(kind: Any) -> str:
    if isinstance(kind, str):
        return _SIMPLE.get(kind, kind if kind.startswith("decimal(") else UNKNOWN)
    if kind["type"] == "struct":
        fields = (f"{f['name']}:{_type_of(f)}" for f in kind["fields"])
        return f"struct<{','.join(fields)}>"
    if kind["type"] == "array":
        return f"array<{_spelled(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_spelled(kind['keyType'])},{_spelled(kind['valueType'])}>"
    return UNKNOWN
