"""One text, decided in this process: from the request to the SQL to run or the reason why not.

The caches are those of the process's feed, the tables' columns and versions those of their logs at
the moment of the request. What the answer says holds for exactly the versions that it names: its
SQL reads them and no others, whenever it is run.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from cachemgr.base_state import TableAt
from cachemgr.config.match_options import match_options
from cachemgr.config.result_settings import SettingsComparer, fingerprint, result_settings
from cachemgr.config.session_settings import ENABLED, MODE, Settings
from cachemgr.config.setting import Mode
from cachemgr.ddl.names import DEFAULT_NAMESPACE, SESSION_CATALOG
from cachemgr.delta.head_lookup import Heads
from cachemgr.delta.places import is_local
from cachemgr.delta.storage import LocalFiles
from cachemgr.delta.stored_files import FilesFound, StoredFiles
from cachemgr.errors import CacheManagerError
from cachemgr.metastore.logged_reasons import logged_reason
from cachemgr.metastore.records import DecisionRecord
from cachemgr.serving.decide import decide
from cachemgr.serving.decision import Decision, Hit, refused
from cachemgr.serving.eligibility import Checks, QueryState
from cachemgr.serving.explain import Explanation, explanation_of, set_text
from cachemgr.serving.feed import Feed
from cachemgr.serving.freshness import Histories
from cachemgr.serving.logged_filters import logged_filters
from cachemgr.serving.served_cache import ServedCache
from cachemgr.serving.unique_keys import JoinsUnderSettings
from cachemgr.sparks import on_any_java
from cachemgr.text.blocks import TextBlocks, TextEligibility, text_at_versions
from cachemgr.text.limits import check_text
from cachemgr.text.settings import TextConf, default_of, read_settings
from cachemgr.text.table_names import Names
from cachemgr.text.text_reader import TOO_MUCH_TO_READ, TextReader, unreadable
from cachemgr.vocabulary import Outcome
from matcher.memory.bounded import Bounded
from matcher.model.budget import ANY_STEPS, DECISION_STEPS, OutOfSteps, OutOfTime, decision, is_late
from matcher.model.errors import InputCode, MatcherError
from matcher.model.ir import MatchOptions
from matcher.model.message import Setting, Sql, Word
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.render.select import NotRenderable
from matcher.sql.reader import TextQuery

SOON_SECONDS: Final = 0.05
"""Of processor time: what a text of a new shape usually takes, several times."""
_MOST_SETTINGS: Final = 256
_LONG_SETTINGS: Final = 4_000
_Told = Callable[[], Mapping[Reason, Iterable[str]]]


@dataclass(frozen=True)
class TextRequest:
    """A text and the session that it is read under.

    Args:
        sql: One query.
        principal: Who asks.
        catalog: The session's current catalog.
        schema: Its current schema.
        settings: Its settings; those that are not named have the service's values.
    """

    sql: str
    principal: str
    catalog: str = SESSION_CATALOG
    schema: str = DEFAULT_NAMESPACE
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TextAnswer:
    """What became of a text.

    Args:
        sql: What to run instead; None where no cache answers any part.
        caches: The caches that it reads, outermost part first.
        exact: Whether its rows are those of the tables as they were when the request came.
        tables: The tables at the versions that its rows are those of.
        reasons: Why the parts that are not answered are not.
        explanation: The same with all that was considered, if that was asked for.
        settings: The settings that change results under which the text was read.
        grouping_set: The one that the outermost part reads, if its cache has some.
        told: All that can be said of the reasons, which takes a while: for each the places of the
            tables that it concerns. None if nothing more can be said.
        hits: The blocks that are answered from caches.
    """

    sql: str | None = None
    caches: tuple[str, ...] = ()
    exact: bool = True
    tables: tuple[TableAt, ...] = ()
    reasons: tuple[Reason, ...] = ()
    explanation: Explanation | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    grouping_set: str | None = None
    told: _Told | None = field(default=None, compare=False, repr=False)
    hits: tuple[Hit, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _Stated:
    """A request's settings, those of the service where it states none: to read texts by, all, those
    that change results, and these as they are compared."""

    conf: TextConf | Reason
    merged: Mapping[str, str]
    shown: Mapping[str, str]
    fingerprint: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A text to decide: `stamp` is the feed's from before anything of it was looked at."""

    request: TextRequest
    stated: _Stated
    conf: TextConf
    stamp: int
    explain: int | None


