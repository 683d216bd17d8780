"""Does the data keep a record-preserving join? Checked at pinned versions by GROUP BY and LEFT
ANTI.

`A INNER JOIN B` keeps each row of A exactly once if B is unique on the key, and every key of A is
found in B. NOT IN would answer the second question wrongly as soon as B's key holds one NULL: then
nothing is "not in", and every lost row is missed. `A LEFT JOIN B` asks for the first alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from cachemgr.delta.own_session import own_session
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.errors import ErrorCode, JoinValidationError
from cachemgr.metastore.records import JoinRecord
from cachemgr.refresh.by_change.changed_rows import rows_that_came
from cachemgr.refresh.by_change.incremental import Delta
from cachemgr.refresh.pin import columns_told
from cachemgr.refresh.small import in_one_task, is_small, plan_for_one_task
from matcher.model.message import (
    NOTHING,
    ColumnName,
    Count,
    JoinName,
    Message,
    Several,
    TableName,
    Value,
    joined,
)
from matcher.render.placeholders import TABLE
from matcher.render.select import quote

JOIN_COLUMN_LOST: Final = ErrorCode.JOIN_COLUMN_LOST
_DUPLICATES, _LOST = 0, 1


@dataclass(frozen=True, slots=True)
class JoinCheck:
    """What a validation found.

    Args:
        ok: Each left row is kept exactly once, and the right side is unique on the key.
        duplicates: Key values that the right side holds more than once.
        null_keys: Left rows with a NULL in the key; each is lost.
        lost_rows: Left rows without a match, those with NULL keys included.
        multiplied: Left rows that match more than one right row.
        examples: One example key for each kind of trouble found.
        versions: Location to version that was checked.
    """

    ok: bool
    duplicates: int = 0
    null_keys: int = 0
    lost_rows: int = 0
    multiplied: int = 0
    examples: Mapping[str, tuple[Any, ...]] | None = None
    versions: Mapping[str, int] | None = None

    def message(self, name: str, left: str, right: str, keys: Sequence[tuple[str, str]]) -> Message:
        """What is wrong, for people; `NOTHING` when nothing is."""
        if self.ok:
            return NOTHING
        examples = self.examples or {}
        parts = []
        if self.lost_rows:
            template = "{rows} of {left} would be lost, for example {example}"
            if self.null_keys:
                template = (
                    "{rows} of {left} would be lost, {nulls} of them with a NULL key, for example "
                    "{example}"
                )
            parts.append(
                Message(
                    template,
                    rows=Count(self.lost_rows, "row"),
                    left=TableName(left),
                    nulls=Count(self.null_keys),
                    example=_example([k for k, _ in keys], examples.get("lost", ())),
                )
            )
        if self.duplicates:
            parts.append(
                Message(
                    "{rows} of {left} would be multiplied: {right} holds {values} more than once, "
                    "for example {example}",
                    rows=Count(self.multiplied, "row"),
                    left=TableName(left),
                    right=TableName(right),
                    values=Count(self.duplicates, "key value"),
                    example=_example([k for _, k in keys], examples.get("duplicate", ())),
                )
            )
        return Message(
            "record-preserving join {join} does not hold: {why}",
            join=JoinName(name),
            why=joined(parts),
        )


def _example(names: Sequence[str], values: Sequence[Any]) -> Several:
    pairs = zip(names, values, strict=False)
    return Several(
        tuple(
            Message(
                "{column} = {value}",
                column=ColumnName(name),
                value=Value("NULL" if value is None else repr(value)),
            )
            for name, value in pairs
        )
    )


def validate_join(
    spark: SparkSession,
    left: str,
    right: str,
    keys: Sequence[tuple[str, str]],
    versions: Mapping[str, int],
    settings: Mapping[str, str],
    *,
    told: str = "",
    names: tuple[str, str] | None = None,
    finds_each: bool = True,
) -> JoinCheck:
    """Check a record-preserving join at pinned versions.

    Args:
        spark: Any session; the check runs in one of its own, out of the hook's sight.
        left: Location of the table whose rows are to be kept.
        right: Location of the table joined to it.
        keys: (left column, right column) pairs.
        versions: Location to the version that is read.
        settings: Those under which it is read: they decide what a time zone, a calendar or a
            collation makes of the keys.
        told: The join's name, for messages.
        names: Those of both tables; None takes their places.
        finds_each: Whether a left row without a partner is lost, as by an INNER JOIN.

    Returns:
        What was found; `ok` says whether the join holds.

    Raises:
        JoinValidationError: No keys, a location without a version, or a table has no such key
            column any more.
    """
    missing = [place for place in (left, right) if place not in versions]
    if missing or not keys:
        what = (
            f"no version is known for {', '.join(missing)}" if missing else "it has no key columns"
        )
        raise JoinValidationError(
            ErrorCode.JOIN_NOT_CHECKABLE,
            f"the join of {left} and {right} cannot be checked: {what}; declare it on Delta "
            "tables with ON a.k = b.k",
        )
    session = own_session(spark, settings)
    reads = {"__l": TableRead(left, versions[left]), "__r": TableRead(right, versions[right])}
    try:
        return _checked(session, reads, keys, versions, finds_each)
    except AnalysisException as error:
        # only here: each refresh would pay for looking at the columns first
        _refuse_lost_keys(session, reads, keys, told, names or (left, right), error)
        raise


def rows_lost(
    session: SparkSession,
    joins: Sequence[JoinRecord],
    delta: Delta,
    versions: Mapping[str, int],
    settings: Mapping[str, str],
) -> dict[str, JoinCheck]:
    """Which appended rows would be lost by joins whose joined sides are unique on the key; one
    query for all of them.

    Args:
        session: A session of ours.
        joins: The joins, all of whose left sides are the table that grew.
        delta: What was appended to it.
        versions: Location to the version that is read.
        settings: Those under which it is read.

    Returns:
        What was found, by the join's name.
    """
    own = own_session(session, settings)
    relations: dict[str, object] = {"__l": rows_that_came(own, delta)}
    parts = []
    for number, join in enumerate(joins):
        place = join.right.location
        relations[f"__r{number}"] = TableRead(place, versions[place])
        text = _lost_sql(join.keys, f"__r{number}")
        # of joins by columns of several types
        example = "to_json(example, map('ignoreNullFields', 'false')) AS example"
        parts.append(f"SELECT {number} AS what, n, nulls, {example} FROM ({text})")
    if is_small(own, [r for r in relations.values() if isinstance(r, TableRead)]):
        plan_for_one_task(own)
    found = run_select(own, " UNION ALL ".join(parts), relations).collect()
    checks = {}
    for what, lost, nulls, example in found:
        examples = {"lost": tuple(json.loads(example).values())} if lost else {}
        checks[joins[what].name] = JoinCheck(
            ok=not lost, lost_rows=lost, null_keys=nulls, examples=examples, versions=versions
        )
    return checks


def _refuse_lost_keys(
    session: SparkSession,
    reads: Mapping[str, TableRead],
    keys: Sequence[tuple[str, str]],
    told: str,
    names: tuple[str, str],
    error: AnalysisException,
) -> None:
    for side, read in enumerate(reads.values()):
        schema = run_select(session, f"SELECT * FROM {TABLE}", {TABLE: read}).schema
        have = {field.name.lower() for field in schema.fields}
        lost = [key[side] for key in keys if key[side].lower() not in have]
        if lost:
            raise JoinValidationError(
                JOIN_COLUMN_LOST,
                f"record-preserving join {told}: table {names[side]} has no column "
                f"{', '.join(lost)} any more; add it again, or drop the join "
                f"({columns_told(schema)})",
            ) from error


def _checked(
    session: SparkSession,
    reads: Mapping[str, TableRead],
    keys: Sequence[tuple[str, str]],
    versions: Mapping[str, int],
    finds_each: bool,
) -> JoinCheck:
    tables: dict[str, object] = dict(reads)
    if is_small(session, reads.values()):
        plan_for_one_task(session)
        tables = {name: in_one_task(session, read) for name, read in reads.items()}
    found = run_select(session, _wrong_sql(keys, finds_each), tables).collect()
    rows = {row["what"]: row for row in found}
    groups = rows[_DUPLICATES]["n"]
    lost, nulls = (rows[_LOST]["n"], rows[_LOST]["nulls"]) if finds_each else (0, 0)
    text = _multiplied_sql(keys)
    multiplied = run_select(session, text, tables).collect()[0][0] if groups else 0
    examples = {}
    if groups:
        examples["duplicate"] = tuple(rows[_DUPLICATES]["example"])
    if lost:
        examples["lost"] = tuple(rows[_LOST]["lost"])
    return JoinCheck(
        ok=not groups and not lost,
        duplicates=groups,
        null_keys=nulls,
        lost_rows=lost,
        multiplied=multiplied,
        examples=examples,
        versions={read.location: versions[read.location] for read in reads.values()},
    )


def _wrong_sql(keys: Sequence[tuple[str, str]], finds_each: bool) -> str:
    """What is wrong on either side, in one query: a job that reads each table once more is dear."""
    text = (
        f"SELECT {_DUPLICATES} AS what, n, 0L AS nulls, example, NULL AS lost "
        f"FROM ({_duplicates_sql(keys)}) AS a"
    )
    if not finds_each:
        return text
    return f"{text} UNION ALL SELECT {_LOST}, n, nulls, NULL, example FROM ({_lost_sql(keys)}) AS b"


def _struct(columns: Sequence[str]) -> str:
    return "named_struct(" + ", ".join(f"'k{i}', {c}" for i, c in enumerate(columns)) + ")"


def _right_groups(keys: Sequence[tuple[str, str]]) -> str:
    columns = [f"r.{quote(k)}" for _, k in keys]
    named = ", ".join(f"{c} AS k{i}" for i, c in enumerate(columns))
    # A NULL key on the right matches no left row, so several of them multiply nothing.
    known = " AND ".join(f"{c} IS NOT NULL" for c in columns)
    grouped = ", ".join(columns)
    return (
        f"SELECT {named}, COUNT(*) AS n FROM __r AS r WHERE {known} "
        f"GROUP BY {grouped} HAVING COUNT(*) > 1"
    )


def _duplicates_sql(keys: Sequence[tuple[str, str]]) -> str:
    example = _struct([f"k{i}" for i in range(len(keys))])
    return (
        f"SELECT COUNT(*) AS n, MAX_BY({example}, n) AS example FROM ({_right_groups(keys)}) AS d"
    )


def _multiplied_sql(keys: Sequence[tuple[str, str]]) -> str:
    on = " AND ".join(f"l.{quote(k)} = d.k{i}" for i, (k, _) in enumerate(keys))
    return f"SELECT COUNT(*) FROM __l AS l LEFT SEMI JOIN ({_right_groups(keys)}) AS d ON {on}"


def _lost_sql(keys: Sequence[tuple[str, str]], right: str = "__r") -> str:
    on = " AND ".join(f"l.{quote(a)} = r.{quote(b)}" for a, b in keys)
    named = ", ".join(f"l.{quote(a)} AS k{i}" for i, (a, _) in enumerate(keys))
    names = [f"k{i}" for i in range(len(keys))]
    is_null = " OR ".join(f"{n} IS NULL" for n in names)
    # A key with a value that is not found tells more than NULL, so it is the example if there is
    # one.
    example = (
        f"COALESCE(FIRST({_struct(names)}) FILTER (WHERE NOT ({is_null})), FIRST({_struct(names)}))"
    )
    return (
        f"SELECT COUNT(*) AS n, COUNT_IF({is_null}) AS nulls, {example} AS example "
        f"FROM (SELECT {named} FROM __l AS l LEFT ANTI JOIN {right} AS r ON {on}) AS x"
    )
