"""Carries statements out: one function a statement, rows as the answer.

Knows the metastore, and Spark only as the `Engine` protocol. Every door (spark.sql, the CLI, REST)
ends here. It decides nothing about text (cachemgr.ddl) and nothing about rows (matcher).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import assert_never

from cachemgr.access.redaction import Discretion
from cachemgr.access.visitor import Visitor
from cachemgr.cache_spec import SPEC_FIELDS, RefreshPolicy
from cachemgr.config.result_settings import agree
from cachemgr.config.session_settings import Settings
from cachemgr.ddl.names import namespace_of, no_cache, shown_name
from cachemgr.ddl.render import render
from cachemgr.ddl.statements import (
    AlterRelationalCache,
    Changing,
    CreateRecordPreservingJoin,
    CreateRelationalCache,
    DescribeRelationalCache,
    DropRecordPreservingJoin,
    DropRelationalCache,
    ExplainCreate,
    ExplainRefresh,
    ExplainRewrite,
    GrantSelect,
    GrantUse,
    QualifiedName,
    Reading,
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
from cachemgr.ddl.text import Kind, lex
from cachemgr.delta.places import is_inside, storage_place
from cachemgr.errors import (
    AlreadyExistsError,
    DefinitionError,
    ErrorCode,
)
from cachemgr.journal.journal import FOLDER
from cachemgr.metastore import Metastore
from cachemgr.metastore.masked import masked_cache, masked_join
from cachemgr.metastore.records import CacheRecord
from cachemgr.secrets import masked_sql, refuse_secrets
from cachemgr.statements import restrict, select_grants
from cachemgr.statements.cache_facts import facts_of
from cachemgr.statements.columns import CREATE_TEXT, ITEMS, REFRESHED, STEPS
from cachemgr.statements.convert import create_statement
from cachemgr.statements.create_cache import (
    build_record,
    grouping_set_records,
    matched_columns,
    order_told,
    refuse_name,
    refuse_properties,
    refuse_secrets_in,
)
from cachemgr.statements.describe import (
    broken_join,
    describe_rows,
    join_rows,
    show_rows,
    stored_items,
    stored_select,
)
from cachemgr.statements.engine import Definition, Engine
from cachemgr.statements.join_statements import JoinStatements
from cachemgr.statements.results import ResultRows, done, table
from cachemgr.statements.tidy import Tidy
from cachemgr.vocabulary import RefreshMode
from matcher.model.message import SECRET
from scheduler.triggers import OnDemand

Clock = Callable[[], datetime]
# They name tables, columns and groups.
_HIDDEN_STAGES = table(STEPS, [(1, "hidden", "the stages are for those who may use the cache")])
# What may be told to whoever asks, as the metastore stands when it is called.
_Told = Callable[[], Discretion]


def utc_now() -> datetime:
    """This moment."""
    return datetime.now(UTC)


class CacheService:
    """Carries out statements against one metastore.

    Args:
        metastore: Where caches are recorded.
        engine: Spark.
        settings: The settings in force.
        changed: Called after every change, so that the caller's session sees it at once.
        now: The clock.
    """

    def __init__(
        self,
        metastore: Metastore,
        engine: Engine,
        settings: Callable[[], Settings],
        changed: Callable[[], object] = lambda: None,
        now: Clock = utc_now,
    ) -> None:
        self._metastore = metastore
        self._engine = engine
        self._settings = settings
        self._changed = changed
        self._now = now
        self._joins = JoinStatements(metastore, engine, now)
        self._tidy = Tidy(
            metastore, engine.files, lambda: self._settings().drop_grace_seconds, self._now
        )

    def execute(
        self,
        statement: Statement,
        *,
        principal: str | None = None,
        vouched: bool = True,
        visitor: Visitor | None = None,
    ) -> ResultRows:
        """Carry a statement out.

        Args:
            statement: What to do.
            principal: Who asks, and owns what is made; None for the engine's own user, empty where
                nobody can tell.
            vouched: Somebody has authenticated that name: see `Asker`.
            visitor: Him, where he uses a server whose users are others than its own.

        Returns:
            The rows that answer it.

        Raises:
            CacheManagerError: What happened, to which object, and what to do next.
        """
        if visitor is not None:
            visitor.refuse(statement)
        who = self._engine.user() if principal is None else principal
        told = partial(Discretion, self._metastore, who, vouched=vouched, visitor=visitor)
        if isinstance(statement, Reading):
            return _masked(self._read(statement, told))
        answer = _masked(self._change(statement, who, told))
        self._changed()
        return answer

    def _read(self, statement: Reading, told: _Told) -> ResultRows:
        match statement:
            case ShowRelationalCaches(pattern):
                return self._show(pattern, told())
            case ShowCreateRelationalCache(name):
                shown = self._find_shown(name, told())
                return table(CREATE_TEXT, [(render(create_statement(masked_cache(shown))),)])
            case DescribeRelationalCache(name, extended):
                facts = facts_of(
                    self._metastore, self._engine, self._find(name), told(), lag=extended
                )
                return describe_rows(facts, extended)
            case ShowRecordPreservingJoins():
                discretion = told()
                joins = map(discretion.join, self._metastore.joins.all())
                return join_rows([masked_join(join) for join in joins])
            case ShowRestrictedBaseTables():
                return restrict.rows(self._metastore.tables)
            case ShowSelectGrants():
                grants = self._metastore.select_grants
                return select_grants.rows(grants, self._engine, statement, told().may_see_grant)
            case ExplainRewrite():
                return self._engine.explain_rewrite(statement)
            case ExplainRefresh(name, mode):
                cache, discretion = self._find(name), told()
                if not discretion.may_see(cache):
                    return _HIDDEN_STAGES
                hidden = () if discretion.may_know(cache) else SECRET
                return self._engine.explain_refresh(cache, _mode(mode), hidden)
            case ExplainCreate(inner):
                return self._explain_create(inner)
            case _:
                assert_never(statement)

    def _change(self, statement: Changing, who: str, told: _Told) -> ResultRows:
        match statement:
            case CreateRelationalCache():
                return self._create(statement, who, told)
            case AlterRelationalCache():
                return self._alter(statement, told)
            case RefreshRelationalCache(name, mode):
                return self._refresh(self._find(name), _mode(mode), told)
            case DropRelationalCache(name, if_exists):
                return self._drop(name, if_exists, told)
            case GrantUse(name, principal):
                return self._grant(name, principal)
            case RevokeUse(name, principal):
                return self._revoke(name, principal)
            case RestrictBaseTable() | UnrestrictBaseTable() | GrantSelect() | RevokeSelect():
                return self._change_table(statement, who)
            case CreateRecordPreservingJoin():
                return self._joins.create(statement)
            case DropRecordPreservingJoin(name, if_exists):
                return self._joins.drop(name, if_exists, told)
            case ValidateRecordPreservingJoin(name):
                return self._joins.validate(name)
            case _:
                assert_never(statement)

    def _change_table(
        self,
        statement: RestrictBaseTable | UnrestrictBaseTable | GrantSelect | RevokeSelect,
        who: str,
    ) -> ResultRows:
        tables, grants, engine = self._metastore.tables, self._metastore.select_grants, self._engine
        match statement:
            case RestrictBaseTable(name):
                return restrict.restrict(tables, engine, name, who)
            case UnrestrictBaseTable(name):
                return restrict.unrestrict(tables, engine, name)
            case GrantSelect():
                return select_grants.grant(grants, engine, statement)
            case RevokeSelect():
                return select_grants.revoke(grants, engine, statement)
            case _:
                assert_never(statement)

    def _create(self, statement: CreateRelationalCache, principal: str, told: _Told) -> ResultRows:
        namespace = self._namespace(statement.name)
        existing = self._metastore.caches.named(namespace, statement.name.last)
        if existing is not None and statement.if_not_exists:
            return done(existing.qualified_name, _left_alone(existing, statement))
        if existing is not None and not statement.or_replace:
            raise AlreadyExistsError(
                ErrorCode.CACHE_EXISTS,
                f"the relational cache {existing.qualified_name} exists already: "
                "use OR REPLACE or IF NOT EXISTS, or take another name",
            )
        if existing is None:  # an older release took names that this one does not
            refuse_name(statement.name, namespace=namespace)
        refuse_secrets_in(statement)
        discretion = told()
        if existing is not None:
            discretion.refuse_change(existing)
        definition, record = self._record(statement, namespace, principal)
        record = discretion.signed(record)
        self._metastore.caches.create(
            record,
            grouping_set_records(record),
            now=self._now(),
            # one that somebody made meanwhile is his: it was not looked at
            replace=statement.or_replace and (existing is not None or not discretion.is_visitor),
            alike=agree,
        )
        relations = (record.plan or {}).get("relations", ())
        # for those who match texts without a Spark; a refresh notes them again
        names = {str(place): str(name) for place, name in relations}
        self._metastore.tables.note(self._engine.base_tables(names))
        self.purge()
        said = "replaced" if existing is not None else "created"
        order = order_told(statement.spec, definition)
        said += _who_refreshes(statement.spec.refresh) + (f"; {order}" if order else "")
        return done(record.qualified_name, said)

    def _record(
        self, statement: CreateRelationalCache, namespace: str, owner: str
    ) -> tuple[Definition, CacheRecord]:
        definition = self._engine.define(
            shown_name(namespace, statement.name.last), statement.select
        )
        root = self._settings().location
        record = build_record(statement, namespace, definition, root, owner)
        self._refuse_place(statement)
        return definition, record

    def _refuse_place(self, statement: CreateRelationalCache) -> None:
        if statement.spec.location is None:
            return
        what = f"LOCATION of cache {statement.name}"
        place = storage_place(statement.spec.location, what)
        # one that was never refreshed has no log yet
        caches = self._metastore.caches.all(include_dropped=True)
        taken = next((c for c in caches if is_inside(place, c.location)), None)
        if taken is not None or f"/{FOLDER}" in place:
            raise DefinitionError(
                ErrorCode.PLACE_TAKEN,
                f"{what}: {place} lies in the folder of another cache or of the caches' records: "
                "give a folder of its own",
            )
        self._engine.refuse_place(place, what)

    def _explain_create(self, statement: CreateRelationalCache) -> ResultRows:
        refuse_secrets_in(statement)
        namespace = self._namespace(statement.name)
        refuse_name(statement.name, namespace=namespace)
        definition = self._engine.define(
            shown_name(namespace, statement.name.last), statement.select
        )
        refuse_properties(str(statement.name), statement.spec.properties)
        matched_columns(statement, definition)
        self._refuse_place(statement)
        plan = definition.plan
        existing = self._metastore.caches.named(namespace, statement.name.last)
        items = [("name", f"{namespace}.{statement.name.last}")]
        items.append(("exists", "yes" if existing is not None else "no"))
        over = self._metastore.caches.names(definition.reads).values()
        items += [("defined over", name) for name in over]
        items += stored_items(plan)
        order = order_told(statement.spec, definition)
        items += [("order", order)] if order else []
        items += [(f"setting {key}", value) for key, value in definition.settings.items()]
        if statement.spec.refresh.mode is RefreshMode.FULL:
            items.append(("refresh", "FULL: the REFRESH clause asks for that"))
        else:
            items += [
                (f"refresh after {change} in {name}", told)
                for name, change, told in self._engine.refresh_ways(plan, definition.settings)
            ]
        items.append(("stored as", stored_select(plan)))
        return table(ITEMS, items)

    def _alter(self, statement: AlterRelationalCache, told: _Told) -> ResultRows:
        cache = self._find(statement.name)
        told().refuse_change(cache)
        now = self._now()
        match statement.action:
            case RenameTo(name):
                namespace = self._namespace(name) if name.namespace else cache.namespace
                refuse_name(name)
                new = self._metastore.caches.rename(
                    cache.id, cache.version, name.last, namespace=namespace, now=now
                )
                return done(cache.qualified_name, f"renamed to {new.qualified_name}")
            case SetRewriteEnabled(enabled):
                fields: dict[str, object] = {"rewrite_enabled": enabled}
                said = "rewrite enabled" if enabled else "rewrite disabled"
            case SetPaused(paused):
                fields, said = {"paused": paused}, "paused" if paused else "resumed"
            case SetRefresh(policy):
                fields = {"refresh": policy}
                said = f"refresh policy set{_who_refreshes(policy)}"
            case SetFreshness(freshness):
                fields, said = {"freshness": freshness}, "freshness set"
            case SetProperties(properties):
                refuse_secrets(f"cache {cache.qualified_name}", {}, dict(properties))
                refuse_properties(cache.name, dict(properties))
                fields = {"properties": {**cache.spec.properties, **dict(properties)}}
                said = "properties set"
            case _:
                assert_never(statement.action)
        self._metastore.caches.update(cache.id, cache.version, now=now, **fields)
        return done(cache.qualified_name, said)

    def _refresh(self, cache: CacheRecord, mode: str | None, told: _Told) -> ResultRows:
        discretion = told()
        run = discretion.run(
            discretion.refreshed(cache, lambda: self._engine.refresh(cache, mode)), cache
        )
        self.purge()
        self._tidy.cache(cache.id)
        return table(
            REFRESHED,
            [
                (
                    cache.qualified_name,
                    run.state.value,
                    run.mode,
                    "; ".join([run.reason, *map(broken_join, run.broken_joins)]),
                    run.rows,
                    run.bytes,
                    run.cache_version,
                    None
                    if run.finished_at is None
                    else (run.finished_at - run.started_at).total_seconds(),
                )
            ],
        )

    def _grant(self, name: QualifiedName, principal: str) -> ResultRows:
        cache = self._find(name)
        if not self._metastore.grants.add(cache.id, principal):
            return done(str(name), "was granted already")
        # it was open to everybody, whoever made it
        alone = "" if cache.narrowed else ", and from now on to nobody else"
        return done(str(name), f"granted to {principal}{alone}")

    def _revoke(self, name: QualifiedName, principal: str) -> ResultRows:
        cache = self._find(name)
        self._metastore.grants.revoke(cache.id, principal)
        left = self._metastore.grants.of(cache.id)
        # a cache that was narrowed once is not opened to everybody by taking the last grant back
        nobody = "" if left else "; nobody may use the cache now, until it is granted to somebody"
        return done(str(name), f"revoked from {principal}{nobody}")

    def _drop(self, name: QualifiedName, if_exists: bool, told: _Told) -> ResultRows:
        found = self._metastore.caches.named(self._namespace(name), name.last)
        if found is None and if_exists:
            return done(str(name), "did not exist, nothing was changed")
        cache = self._find(name)
        told().refuse_change(cache)
        self._metastore.caches.drop(cache.id, now=self._now())
        self.purge()
        return done(cache.qualified_name, "dropped")

    def purge(self) -> int:
        """Delete the files of caches that were dropped longer ago than the grace.

        Returns:
            How many caches were forgotten.
        """
        return self._tidy.purge()

    def _show(self, pattern: str | None, told: Discretion) -> ResultRows:
        found = self._metastore.caches.matching(pattern)
        return show_rows([facts_of(self._metastore, self._engine, cache, told) for cache in found])

    def _namespace(self, name: QualifiedName) -> str:
        return namespace_of(name, *self._engine.current())

    def _find(self, name: QualifiedName) -> CacheRecord:
        cache = self._metastore.caches.named(self._namespace(name), name.last)
        if cache is None:
            raise no_cache(
                str(name),
                self._metastore.caches.live_names(),
                "SHOW RELATIONAL CACHES",
                self._namespace(QualifiedName((name.last,))),
            )
        return cache

    def _find_shown(self, name: QualifiedName, told: Discretion) -> CacheRecord:
        """The cache, for whoever may see its definition."""
        cache = self._find(name)
        told.refuse_to_show(cache)
        return cache


def _left_alone(existing: CacheRecord, statement: CreateRelationalCache) -> str:
    said = "exists already, nothing was changed"
    wished, is_so = statement.spec, existing.spec
    # of properties a cache may have some that nobody wrote
    differ = [
        clause
        for clause in SPEC_FIELDS
        if clause != "properties" and getattr(wished, clause) != getattr(is_so, clause)
    ]
    if _words(statement.select.text) != _words(existing.definition):
        differ.append("SELECT")
    if not differ:
        return said
    differs = f"{', '.join(differ)} {'differs' if len(differ) == 1 else 'differ'}"
    return (
        f"{said}; its {differs} from the statement's: see SHOW CREATE RELATIONAL CACHE "
        f"{existing.qualified_name}, or use CREATE OR REPLACE"
    )


def _words(select: str) -> list[str]:
    """What is alike in texts that differ in spaces, comments and the case of names alone."""
    toks = lex(select, 0, len(select)).toks
    return [t.text if t.kind is Kind.STRING else t.text.upper() for t in toks]


def _who_refreshes(policy: RefreshPolicy) -> str:
    """What carries a schedule out: no session does."""
    if isinstance(policy.trigger, OnDemand):
        return ""
    return "; it is refreshed by `cachemgr serve` or `cachemgr worker` on this metastore"


def _masked(rows: ResultRows) -> ResultRows:
    """Rows without the credentials that a stored text or a query may hold."""
    told = (tuple(masked_sql(v) if isinstance(v, str) else v for v in row) for row in rows.rows)
    return replace(rows, rows=tuple(told))


def _mode(mode: RefreshMode | None) -> str | None:
    return None if mode is None else mode.name
