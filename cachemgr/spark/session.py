"""One Spark session that takes part: it decides its queries, has hot sets pinned, and logs
decisions. What it finds out that does not depend on it is the application's (`application`).

No query waits for the metastore or for a pin: the feed follows the metastore in the background, and
a set is pinned beside the query that found it missing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from cachemgr.access.asker import Asker
from cachemgr.access.grants import may_use
from cachemgr.causes import in_plain_words
from cachemgr.config.match_options import match_options
from cachemgr.config.result_settings import fingerprint
from cachemgr.config.session_settings import (
    ENABLED,
    FIXED,
    MODE,
    Mode,
    Settings,
    told_of_unknown,
    unknown_keys,
)
from cachemgr.ddl.names import hinted_name
from cachemgr.delta.own_session import own_session
from cachemgr.delta.stored_files import FilesFound
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.errors import CacheManagerError
from cachemgr.metastore.records import UNSEEN_DAMAGE
from cachemgr.refresh.full.layout import LARGE_SET_ROWS
from cachemgr.serving.appended import FreshLimits
from cachemgr.serving.decide import decide
from cachemgr.serving.decision import Decision, Hit, refused
from cachemgr.serving.eligibility import Checks, Eligibility, QueryState
from cachemgr.serving.feed import Feed
from cachemgr.serving.fresh_hits import base_columns
from cachemgr.serving.plan_blocks import PlanBlocks
from cachemgr.serving.served_cache import ServedCache, collapsing_sql
from cachemgr.serving.unique_keys import (
    JoinsUnderSettings,
    validated_places,
)
from cachemgr.spark.application import Application
from cachemgr.spark.failures import cache_ids, is_not_as_written, is_read_failure
from cachemgr.spark.held.pins import PinKey, holds_floats, in_order, most_selective_first
from cachemgr.spark.held.scan_name import scan_name
from cachemgr.spark.held.tails import TailStore
from cachemgr.spark.hints import NO_CACHE
from cachemgr.spark.hook import (
    ChangedSinceAnalysis,
    Collapsed,
    HookContext,
    QueryFiles,
    QueryTable,
    Replacement,
)
from cachemgr.spark.outcomes import TOO_LATE, NotedDecision, failed
from cachemgr.telemetry import Telemetry
from matcher.catalyst.templates import PlanDocument
from matcher.index.explain import set_names
from matcher.model.ir import (
    GROUPING_ID_COLUMN,
    GroupingSet,
)
from matcher.model.message import Setting, Word
from matcher.model.reasons import Reason, ReasonCode
from matcher.render.placeholders import CACHE, STORED, TAIL, bases, joined
from matcher.render.select import quote
from matcher.rules.cost import rows_left

_FEW_ROWS = 100_000


CHANGED_SINCE_ANALYSIS: Final = Reason(
    ReasonCode.FRESHNESS_UNKNOWN,
    "the columns of a table changed after the query was analysed, and Spark refuses to read it",
    "make the DataFrame anew",
)


@dataclass(frozen=True, slots=True)
class _Checked(Replacement):
    """A replacement that may have to stand or fall with the query's others."""

    all_or_none: bool = False


