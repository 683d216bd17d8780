"""One Spark session that takes part: it decides its queries, has hot sets pinned, and logs
decisions. What it finds out that does not depend on it is the application's (`application`).

No query waits for the metastore or for a pin: the feed follows the metastore in the background, and
a set is pinned beside the query that found it missing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from cachemgr.access.asker import Asker
from cachemgr.access.grants import may_use
from cachemgr.causes import in_plain_words
from cachemgr.config.match_options import match_options
from cachemgr.config.result_settings import fingerprint
from cachemgr.config.session_settings import ENABLED, MODE, Settings
from cachemgr.config.setting import Mode
from cachemgr.config.setting_table import FIXED, STARTUP
from cachemgr.config.settings_told import told_of_unknown, unknown_keys, warn_of_late
from cachemgr.ddl.names import hinted_name
from cachemgr.delta.stored_files import FilesFound
from cachemgr.errors import CacheManagerError, ConfigurationError
from cachemgr.metastore.records import UNSEEN_DAMAGE
from cachemgr.serving.appended import FreshLimits
from cachemgr.serving.decide import decide
from cachemgr.serving.decision import Decision, refused
from cachemgr.serving.eligibility import Checks, Eligibility, QueryState
from cachemgr.serving.feed import Feed
from cachemgr.serving.plan_blocks import PlanBlocks
from cachemgr.serving.served_cache import ServedCache
from cachemgr.serving.unique_keys import (
    JoinsUnderSettings,
    validated_places,
)
from cachemgr.spark.application import Application
from cachemgr.spark.failures import cache_ids, is_not_as_written, is_read_failure
from cachemgr.spark.hints import NO_CACHE
from cachemgr.spark.hook import (
    ChangedSinceAnalysis,
    HookContext,
    Replacement,
)
from cachemgr.spark.outcomes import TOO_LATE, NotedDecision, failed, not_accepted
from cachemgr.spark.prepared import (
    Offer,
    PreparedDecisions,
    PreparedUse,
    marks_text,
    may_be_kept,
)
from cachemgr.spark.replacements import CheckedReplacement, Replacements, pin_key
from cachemgr.telemetry import Telemetry
from matcher.catalyst.templates import PlanDocument
from matcher.model.message import Setting, Word
from matcher.model.reasons import Reason, ReasonCode

CHANGED_SINCE_ANALYSIS: Final = Reason(
    ReasonCode.FRESHNESS_UNKNOWN,
    "the columns of a table changed after the query was analysed, and Spark refuses to read it",
    "make the DataFrame anew",
)


class CacheSession:
    """Decides the queries of one Spark session, and of those that share its `enable()`.

    It holds no Spark session: one that nobody holds any more can go.

    Args:
        application: What it shares with the other sessions.
        feed: The caches of its metastore.
        telemetry: Counters and the log of its own.
        started: The session's settings as it is enabled.
        fixed: For sessions of others than the application's user: the settings that are the
            server's to make, as its configuration has them; what a session sets of those that are
            so (`FIXED`) does not count.
    """

    def __init__(
        self,
        application: Application,
        feed: Feed,
        telemetry: Telemetry,
        started: Mapping[str, str],
        fixed: Mapping[str, str] | None = None,
    ) -> None:
        self._started = {key: started[key] for key in STARTUP & started.keys()}
        self._fixed = fixed
        self.application = application
        self.feed = feed
        self.telemetry = telemetry
        self.comparer = application.comparer
        self._joins = JoinsUnderSettings(self.comparer)
        self.histories = application.histories
        self.stored = application.stored
        self._replacements = Replacements(application, telemetry)
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
        try:
            settings = self.settings(context.settings)
        except ConfigurationError as error:
            # what of them would be meant is not known, so that the defaults say what is logged
            found = refused(not_accepted(error.message))
            self._noted(found, context, started, Settings()).fail()
            raise
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

    @property
    def prepared(self) -> PreparedDecisions:
        """Those of its decisions that hold for a query's shape."""
        return self.application.prepared(self.feed)

    def prepare(
        self, document: PlanDocument, context: HookContext, replacement: Replacement
    ) -> Offer | None:
        """What the hook may keep of a decision that was just made; None where it is to ask again.

        Args:
            document: The query's plan.
            context: As it was given to `decide`.
            replacement: The only part that is put in place.
        """
        settings = self.settings(context.settings)
        found = self.application.outcomes.found(context.number)
        if not settings.prepared_enabled or replacement.local is None or found is None:
            return None
        asks = (document.shape, context.asker, frozenset(context.settings.items()))
        hit = may_be_kept(found, context.seen())
        if hit is None or document.shape is None or not self.prepared.may_try(asks):
            return None
        marked = document.marked(replacement.path, hit.block)
        if marked is None:
            return None
        sql = replacement.sql
        if marked.marks:
            again = self.examine(marked.document, context, settings)
            made = self.replacements(again, marked.document, settings, explain=True)
            # by what is remembered of the shape, which other constants do not change
            if len(made) != 1 or not all(each.by_shape for each in again.hits):
                return None
            sql = made[0].sql
            if replace(made[0], sql=replacement.sql) != replacement:
                return None
        log = self.feed if settings.decision_log_enabled else None
        use = PreparedUse(found, marked.block_of, pin_key(hit), self.telemetry, log)
        return Offer(sql, marks_text(marked), self.prepared.add(use))

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
        if isinstance(replacement, CheckedReplacement) and replacement.all_or_none:
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
        return self._replacements.of(found, document, settings, explain=explain)

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
            spark=self.application.computes,
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
        else:
            warn_of_late(self._started, explicit)
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
