"""How a cache stands, as rows: SHOW, DESCRIBE and EXPLAIN CREATE."""

from __future__ import annotations

from collections.abc import Sequence

from cachemgr.config.match_options import match_options
from cachemgr.config.result_settings import result_settings
from cachemgr.ddl.cache_clauses import clause_items
from cachemgr.ddl.render_parts import render_freshness, render_refresh
from cachemgr.ddl.select_text import has_star
from cachemgr.delta.base_columns import changed_columns, changes_told
from cachemgr.metastore.records import (
    CacheRecord,
    JoinRecord,
    RefreshRunRecord,
    SnapshotRecord,
    SnapshotTableRecord,
)
from cachemgr.statements.cache_facts import CacheFacts
from cachemgr.statements.columns import CACHES, DESCRIBED, JOINS
from cachemgr.statements.results import ResultRows, table
from cachemgr.statements.status import answers
from cachemgr.vocabulary import NOT_PLANNED
from matcher.model.ir import GROUPING_ID_COLUMN, CachePlan
from matcher.partials.collapse import render_collapsed
from matcher.render.select import NotRenderable, quote, quote_path, render_stored
from matcher.render.shown_outputs import shown_items, shown_list


def show_rows(found: Sequence[CacheFacts]) -> ResultRows:
    """The rows of SHOW RELATIONAL CACHES."""
    return table(
        CACHES,
        [
            (
                f.cache.namespace,
                f.cache.name,
                f.status.combined,
                _refreshes(f.cache),
                render_freshness(f.cache.spec.freshness),
                "ENABLED" if f.cache.spec.rewrite_enabled else "DISABLED",
                None if f.published is None else f.published.run.rows,
                None if f.published is None else f.published.run.bytes,
                None if f.published is None else f.published.run.finished_at,
                f.cache.spec.comment if f.may_see else None,
            )
            for f in found
        ],
    )


def describe_rows(facts: CacheFacts, extended: bool) -> ResultRows:
    """The rows of DESCRIBE RELATIONAL CACHE, in the form of Spark's DESCRIBE TABLE."""
    if not facts.may_see:
        outline = [("# Relational cache", ""), *_outline(facts)]
        return table(DESCRIBED, [(item, value, None) for item, value in outline])
    rows = [(c.name, c.type, None if c.nullable else "NOT NULL") for c in facts.cache.columns]
    rows += [("", "", None), ("# Relational cache", "", None)]
    rows += [(item, value, None) for item, value in _summary(facts)]
    if extended:
        rows += [("", "", None), ("# Details", "", None)]
        rows += [(item, value, None) for item, value in _details(facts)]
    return table(DESCRIBED, rows)


def _refreshes(cache: CacheRecord) -> str:
    return render_refresh(cache.spec.refresh) + (" (paused)" if cache.paused else "")


def _answers(facts: CacheFacts) -> str:
    found = answers(facts.cache, facts.published, facts.looked, facts.status.availability)
    if facts.may_use:
        return found
    return (
        "not you: it is granted to others, or reads a restricted table, so that its counts are "
        f"hidden from you; those who may use it: {found}"
    )


def _summary(facts: CacheFacts) -> list[tuple[str, str]]:
    status, cache = facts.status, facts.cache
    return [
        ("name", cache.qualified_name),
        ("status", status.combined),
        ("definition status", status.definition),
        ("refresh status", status.refresh),
        ("availability", status.availability),
        ("answers", _answers(facts)),
        ("refresh", _refreshes(cache)),
        ("freshness", render_freshness(cache.spec.freshness)),
        *_gone_tables(facts),
        *([("damage", cache.damaged)] if cache.damaged is not None else []),
        *_broken_joins(facts.published),
        ("rewrite", "ENABLED" if cache.spec.rewrite_enabled else "DISABLED"),
        *_star(cache),
        ("read it with", read_select(facts)),
    ]


def _gone_tables(facts: CacheFacts) -> list[tuple[str, str]]:
    """What has broken a cache, for each of its base tables that is no more."""
    names = {} if facts.plan is None else {r.key: r.name for r in facts.plan.tables}
    if facts.published is not None:
        names |= {t.location: t.name for t in facts.published.tables}
    return [
        (
            "broken",
            f"base table {names.get(place, place)} is gone: there is no Delta table at {place}, "
            "and queries that read it fail; restore the table, or drop or replace the cache, "
            "unless a job is about to make it anew",
        )
        for place, state in facts.looked.versions.items()
        if state is None
    ]


def _star(cache: CacheRecord) -> list[tuple[str, str]]:
    """What SELECT * means in a definition that has one."""
    if not has_star(cache.definition):
        return []
    means = (
        "the columns at CREATE: those that its tables get later are left out until it is created "
        "again with OR REPLACE"
    )
    return [("select *", means)]


def _outline(facts: CacheFacts) -> list[tuple[str, str]]:
    """What everybody may know of a cache."""
    status, name = facts.status, facts.cache.qualified_name
    return [
        ("name", name),
        ("status", status.combined),
        ("availability", status.availability),
        (
            "answers",
            "not you: it is granted to others, or reads a restricted table, so that its definition "
            f"and counts are hidden from you; an admin's GRANT USE ON RELATIONAL CACHE {name} "
            "shows them to an authenticated user",
        ),
    ]


def _broken_joins(published: SnapshotRecord | None) -> list[tuple[str, str]]:
    broken = () if published is None else published.run.broken_joins
    return [("broken join", broken_join(name)) for name in broken]


def broken_join(name: str) -> str:
    """What it means for a cache that a join did not hold when it was refreshed."""
    return (
        f"record-preserving join {name} did not hold when it was refreshed, so that queries "
        "that rely on it miss: SHOW RECORD PRESERVING JOINS says why"
    )


