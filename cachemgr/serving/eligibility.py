"""May this rewrite serve this query now: the checks that the matcher, which knows no clock and no
session, leaves to its caller.

Cheap checks come first; the one that may ask a Delta log (how long ago did a table move) is last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Self

from cachemgr.access.grants import keys_of_relations, may_use
from cachemgr.base_state import TableAt
from cachemgr.config.judged.used_functions import used_functions
from cachemgr.config.result_settings import SettingsComparer
from cachemgr.delta.stored_files import FilesFound
from cachemgr.metastore.records import JoinRecord
from cachemgr.serving.appended import (
    Appended,
    FreshLimits,
    Tails,
    appended_to,
    switched_off,
    without_fresh_hits,
)
from cachemgr.serving.freshness import Histories, Verdict, check_freshness
from cachemgr.serving.grown_dimensions import NewKeys, has_rows_of, without_new_keys
from cachemgr.serving.seen_tables import Seen
from cachemgr.serving.served_cache import ServedCache
from cachemgr.serving.tails import Tail
from cachemgr.serving.unique_keys import keys_seen
from matcher.catalyst.reader import LocatedBlock
from matcher.model.ir import Block, GroupingSet, Rewrite
from matcher.model.message import CacheName, Cause, JoinName, Sql, TableName, listed
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.render.placeholders import CACHE, joined
from matcher.render.select import NotRenderable, render_rewrite
from matcher.rules.choose import not_named


@dataclass(frozen=True)
class QueryState:
    """What is the same for all parts of one query.

    Args:
        seen: The query's tables by location.
        settings: Fingerprint of the session's result-changing settings.
        principal: Who asks.
        now_ms: The moment of the query.
        stamp: The feed's stamp before any plan was looked at.
        exact_only: Why only caches equal to the tables now may serve; None if stale ones may.
        only: Lower-case names of the only caches that the query's hint allows; empty allows all.
        fresh: What a hit may read of the base tables beside a cache; None where a query cannot name
            single files.
        joins: The joins as they are declared now; None where the matcher's switches say all that is
            known of keys.
        vouched: Somebody has authenticated that name, see `Asker`.
        spark: The minor of the Spark that will run the query; None where nobody says.
    """

    seen: Seen
    settings: frozenset[tuple[str, str]]
    principal: str
    now_ms: int
    stamp: int
    exact_only: Reason | None = None
    only: frozenset[str] = frozenset()
    fresh: FreshLimits | None = None
    joins: tuple[JoinRecord, ...] | None = None
    vouched: bool = True
    spark: str | None = None


@dataclass(frozen=True)
class Checks:
    """The sources that eligibility asks; `restricted` gives what `cachemgr.access.grants` calls so,
    `files` how the files of a cache's grouping set are (None: of all that it stores), `tails` what
    is held in memory of rows that were appended, `new_keys` which dimensions got new keys
    alone."""

    served: Callable[[str], ServedCache | None]
    comparer: SettingsComparer
    histories: Histories
    restricted: Callable[[], Mapping[str, str]]
    files: Callable[[ServedCache, int | None], FilesFound] = lambda cache, grouping_id: FilesFound(
        damage=cache.damaged or ""
    )
    tails: Tails | None = None
    new_keys: NewKeys | None = None


@dataclass(frozen=True)
class Cleared:
    """A rewrite that may serve.

    Args:
        cache: The state of the cache that was checked.
        exact: All tables that the block reads stand at the snapshot's versions.
        sql: The rewrite as SQL, outputs named c0, c1, …
        appended: Rows that have to be read beside it, for it to be exact.
    """

    cache: ServedCache
    exact: bool
    sql: str
    appended: Appended | None = None


@dataclass(frozen=True)
class Behind:
    """A rewrite that may not serve by itself, because rows were appended since and for nothing
    else."""

    reason: Reason


@dataclass(frozen=True)
class Moved:
    """A rewrite that relies on a promised key that does not hold: the query has to be decided by
    the keys that do."""

    reason: Reason


class Eligibility:
    """Says of the rewrites of one query whether their caches may serve.

    Args:
        query: The query's state.
        checks: What to ask.
        promised: Joins whose keys are taken to hold in the tables that the query sees, before
            anybody looked.
    """

    def __init__(
        self, query: QueryState, checks: Checks, promised: tuple[JoinRecord, ...] = ()
    ) -> None:
        self.query = query
        self.checks = checks
        self.promised = promised

    def in_a_try(self, promised: tuple[JoinRecord, ...], exact_only: Reason | None = None) -> Self:
        """The same in one of the tries at the query.

        Args:
            promised: As above.
            exact_only: Why caches alone that are equal to the tables now may serve; None if that is
                as the query itself has it.
        """
        if exact_only is None and promised == self.promised:
            return self
        found = copy(self)
        found.promised = promised
        if exact_only is not None:
            found.query = replace(self.query, exact_only=exact_only)
        return found

    def clear(
        self, located: LocatedBlock, block: Block, rewrite: Rewrite
    ) -> Cleared | Behind | Moved | Reason:
        """Whether a valid rewrite may serve, with all that was checked; why not if it may not.

        Args:
            located: Where the block stands.
            block: The block.
            rewrite: What the matcher found for it.
        """
        found = self._cleared(block, rewrite)
        if not isinstance(found, tuple):
            return found
        cache, sql = found
        verdict = self._verdict(block, cache)
        refused = verdict.reason or (None if verdict.exact else self._stale(rewrite, cache))
        if refused is not None and verdict.appended:
            return self._behind(cache, refused)
        if refused is not None:
            return refused
        return self._files(rewrite, cache) or Cleared(cache, verdict.exact, sql)

    def clear_with_appended(self, block: Block, rewrite: Rewrite) -> Cleared | Moved | Reason:
        """The same of a rewrite for the states of a block, beside which the rows that were
        appended since are read.

        Args:
            block: The block.
            rewrite: What the matcher found for its states.
        """
        found = self._cleared(block, rewrite)
        if not isinstance(found, tuple):
            return found
        cache, sql = found
        verdict = self._verdict(block, cache)
        if not verdict.appended:
            # one that may lag behind is not exact by that, and its answer would be taken for it
            lags = None if verdict.exact else self._stale(rewrite, cache) or _lags(cache)
            refused = verdict.reason or lags
            return refused or self._files(rewrite, cache) or Cleared(cache, True, sql)
        if not cache.fresh_hits:
            return without_fresh_hits(cache, verdict.reason)
        query = self.query
        appended = appended_to(block, cache, verdict.appended, query.seen, query.fresh)
        if isinstance(appended, Appended) and verdict.grown:
            appended = replace(appended, grown=verdict.grown)
        if isinstance(appended, Reason):
            return appended
        return self._files(rewrite, cache) or Cleared(cache, True, sql, appended)

    def _behind(self, cache: ServedCache, refused: Reason) -> Behind | Reason:
        if not cache.fresh_hits:
            return without_fresh_hits(cache, refused)
        limits = self.query.fresh
        if limits is not None and limits.files == 0:
            return switched_off(cache, refused)
        return Behind(refused)

    def tail(
        self, cache: ServedCache, grouping_set: GroupingSet | None, appended: Appended
    ) -> Tail | None:
        """What is held in memory of rows that a hit reads beside its cache.

        Args:
            cache: The cache.
            grouping_set: Which of its sets is read.
            appended: The rows.
        """
        limits, tails = self.query.fresh, self.checks.tails
        if limits is None or not limits.tails or tails is None:
            return None
        found = tails.find(cache, grouping_set, appended, limits.waits)
        if found is not None and appended.grown and not found.is_lossless:
            return None  # a row that was without a partner may have one now
        return found if found is not None and self._is_joined_alike(found) else None

    def _is_joined_alike(self, tail: Tail) -> bool:
        """Whether the query sees the tables that are joined to a tail with the rows that were read
        for it, and with others only if each row of the tail had its partners."""
        seen, histories, more = self.query.seen, self.checks.histories, tail.is_lossless
        return all(
            isinstance(table, TableAt) and has_rows_of(table, states, histories, or_more=more)
            for place, states in tail.joined.items()
            for table in seen.get(place, ())
        )

    def _cleared(self, block: Block, rewrite: Rewrite) -> tuple[ServedCache, str] | Moved | Reason:
        """The cache and the rewrite as SQL, if nothing but its freshness may stand against it."""
        cache = self.checks.served(rewrite.cache)
        if cache is None or cache.stamp > self.query.stamp:
            return Reason(
                ReasonCode.REGISTRY_LOADING,
                "cache {cache} changed while this query was decided",
                "run the query again",
                cache=CacheName(rewrite.cache),
            )
        refused = (
            _state(cache, self.query)
            or self._noted_damage(cache)
            or self._access(block, rewrite, cache)
            or self._settings(block, cache)
            or cache.other_spark(self.query.spark)
        )
        if refused is not None:
            return refused
        try:
            extra = joined(len(rewrite.extra))
            sql = render_rewrite(rewrite, CACHE, positional=True, extra_sql=extra)
        except NotRenderable as error:
            return not_taken(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "it cannot be computed from the cache: {part}",
                part=Sql(str(error)),
            )
        return self._keys(rewrite) or (cache, sql)

    def _settings(self, block: Block, cache: ServedCache) -> Reason | None:
        return self.checks.comparer.compare(
            self.query.settings, cache.settings, lambda: used_functions(block, cache.plan)
        )

    def _keys(self, rewrite: Rewrite) -> Moved | None:
        """Whether the joins that the rewrite relies on hold in what the query sees."""
        relied = [join for join in self.promised if join.name in rewrite.joins_used]
        if not relied:
            return None  # nothing is looked up
        finding = {out.join.name for out in rewrite.left_out if out.join.finds_each}
        keys = keys_seen(relied, self.query.seen)
        hold = {key.name for key in keys if key.finds_each or key.name not in finding}
        moved = [join.name for join in relied if join.name not in hold]
        if not moved:
            return None
        return Moved(
            Reason(
                ReasonCode.EXTRA_TABLE_NOT_PRESERVING,
                "tables of {joins} changed after the join was validated",
                "VALIDATE RECORD PRESERVING JOIN {each}",
                joins=listed(JoinName, moved),
                each=listed(JoinName, moved, "; VALIDATE RECORD PRESERVING JOIN "),
            )
        )

    def _access(self, block: Block, rewrite: Rewrite, cache: ServedCache) -> Reason | None:
        restricted = self.checks.restricted()
        reads: frozenset[str] = frozenset()
        if restricted:  # rare, and the sets are made for it alone
            # What is joined to the cache is read by Spark itself, with the user's own rights.
            live = {extra.relation.key for extra in rewrite.extra}
            relations = [r for r in block.tables if r.key not in live]
            tables = [t for r in relations for t in self.query.seen.get(r.key, ())]
            reads = cache.reads | keys_of_relations((r.key, r.name) for r in relations)
            reads |= {t.table_id for t in tables if t.table_id}
        asks = self.query
        return may_use(
            asks.principal, cache.name, cache.principals, reads, restricted, vouched=asks.vouched
        )

    def _verdict(self, block: Block, cache: ServedCache) -> Verdict:
        """How fresh a cache is for a block, where new keys of a dimension change nothing."""
        found = self._freshness(block, cache)
        limits, keys = self.query.fresh, self.checks.new_keys
        if not found.appended or keys is None or limits is None or limits.files == 0:
            return found
        if not cache.fresh_hits:
            return found
        left = without_new_keys(block, cache, found.appended, self.query.seen, keys)
        if len(left) == len(found.appended):
            return found
        grown = {place: found.appended[place] for place in found.appended.keys() - left}
        if not left:
            return Verdict(None, exact=True, grown=grown)
        return replace(found, appended=left, grown=grown)

    def _freshness(self, block: Block, cache: ServedCache) -> Verdict:
        # What the cache has not read is joined to it, and read by Spark as in the query itself.
        own = {relation.key for relation in cache.plan.tables}
        read = [relation.key for relation in block.tables if relation.key in own]
        query = self.query
        return check_freshness(cache, read, query.seen, query.now_ms, self.checks.histories)

    def _stale(self, rewrite: Rewrite, cache: ServedCache) -> Reason | None:
        """Why a cache that lags behind, as it may, must not serve here."""
        others = [extra.relation.name for extra in rewrite.extra]
        others += [out.table for out in rewrite.left_out]
        if others:
            return Reason(
                ReasonCode.MIXED_SNAPSHOTS,
                "cache {cache} is behind its base tables, and {table}, which it would be joined "
                "with, is read as it is now",
                "REFRESH RELATIONAL CACHE {cache}",
                cache=CacheName(cache.name),
                table=TableName(others[0]),
            )
        return self.query.exact_only

    def _noted_damage(self, cache: ServedCache) -> Reason | None:
        """What somebody noted of a cache's files, if it still holds."""
        if cache.damaged is None:
            return None
        found = self.checks.files(cache, None)
        return damaged(cache.name, found.damage) if found.damage else None

    def _files(self, rewrite: Rewrite, cache: ServedCache) -> Reason | None:
        chosen = rewrite.grouping_set
        found = self.checks.files(cache, None if chosen is None else chosen.grouping_id)
        if found.damage:
            return damaged(cache.name, found.damage)
        return unreadable(cache.name, found.unread) if found.unread else None