class TextDoor:
    """Decides texts for everybody who asks this process.

    Args:
        feed: The caches.
        heads: Looks where the base tables stand.
        defaults: The service's values of the settings that a request does not name.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        feed: Feed,
        heads: Heads,
        defaults: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._feed = feed
        self._defaults = dict(defaults)
        self._clock = clock
        self._comparer = SettingsComparer(default_of)
        self._joins = JoinsUnderSettings(self._comparer)
        self._stored = StoredFiles(lambda location: LocalFiles())
        self._checks = Checks(
            feed.served,
            self._comparer,
            Histories(heads.past, heads.commits),
            feed.restricted,
            self._files,
        )
        self._reader = TextReader(feed, heads)
        self._settings: Bounded[_Stated] = Bounded(_MOST_SETTINGS)

    def quick(self, request: TextRequest, *, explain: int | None = None) -> TextAnswer | None:
        """Decide a text without the parser and without waiting for anything but local files.

        Args:
            request: The text.
            explain: As for `answer`.

        Returns:
            What `answer` would say; None where that takes longer to find out.

        Raises:
            ConfigurationError: A setting has a value that is not accepted.
        """
        started = time.perf_counter()
        stated, names = self._stated(request.settings), self._reader.names
        if isinstance(stated.conf, Reason) or names is None:
            return None
        if self._refusal(stated.conf.own) is not None:
            return None
        asked = _Asked(request, stated, stated.conf, self._feed.stamp, explain)
        session = request.catalog, request.schema
        known = self._reader.read_known(request.sql, session, stated.conf.text, names)
        if known is None:
            return None
        found = self._outcome(asked, *known)
        self._log(request, stated.conf, found, started, explain)
        return found

    def answer(self, request: TextRequest, *, explain: int | None = None) -> TextAnswer:
        """Decide one text.

        Args:
            request: The text.
            explain: Also name so many candidates of each block. The decision log says of a hit
                that it was planned only.

        Returns:
            The answer. That a text cannot be read is no error: it may still be one that Spark can.

        Raises:
            ConfigurationError: A setting has a value that is not accepted.
            MetastoreError: The metastore cannot be asked.
        """
        found = self._answer(request, explain, None)
        assert found is not None, "only one that is to come soon may not come"
        return found

    def soon(self, request: TextRequest, *, explain: int | None = None) -> TextAnswer | None:
        """Decide one text as `answer` does, if that takes no more than `SOON_SECONDS` of processor
        time.

        Args:
            request: The text.
            explain: As for `answer`.

        Returns:
            The answer; None where it takes longer, and nothing was logged of it.

        Raises:
            ConfigurationError: A setting has a value that is not accepted.
            MetastoreError: The metastore cannot be asked.
        """
        return self._answer(request, explain, SOON_SECONDS)

    def _answer(
        self, request: TextRequest, explain: int | None, seconds: float | None
    ) -> TextAnswer | None:
        started = time.perf_counter()
        stated = self._stated(request.settings)
        conf = stated.conf
        if isinstance(conf, Reason):
            return TextAnswer(reasons=(conf,), settings=stated.shown)
        refusal = self._refusal(conf.own)
        if refusal is not None:
            return TextAnswer(reasons=(refusal,), settings=stated.shown)
        asked = _Asked(request, stated, conf, self._feed.stamp, explain)
        found = self._decided(asked) if seconds is None else self._decided_within(asked, seconds)
        if found is not None:
            self._log(request, conf, found, started, explain)
        return found

    def _decided_within(self, asked: _Asked, seconds: float) -> TextAnswer | None:
        """What becomes of a text, None where it takes longer to say: nobody knows then what else
        would have been found."""
        try:
            with decision(ANY_STEPS, seconds):
                found = self._decided(asked)
                return None if is_late() else found
        except OutOfTime:
            return None

    def _files(self, cache: ServedCache, grouping_id: int | None) -> FilesFound:
        """How a cache's files are. At those on other storages the workers look."""
        if not is_local(cache.location):
            return FilesFound(damage=cache.damaged or "")
        return self._feed.notes.files(cache, grouping_id, self._stored)

    def _stated(self, settings: Mapping[str, str]) -> _Stated:
        """The settings of a request in the forms that the parts need; remembered unless long."""
        key = frozenset(settings.items())
        found = self._settings.get(key)
        if found is None:
            merged = {**self._defaults, **settings}
            found = _Stated(
                read_settings(merged), merged, result_settings(merged), fingerprint(merged)
            )
            if sum(len(k) + len(v) for k, v in key) <= _LONG_SETTINGS:
                self._settings.put(key, found)
        return found

    def _refusal(self, own: Settings) -> Reason | None:
        if not own.enabled or own.mode in (Mode.OFF, Mode.PLAN_ONLY):
            off = Setting(f"{ENABLED} is {own.enabled}, {MODE} is {own.mode.value}")
            return Reason(ReasonCode.SETTINGS_DIFFER, "{off}", "leave both out", off=off)
        return self._feed.why_not_ready()

    def _decided(self, asked: _Asked) -> TextAnswer:
        request, stated = asked.request, asked.stated
        names = self._reader.current_names()
        try:
            check_text(request.sql)
            session = request.catalog, request.schema
            parsed, heads = self._reader.read(request.sql, session, asked.conf.text, names)
        except (OutOfSteps, OutOfTime):
            return TextAnswer(reasons=(TOO_MUCH_TO_READ,), settings=stated.shown)
        except MatcherError as error:
            return _not_read(error, names, request.sql, stated)
        except RecursionError:
            deep = MatcherError(
                InputCode.TEXT_TOO_DEEP, "the query is nested too deeply to be read"
            )
            return _not_read(deep, names, request.sql, stated)
        except CacheManagerError:
            raise
        except Exception as error:
            return TextAnswer(reasons=(self._failed("reading", error),), settings=stated.shown)
        return self._outcome(asked, parsed, heads)

    def _outcome(
        self, asked: _Asked, parsed: TextQuery, heads: Mapping[str, TableAt]
    ) -> TextAnswer:
        """What becomes of a text that was read, with its tables as they are now."""
        stated, explain = asked.stated, asked.explain
        sql, decision = None, refused(*parsed.reasons)
        if not parsed.reasons:
            hinted = parsed.hinted
            query = QueryState(
                seen={place: [head] for place, head in heads.items()},
                settings=stated.fingerprint,
                principal=asked.request.principal,
                now_ms=int(self._clock() * 1000),
                stamp=asked.stamp,
                only=hinted,
                joins=self._joins.of(self._feed.joins(), stated.fingerprint),
                spark=_run_by(asked.conf.own.spark_minor),
            )
            hint = parsed.hinted_steps
            wanted = asked.conf.own.decision_steps if hint is None else hint
            # who may only ask is not to make others wait
            steps = min(wanted, DECISION_STEPS)
            options = match_options(stated.merged, asked.conf.own, hinted, steps=steps)
            eligibility = TextEligibility(query, self._checks)
            sql, decision = self._safely(
                lambda: self._written(TextBlocks(parsed), eligibility, options, heads, explain)
            )
        hit = next(iter(decision.hits), None)
        return TextAnswer(
            sql=sql,
            caches=tuple(dict.fromkeys(h.cache.name for h in decision.hits)),
            exact=decision.is_exact,
            tables=_versions(decision, heads) if sql is not None else (),
            reasons=decision.reasons,
            explanation=None if explain is None else explanation_of(decision, sql),
            settings=stated.shown,
            grouping_set=None if hit is None else set_text(hit),
            told=partial(decision.reasons_by_table, tuple(heads)),
            hits=decision.hits if sql is not None else (),
        )

    def _written(
        self,
        blocks: TextBlocks,
        eligibility: TextEligibility,
        options: MatchOptions,
        heads: Mapping[str, TableAt],
        explain: int | None,
    ) -> tuple[str | None, Decision]:
        """What is decided of a text, and the text to run instead; where that cannot be written
        nothing is answered."""
        decision = decide(
            blocks,
            self._feed.registry,
            eligibility,
            options,
            explain=explain is not None,
            most=explain,
        )
        if not decision.hits:
            return None, decision
        try:
            return text_at_versions(blocks, decision, heads), decision
        except NotRenderable as error:
            reason = not_taken(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "the rest of the query cannot be held at one moment: no place for {part}",
                part=Sql(str(error)),
            )
            return None, decision.without_hits(reason)

    def _safely(
        self, decided: Callable[[], tuple[str | None, Decision]]
    ) -> tuple[str | None, Decision]:
        """An error of ours is a miss, as in a session."""
        try:
            return decided()
        except OutOfTime:
            raise
        except Exception as error:
            return None, refused(self._failed("deciding", error))

    def _failed(self, what: str, error: Exception) -> Reason:
        """The reason of a miss by an error of ours, which is counted and logged."""
        self._feed.telemetry.count("errors")
        cause = f"{type(error).__name__}: {str(error)[:160]}"
        self._feed.telemetry.warn_once(f"text {cause}", f"{what} failed: {cause}", error=error)
        return Reason(
            ReasonCode.INTERNAL_ERROR,
            "{what} failed ({error})",
            "report it with the query",
            what=Word(what),
            error=Word(type(error).__name__),
        )

    def _log(
        self,
        request: TextRequest,
        conf: TextConf,
        found: TextAnswer,
        started: float,
        explain: int | None,
    ) -> None:
        if not conf.own.decision_log_enabled:
            return
        outcome = Outcome.MISS if found.sql is None else Outcome.HIT
        if explain is not None and found.sql is not None:
            outcome = Outcome.PLAN_ONLY
        millis = (time.perf_counter() - started) * 1000
        at = datetime.now(UTC)

        def record() -> DecisionRecord:
            """Made in the background, where there is time to ask what the nearest caches lack."""
            told: Mapping[Reason, Iterable[str]] = dict.fromkeys(found.reasons, ())
            if found.told is not None:
                told = found.told()
            return DecisionRecord(
                at=at,
                session_id="rest" if explain is None else "explain",
                principal=request.principal,
                query_hash=hashlib.sha256(request.sql.encode(errors="replace")).hexdigest()[:16],
                outcome=outcome,
                caches=found.caches,
                grouping_set=found.grouping_set,
                reasons=tuple(logged_reason(reason, places) for reason, places in told.items()),
                millis=millis,
                filters=logged_filters(found.hits) if found.hits else None,
            )

        self._feed.log(record)


def _versions(decision: Decision, heads: Mapping[str, TableAt]) -> tuple[TableAt, ...]:
    """The tables at the versions that the answer shows; those of a stale cache's snapshot."""
    shown = dict(heads)
    for hit in decision.hits:
        for place, then in hit.cache.snapshot.items():
            if place in shown and then.table_id is not None and then.version is not None:
                shown[place] = replace(
                    shown[place],
                    table_id=then.table_id,
                    version=then.version,
                    commit=then.commit,
                    timestamp_ms=then.committed_ms,
                )
    return tuple(shown[place] for place in sorted(shown))


def _not_read(error: MatcherError, names: Names, sql: str, stated: _Stated) -> TextAnswer:
    reason = unreadable(error, names)

    def told() -> Mapping[Reason, Iterable[str]]:
        """Without a plan, the tables are those whose names are words of the text."""
        words = set(re.findall(r"\w+", sql.lower()))
        tables = names.tables.values()
        return {reason: [t.location for t in tables if t.name.split(".")[-1].lower() in words]}

    return TextAnswer(reasons=(reason,), settings=stated.shown, told=told)


def _run_by(minor: str | None) -> str | None:
    """The Spark that is to run the query; nobody says on which Java."""
    return None if minor is None else on_any_java(minor)
