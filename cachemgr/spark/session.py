"""One Spark session that takes part: it decides its queries, pins hot sets, and logs decisions.

No query waits for the metastore or for a pin: the feed follows the metastore in the background, and
a set is pinned beside the query that found it missing.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cachemgr.errors import CacheManagerError
from cachemgr.metastore.records import DecisionRecord, Outcome
from cachemgr.refresh.layout import LARGE_SET_ROWS
from cachemgr.refresh.session import own_session
from cachemgr.settings import PREFIX, Mode, Settings
from cachemgr.spark.conf import explicit_settings
from cachemgr.spark.decider import (
    BlockOutcome,
    Examination,
    Hit,
    examine,
    match_options,
    sorted_above,
)
from cachemgr.spark.eligibility import RELATION, Checks, QueryState, extra_names
from cachemgr.spark.explain import set_text
from cachemgr.spark.feed import Feed
from cachemgr.spark.files import FileReads
from cachemgr.spark.freshness import Histories, PlaceMemory
from cachemgr.spark.hints import NO_CACHE, Hints
from cachemgr.spark.hook import HookContext, QueryTable, Replacement
from cachemgr.spark.keys import keys_promised, keys_seen, validated_places
from cachemgr.spark.pins import PinKey, PinStore, most_selective_first
from cachemgr.spark.plans import TableRef
from cachemgr.spark.result_settings import SettingsComparer
from cachemgr.spark.served import ServedCache
from cachemgr.spark.tables import TableRead, has_delta_log, past_of, run_select
from cachemgr.telemetry import Telemetry
from matcher.cost import rows_left
from matcher.explain import set_names
from matcher.from_spark_templates import PlanDocument
from matcher.ir import GROUPING_ID_COLUMN, CachePlan, RecordPreservingJoin
from matcher.reasons import Reason, ReasonCode
from matcher.render import quote
from matcher.types import FLOATS

_FEW_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class _Checked(Replacement):
    """A replacement that may have to stand or fall with the query's others."""

    all_or_none: bool = False