def _details(facts: CacheFacts) -> list[tuple[str, str]]:
    cache, published = facts.cache, facts.published
    items = [
        ("id", cache.id),
        ("owner", facts.owner),
        ("comment", cache.spec.comment or ""),
        ("location", cache.location),
        ("created at", str(cache.created_at or "")),
        ("definition", cache.definition),
        ("defined over", ", ".join(facts.over) or "base tables alone"),
        *clause_items(cache.spec),
        ("granted to", facts.granted_to),
    ]
    items += [(f"setting {k}", v) for k, v in result_settings(cache.settings).items()]
    if facts.last is not None:
        items += _last_refresh(facts.last)
    if published is not None:
        items += [
            ("refreshed at", str(published.run.finished_at or "")),
            ("cache version", str(published.run.cache_version)),
            ("rows", _count(published.run.rows)),
            ("bytes", _count(published.run.bytes)),
            ("computed by", "Spark " + " and ".join(sorted(published.run.sparks))),
        ]
        items += [
            (f"snapshot of {t.name}", f"version {t.version}, now {_now(facts, t)}")
            for t in published.tables
        ]
    if facts.lag_seconds is not None:
        items.append(("lag", f"{facts.lag_seconds} s"))
    plan = facts.plan
    if plan is not None:
        items += stored_items(plan)
        items += [("record-preserving join", j.name) for j in plan.joins]
    items += [
        (
            f"grouping set {s.grouping_id}",
            f"({', '.join(s.columns)}) {_count(s.rows)} rows, {_count(s.bytes)} bytes",
        )
        for s in facts.sets
    ]
    return items


def _last_refresh(run: RefreshRunRecord) -> list[tuple[str, str]]:
    account = run.account
    took = "" if run.seconds is None else f", {run.seconds:.1f} s"
    words = dict.fromkeys(("LOST" if run.is_lost else run.state.value, run.mode))
    items = [
        ("last refresh", f"{' '.join(words)}{took}"),
        # one that ended before it was planned has an error and no reason
        *([("last refresh reason", run.reason)] if run.reason != NOT_PLANNED else []),
    ]
    if run.error:
        items.append(("last refresh error", run.error))
    if account.told():
        items.append(("last refresh cost", account.told()))
    if account.code is not None:
        items.append(("why full", f"{account.code}: {account.detail}"))
        items.append(("what to do", account.cure or "nothing: the next one can be incremental"))
    return items


def _count(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _now(facts: CacheFacts, then: SnapshotTableRecord) -> str:
    state = facts.looked.versions.get(then.location)
    if state is None:
        return "gone"
    moved = facts.looked.moved.get(then.location)
    what = "" if moved is None or not moved.changes.detail else f": {moved.changes.detail}"
    shown = f"version {state.version}{what}"
    if then.state.is_put_back(state):
        shown += " of another history: the table was put back from a copy"
    columns = facts.columns.get(then.location)
    if then.columns is not None and columns is not None:
        changed = changed_columns(then.columns, columns)
        shown += f"; {changes_told(changed)}" if changed else ""
    return shown


def read_select(facts: CacheFacts) -> str:
    """The SELECT that reads a cache right: its published version, one row a group, without hidden
    columns."""
    published = facts.published
    if published is None:
        return f"nothing to read yet: REFRESH RELATIONAL CACHE {facts.cache.qualified_name}"
    plan = facts.plan
    names = [quote(c.name) for c in facts.cache.columns] if plan is None else [*shown_list(plan)]
    if plan is not None and plan.is_cube:
        names.insert(0, quote(GROUPING_ID_COLUMN))
    source = f"delta.{quote(facts.cache.location)} VERSION AS OF {published.run.cache_version}"
    if plan is not None and plan.partials:
        options = match_options(facts.cache.settings)
        source = f"({render_collapsed(plan, source, options)}) AS __rows"
    return f"SELECT {', '.join(names)} FROM {source}"


def stored_items(plan: CachePlan) -> list[tuple[str, str]]:
    """How a plan is stored, item by item: keys, measures, hidden columns, sets."""
    items = [("base table", r.name) for r in plan.relations]
    if plan.keys is None:
        items += [("column", c.name) for c in plan.columns]
    for key in plan.keys or ():
        items.append(("hidden key" if key.hidden else "key", f"{key.name} {key.expr.type}"))
    for measure in plan.measures:
        kind = "hidden column" if measure.hidden else "measure"
        items.append((kind, f"{measure.name} {measure.agg.type}"))
    if plan.shown:
        items += [("output", f"{name} is {text}") for name, text in shown_items(plan)]
    for stored in plan.grouping_sets:
        names = ", ".join(plan.keys[i].name for i in stored.keys) if plan.keys else ""
        items.append((f"stored set {stored.grouping_id}", f"({names})"))
    return items


def stored_select(plan: CachePlan) -> str:
    """The SELECT that fills a cache's table, hidden columns included."""
    try:
        return render_stored(plan, [quote_path(r.name) for r in plan.relations])
    except NotRenderable as error:
        return f"-- cannot be written as SQL: {error}"


def join_rows(joins: Sequence[JoinRecord]) -> ResultRows:
    """The rows of SHOW RECORD PRESERVING JOINS."""
    return table(
        JOINS,
        [
            (
                j.name,
                j.left.name,
                j.right.name,
                j.kind,
                ", ".join(f"{a} = {b}" for a, b in j.keys),
                j.state.value,
                j.message,
                j.validated_at,
            )
            for j in joins
        ],
    )