def _state(cache: ServedCache, query: QueryState) -> Reason | None:
    if query.only and cache.name.lower() not in query.only:
        return not_named(cache.name)
    if not cache.rewrite_enabled:
        return Reason(
            ReasonCode.CACHE_DISABLED,
            "cache {cache} has DISABLE REWRITE",
            "ALTER RELATIONAL CACHE {cache} ENABLE REWRITE",
            cache=CacheName(cache.name),
        )
    if cache.version is None:
        return Reason(
            ReasonCode.CACHE_NOT_REFRESHED,
            "cache {cache} was never refreshed",
            "REFRESH RELATIONAL CACHE {cache}",
            cache=CacheName(cache.name),
        )
    return None


def _lags(cache: ServedCache) -> Reason:
    return Reason(
        ReasonCode.STALE,
        "cache {cache} is behind its base tables by more than appended rows, and what is put "
        "together with such rows is to be exact",
        "REFRESH RELATIONAL CACHE {cache}",
        cache=CacheName(cache.name),
    )


def damaged(name: str, what: str) -> Reason:
    """Why a cache is not read whose files are gone.

    Args:
        name: The cache.
        what: What is wrong with them, for people.
    """
    return Reason(
        ReasonCode.CACHE_DAMAGED,
        "files of cache {cache} are damaged: {damage}",
        "REFRESH RELATIONAL CACHE {cache}",
        cache=CacheName(name),
        damage=Cause(what),
    )


def unreadable(name: str, why: str) -> Reason:
    """Why a cache is not read whose storage cannot be asked, by the one who asks.

    Args:
        name: The cache.
        why: What the storage said, in plain words.
    """
    return Reason(
        ReasonCode.CACHE_UNREADABLE,
        "the files of cache {cache} cannot be read here: {why}",
        "let this process read the cache's folder, or run the query again once the storage answers",
        cache=CacheName(name),
        why=Cause(why),
    )
