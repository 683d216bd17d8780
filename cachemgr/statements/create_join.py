"""From a CREATE RECORD PRESERVING JOIN to the record that is stored: tables and key columns."""

from __future__ import annotations

from dataclasses import replace

from cachemgr.base_state import TableAt
from cachemgr.ddl.render import render
from cachemgr.ddl.render_parts import render_name
from cachemgr.ddl.statements import (
    ColumnRef,
    CreateRecordPreservingJoin,
    JoinKey,
    Side,
)
from cachemgr.delta.columns import read_columns
from cachemgr.errors import DefinitionError, ErrorCode
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.secrets import refuse_secrets
from cachemgr.statements.engine import Engine


def build_join(statement: CreateRecordPreservingJoin, engine: Engine) -> JoinRecord:
    """The record of a new join, the preserved table on its left.

    Args:
        statement: The CREATE.
        engine: Resolves the tables.

    Returns:
        The record, not validated yet.

    Raises:
        ConfigurationError: It holds a credential.
        DefinitionError: A table or a key column does not exist, a column is ambiguous, or two are
            of types that are not compared without a cast that may fail or lose something.
    """
    definition = render(replace(statement, if_not_exists=False))
    refuse_secrets(f"record-preserving join {statement.name}", {"its text": definition}, {})
    left = engine.resolve_table(render_name(statement.left.name))
    right = engine.resolve_table(render_name(statement.right.name))
    name = str(statement.name)
    keys = tuple(_key(name, key, left, right) for key in statement.keys)
    if statement.preserves is Side.RIGHT:
        left, right = right, left
        keys = tuple((b, a) for a, b in keys)
    for a, b in keys:
        _check_types(name, left, a, right, b)
    return JoinRecord(
        name=name,
        definition=definition,
        left=JoinSide(left.name, left.location, left.table_id),
        right=JoinSide(right.name, right.location, right.table_id),
        keys=keys,
        validated=statement.validated,
        finds_each=statement.finds_each,
    )


def _key(name: str, key: JoinKey, left: TableAt, right: TableAt) -> tuple[str, str]:
    if key.resolved:
        return _column(name, key.left, left), _column(name, key.right, right)
    as_written = _has(left, key.left) and _has(right, key.right)
    swapped = _has(left, key.right) and _has(right, key.left)
    if as_written and swapped:
        raise DefinitionError(
            ErrorCode.AMBIGUOUS_COLUMN,
            f"record-preserving join {name}: {key.left} = {key.right} fits both ways round, "
            f"since {left.name} and {right.name} both have these columns: qualify them",
        )
    if swapped:
        return _column(name, key.right, left), _column(name, key.left, right)
    return _column(name, key.left, left), _column(name, key.right, right)


def _has(table: TableAt, ref: ColumnRef) -> bool:
    return ref.column.lower() in {column.name.lower() for column in read_columns(table.columns)}


def _column(name: str, ref: ColumnRef, table: TableAt) -> str:
    columns = [column.name for column in read_columns(table.columns)]
    for column in columns:
        if column.lower() == ref.column.lower():
            return column
    raise DefinitionError(
        ErrorCode.UNKNOWN_COLUMN,
        f"record-preserving join {name}: {table.name} has no column {ref.column}: "
        f"its columns are {', '.join(columns)}",
    )


def _check_types(name: str, left: TableAt, a: str, right: TableAt, b: str) -> None:
    types = [_type(left, a), _type(right, b)]
    if _family(types[0]) != _family(types[1]):
        raise DefinitionError(
            ErrorCode.JOIN_KEY_TYPES,
            f"record-preserving join {name}: {left.name}.{a} is {types[0]} and {right.name}.{b} is "
            f"{types[1]}, which Spark compares by a cast that may fail or lose something: join "
            "columns of one type",
        )


def _type(table: TableAt, name: str) -> str:
    return next(column.type for column in read_columns(table.columns) if column.name == name)


def _family(type_: str) -> str:
    """What a type is compared within, exactly."""
    head = type_.partition("(")[0]
    if head in ("tinyint", "smallint", "int", "bigint", "decimal"):
        return "exact number"
    if head in ("float", "double"):
        return "inexact number"
    if head in ("char", "varchar"):
        return "string"
    return type_
