"""Offline explain: which cache would answer a query, from declarations alone.

No Spark, no database, no network: the schema's tables, the caches and the session's settings are
given as text, and declared keys and joins count as validated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from cachemgr.base_state import TableAt
from cachemgr.ddl import parse_script
from cachemgr.ddl.names import meant_cache
from cachemgr.ddl.statements import CreateRecordPreservingJoin, CreateRelationalCache
from cachemgr.errors import CacheManagerError, ConfigurationError, DefinitionError, ErrorCode
from cachemgr.serving.decide import decide
from cachemgr.serving.decision import Decision, refused
from cachemgr.serving.eligibility import Behind, Checks, Cleared, Eligibility, Moved, QueryState
from cachemgr.serving.explain import explanation_of
from cachemgr.serving.unbuilt import checks_of, tables_of_nowhere, unbuilt
from cachemgr.text.blocks import TextBlocks
from cachemgr.text.offline_input import Conf, declare, join, plan, read_conf
from matcher.catalyst.reader import LocatedBlock
from matcher.index.registry import Registry
from matcher.model.budget import unhurried
from matcher.model.errors import InputCode, MatcherError, SqlInputError
from matcher.model.ir import Block, CachePlan, Candidate, Rewrite
from matcher.model.message import CacheName, Cause, Sql, TableName, Word
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.render.select import NotRenderable, quote_path, render_rewrite, render_stored
from matcher.rules.choose import unheeded
from matcher.sql.reader import TextQuery, parse_query
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
    seen: dict[str, list[TableAt]]
    checks: Checks


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one query.

    Args:
        parsed: The query.
        decision: What was decided of its blocks.
        candidates: Every cache considered, and those that were compared with no block.
        sql: The query's text with the chosen rewrites in it; None where there are none.
    """

    parsed: TextQuery
    decision: Decision
    candidates: tuple[Candidate, ...]
    sql: str | None

    @property
    def rewrites(self) -> tuple[Rewrite, ...]:
        """The rewrites chosen, outermost first."""
        return tuple(hit.rewrite for hit in self.decision.hits)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why no cache answers the blocks that were compared with some."""
        return tuple(r for o in self.decision.outcomes if o.is_compared for r in o.reasons)

    @property
    def refused(self) -> tuple[Reason, ...]:
        """Why other blocks were compared with none."""
        return tuple(r for o in self.decision.outcomes if not o.is_compared for r in o.reasons)


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
                ErrorCode.STATEMENT_NOT_SUPPORTED,
                f"the caches hold a {type(statement).__name__} statement: only CREATE RECORD "
                "PRESERVING JOIN and CREATE RELATIONAL CACHE are read offline",
            )
    keys = tuple(j for j in joins if j.validated or read.options.trust_unvalidated)
    read = replace(read, options=replace(read.options, keys=keys))
    registry = Registry()
    plans: dict[str, CachePlan] = {}
    stored: dict[str, str] = {}
    for name, cache in caches.items():
        found = plan(name, cache, schema, read.text, tuple(joins), plans)
        plans[name] = found
        try:
            stored[name] = render_stored(found, [quote_path(r.name) for r in found.tables])
        except NotRenderable as error:
            raise DefinitionError(
                ErrorCode.EXPRESSION_NOT_SUPPORTED,
                f"cache {name}: {error} cannot be written as SQL",
            ) from error
        if cache.spec.rewrite_enabled:
            registry.put(found)
    disabled = frozenset(n for n, c in caches.items() if not c.spec.rewrite_enabled)
    seen = tables_of_nowhere(r for found in plans.values() for r in found.tables)
    checks = checks_of([unbuilt(found, seen) for found in plans.values()])
    return Workspace(schema, read, registry, plans, disabled, stored, seen, checks)


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
        What `Explanation.as_data` gives, and `stored`: what each cache would hold, as SQL.

    Raises:
        CacheManagerError: the caches or a setting are at fault.
        MatcherError: the schema or the query is.
    """
    workspace = prepare(schema_sql, caches_sql, conf)
    return explain_query(workspace, query)


def explain_query(workspace: Workspace, query: str) -> dict[str, Any]:
    """`explain` over declarations that are read already."""
    found = answer(workspace, query)
    said = replace(explanation_of(found.decision, found.sql), candidates=found.candidates)
    return {**said.as_data(), "stored": dict(workspace.stored)}


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
    try:
        return _answer(workspace, query, explain)
    except RecursionError:
        raise SqlInputError(
            InputCode.TEXT_TOO_DEEP, "the query is nested too deeply, or too long, to be read"
        ) from None