class CacheSession:
    """Decides the queries of one Spark session, and of those that share its `enable()`.

    It holds no Spark session: one that nobody holds any more can go.

    Args:
        application: What it shares with the other sessions.
        feed: The caches of its metastore.
        telemetry: Counters and the log of its own.
        fixed: For sessions of others than the application's user: the settings that are the
            server's to make, as its configuration has them; what a session sets of those that are
            so (`FIXED`) does not count.
    """

    def __init__(
        self,
        application: Application,
        feed: Feed,
        telemetry: Telemetry,
        fixed: Mapping[str, str] | None = None,
    ) -> None:
        self._fixed = fixed
        self.application = application
        self.feed = feed
        self.telemetry = telemetry
        self.comparer = application.comparer
        self._joins = JoinsUnderSettings(self.comparer)
        self.histories = application.histories
        self.stored = application.stored
        self.checks = Checks(
            feed.served,
            self.comparer,
            self.histories,
            feed.restricted,
            self._files_found,
            application.tails,
            application.new_keys,
        )

    @property
    def principal(self) -> str:
        """Who asks: the token's principal where a service is followed, else Spark's user."""
        return self.feed.principal or self.application.user

    def known_locations(self) -> frozenset[str]:
        """The tables whose versions are asked for: those that some cache reads, and those with a
        validated key, by which they may be joined to one. Queries over none of them are not asked
        about."""
        return known_locations(self.feed)

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
            replacements = self.replacements(found, document, settings)
        except ChangedSinceAnalysis:
            found, replacements = refused(CHANGED_SINCE_ANALYSIS), []
        except Exception as error:
            if not self._is_late(context):
                cause = f"{type(error).__name__}: {str(error)[:160]}"
                self._noted(refused(failed("deciding", cause)), context, started, settings).fail()
                raise
            found, replacements = refused(TOO_LATE), []
        if found.hits and self._is_late(context):
            found, replacements = refused(TOO_LATE), []
        elif found.served_once and not context.is_kept:
            context.ask_again()
        noted = self._noted(found, context, started, settings)
        self.application.outcomes.note(context.number, noted)
        return replacements

    def _is_late(self, context: HookContext) -> bool:
        """Whether the query waits no more; in a program of one's own each one does."""
        return self._fixed is not None and not context.is_awaited()

    def refused(self, context: HookContext, replacement: Replacement, reason: Reason) -> None:
        """Count what the hook dropped.

        Args:
            context: What the decision was about.
            replacement: What was not put in.
            reason: Why.

        Raises:
            CacheManagerError: See `refuse_alone`.
        """
        self.telemetry.count("dropped_after_decision")
        self.telemetry.warn_once(
            f"{reason.code.value} {replacement.cache}",
            f"a rewrite over cache {replacement.cache} was dropped: {reason.detail}",
        )
        self.application.outcomes.drop(context.number, reason, replacement.path)
        self.refuse_alone(replacement, reason)

    def refuse_alone(self, replacement: Replacement, reason: Reason) -> None:
        """Let a part of an answer be dropped where the others may stand without it.

        Args:
            replacement: What is not put in.
            reason: Why.

        Raises:
            CacheManagerError: Other parts of the query are answered from a stale cache, which must
                not stand beside this part read live: the whole original query has to run.
        """
        if isinstance(replacement, _Checked) and replacement.all_or_none:
            raise CacheManagerError(
                ReasonCode.MIXED_SNAPSHOTS.value,
                f"a part of the query cannot be answered from cache {replacement.cache} "
                f"({reason.detail}), and another part is answered from a stale cache: "
                "the original query runs",
            )

    def explained(
        self, document: PlanDocument, context: HookContext, settings: Settings
    ) -> Decision:
        """What `decide` would find, with what is to be said of the caches that it did not choose;
        see there. Waits for nothing and has nothing made."""
        found = self.examine(document, context, settings, waits=False)
        return found.with_candidates(
            self.examine(document, context, settings, explain=True, waits=False)
        )

    def replacements(
        self,
        found: Decision,
        document: PlanDocument,
        settings: Settings,
        *,
        explain: bool = False,
    ) -> list[Replacement]:
        """What is put in place by a decision.

        Args:
            found: The decision.
            document: The query's plan.
            settings: Say what is held in memory.
            explain: Nothing is to be made, nor counted as read.
        """
        mixed = any(not hit.exact for hit in found.hits)
        return [
            self._replacement(
                hit, settings, mixed, document.is_sorted_above(hit.path), explain=explain
            )
            for hit in found.hits
        ]

    def examine(
        self,
        document: PlanDocument,
        context: HookContext,
        settings: Settings,
        *,
        explain: bool = False,
        waits: bool = True,
    ) -> Decision:
        """Decide a query without putting anything in place; see `decide`. With `explain` every
        candidate is looked at; unless it `waits`, what is being made in memory is done without."""
        refusal = self._refusal(context, settings)
        if refusal is not None:
            return refused(refusal)
        seen = context.seen()
        asker = context.asker.believed(settings.trust_user_names)
        counted = fingerprint(context.settings)
        query = QueryState(
            seen=seen,
            settings=counted,
            principal=asker.principal(self.principal),
            vouched=asker.vouched,
            now_ms=int(time.time() * 1000),
            stamp=self.feed.stamp,
            exact_only=_exact_only(context),
            only=self._hinted(context),
            # a server's query waits for its time-out at most
            fresh=_fresh_limits(settings, waits=waits and self._fixed is None),
            joins=self._joins.of(self.feed.joins(), counted),
        )
        options = match_options(context.settings, settings, query.only, steps=context.hinted_steps)
        eligibility = Eligibility(query, self.checks)
        return decide(
            PlanBlocks(document), self.feed.registry, eligibility, options, explain=explain
        )

    def why_not(self, asker: Asker, settings: Settings, name: str) -> Reason | None:
        """Why somebody may not be answered from a cache, whatever he asks; None if he may.

        Args:
            asker: Who.
            settings: The session's.
            name: The cache's, as the matcher knows it.
        """
        cache = self.feed.served(name)
        if cache is None:
            return None
        believed = asker.believed(settings.trust_user_names)
        return may_use(
            believed.principal(self.principal),
            name,
            cache.principals,
            cache.reads,
            self.feed.restricted(),
            vouched=believed.vouched,
        )

    def _hinted(self, context: HookContext) -> frozenset[str]:
        """The caches that the query's hints name, of the session's current schema where a name
        does not say."""
        if not context.hinted_caches:
            return frozenset()
        current = context.schema()
        known = self.feed.registry.spelled
        return frozenset(hinted_name(name, *current, known) for name in context.hinted_caches)

    def settings(self, explicit: Mapping[str, str]) -> Settings:
        """Our settings among those explicitly set in a session.

        Args:
            explicit: All settings explicitly set.

        Raises:
            ConfigurationError: One of them has a value that is not accepted.
        """
        if self._fixed is not None:
            own = {key: value for key, value in explicit.items() if key not in FIXED}
            explicit = own | {k: v for k, v in self._fixed.items() if k in FIXED}
        return self.application.settings(explicit)

    def notes(self, explicit: Mapping[str, str], settings: Settings) -> list[str]:
        """What a person who asks about a query should know of the session's settings.

        Args:
            explicit: All settings explicitly set.
            settings: What `settings` made of them.
        """
        found = [told_of_unknown(key, meant) for key, meant in unknown_keys(explicit).items()]
        if self._fixed is not None:
            fixed = self._fixed
            differing = sorted(k for k in FIXED & explicit.keys() if explicit[k] != fixed.get(k))
            found += [
                f"{key} is the server's to set: this session's does not count" for key in differing
            ]
        if settings.mode is Mode.PLAN_ONLY:
            found.append(f"{MODE} is planOnly: the query runs on its tables all the same")
        return found

    def _refusal(self, context: HookContext, settings: Settings) -> Reason | None:
        off = None if settings.enabled else f"{ENABLED} is false"
        if off is None and settings.mode is Mode.OFF:
            off = f"{MODE} is off"
        if off is not None:
            remedy = "set it otherwise, or RESET it"
            return Reason(ReasonCode.SETTINGS_DIFFER, "{off}", remedy, off=Setting(off))
        if NO_CACHE in context.hints:
            return Reason(
                ReasonCode.HINT,
                "the query has the hint {hint}",
                "remove it",
                hint=Word(NO_CACHE),
            )
        if context.is_kept:
            return Reason(
                ReasonCode.KEPT_BY_SPARK,
                "Spark is to keep these rows (cache(), persist(), CACHE TABLE) and computes lost "
                "ones again from their plan, at a time when a cache's files may be gone",
                "leave it out: the query itself is answered from the cache each time",
            )
        return self.feed.why_not_ready()

    def failed_on(self, text: str) -> str | None:
        """Take note of a query that failed: its caches must not fail the next one.

        Args:
            text: What Spark says of the failure.

        Returns:
            For the user, where it failed on a file of a cache; None where it did not.
        """
        if not is_read_failure(text):
            return None
        ids = cache_ids(text)
        for cache in self.feed.caches() if ids else ():
            if cache.id in ids and cache.version is not None:
                return self._failed_on(cache, cache.version, text)
        return None

    def _failed_on(self, cache: ServedCache, version: int, text: str) -> str:
        found = self.stored.look(cache.location, version)
        damage = found.damage
        if not damage and not found.unread and is_not_as_written(text):
            damage = UNSEEN_DAMAGE
        if damage:
            self.feed.notes.note_damage(cache, damage)
            return (
                f"relational cache {cache.name} is damaged: {damage}; it answers nothing until "
                f"REFRESH RELATIONAL CACHE {cache.name}: run the query again, it then reads "
                "the base tables"
            )
        why = found.unread or in_plain_words(text.splitlines()) or "no reason given"
        self.feed.notes.note_unread(cache, why)
        return (
            f"relational cache {cache.name} could not be read: {why}; run the query again, it then "
            "reads the base tables"
        )

    def _files_found(self, cache: ServedCache, grouping_id: int | None) -> FilesFound:
        return self.feed.notes.files(cache, grouping_id, self.stored)

    def _replacement(
        self, hit: Hit, settings: Settings, mixed: bool, is_sorted: bool, *, explain: bool
    ) -> Replacement:
        cache = hit.cache
        assert cache.version is not None
        read = TableRead(cache.location, cache.version)
        pins = settings.pin_enabled and settings.pin_max_bytes > 0
        pinned = self._pin(hit, read, settings, explain) if pins else None
        relation: object = pinned if pinned is not None else self._stored(hit, read)
        relations = {CACHE: relation}
        for name, extra in zip(joined(len(hit.rewrite.extra)), hit.rewrite.extra, strict=True):
            relations[name] = QueryTable(extra.relation.key)
        tails = self.application.tails if settings.fresh_tail_max_bytes > 0 else None
        relations |= _read_beside(hit, tails)
        if hit.appended is not None and tails is not None and not explain:
            told = tails.request if hit.appended.files else tails.count_read
            told(cache, hit.rewrite.grouping_set, hit.appended)
        sql = hit.sql
        if is_sorted and pinned is None and _few_of_many(hit):
            sql = f"SELECT /*+ REPARTITION(1) */ * FROM (\n{sql}\n)"
        return _Checked(
            hit.path, sql, relations, cache.name, hit.split, scan_name(cache), all_or_none=mixed
        )

    def _pin(self, hit: Hit, read: TableRead, settings: Settings, explain: bool) -> object | None:
        chosen = hit.rewrite.grouping_set
        rows = chosen.rows if chosen is not None else hit.cache.plan.rows
        if rows is None or rows > settings.pin_max_rows_per_set or holds_floats(hit.cache.plan):
            return None
        number = None if chosen is None else chosen.grouping_id
        key = PinKey(hit.cache.id, read.version, number, read.location)
        store = self.application.pins
        pinned = store.get(key)
        if explain:
            return pinned
        is_often_read = self.application.pin_pace.read(key)
        if pinned is None:
            if is_often_read:
                name = scan_name(hit.cache)
                store.request(key, lambda: self._load(hit.cache, read, chosen), name)
            self.telemetry.count("pin_misses")
        else:
            self.telemetry.count("pin_hits")
        return pinned

    def _files(self, hit: Hit, read: TableRead) -> object:
        """A large set's own files where they are known; a small one is about to be pinned."""
        chosen = hit.rewrite.grouping_set
        if chosen is None or chosen.rows is None or chosen.rows <= LARGE_SET_ROWS:
            return read
        plan = self.application.files.plan(read, chosen.grouping_id)
        return read if plan is None else plan

    def _stored(self, hit: Hit, read: TableRead) -> object:
        """What a hit reads of its cache where that is not pinned: one row a group."""
        relation = self._files(hit, read)
        sql = collapsing_sql(hit.cache, hit.rewrite.grouping_set, STORED, hit.rewrite)
        return relation if sql is None else Collapsed(relation, sql)

    def _load(
        self,
        cache: ServedCache,
        read: TableRead,
        chosen: GroupingSet | None,
    ) -> DataFrame:
        number = None if chosen is None else chosen.grouping_id
        where = "" if number is None else f" WHERE {quote(GROUPING_ID_COLUMN)} = {number}L"
        text = f"SELECT * FROM {CACHE}{where}"
        rows = run_select(self.application.session, text, {CACHE: read})
        sql = collapsing_sql(cache, chosen, CACHE)
        if sql is not None:
            # It is added up as the cache's own settings say, and in the one task that holds the
            # rows: most groups have few partial rows, which a shuffle would only move.
            rows = run_select(
                own_session(self.application.session, dict(cache.settings)),
                sql,
                {CACHE: rows.coalesce(1)},
            )
        every = tuple(key.name for key in cache.plan.keys or ())
        names = set_names(cache.plan, chosen)
        keys = every if names is None else names
        if keys != every:  # of a cube's many keys most are NULL in each set
            others = set(every).difference(keys)
            rows = rows.select(*(quote(name) for name in rows.columns if name not in others))
        orders = self.application.key_orders
        of = (cache.id, number)  # CREATE OR REPLACE makes another id
        order = orders.get(of)
        if order is None:
            order = most_selective_first(rows, keys)
            orders.put(of, order)
        return in_order(rows, order)

    def _noted(
        self, found: Decision, context: HookContext, started: float, settings: Settings
    ) -> NotedDecision:
        millis = (time.perf_counter() - started) * 1000
        plan_only = settings.mode is Mode.PLAN_ONLY
        log = self.feed if settings.decision_log_enabled else None
        return NotedDecision(found, context.session_key, millis, self.telemetry, log, plan_only)


