"""Which of Spark's types a result holds, and as what Arrow shows them.

Parquet keeps no intervals, so that those of days are stored as whole numbers of microseconds and
become durations again by what the manifest says. What it can keep in no way is refused before
anything runs, by the column's name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.results.manifest import ResultColumn

_DAYS: Final = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")
_AS_TEXT: Final = "CAST({} AS STRING)"
_INSTEAD: Final = (
    (
        re.compile(r"interval (year|month)( to month)?"),
        "an INTERVAL of months",
        "CAST({} AS STRING)",
    ),
    (re.compile(r"(calendar_)?interval"), "an INTERVAL", _AS_TEXT),
    (re.compile(r"time\(\d\)"), "a TIME", _AS_TEXT),
    (re.compile(r"variant"), "a VARIANT", "to_json({})"),
    (re.compile(r"geometry.*|geography.*"), "a GEOMETRY or GEOGRAPHY", "ST_AsBinary({})"),
)
_NESTED: Final = ("struct", "array", "map")


def refuse_types(columns: Sequence[ResultColumn]) -> None:
    """Refuse a result that could not be read back.

    Args:
        columns: Its columns.

    Raises:
        CacheManagerError: Names a column, and what to write in its place.
    """
    if not columns:
        raise CacheManagerError(
            ErrorCode.RESULT_TYPE, "the query has no columns, and no result has none: select some"
        )
    for column in columns:
        why = _refusal(column.type, top=True)
        if why is not None:
            what, instead = why
            name = f"`{column.name.replace('`', '``')}`"
            raise CacheManagerError(
                ErrorCode.RESULT_TYPE,
                f"column {name} is or holds {what}, which no result holds: "
                f"select {instead.format(name)} in its place",
            )


def is_nested(columns: Sequence[ResultColumn]) -> bool:
    """Whether some column is a STRUCT, an ARRAY or a MAP.

    Args:
        columns: Of a result.
    """
    return any(isinstance(column.type, dict) for column in columns)


def as_told(batch: pa.RecordBatch, columns: Sequence[ResultColumn]) -> pa.RecordBatch:
    """A batch of the files as the query has it.

    Args:
        batch: With the columns `c0`, `c1`, ….
        columns: The result's.
    """
    arrays = [
        array.cast(pa.duration("us")) if _is_days(column.type) else array
        for array, column in zip(batch.columns, columns, strict=True)
    ]
    fields = [
        pa.field(column.name, array.type, column.nullable or array.null_count > 0)
        for array, column in zip(arrays, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def told_schema(stored: pa.Schema, columns: Sequence[ResultColumn]) -> pa.Schema:
    """The schema of all batches of a result.

    Args:
        stored: That of its files.
        columns: The result's.
    """
    types = (
        pa.duration("us") if _is_days(column.type) else field.type
        for field, column in zip(stored, columns, strict=True)
    )
    return pa.schema(
        [pa.field(c.name, kind, c.nullable) for c, kind in zip(columns, types, strict=True)]
    )


def _is_days(kind: Any) -> bool:
    return isinstance(kind, str) and _DAYS.fullmatch(kind) is not None


def _refusal(kind: Any, *, top: bool) -> tuple[str, str] | None:
    """What of a type is not held, and what may be selected instead."""
    if isinstance(kind, str):
        if not top and _is_days(kind):
            return "an INTERVAL inside of it", "to_json({})"
        return next(
            ((what, instead) for form, what, instead in _INSTEAD if form.fullmatch(kind)), None
        )
    if kind["type"] not in _NESTED:
        return "a user-defined type", _AS_TEXT
    if kind.get("fields") == []:
        return "a STRUCT without fields", "other columns, not {}"
    names = [field["name"] for field in kind.get("fields", ())]
    if len(set(names)) < len(names):  # Parquet's reader takes one for the other
        return "a STRUCT of which two fields have one name", "its fields by themselves, not {}"
    parts = [kind[key] for key in ("elementType", "keyType", "valueType") if key in kind]
    parts += [field["type"] for field in kind.get("fields", ())]
    found = next(filter(None, (_refusal(part, top=False) for part in parts)), None)
    return None if found is None else (found[0], "its parts that are of other types, not {}")