def _answer(workspace: Workspace, query: str, explain: bool) -> Answer:
    parsed = parse_query(query, workspace.schema, workspace.conf.text)
    whole = list(parsed.reasons)
    if not workspace.conf.enabled:
        whole.append(
            Reason(ReasonCode.SETTINGS_DIFFER, "spark.cachemgr.enabled is false", "set it to true")
        )
    blocks = TextBlocks(parsed)
    decision = refused(*whole) if whole else _decided(workspace, blocks, explain)
    sql = blocks.rewritten(decision, lambda hit: _sql(hit.rewrite)) if decision.hits else None
    compared = [c for outcome in decision.outcomes for c in outcome.candidates]
    hinted = () if whole else _unheeded(workspace, parsed, decision, compared)
    found = Answer(parsed, decision, (*compared, *hinted), sql)
    return replace(found, candidates=(*found.candidates, *_not_compared(workspace, found)))


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
        raise ConfigurationError(
            ErrorCode.BAD_CASE, f"a case needs {key!r} as a text, not {value!r}"
        )
    return value


def _settings(conf: object) -> dict[str, str]:
    """A case's settings: an object, or a list of `key=value`."""
    if conf is None:
        return {}
    if isinstance(conf, list) and all(isinstance(c, str) and "=" in c for c in conf):
        conf = dict(c.split("=", 1) for c in conf)
    if not isinstance(conf, dict):
        raise ConfigurationError(
            ErrorCode.BAD_CASE, f"conf is {conf!r}: give an object of key to value"
        )
    return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in conf.items()}


# -- the query ----------------------------------------------------------------------------------


class _Declared(Eligibility):
    """Of declared caches it is checked that the text can name them."""

    def __init__(self, query: QueryState, checks: Checks, blocks: TextBlocks) -> None:
        super().__init__(query, checks)
        self._blocks = blocks

    def clear(
        self, located: LocatedBlock, block: Block, rewrite: Rewrite
    ) -> Cleared | Behind | Moved | Reason:
        """See `Eligibility`."""
        found = super().clear(located, block, rewrite)
        if not isinstance(found, Cleared):
            return found
        parsed = self._blocks.parsed
        hidden = frozenset() if self._blocks.is_root(located) else parsed.cte_names
        names = [rewrite.cache, *(e.relation.name for e in rewrite.extra)]
        name = next((n for n in names if n.lower() in hidden), None)
        if name is not None:
            what = "the cache" if name == rewrite.cache else "the table"
            return Reason(
                ReasonCode.UNSUPPORTED_RELATION,
                "the query has a CTE named {name}, which hides {what}",
                "rename the CTE",
                name=TableName(name),
                what=Word(what),
            )
        try:
            _sql(rewrite)
        except NotRenderable as error:
            return not_taken(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "no SQL spelling for {part}",
                part=Sql(str(error)),
            )
        return found


def _decided(workspace: Workspace, blocks: TextBlocks, explain: bool) -> Decision:
    """What is decided; an error of ours is a miss, as in a session."""
    hinted = blocks.parsed.hinted
    query = QueryState(workspace.seen, frozenset(), "", 0, 0, only=hinted)
    eligibility = _Declared(query, workspace.checks, blocks)
    hint = blocks.parsed.hinted_steps
    steps = workspace.conf.options.most_steps if hint is None else hint
    options = replace(workspace.conf.options, forced=hinted, most_steps=steps)
    try:
        with unhurried():  # no query waits, and the answer is to be the same on every machine
            return decide(blocks, workspace.registry, eligibility, options, explain=explain)
    except Exception as error:
        cause = Cause(internal(error))
        remedy = "report it with the input"
        reason = Reason(ReasonCode.INTERNAL_ERROR, "{cause}", remedy, cause=cause)
        return refused(reason)


def _sql(rewrite: Rewrite) -> str:
    return render_rewrite(rewrite, quote_path(rewrite.cache))


def _unheeded(
    workspace: Workspace, parsed: TextQuery, decision: Decision, compared: Sequence[Candidate]
) -> list[Candidate]:
    """A line for each cache that the query's hint asks for and that does not answer."""
    used = [hit.rewrite.cache for hit in decision.hits]
    known = {name.lower(): name for name in workspace.plans}
    return [
        Candidate(known.get(name, name), None, "refused", (reason,))
        for name in sorted(parsed.hinted)
        for reason in unheeded([name], used, known, compared, meant_cache)
    ]


def _not_compared(workspace: Workspace, found: Answer) -> list[Candidate]:
    """Lines for blocks that no cache was compared with, and caches that no block was."""
    compared = {c.cache for c in found.candidates}
    refused_blocks = tuple(dict.fromkeys(found.refused))
    others = tuple(dict.fromkeys(found.reasons))
    lines = []
    for name in workspace.plans:
        why: tuple[Reason, ...] = ()
        if name in workspace.disabled:
            why = (_DISABLED,)
        elif not found.rewrites and refused_blocks:
            why = refused_blocks
        elif name not in compared:
            nothing = Reason(
                ReasonCode.NO_CACHE_FOR_TABLES,
                "{cache} reads none of the query's tables",
                "declare a cache over them",
                cache=CacheName(name),
            )
            why = others or (nothing,)
        if why:
            lines.append(Candidate(name, None, "refused", why))
    return lines
