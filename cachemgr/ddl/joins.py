"""Record-preserving joins: two tables, equalities between their columns, the side preserved.

Sides are told by qualifiers where there are any. It refuses what is not an equality of two
columns, since only a key can make a join keep each row exactly once.
"""

from __future__ import annotations

from cachemgr.ddl.cursor import Cursor
from cachemgr.ddl.statements import (
    ColumnRef,
    CreateRecordPreservingJoin,
    JoinKey,
    QualifiedName,
    Side,
    TableRef,
)
from cachemgr.ddl.text import Kind, Tok
from cachemgr.errors import StatementError

_NOT_AN_ALIAS = frozenset(
    "ANTI CROSS FULL INNER JOIN LEFT NATURAL ON OUTER PRESERVES RIGHT SEMI USING WHERE".split()
)
_EQUALITY = "a.key = b.key [AND …]"


def create_join(cur: Cursor) -> CreateRecordPreservingJoin:
    """Read what follows CREATE RECORD PRESERVING JOIN.

    Args:
        cur: After JOIN.

    Returns:
        The statement.

    Raises:
        StatementError: It is incomplete, or its sides cannot be told apart.
    """
    if_not_exists = cur.accept("IF", "NOT", "EXISTS") is not None
    name = cur.name("join name")
    cur.expect("AS")
    left = _table(cur)
    finds_each = _kind(cur)
    second = cur.peek()
    right = _table(cur)
    if _same_sides(left, right):
        raise cur.fail(
            "both sides have the same name: give at least one an alias", ("table alias",), second
        )
    if cur.sees("USING"):
        raise cur.fail("the keys are written out with ON", ("ON a.key = b.key",))
    cur.expect("ON")
    keys = _keys(cur, left, right)
    cur.expect("PRESERVES")
    preserved = cur.peek()
    preserves = _preserved(cur, left, right)
    if preserves is Side.RIGHT and not finds_each:
        raise cur.fail(
            "a LEFT JOIN keeps the rows of its left table", _sides(left, right)[:1], preserved
        )
    validated = True
    if cur.accept("NOT", label="NOT VALIDATED"):
        cur.expect("VALIDATED")
        validated = False
    return CreateRecordPreservingJoin(
        name, left, right, keys, preserves, if_not_exists, validated, finds_each
    )


def _kind(cur: Cursor) -> bool:
    """Read [INNER] JOIN or LEFT [OUTER] JOIN; whether it is the first."""
    if cur.sees("RIGHT"):
        raise cur.fail("write it the other way round", ("INNER JOIN", "LEFT JOIN"))
    is_left = cur.accept("LEFT", label="LEFT JOIN") is not None
    if is_left:
        cur.accept("OUTER", label="")
        cur.expect("JOIN")
    else:
        cur.accept("INNER", label="INNER JOIN")
        cur.expect("JOIN")
    return not is_left


def matches(table: TableRef, qualifier: tuple[str, ...]) -> bool:
    """Say whether a qualifier names a table: by its alias, its name, or the end of its name.

    Args:
        table: A side of the join.
        qualifier: The parts before a column's name, or after PRESERVES.

    Returns:
        Whether it does, without regard to case.

    >>> matches(TableRef(QualifiedName(("s", "Dates")), "d"), ("dates",))
    True
    """
    parts = tuple(part.lower() for part in qualifier)
    if table.alias is not None and parts == (table.alias.lower(),):
        return True
    full = tuple(part.lower() for part in table.name.parts)
    return full[-len(parts) :] == parts


def _same_sides(left: TableRef, right: TableRef) -> bool:
    def shown(table: TableRef) -> tuple[str, ...]:
        parts = (table.alias,) if table.alias else table.name.parts
        return tuple(part.lower() for part in parts)

    return shown(left) == shown(right)


def _table(cur: Cursor) -> TableRef:
    name = cur.name("table name")
    if cur.accept("AS", label=""):
        return TableRef(name, cur.identifier("alias"))
    tok = cur.peek()
    if tok.kind is Kind.QUOTED or (tok.kind is Kind.WORD and tok.text.upper() not in _NOT_AN_ALIAS):
        return TableRef(name, cur.identifier("alias"))
    return TableRef(name)