def _fresh_limits(settings: Settings, *, waits: bool) -> FreshLimits:
    files = settings.fresh_max_files if settings.fresh_hits else 0
    tails = settings.fresh_tail_max_bytes > 0
    rows, percent = settings.fresh_max_rows, settings.fresh_max_percent
    waits = waits and settings.mode is not Mode.PLAN_ONLY
    return FreshLimits(files, rows, percent, tails, waits)


def known_locations(feed: Feed) -> frozenset[str]:
    """The tables of which Java asks; see `CacheSession.known_locations`.

    Args:
        feed: The caches.
    """
    read = feed.registry.tables()
    return read | validated_places(feed.joins()) if read else read


def _read_beside(hit: Hit, tails: TailStore | None) -> dict[str, object]:
    """What a hit reads beside its cache: of the base tables, and a tail."""
    appended = hit.appended
    if appended is None:
        return {}
    found = {} if appended.tail is None else {TAIL: appended.tail.relation}
    if not appended.files:
        return found
    files = QueryFiles(appended.table.location, appended.since, appended.keys)
    tables = zip(hit.block.relations, base_columns(hit.block), strict=True)
    for name, (relation, columns) in zip(bases(len(hit.block.relations)), tables, strict=True):
        table, held = appended.others.get(relation.key), None
        if tails is not None and table is not None:
            held = tails.joined(hit.cache, table, columns)
        other: object = QueryTable(relation.key) if held is None else held
        found[name] = files if relation.key == files.location else other
    return found


def _few_of_many(hit: Hit) -> bool:
    """Few rows that are filtered from a large set, and not grouped again.

    Spark sorts by ranges, whose bounds it finds by running what is below the sort once more:
    reading the set's files twice (half the time of such a hit, measured). Few rows are gathered.
    """
    rewrite, plan = hit.rewrite, hit.cache.plan
    if rewrite.group_keys is not None or rewrite.extra or rewrite.branches or hit.appended:
        return False
    return rows_left(plan, rewrite.grouping_set, rewrite.compensating) <= _FEW_ROWS


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
