"""Which blocks of a text are answered from which caches, and the text that reads them.

What a session checks of a rewrite is checked here by the same code (`cachemgr.serving.eligibility`).
Where a session's plan holds every table at one version, the text says `VERSION AS OF`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import unquote

from cachemgr.delta.table_at import TableHead
from cachemgr.serving.decide import Hit, mixed_snapshots
from cachemgr.serving.eligibility import BlockVeto, Checks, QueryState
from matcher.index.registry import Registry
from matcher.model.ir import Block, Candidate, MatchOptions, Rewrite
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.model.row_order import refused_below
from matcher.render.select import NotRenderable, quote, render_rewrite
from matcher.rules.choose import unheeded
from matcher.sql.reader import TextBlock, TextQuery
from matcher.sql.schema import Table

_ALIAS: Final = " AS `__cache`"


@dataclass(slots=True)
class Outcome:
    """What was found for one text: the blocks that are answered, and why the others are not.

    `sql` is the text to run instead; None where nothing is answered. `missed` are the blocks that
    no cache answers, with what the index said of each.
    """

    hits: dict[TextBlock, Hit] = field(default_factory=dict)
    candidates: list[Candidate] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    missed: list[tuple[Block, tuple[Reason, ...]]] = field(default_factory=list)
    sql: str | None = None

    @property
    def exact(self) -> bool:
        """Whether the answer is that of the tables as they are now."""
        return all(hit.exact for hit in self.hits.values())

    def told(
        self, registry: Registry, options: MatchOptions, tables: Iterable[str]
    ) -> dict[Reason, set[str]]:
        """The reasons, with what the nearest caches lack where the index proposed none; for each
        the places of the tables that it concerns.

        Args:
            registry: The caches' plans.
            options: The switches that were decided under.
            tables: Places of the text's tables: reasons that are not of one block concern all.
        """
        longer: dict[Reason, dict[Reason, set[str]]] = {}
        for block, reasons in self.missed:
            places = {relation.key for relation in block.relations}
            for reason in reasons:
                alone = len(reasons) == 1
                for one in registry.why(block, options, reasons) if alone else (reason,):
                    longer.setdefault(reason, {}).setdefault(one, set()).update(places)
        everywhere = set(tables)
        found: dict[Reason, set[str]] = {}
        for reason in self.reasons:
            for one, places in longer.get(reason, {reason: everywhere}).items():
                found.setdefault(one, set()).update(places)
        return found


def decide(
    parsed: TextQuery,
    registry: Registry,
    checks: Checks,
    query: QueryState,
    options: MatchOptions,
    heads: Mapping[str, TableHead],
    *,
    explain: int | None = None,
) -> Outcome:
    """Decide a whole text.

    Args:
        parsed: The text.
        registry: The caches' plans.
        checks: What eligibility asks.
        query: The state of the request.
        options: The matcher's switches.
        heads: The tables of the text as they are now, by location.
        explain: Also name so many candidates of each block, and why they were refused.
    """
    found = _visit(parsed, registry, checks, query, options, explain)
    live = {t.name for t in _left(parsed, found)}
    live |= {e.relation.name for hit in found.hits.values() for e in hit.rewrite.extra}
    reason = mixed_snapshots(found.hits.values(), query.seen, frozenset(live))
    if reason is not None:
        strict = replace(query, exact_only=reason)
        found = _visit(parsed, registry, checks, strict, options, explain)
    if found.hits:
        _write(parsed, found, heads)
    _say_unheeded(parsed, registry, found)
    return found


def _visit(
    parsed: TextQuery,
    registry: Registry,
    checks: Checks,
    query: QueryState,
    options: MatchOptions,
    explain: int | None,
) -> Outcome:
    outcome = Outcome()

    def decide_block(text: TextBlock) -> bool:
        block = text.block
        if block is None:
            outcome.reasons += text.reasons
            return False
        refused = refused_below(text.above, block, options)
        if refused is not None:
            outcome.reasons.append(refused)
            return False
        veto = BlockVeto(query, block, checks)

        def same_types(rewrite: Rewrite) -> Reason | None:
            wanted = [(o.name, o.expr.type) for o in block.outputs]
            given = [(o.name, o.expr.type) for o in rewrite.outputs]
            if wanted == given:
                return veto(rewrite)
            detail = f"its columns would be {given} instead of {wanted}"
            return Reason(
                ReasonCode.SCHEMA_WOULD_DIFFER, detail, "report it: this is a bug in cachemgr"
            )

        decision = registry.decide(
            block, options, same_types, explain=explain is not None, most=explain
        )
        outcome.candidates += decision.candidates
        outcome.reasons += decision.reasons
        if decision.rewrite is None:
            outcome.missed.append((block, decision.reasons))
            return False
        cache, exact, sql = veto.passed[id(decision.rewrite)]
        outcome.hits[text] = Hit((), block, decision.rewrite, cache, exact, sql)
        return True

    parsed.visit(decide_block)
    return outcome


def _left(parsed: TextQuery, found: Outcome) -> tuple[Table, ...]:
    return parsed.document.tables_outside({id(text.node) for text in found.hits})


def _write(parsed: TextQuery, found: Outcome, heads: Mapping[str, TableHead]) -> None:
    """Put the text together; where that cannot be done nothing is answered."""

    def clause(table: Table) -> str:
        return f"VERSION AS OF {_version(table.place, table.name, heads)}"

    try:
        texts = {text: _sql(hit, heads) for text, hit in found.hits.items()}
        found.sql = parsed.replace(texts, clause)
    except NotRenderable as error:
        found.hits.clear()
        found.reasons.append(
            not_taken(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                f"the rest of the query cannot be held at one moment: no place for {error}",
            )
        )


def _sql(hit: Hit, heads: Mapping[str, TableHead]) -> str:
    assert hit.cache.version is not None
    cache = _read(hit.cache.location, hit.cache.version)
    extra = [
        _read(unquote(e.relation.key), _version(e.relation.key, e.relation.name, heads))
        for e in hit.rewrite.extra
    ]
    # joined tables get their aliases from the renderer
    table = cache if extra else cache + _ALIAS
    return render_rewrite(hit.rewrite, table, extra_sql=extra)


def _read(location: str, version: int) -> str:
    return f"delta.{quote(location)} VERSION AS OF {version}"


def _version(place: str, name: str, heads: Mapping[str, TableHead]) -> int:
    head = heads.get(place)
    if head is None:
        raise NotRenderable(f"{name}, whose version is not known")
    return head.version


def _say_unheeded(parsed: TextQuery, registry: Registry, found: Outcome) -> None:
    hinted = parsed.hinted
    if not hinted:
        return
    known = {name: spelled for name in hinted if (spelled := registry.spelled(name))}
    used = [hit.cache.name for hit in found.hits.values()]
    found.reasons[:0] = unheeded(hinted, used, known, found.candidates)
