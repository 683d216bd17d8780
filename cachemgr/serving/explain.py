"""Which cache would answer a query, which grouping set, what is compensated, or why not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from cachemgr.reason_text import candidate_rows, masked_reasons, reason_text
from cachemgr.secrets import masked_sql
from cachemgr.serving.appended import Appended
from cachemgr.serving.decision import Decision, Hit
from cachemgr.serving.files_opened import FilesOpened
from cachemgr.statements.columns import ITEMS, JSON
from cachemgr.statements.results import ResultRows, table
from cachemgr.vocabulary import FreshnessKind
from matcher.index.explain import candidate_data, reason_data, set_names
from matcher.model.budget import Spent
from matcher.model.ir import Candidate
from matcher.model.reasons import Reason
from matcher.render.placeholders import BASE, CACHE, TAIL
from matcher.render.select import NotRenderable, quote_path, render_rewrite

JSON_VERSION: Final = 2
"""Grows where a field of `Explanation.as_data` goes or means something else; new ones may come."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A hit whose answer is that of an earlier moment than now, as its cache allows.

    Args:
        cache: The cache.
        read_at: When its tables were read, or soon after.
        max_staleness_seconds: What it allows; None for any lag.
        tables: The tables of the query that it answers for, each with the version that was read.
    """

    cache: str
    read_at: datetime
    max_staleness_seconds: int | None
    tables: tuple[tuple[str, int], ...]

    def told(self) -> str:
        """In one line, for people."""
        tables = ", ".join(f"{name} at version {version}" for name, version in self.tables)
        bound = self.max_staleness_seconds
        allowed = "MAX STALENESS UNLIMITED" if bound is None else f"MAX STALENESS of {bound} s"
        moment = self.read_at.strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{self.cache} answers as of {moment} ({tables}), as its {allowed} allows"

    def as_data(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "cache": self.cache,
            "readAt": self.read_at.isoformat(),
            "maxStalenessSeconds": self.max_staleness_seconds,
            "tables": [{"table": name, "version": version} for name, version in self.tables],
            "detail": self.told(),
        }


_READS_NOTHING: Final = "no table is left to read in what Spark makes of it"


@dataclass(frozen=True, repr=False)
class Explanation:
    """What would be done with one query, and why; with those of its subqueries that Spark plans
    apart.

    Args:
        hit: Whether some part of it would be answered from a cache.
        caches: The caches used, outermost part first.
        grouping_set: The key columns of the grouping set that the outermost hit reads, if any.
        rewritten_sql: What would run over the caches, each under its own name.
        reasons: Why the parts that are not answered are not.
        candidates: Every view considered.
        steps: The compensations.
        joins: Record-preserving joins relied upon.
        unvalidated_joins: Those among them that nobody validated.
        appended: What is read of the base tables beside the caches.
        behind: The hits that do not show the tables as they are now.
        notes: What the session's settings do to it besides, for people.
        spent: The steps that deciding takes, at first sight.
        computed: How the rows of a query over sets held in memory are computed, for people.
        files: What it would open, where that was asked for.
        files_without: What it would open without caches, where that was asked for.
        own: Of this what is of the query itself, where some is of its subqueries.
        subqueries: Each of them, as a query of its own.
    """

    hit: bool
    caches: tuple[str, ...] = ()
    grouping_set: str | None = None
    rewritten_sql: str | None = None
    reasons: tuple[Reason, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    steps: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    unvalidated_joins: tuple[str, ...] = ()
    appended: tuple[Appended, ...] = ()
    behind: tuple[Behind, ...] = ()
    notes: tuple[str, ...] = ()
    spent: Spent | None = None
    computed: str | None = None
    files: FilesOpened | None = None
    files_without: FilesOpened | None = None
    own: Explanation | None = None
    subqueries: tuple[Explanation, ...] = ()

    def __repr__(self) -> str:
        return self.text()  # what a person sees who asks in a shell or a notebook

    def text(self) -> str:
        """The explanation for people."""
        return "\n".join(f"{item}: {value}" if item else value for item, value in self._items())

    def rows(self) -> ResultRows:
        """The explanation as the rows of EXPLAIN REWRITE."""
        return table(ITEMS, self._items())

    def as_data(self) -> dict[str, Any]:
        """The explanation as JSON data, the one form of REST, EXPLAIN REWRITE FORMAT JSON, the
        command line and the offline explain."""
        return {
            "hit": self.hit,
            "caches": list(self.caches),
            "groupingSet": self.grouping_set,
            "rewrittenSql": self.rewritten_sql,
            "steps": list(self.steps),
            "joins": list(self.joins),
            "unvalidatedJoins": list(self.unvalidated_joins),
            "appended": [
                {
                    "table": a.table.name,
                    "sinceVersion": a.since,
                    "version": a.table.version,
                    "files": len(a.changes.added),
                    "rows": a.changes.rows_added,
                }
                for a in self.appended
            ],
            "behind": [behind.as_data() for behind in self.behind],
            "notes": list(self.notes),
            "computed": self.computed,
            "files": None if self.files is None else self.files.as_data(),
            "filesWithout": None if self.files_without is None else self.files_without.as_data(),
            "spent": None if self.spent is None else spent_data(self.spent),
            "reasons": [reason_data(r) for r in self.reasons],
            "candidates": [candidate_data(c) for c in self.candidates],
            "subqueries": [subquery.as_data() for subquery in self.subqueries],
            "version": JSON_VERSION,
        }

    def json(self) -> ResultRows:
        """The explanation as the one row of EXPLAIN REWRITE FORMAT JSON."""
        return table(JSON, [(json.dumps(self.as_data(), indent=2),)])

    def _items(self) -> list[tuple[str, str]]:
        return [*self._decided(), *self._opened()]

    def _opened(self) -> Iterator[tuple[str, str]]:
        if self.files is not None:
            yield from self.files.lines()
        if self.files_without is not None and self.files_without != self.files:
            for item, value in self.files_without.lines():
                yield f"without caches: {item}", value

    def _decided(self) -> list[tuple[str, str]]:
        computed = [] if self.computed is None else [("computed", self.computed)]
        if self.own is None:
            return [("result", self._result()), *computed, *self._found()]
        alone = self.hit and not self.own.hit
        items = [("result", "hit, by subqueries alone" if alone else self._result())]
        items += [*computed, *self.own._found()]
        for number, subquery in enumerate(self.subqueries, 1):
            label = f"subquery {number}"
            items.append((label, subquery._result()))
            items += [(f"{label}: {item}", value) for item, value in subquery._found()]
        return items

    def _result(self) -> str:
        return "hit" if self.hit else "miss"

    def _found(self) -> list[tuple[str, str]]:
        items = [("cache", name) for name in self.caches]
        if self.grouping_set is not None:
            items.append(("grouping set", self.grouping_set))
        items += [("read beside it", str(appended.told())) for appended in self.appended]
        items += [("behind its tables", behind.told()) for behind in self.behind]
        items += [("note", note) for note in self.notes]
        items += [("compensation", step) for step in self.steps]
        for name in self.joins:
            note = " (NOT VALIDATED)" if name in self.unvalidated_joins else ""
            items.append(("record-preserving join", name + note))
        items += [("reason", reason_text(reason_data(r))) for r in self.reasons]
        told = map(reason_data, self.reasons)
        for row in candidate_rows(map(candidate_data, self.candidates), told):
            sets = "" if row.sets is None else f" {row.sets}"
            cost = "" if row.cost is None else f", cost {row.cost}"
            why = f": {'; '.join(row.reasons)}" if row.reasons else ""
            items.append(("candidate", f"{row.cache}{sets} {row.outcome}{cost}{why}"))
        if self.rewritten_sql is not None:
            items.append(("rewritten SQL", self.rewritten_sql))
        if self.spent is not None:
            items.append(("steps", _spent_text(self.spent)))
        return items


def spent_data(spent: Spent) -> dict[str, Any]:
    """What a decision takes, as JSON data."""
    cut_short = [search.name for search in spent.cut_short]
    return {"steps": spent.steps, "most": spent.most, "cutShort": cut_short}


def _spent_text(spent: Spent) -> str:
    cut_short = "; ".join(search.value for search in spent.cut_short)
    cut = f"; cut short at its own bound: {cut_short}" if cut_short else ""
    return f"{spent.steps:,} of {spent.most:,}{cut}"


def explanation_of(
    decision: Decision, rewritten_sql: str | None = None, notes: Sequence[str] = ()
) -> Explanation:
    """Put what was decided into words.

    Args:
        decision: What was decided.
        rewritten_sql: What would run instead of the whole query, where that can be said; else what
            would run instead of its parts.
        notes: What the session's settings do besides.
    """
    whole = _explanation(decision, rewritten_sql, notes)
    if not decision.apart:
        return whole
    own = _explanation(replace(decision, apart=()), None, notes)
    return replace(whole, own=own, subqueries=tuple(map(explanation_of, decision.apart)))


def _explanation(
    decision: Decision, rewritten_sql: str | None, notes: Sequence[str]
) -> Explanation:
    hits = decision.hits
    joins = tuple(dict.fromkeys(j for h in hits for j in h.rewrite.joins_used))
    unvalidated = {name for hit in hits for name in hit.cache.unvalidated}
    if rewritten_sql is None and hits:
        rewritten_sql = "\n;\n".join(map(_sql, hits))
    if not (hits or decision.reasons or decision.candidates):
        notes = (*notes, _READS_NOTHING)
    return Explanation(
        hit=bool(hits),
        caches=tuple(dict.fromkeys(h.rewrite.cache for h in hits)),
        grouping_set=set_text(hits[0]) if hits else None,
        rewritten_sql=None if rewritten_sql is None else masked_sql(rewritten_sql),
        reasons=masked_reasons(decision.reasons),
        candidates=tuple(
            replace(c, reasons=masked_reasons(c.reasons)) for c in decision.candidates
        ),
        steps=tuple(s for h in hits for s in _steps(h)),
        joins=joins,
        unvalidated_joins=tuple(j for j in joins if j in unvalidated),
        appended=tuple(hit.appended for hit in hits if hit.appended is not None),
        behind=tuple(dict.fromkeys(_behind(hit) for hit in hits if not hit.exact)),
        notes=tuple(notes),
        spent=decision.spent,
    )


def _behind(hit: Hit) -> Behind:
    cache = hit.cache
    bounded = cache.freshness is FreshnessKind.MAX_STALENESS
    tables = {relation.name: cache.snapshot.get(relation.key) for relation in hit.block.tables}
    return Behind(
        cache.name,
        datetime.fromtimestamp(cache.read_ms / 1000, UTC),
        cache.max_staleness_seconds if bounded else None,
        tuple((n, t.version) for n, t in tables.items() if t is not None and t.version is not None),
    )


def set_text(hit: Hit) -> str | None:
    """The grouping set that a hit reads, by its key columns; None for a cache without sets."""
    names = set_names(hit.cache.plan, hit.rewrite.grouping_set)
    return None if names is None else f"({', '.join(names)})"


def _steps(hit: Hit) -> tuple[str, ...]:
    """The compensations, those that Spark itself makes above the rewrite last."""
    return hit.rewrite.steps if hit.split is None else (*hit.rewrite.steps, "compute_outputs_above")


def _sql(hit: Hit) -> str:
    if hit.appended is not None:
        read = [BASE] * bool(hit.appended.files) + [TAIL] * (hit.appended.tail is not None)
        names = " and ".join(read)
        return f"-- beside it, {hit.appended.told()}, as {names}; the cache as {CACHE}\n{hit.sql}"
    try:
        return render_rewrite(hit.rewrite, quote_path(hit.rewrite.cache))
    except NotRenderable as error:
        return f"-- cannot be written as SQL: {error}"
