"""Offline explain: which cache would answer a query, from declarations alone.

No Spark, no database, no network: the schema's tables, the caches and the session's settings are
given as text, and declared keys and joins count as validated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from cachemgr.ddl import parse_script
from cachemgr.ddl.statements import CreateRecordPreservingJoin, CreateRelationalCache
from cachemgr.errors import CacheManagerError, ConfigurationError, DefinitionError
from cachemgr.text.offline_input import Conf, declare, join, plan, read_conf
from matcher.index.registry import Registry
from matcher.model.errors import MatcherError
from matcher.model.ir import CachePlan, Candidate, Decision, Rewrite
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.model.row_order import refused_below
from matcher.render.select import NotRenderable, quote_path, render_rewrite, render_stored
from matcher.rules.choose import not_named, unheeded
from matcher.sql.reader import TextBlock, TextQuery, parse_query
from matcher.sql.schema import Schema

_DISABLED: Final = Reason(
    ReasonCode.CACHE_DISABLED, "declared with DISABLE REWRITE", "ALTER … ENABLE REWRITE"
)


@dataclass(frozen=True, slots=True)
class Workspace:
    """A schema, its caches and settings, ready to explain queries."""

    schema: Schema
    conf: Conf
    registry: Registry
    plans: dict[str, CachePlan]
    disabled: frozenset[str]
    stored: dict[str, str]


@dataclass(slots=True)
class Answer:
    """What became of one query: the rewrites chosen for its blocks, and every candidate.

    `refused` is why some blocks were compared with no cache, `reasons` why the others found none.
    """

    parsed: TextQuery
    rewrites: dict[TextBlock, Rewrite] = field(default_factory=dict)
    candidates: list[Candidate] = field(default_factory=list)
    refused: list[Reason] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)

    def rewritten(self) -> str:
        """The query's text with the chosen rewrites in it."""
        return self.parsed.replace({b: _rewritten(r) for b, r in self.rewrites.items()})


def prepare(schema_sql: str, caches_sql: str, conf: Mapping[str, str] | None = None) -> Workspace:
    """Read declarations once, for any number of queries.

    Args:
        schema_sql: CREATE SCHEMA, CREATE TABLE and CREATE VIEW statements.
        caches_sql: CREATE RECORD PRESERVING JOIN and CREATE RELATIONAL CACHE statements.
        conf: session settings.

    Raises:
        CacheManagerError: a statement, a definition or a setting is at fault; says which and why.
        MatcherError: the schema does not parse or contradicts itself.
    """
    return _prepare(schema_sql, caches_sql, tuple(sorted((conf or {}).items())))


@lru_cache(maxsize=64)
def _prepare(schema_sql: str, caches_sql: str, conf: tuple[tuple[str, str], ...]) -> Workspace:
    schema = Schema.parse(schema_sql)
    read = read_conf(dict(conf))
    statements = parse_script(caches_sql) if caches_sql.strip() else []
    joins = list(schema.joins())
    caches: dict[str, CreateRelationalCache] = {}
    for statement in statements:
        if isinstance(statement, CreateRecordPreservingJoin):
            joins.append(join(statement, schema))
        elif isinstance(statement, CreateRelationalCache):
            declare(statement, caches, schema)
        else:
            raise DefinitionError(
                "STATEMENT_NOT_SUPPORTED",
                f"the caches hold a {type(statement).__name__} statement: only CREATE RECORD "
                "PRESERVING JOIN and CREATE RELATIONAL CACHE are read offline",
            )
    registry = Registry()
    plans: dict[str, CachePlan] = {}
    stored: dict[str, str] = {}
    for name, cache in caches.items():
        found = plan(name, cache, schema, read.text, tuple(joins), plans)
        plans[name] = found
        try:
            stored[name] = render_stored(found, [quote_path(r.name) for r in found.relations])
        except NotRenderable as error:
            raise DefinitionError(
                "EXPRESSION_NOT_SUPPORTED", f"cache {name}: {error} cannot be written as SQL"
            ) from error
        if cache.rewrite_enabled:
            registry.put(found)
    disabled = frozenset(n for n, c in caches.items() if not c.rewrite_enabled)
    return Workspace(schema, read, registry, plans, disabled, stored)