def _side(qualifier: tuple[str, ...], left: TableRef, right: TableRef) -> Side | None:
    """Tell which side a qualifier names; None if neither, or both by the same right."""
    if len(qualifier) == 1:
        # An alias goes before a table's name: in `a b INNER JOIN b c`, b is the left side.
        aliases = [(left.alias or "").lower(), (right.alias or "").lower()]
        if qualifier[0].lower() in aliases and aliases[0] != aliases[1]:
            return (Side.LEFT, Side.RIGHT)[aliases.index(qualifier[0].lower())]
    is_left, is_right = matches(left, qualifier), matches(right, qualifier)
    if is_left == is_right:
        return None
    return Side.LEFT if is_left else Side.RIGHT


def _keys(cur: Cursor, left: TableRef, right: TableRef) -> tuple[JoinKey, ...]:
    keys: list[JoinKey] = []
    opened: list[Tok] = []
    while True:
        while bracket := cur.accept("(", label=""):
            opened.append(bracket)
        keys.append(_key(cur, left, right))
        while opened and cur.accept(")"):
            opened.pop()
        if not cur.accept("AND"):
            break
    if opened:
        raise cur.fail(
            None if cur.peek().kind is not Kind.END else "a bracket is not closed", (")", "AND")
        )
    tok = cur.peek()
    if tok.kind is Kind.SYMBOL or cur.sees("OR"):
        raise cur.fail(
            "a record-preserving join is on equalities joined by AND", ("AND", _EQUALITY)
        )
    return tuple(keys)


def _key(cur: Cursor, left: TableRef, right: TableRef) -> JoinKey:
    first_tok = cur.peek()
    first = _column(cur)
    if not cur.accept("="):
        message = "a record-preserving join is on equalities of two columns"
        raise cur.fail(message, ("=",)) if cur.peek().kind is Kind.SYMBOL else cur.fail()
    second_tok = cur.peek()
    second = _column(cur)
    first_side = _resolve(cur, first, first_tok, left, right)
    second_side = _resolve(cur, second, second_tok, left, right)
    if first_side is None and second_side is None:
        return JoinKey(first, second, resolved=False)
    if first_side is second_side:
        raise cur.fail("both columns are of the same table", _sides(left, right), second_tok)
    if first_side is Side.RIGHT or second_side is Side.LEFT:
        first, second = second, first
    return JoinKey(first, second, resolved=True)


def _column(cur: Cursor) -> ColumnRef:
    if cur.peek().kind in (Kind.NUMBER, Kind.STRING):
        raise cur.fail("a record-preserving join compares columns, not constants", (_EQUALITY,))
    parts = cur.dotted(4, "column")
    return ColumnRef(parts[:-1], parts[-1])


def _resolve(cur: Cursor, ref: ColumnRef, tok: Tok, left: TableRef, right: TableRef) -> Side | None:
    if not ref.qualifier:
        return None
    side = _side(ref.qualifier, left, right)
    if side is None:
        raise _unknown(cur, ref.qualifier, tok, left, right)
    return side


def _preserved(cur: Cursor, left: TableRef, right: TableRef) -> Side:
    tok = cur.peek()
    if tok.kind is Kind.END:
        raise cur.fail(None, _sides(left, right))
    named = cur.name("table name").parts
    side = _side(named, left, right)
    if side is None:
        raise _unknown(cur, named, tok, left, right)
    return side


def _unknown(
    cur: Cursor, parts: tuple[str, ...], tok: Tok, left: TableRef, right: TableRef
) -> StatementError:
    name = ".".join(parts)
    if matches(left, parts):
        message = f"{name} could be either table of the join: use an alias"
    else:
        message = f"{name} is not one of the two tables of the join"
    return cur.fail(message, _sides(left, right), tok)


def _sides(left: TableRef, right: TableRef) -> tuple[str, str]:
    return left.alias or str(left.name), right.alias or str(right.name)


def as_name(table: TableRef) -> QualifiedName:
    """Return the name that PRESERVES and qualifiers use for a table: its alias if it has one."""
    return QualifiedName((table.alias,)) if table.alias else table.name
