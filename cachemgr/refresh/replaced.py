"""What became of base tables because of which a cache's plan is another one: columns that got wider
types, tables that were created again at their place or elsewhere under their name. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cachemgr.base_state import TableAt
from cachemgr.delta.base_columns import retyped_columns
from cachemgr.metastore.records import SnapshotTableRecord
from cachemgr.refresh.by_change.why_full import FullCode
from matcher.model.message import ColumnName, Message, TableName, Word, joined


@dataclass(frozen=True, slots=True)
class Replaced:
    """What became of base tables.

    Args:
        code: `TABLE_RECREATED`, or `COLUMNS_CHANGED` where their columns alone are other ones.
        told: What it is, for people.
        explains_all: The plan needs no other reason to be another one.
    """

    code: FullCode
    told: Message
    explains_all: bool


def replaced_tables(then: Sequence[SnapshotTableRecord], now: Iterable[TableAt]) -> Replaced | None:
    """What became of the tables that a snapshot read; None if all are the ones that they were.

    Args:
        then: The tables as the snapshot read them.
        now: The tables that the definition stands for now.
    """
    by_place = {table.location: table for table in then}
    by_name = {table.name.lower(): table for table in then}
    others: list[Message] = []
    columns: list[Message] = []
    moved = False
    for table in now:
        old, name = by_place.get(table.location), TableName(table.name)
        if old is None:
            old = by_name.get(table.name.lower())
            if old is None:
                continue
            moved = True
            what = "{table} is another table now, at {place}"
            others.append(Message(what, table=name, place=Word(table.location)))
        elif old.table_id != table.table_id:
            others.append(Message("{table} was re-created", table=name))
        if old.columns is not None and table.columns:
            columns += [
                Message(
                    "column {column} of {table} was {then} and is {now}",
                    column=ColumnName(column),
                    table=name,
                    then=Word(other.then),
                    now=Word(other.now),
                )
                for column, other in retyped_columns(old.columns, table.columns).items()
            ]
    if not others and not columns:
        return None
    code = FullCode.TABLE_RECREATED if others else FullCode.COLUMNS_CHANGED
    return Replaced(code, joined([*others, *columns]), moved or bool(columns))