def explain(
    schema_sql: str, caches_sql: str, query: str, conf: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Which cache answers `query`, with what SQL, and why the others do not.

    Args:
        schema_sql: the tables' declarations.
        caches_sql: the caches' and joins' declarations.
        query: one query in Spark's SQL.
        conf: session settings.

    Returns:
        `hit`, `caches`, `rewritten_sql`, `candidates` and `stored`, ready for JSON.

    Raises:
        CacheManagerError: the caches or a setting are at fault.
        MatcherError: the schema or the query is.
    """
    workspace = prepare(schema_sql, caches_sql, conf)
    return explain_query(workspace, query)


def explain_query(workspace: Workspace, query: str) -> dict[str, Any]:
    """`explain` over declarations that are read already."""
    found = answer(workspace, query)
    caches = [rewrite.cache for rewrite in found.rewrites.values()]
    return {
        "hit": bool(found.rewrites),
        "caches": list(dict.fromkeys(caches)),
        "rewritten_sql": found.rewritten() if found.rewrites else None,
        "candidates": [_candidate(c) for c in found.candidates],
        "stored": dict(workspace.stored),
    }


def answer(workspace: Workspace, query: str, *, explain: bool = True) -> Answer:
    """The rewrites of a query's blocks, outermost first, and what was considered.

    Args:
        workspace: the declarations.
        query: one query in Spark's SQL.
        explain: also try what the index would not propose, so that every candidate gets its
            reason; False decides as a session does, remembered shapes included.

    Raises:
        MatcherError: the query does not parse or names what does not exist.
    """
    parsed = parse_query(query, workspace.schema, workspace.conf.text)
    outcome = Answer(parsed)
    whole = list(parsed.reasons)
    if not workspace.conf.enabled:
        whole.append(
            Reason(ReasonCode.SETTINGS_DIFFER, "spark.cachemgr.enabled is false", "set it to true")
        )
    if whole:
        outcome.refused = whole
    else:
        parsed.visit(lambda block: _decide(workspace, parsed, block, outcome, explain))
        _say_unheeded(workspace, parsed, outcome)
    _complete(workspace, outcome)
    return outcome


def run_batch(
    cases: Iterable[Mapping[str, Any]], conf: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Explain many cases; one that fails has `error` with `code` and `message`, and the others
    still run.

    Args:
        cases: mappings with `id`, `schema`, `caches`, `query` and, if wanted, `conf`.
        conf: settings of all cases; a case's own come first.
    """
    results: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        name = case.get("id", number)
        try:
            texts = [_text(case, key) for key in ("schema", "caches", "query")]
            settings = {**(conf or {}), **_settings(case.get("conf"))}
            found = explain(texts[0], texts[1], texts[2], settings)
        except (CacheManagerError, MatcherError) as error:
            found = {"error": {"code": error.code, "message": message_of(error)}}
        except Exception as error:  # the other cases must still run
            found = {"error": {"code": "INTERNAL_ERROR", "message": internal(error)}}
        results.append({"id": name, **found})
    return results


def message_of(error: CacheManagerError | MatcherError) -> str:
    """The error's text without its code."""
    return error.message if isinstance(error, CacheManagerError) else str(error)


def internal(error: Exception) -> str:
    """What to tell of an error that is ours."""
    what = f"{type(error).__name__}: {error}"
    return f"{what}; this is a bug in cachemgr, please report it with the input"


def _text(case: Mapping[str, Any], key: str) -> str:
    value = case.get(key, "" if key == "caches" else None)
    if isinstance(value, list):
        value = ";\n".join(str(v).rstrip().rstrip(";") for v in value)
    if not isinstance(value, str):
        raise ConfigurationError("BAD_CASE", f"a case needs {key!r} as a text, not {value!r}")
    return value


def _settings(conf: object) -> dict[str, str]:
    """A case's settings: an object, or a list of `key=value`."""
    if conf is None:
        return {}
    if isinstance(conf, list) and all(isinstance(c, str) and "=" in c for c in conf):
        conf = dict(c.split("=", 1) for c in conf)
    if not isinstance(conf, dict):
        raise ConfigurationError("BAD_CASE", f"conf is {conf!r}: give an object of key to value")
    return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in conf.items()}