class CacheSession:
    """Decides the queries of one Spark session, and of those that share its `enable()`.

    Args:
        spark: The session.
        feed: The caches of its metastore.
        telemetry: Counters and the log of its own.
        pin_max_bytes: What its pins may take in memory.
    """

    def __init__(
        self, spark: SparkSession, feed: Feed, telemetry: Telemetry, pin_max_bytes: int
    ) -> None:
        self.spark = spark
        self.feed = feed
        self.telemetry = telemetry
        self._user: str = spark.sparkContext.sparkUser()
        self.comparer = SettingsComparer(self._default_of)
        self.histories = Histories(partial(past_of, spark))
        self._places = PlaceMemory(lambda place: has_delta_log(spark, place))
        self.checks = Checks(
            feed.served, self.comparer, self.histories, feed.restricted, self._is_gone
        )
        # In a session of ours: what the user sets in his must not decide how pins are read.
        self.pins_session = own_session(spark, {})
        self.pins = PinStore(self.pins_session, pin_max_bytes)
        self.files = FileReads(self.pins_session)
        self._parsed: dict[frozenset[tuple[str, str]], Settings] = {}
        self._versions: dict[str, int | None] = {}
        self._versions_lock = threading.Lock()
        feed.listen(self._drop_old_pins)

    def close(self) -> None:
        """Forget the pins; the session decides nothing any more."""
        self.feed.unlisten(self._drop_old_pins)
        self.pins.close()

    @property
    def principal(self) -> str:
        """Who asks: the token's principal where a service is followed, else Spark's user."""
        return self.feed.source.principal or self._user

    def known_locations(self) -> frozenset[str]:
        """The tables whose versions are asked for: those that some cache reads, and those with a
        validated key, by which they may be joined to one. Queries over none of them are not asked
        about."""
        read = self.feed.registry.tables()
        return read | validated_places(self.feed.joins()) if read else read

    def decide(self, document: PlanDocument, context: HookContext) -> Sequence[Replacement]:
        """What of a query is answered from caches.

        Args:
            document: The query's plan.
            context: The session's settings and the tables that Spark resolved.

        Returns:
            The parts to put in place.
        """
        started = time.perf_counter()
        settings = self.settings(context.settings)
        if not settings.enabled or settings.mode is Mode.OFF:
            return ()
        try:
            found = self.examine(document, context, settings)
            mixed = any(not hit.exact for hit in found.hits)
            replacements = [
                self._replacement(hit, settings, mixed, sorted_above(document, hit.path))
                for hit in found.hits
            ]
        except Exception:
            self.telemetry.count("errors")
            self._log(Outcome.ERROR, Examination(), context, started, settings)
            raise
        self._count(found, settings)
        outcome = Outcome.MISS
        if found.hits:
            outcome = Outcome.PLAN_ONLY if settings.mode is Mode.PLAN_ONLY else Outcome.HIT
        self._log(outcome, found, context, started, settings)
        return replacements

    def refused(self, replacement: Replacement, reason: Reason) -> None:
        """Count what the hook dropped.

        Args:
            replacement: What was not put in.
            reason: Why.

        Raises:
            CacheManagerError: Other parts of the query are answered from a stale cache, which must
                not stand beside this part read live: the whole original query has to run.
        """
        self.telemetry.count("dropped_after_decision")
        self.telemetry.warn_once(
            f"{reason.code.value} {replacement.cache}",
            f"a rewrite over cache {replacement.cache} was dropped: {reason.detail}",
        )
        if isinstance(replacement, _Checked) and replacement.all_or_none:
            raise CacheManagerError(
                ReasonCode.MIXED_SNAPSHOTS.value,
                f"a part of the query cannot be answered from cache {replacement.cache} "
                f"({reason.detail}), and another part is answered from a stale cache: "
                "the original query runs",
            )

    def examine(
        self,
        document: PlanDocument,
        context: HookContext,
        settings: Settings,
        *,
        explain: bool = False,
    ) -> Examination:
        """Decide a query without putting anything in place; see `decide`."""
        refusal = self._refusal(context)
        if refusal is not None:
            return _refused(refusal)
        seen = context.seen()
        query = QueryState(
            seen=seen,
            settings=self.comparer.fingerprint(context.settings),
            principal=self.principal,
            now_ms=int(time.time() * 1000),
            stamp=self.feed.stamp,
            exact_only=_exact_only(context),
            only=frozenset(name.lower() for name in context.hinted_caches),
        )
        joins = self.feed.joins()

        def examined(query: QueryState, keys: tuple[RecordPreservingJoin, ...]) -> Examination:
            options = match_options(settings, context.settings, query.only, keys)
            registry = self.feed.registry
            return examine(document, registry, self.checks, query, options, explain=explain)

        if not seen.are_looked_up:
            promised = keys_promised(joins, seen.places)
            names = {key.name for key in promised}
            relied = tuple(join for join in joins if join.name in names)
            found = examined(replace(query, promised=relied), promised)
            if not found.keys_moved:
                return found
        return examined(query, keys_seen(joins, seen))

    def settings(self, explicit: Mapping[str, str]) -> Settings:
        """Our settings among those explicitly set in a session.

        Args:
            explicit: All settings explicitly set.

        Raises:
            ConfigurationError: One of them has a value that is not accepted.
        """
        ours = frozenset((k, v) for k, v in explicit.items() if k.startswith(PREFIX))
        if ours not in self._parsed:
            if len(self._parsed) > 100:
                self._parsed.clear()
            self._parsed[ours] = Settings.from_mapping(dict(ours))
        return self._parsed[ours]

    def context_of(self, tables: Sequence[TableRef], hints: Hints) -> HookContext:
        """The context that the hook would give for a query of this session planned now."""
        return HookContext(
            session_key=self.spark._jsparkSession.sessionUUID(),
            settings=explicit_settings(self.spark),
            tables=tuple(tables),
            is_write=False,
            hints=hints.names,
            hinted_caches=hints.caches,
        )

    def _refusal(self, context: HookContext) -> Reason | None:
        if NO_CACHE in context.hints:
            return Reason(ReasonCode.HINT, f"the query has the hint {NO_CACHE}", "remove it")
        return self.feed.why_not_ready()

    def _is_gone(self, cache: ServedCache) -> bool:
        # Whoever hears of drops hears of them long before the files go.
        return self.feed.is_silent and not self._places.has(cache.location)

    def _replacement(
        self, hit: Hit, settings: Settings, mixed: bool, is_sorted: bool
    ) -> Replacement:
        cache = hit.cache
        assert cache.version is not None
        read = TableRead(cache.location, cache.version)
        pinned = self._pin(hit, read, settings) if settings.pin_enabled else None
        relation: object = pinned if pinned is not None else self._files(hit, read)
        relations = {RELATION: relation}
        for name, extra in zip(extra_names(hit.rewrite), hit.rewrite.extra, strict=True):
            relations[name] = QueryTable(extra.relation.key)
        sql = hit.sql
        if is_sorted and pinned is None and _few_of_many(hit):
            sql = f"SELECT /*+ REPARTITION(1) */ * FROM (\n{sql}\n)"
        return _Checked(hit.path, sql, relations, cache.name, all_or_none=mixed)

    def _pin(self, hit: Hit, read: TableRead, settings: Settings) -> object | None:
        chosen = hit.rewrite.grouping_set
        rows = chosen.rows if chosen is not None else hit.cache.plan.rows
        if rows is None or rows > settings.pin_max_rows_per_set or _holds_floats(hit.cache.plan):
            return None
        number = None if chosen is None else chosen.grouping_id
        key = PinKey(hit.cache.id, read.version, number)
        pinned = self.pins.get(key)
        if pinned is None:
            plan = hit.cache.plan
            keys = set_names(plan, chosen) or tuple(c.name for c in plan.keys or ())
            self.pins.request(key, lambda: self._load(read, number, keys))
            self.telemetry.count("pin_misses")
        else:
            self.telemetry.count("pin_hits")
        return pinned

    def _files(self, hit: Hit, read: TableRead) -> object:
        """A large set's own files where they are known; a small one is about to be pinned."""
        chosen = hit.rewrite.grouping_set
        if chosen is None or chosen.rows is None or chosen.rows <= LARGE_SET_ROWS:
            return read
        plan = self.files.plan(read, chosen.grouping_id)
        return read if plan is None else plan

    def _load(self, read: TableRead, number: int | None, keys: Sequence[str]) -> DataFrame:
        where = "" if number is None else f" WHERE {quote(GROUPING_ID_COLUMN)} = {number}L"
        text = f"SELECT * FROM {RELATION}{where}"
        rows = run_select(self.pins_session, text, {RELATION: read})
        return most_selective_first(rows, keys)

    def _drop_old_pins(self) -> None:
        # Both the feed's thread and a statement of the user's may bring news.
        with self._versions_lock:
            now = {c.id: c.version for c in self.feed.caches()}
            for cache_id, before in self._versions.items():
                if cache_id not in now:
                    self.pins.drop_cache(cache_id)
                elif now[cache_id] != before:
                    self.pins.drop_cache(cache_id, keep_version=now[cache_id])
            self._versions = now

    def _count(self, found: Examination, settings: Settings) -> None:
        self.telemetry.count("hits" if found.hits else "misses")
        if found.hits and settings.mode is Mode.PLAN_ONLY:
            self.telemetry.count("plan_only")

    def _log(
        self,
        outcome: Outcome,
        found: Examination,
        context: HookContext,
        started: float,
        settings: Settings,
    ) -> None:
        if not settings.decision_log_enabled:
            return
        millis = (time.perf_counter() - started) * 1000
        at, session_id = datetime.now(UTC), context.session_key
        self.feed.log(lambda: _decision(at, session_id, outcome, found, millis))

    def _default_of(self, key: str) -> str | None:
        jvm: Any = self.spark._jvm
        # A Scala object: Java sees its methods on the one instance only.
        module = getattr(getattr(jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")
        entry = module.getConfigEntry(key)
        text: str | None = None if entry is None else entry.defaultValueString()
        return None if text is None or text == "<undefined>" else text


def _holds_floats(plan: CachePlan) -> bool:
    """Spark's statistics of pinned batches leave NaN out, so it would pass over batches with it."""
    stored = [*(plan.keys or ()), *plan.columns]
    kinds = {c.expr.type for c in stored} | {m.agg.type for m in plan.measures}
    return not kinds.isdisjoint(FLOATS)


def _few_of_many(hit: Hit) -> bool:
    """Few rows that are filtered from a large set, and not grouped again.

    Spark sorts by ranges, whose bounds it finds by running what is below the sort once more:
    reading the set's files twice (half the time of such a hit, measured). Few rows are gathered.
    """
    rewrite, plan = hit.rewrite, hit.cache.plan
    if rewrite.group_keys is not None or rewrite.extra or rewrite.branches:
        return False
    return rows_left(plan, rewrite.grouping_set, rewrite.filters) <= _FEW_ROWS


def _exact_only(context: HookContext) -> Reason | None:
    if context.is_write:
        return Reason(
            ReasonCode.NOT_STRICT_FOR_WRITE,
            "the query writes its rows, and the cache is behind its base tables",
            "refresh the cache",
        )
    if context.in_subquery:
        return Reason(
            ReasonCode.MIXED_SNAPSHOTS,
            "it is a subquery of a query that may read the tables as they are now, "
            "and the cache is behind them",
            "refresh the cache",
        )
    return None


def _refused(reason: Reason) -> Examination:
    return Examination([BlockOutcome((), None, None, (), (reason,))])


def _decision(
    at: datetime, session_id: str, outcome: Outcome, found: Examination, millis: float
) -> DecisionRecord:
    hits = found.hits
    first = hits[0] if hits else None
    found = found.told()  # here, where no query waits for it
    blocks = repr([o.block for o in found.outcomes if o.block is not None])
    return DecisionRecord(
        at=at,
        session_id=session_id,
        query_hash=hashlib.sha256(blocks.encode()).hexdigest()[:16],
        outcome=outcome,
        caches=tuple(dict.fromkeys(h.rewrite.cache for h in hits)),
        grouping_set=None
        if first is None
        else set_text(first.cache.plan, first.rewrite.grouping_set),
        reasons=tuple(_reasons(found)),
        millis=millis,
    )


def _reasons(found: Examination) -> list[dict[str, Any]]:
    """Why what is not answered is not, with the tables that it reads: by them it is known later
    which caches the miss concerns."""
    tables: dict[Reason, set[str]] = {reason: set() for reason in found.reasons}
    for outcome in found.telling:
        if outcome.hit is None and outcome.block is not None:
            for reason in outcome.reasons:
                tables[reason] |= {relation.key for relation in outcome.block.relations}
    return [
        {"code": r.code.value, "detail": r.detail, "tables": sorted(places)}
        for r, places in tables.items()
    ]
