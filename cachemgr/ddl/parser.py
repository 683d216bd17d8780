"""The statements' grammar, by recursive descent.

Clauses after a cache's name come in any order, each at most once. It refuses every other text
with the token, its line and column, and what would be accepted there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cachemgr.cache_spec import CacheSpec, Freshness
from cachemgr.ddl import clauses
from cachemgr.ddl.cache_clauses import CLAUSES
from cachemgr.ddl.cursor import Cursor
from cachemgr.ddl.joins import create_join
from cachemgr.ddl.select_text import read_definition, read_query
from cachemgr.ddl.statements import (
    AlterAction,
    AlterRelationalCache,
    CreateRelationalCache,
    DescribeRelationalCache,
    DropRecordPreservingJoin,
    DropRelationalCache,
    ExplainCreate,
    ExplainRefresh,
    ExplainRewrite,
    GrantSelect,
    GrantUse,
    RefreshRelationalCache,
    RenameTo,
    RestrictBaseTable,
    RevokeSelect,
    RevokeUse,
    SetFreshness,
    SetPaused,
    SetProperties,
    SetRefresh,
    SetRewriteEnabled,
    ShowCreateRelationalCache,
    ShowRecordPreservingJoins,
    ShowRelationalCaches,
    ShowRestrictedBaseTables,
    ShowSelectGrants,
    Statement,
    UnrestrictBaseTable,
    ValidateRecordPreservingJoin,
)
from cachemgr.ddl.text import Kind, Tok, lex, split_statements
from cachemgr.vocabulary import FreshnessKind, RefreshMode


def parse(text: str, wanted: str | None = None) -> Statement:
    """Parse one statement; a `;` after it is allowed.

    Args:
        text: The statement.
        wanted: What is named where the text begins like no statement of ours; None names them all.

    Returns:
        The statement as data.

    Raises:
        StatementError: It is not one of ours, or not right; names the place and the cure.

    >>> parse("REFRESH RELATIONAL CACHE sales.by_day FULL").mode.value
    'FULL'
    """
    cursors = _cursors(text)
    beginnings = _BEGINNINGS if wanted is None else (wanted,)
    if not cursors:
        raise Cursor(lex(text, len(text), len(text))).fail("there is no statement", beginnings)
    statement = _statement(cursors[0], beginnings)
    if len(cursors) > 1:
        raise cursors[1].fail("one statement at a time", ("the end of the text",))
    return statement


def parse_script(text: str) -> list[Statement]:
    """Parse statements separated by `;`.

    Args:
        text: The script; empty statements and comments are skipped.

    Returns:
        The statements in order.

    Raises:
        StatementError: One of them is wrong; line and column count from the script's beginning.
    """
    return [_statement(cur, _BEGINNINGS) for cur in _cursors(text)]


def _cursors(text: str) -> list[Cursor]:
    cursors = [Cursor(lex(text, start, end)) for start, end in split_statements(text)]
    return [cur for cur in cursors if cur.peek().kind is not Kind.END]


def _statement(cur: Cursor, beginnings: tuple[str, ...]) -> Statement:
    statement = _dispatch(cur, beginnings)
    cur.finish()
    return statement


def _dispatch(cur: Cursor, beginnings: tuple[str, ...]) -> Statement:
    best, depth = _PHRASES, 0
    while True:
        for phrase in best:
            if len(phrase) == depth:
                return _READERS[phrase](cur)
        words = dict.fromkeys(phrase[depth] for phrase in best)
        found = next((word for word in words if cur.sees(word)), None)
        if found is None:
            # EXPLAIN REFRESH name is the one phrase that others continue; all else is spelled out.
            expected = beginnings if depth == 0 else tuple(words)
            raise (
                cur.fail("this is not a relational-cache statement", expected)
                if (depth == 0 and cur.peek().kind is not Kind.WORD)
                else cur.fail(None, expected)
            )
        cur.advance()
        best = tuple(phrase for phrase in best if phrase[depth] == found)
        depth += 1


# label, what it begins, and what reads the rest
_CLAUSES = tuple(
    (label, clause, read) for clause in CLAUSES for label, read in clause.readers.items()
)
# kind to the clause that was given of it, with its place
_Seen = dict[str, tuple[str, Tok]]


def _create(cur: Cursor, or_replace: bool = False) -> CreateRelationalCache:
    condition = cur.accept("IF", "NOT", "EXISTS")
    if condition and or_replace:
        raise cur.fail(
            "OR REPLACE and IF NOT EXISTS exclude each other: one replaces what exists, the other "
            "keeps it",
            ("name",),
            condition,
        )
    if cur.sees("IF", "EXISTS"):
        raise cur.fail("IF EXISTS belongs to DROP", ("IF NOT EXISTS", "name"))
    name = cur.name("cache name")
    found: dict[str, Any] = {}
    seen: _Seen = {}
    while not cur.accept("AS", label=""):
        _clause(cur, found, seen)
    spec = CacheSpec(**found)
    select, is_cube = read_definition(cur)
    if is_cube and spec.cluster_by:
        raise cur.fail(
            "a cube is stored partitioned by its grouping id, and Delta clusters no partitioned "
            "table: leave CLUSTER BY out, or use PARTITIONED BY",
            ("PARTITIONED BY",),
            seen["layout"][1],
        )
    return CreateRelationalCache(
        name=name,
        select=select,
        or_replace=or_replace,
        if_not_exists=condition is not None,
        spec=spec,
    )


def _clause(cur: Cursor, found: dict[str, Any], seen: _Seen) -> None:
    """Read one clause into the field that it sets."""
    tok = cur.peek()
    begun = next((each for each in _CLAUSES if cur.sees(each[0].split(" ")[0])), None)
    if begun is None:
        left = [label for label, clause, _ in _CLAUSES if clause.excludes not in seen]
        for label in (*left, "AS select"):
            cur.tried(label)
        if tok.kind is Kind.END:
            raise cur.fail("AS and the select are missing")
        raise cur.fail()
    label, clause, read = begun
    if clause.excludes in seen:
        before, place = seen[clause.excludes]
        what = "is given twice" if before == label else f"contradicts {before}"
        raise cur.fail(f"{label} {what}: it was given at {cur.place(place)} already", (), tok)
    seen[clause.excludes] = (label, tok)
    words = label.split(" ")
    # what reads MAX STALENESS begins behind its first word
    cur.expect(*(words[:1] if label == "MAX STALENESS" else words))
    found[clause.field] = read(cur)


def _alter(cur: Cursor) -> AlterRelationalCache:
    return AlterRelationalCache(cur.name("cache name"), _action(cur))


def _action(cur: Cursor) -> AlterAction:
    for word, enabled in (("ENABLE", True), ("DISABLE", False)):
        if cur.accept(word, label=f"{word} REWRITE"):
            cur.expect("REWRITE")
            return SetRewriteEnabled(enabled)
    for word, paused in (("PAUSE", True), ("RESUME", False)):
        if cur.accept(word):
            return SetPaused(paused)
    if cur.accept("RENAME", label="RENAME TO"):
        cur.expect("TO")
        return RenameTo(cur.name("new name"))
    if not cur.accept("SET", label="SET REFRESH"):
        for label in ("SET MAX STALENESS", "SET STRICT", "SET TBLPROPERTIES"):
            cur.tried(label)
        raise cur.fail()
    if cur.accept("REFRESH"):
        return SetRefresh(clauses.refresh_policy(cur))
    if cur.accept("MAX", label="MAX STALENESS"):
        return SetFreshness(clauses.max_staleness(cur))
    if cur.accept("STRICT"):
        return SetFreshness(Freshness(FreshnessKind.STRICT))
    cur.expect("TBLPROPERTIES")
    return SetProperties(clauses.properties(cur))


def _refresh(cur: Cursor) -> RefreshRelationalCache:
    return RefreshRelationalCache(cur.name("cache name"), clauses.refresh_mode(cur))


def _drop(cur: Cursor) -> DropRelationalCache:
    if_exists = cur.accept("IF", "EXISTS") is not None
    return DropRelationalCache(cur.name("cache name"), if_exists)


def _show(cur: Cursor) -> ShowRelationalCaches:
    pattern = cur.string("'pattern'") if cur.accept("LIKE") else None
    return ShowRelationalCaches(pattern)


def _describe(cur: Cursor) -> DescribeRelationalCache:
    # A cache may be called extended: the word is a keyword only if a name follows it.
    follows = cur.peek(1).kind in (Kind.WORD, Kind.QUOTED)
    extended = follows and cur.accept("EXTENDED") is not None
    return DescribeRelationalCache(cur.name("cache name"), extended)


def _explain_rewrite(cur: Cursor) -> ExplainRewrite:
    files = cur.accept("FILES") is not None
    format_json = False
    if cur.accept("FORMAT", label="FORMAT JSON"):
        cur.expect("JSON")
        format_json = True
    return ExplainRewrite(read_query(cur), format_json, files)


def _explain_refresh(cur: Cursor) -> ExplainRefresh:
    if cur.sees("RELATIONAL", "CACHE"):  # as in the statement that it explains
        cur.accept("RELATIONAL", "CACHE")
    name = cur.name("cache name")
    if cur.accept("FULL"):
        return ExplainRefresh(name, RefreshMode.FULL)
    if cur.accept("INCREMENTAL"):
        return ExplainRefresh(name, RefreshMode.INCREMENTAL)
    return ExplainRefresh(name)


def _drop_join(cur: Cursor) -> DropRecordPreservingJoin:
    if_exists = cur.accept("IF", "EXISTS") is not None
    return DropRecordPreservingJoin(cur.name("join name"), if_exists)


def _replace_join(cur: Cursor) -> Statement:
    raise cur.fail(
        "a record-preserving join is not replaced, since caches may rest on it: drop it, then "
        "create it",
        ("CREATE RECORD PRESERVING JOIN without OR REPLACE",),
        cur.peek(-5),  # OR
    )


def _principal(cur: Cursor) -> str:
    if cur.peek().kind is Kind.STRING:
        return cur.string("'principal'")
    principal = cur.identifier("principal")
    cur.whole("principal")
    return principal


def _grant(cur: Cursor) -> GrantUse:
    name = cur.name("cache name")
    cur.expect("TO")
    return GrantUse(name, _principal(cur))


def _revoke(cur: Cursor) -> RevokeUse:
    name = cur.name("cache name")
    cur.expect("FROM")
    return RevokeUse(name, _principal(cur))


def _grant_select(cur: Cursor) -> GrantSelect:
    name = cur.name("table name")
    cur.expect("TO")
    return GrantSelect(name, _principal(cur))


def _revoke_select(cur: Cursor) -> RevokeSelect:
    name = cur.name("table name")
    cur.expect("FROM")
    return RevokeSelect(name, _principal(cur))


def _show_select_grants(cur: Cursor) -> ShowSelectGrants:
    if cur.accept("ON", label="ON BASE TABLE"):
        cur.expect("BASE", "TABLE")
        return ShowSelectGrants(name=cur.name("table name"))
    if cur.accept("TO"):
        return ShowSelectGrants(principal=_principal(cur))
    return ShowSelectGrants()


_TEXTS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE RELATIONAL CACHE": _create,
    "CREATE OR REPLACE RELATIONAL CACHE": lambda cur: _create(cur, or_replace=True),
    "CREATE RECORD PRESERVING JOIN": create_join,
    "CREATE OR REPLACE RECORD PRESERVING JOIN": _replace_join,
    "ALTER RELATIONAL CACHE": _alter,
    "REFRESH RELATIONAL CACHE": _refresh,
    "DROP RELATIONAL CACHE": _drop,
    "DROP RECORD PRESERVING JOIN": _drop_join,
    "SHOW RELATIONAL CACHES": _show,
    "SHOW CREATE RELATIONAL CACHE": lambda cur: ShowCreateRelationalCache(cur.name("cache name")),
    "SHOW RECORD PRESERVING JOINS": lambda cur: ShowRecordPreservingJoins(),
    "DESCRIBE RELATIONAL CACHE": _describe,
    "DESC RELATIONAL CACHE": _describe,
    "EXPLAIN REWRITE": _explain_rewrite,
    "EXPLAIN REFRESH": _explain_refresh,
    "EXPLAIN CREATE RELATIONAL CACHE": lambda cur: ExplainCreate(_create(cur)),
    "EXPLAIN CREATE OR REPLACE RELATIONAL CACHE": lambda cur: ExplainCreate(
        _create(cur, or_replace=True)
    ),
    "VALIDATE RECORD PRESERVING JOIN": lambda cur: ValidateRecordPreservingJoin(
        cur.name("join name")
    ),
    "GRANT USE ON RELATIONAL CACHE": _grant,
    "REVOKE USE ON RELATIONAL CACHE": _revoke,
    "RESTRICT BASE TABLE": lambda cur: RestrictBaseTable(cur.name("table name")),
    "UNRESTRICT BASE TABLE": lambda cur: UnrestrictBaseTable(cur.name("table name")),
    "SHOW RESTRICTED BASE TABLES": lambda cur: ShowRestrictedBaseTables(),
    "GRANT SELECT ON BASE TABLE": _grant_select,
    "REVOKE SELECT ON BASE TABLE": _revoke_select,
    "SHOW SELECT GRANTS": _show_select_grants,
}
_READERS = {tuple(text.split(" ")): reader for text, reader in _TEXTS.items()}
_PHRASES = tuple(_READERS)
_BEGINNINGS = tuple(_TEXTS)