# -- the query ----------------------------------------------------------------------------------


def _decide(
    workspace: Workspace, parsed: TextQuery, block: TextBlock, outcome: Answer, explain: bool
) -> bool:
    if block.block is None:
        outcome.refused += block.reasons
        return False
    refused = refused_below(block.above, block.block, workspace.conf.options)
    if refused is not None:
        outcome.refused.append(refused)
        return False
    try:
        decision = workspace.registry.decide(
            block.block,
            replace(workspace.conf.options, forced=parsed.hinted),
            _veto(parsed, block),
            explain=explain,
        )
    except Exception as error:  # an error of ours is a miss, as in a session
        decision = Decision(
            None,
            (),
            (Reason(ReasonCode.INTERNAL_ERROR, internal(error), "report it with the input"),),
        )
    outcome.candidates += decision.candidates
    outcome.reasons += decision.reasons
    if decision.rewrite is None:
        return False
    outcome.rewrites[block] = decision.rewrite
    return True


def _rewritten(rewrite: Rewrite) -> str:
    return render_rewrite(rewrite, quote_path(rewrite.cache))


def _veto(parsed: TextQuery, block: TextBlock) -> Callable[[Rewrite], Reason | None]:
    hidden = parsed.cte_names if block.node is not parsed.document.root else frozenset()

    def veto(rewrite: Rewrite) -> Reason | None:
        if parsed.hinted and rewrite.cache.lower() not in parsed.hinted:
            return not_named(rewrite.cache)
        names = [rewrite.cache, *(e.relation.name for e in rewrite.extra)]
        name = next((n for n in names if n.lower() in hidden), None)
        if name is not None:
            what = "the cache" if name == rewrite.cache else "the table"
            detail = f"the query has a CTE named {name}, which hides {what}"
            return Reason(ReasonCode.UNSUPPORTED_RELATION, detail, "rename the CTE")
        try:
            _rewritten(rewrite)
        except NotRenderable as error:
            return not_taken(ReasonCode.UNSUPPORTED_EXPRESSION, f"no SQL spelling for {error}")
        return None

    return veto


def _say_unheeded(workspace: Workspace, parsed: TextQuery, outcome: Answer) -> None:
    """A line for each cache that the query's hint asks for and that does not answer."""
    used = [rewrite.cache for rewrite in outcome.rewrites.values()]
    known = {name.lower(): name for name in workspace.plans}
    for name in sorted(parsed.hinted):
        for reason in unheeded([name], used, known, outcome.candidates):
            cache = known.get(name, name)
            outcome.candidates.append(Candidate(cache, None, "refused", (reason,)))


def _complete(workspace: Workspace, outcome: Answer) -> None:
    """Lines for blocks that no cache was compared with, and caches that no block was."""
    compared = {c.cache for c in outcome.candidates}
    refused = tuple(dict.fromkeys(outcome.refused))
    others = tuple(dict.fromkeys(outcome.reasons))
    for name in workspace.plans:
        why: tuple[Reason, ...] = ()
        if name in workspace.disabled:
            why = (_DISABLED,)
        elif not outcome.rewrites and refused:
            why = refused
        elif name not in compared:
            nothing = f"{name} reads none of the query's tables"
            why = others or (
                Reason(ReasonCode.NO_CACHE_FOR_TABLES, nothing, "declare a cache over them"),
            )
        if why:
            outcome.candidates.append(Candidate(name, None, "refused", why))


def _candidate(candidate: Candidate) -> dict[str, Any]:
    keys = candidate.grouping_set
    return {
        "cache": candidate.cache,
        "grouping_set": None if keys is None else list(keys),
        "outcome": candidate.outcome,
        "cost": candidate.cost,
        "reasons": [
            {"code": r.code.value, "detail": r.detail, "suggestion": r.suggestion}
            for r in candidate.reasons
        ],
    }
