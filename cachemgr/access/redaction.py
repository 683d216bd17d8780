"""What is told of rows that not everybody may see: neither values nor counts.

A definition is chosen by whoever writes it, so the number of rows under `WHERE name LIKE 'A%'`
answers a question about the table, and so does an error that quotes a value. Both are for those
who may be answered from the cache (`cachemgr.access.grants.may_use`), whatever their role.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final
from weakref import WeakKeyDictionary

from cachemgr.access.grants import (
    keys_of_relations,
    keys_of_side,
    may_use,
    reads_of,
    restricted_keys,
)
from cachemgr.access.visitor import CLAIMED, Visitor
from cachemgr.errors import RefreshError
from cachemgr.metastore.records import (
    EVERYBODY,
    REASON_PARTS,
    CacheRecord,
    GroupingSetRecord,
    JoinRecord,
    RefreshRunRecord,
    RestrictedTable,
    SnapshotRecord,
)
from cachemgr.metastore.registry_records import RegistryMark
from cachemgr.metastore.store import Metastore
from matcher.model.message import SECRET, Message, is_literal, literal
from matcher.model.message_codec import message_data

_known: WeakKeyDictionary[Metastore, tuple[RegistryMark, Mapping[str, frozenset[str]]]] = (
    WeakKeyDictionary()
)
# in a text whose parts nobody stored
_NUMBER: Final = re.compile(r"\b\d[\d.,]*\b")
_UNTOLD_FAILURE: Final = "the refresh failed; why is told to those granted on the cache"
_CODE: Final = re.compile(r"\[[A-Z0-9_]+(?:\.[A-Z0-9_]+)*\]")


class Discretion:
    """What one principal may be told, as the metastore stands when this is made.

    Args:
        metastore: Where grants and restricted tables are.
        principal: Who is told.
        vouched: Somebody has authenticated that name. Whoever only says it is told no more than
            anybody.
        visitor: Him, where he uses a server whose users are others than its own; None for
            whoever else is shown each definition.
    """

    def __init__(
        self,
        metastore: Metastore,
        principal: str,
        *,
        vouched: bool = True,
        visitor: Visitor | None = None,
    ) -> None:
        self._grants = metastore.grants
        self._principal = principal
        self._vouched = vouched
        self._visitor = visitor
        marks = metastore.tables.restricted()
        self._marked = marked_keys(marks)
        self._marks = marks
        self._reads = _reads(metastore) if marks else {}
        self._restricted = restricted_keys(marks, self._reads.items())

    def may_know(self, cache: CacheRecord) -> bool:
        """Whether he may know how many rows a cache has, and what its refreshes stumbled over."""
        if not cache.narrowed and not self._restricted:
            return True
        grants = self._grants.of(cache.id) if cache.narrowed else None
        # one that is dropped, or came since, is not among those that were read
        reads = self._reads.get(cache.id)
        if reads is None and self._restricted:
            return False
        reason = may_use(
            self._principal,
            cache.name,
            grants,
            reads or (),
            self._restricted,
            vouched=self._vouched,
        )
        return reason is None

    def may_see(self, cache: CacheRecord) -> bool:
        """Whether he may be shown what a cache holds: definition, columns, comment and place."""
        visitor = self._visitor
        return visitor is None or visitor.sees(cache, may_use=self.may_know(cache))

    def may_see_grant(self, principal: str) -> bool:
        """Whether he may be shown which tables the service may read for somebody."""
        return self._visitor is None or self._visitor.sees_grant(principal)

    def refuse_to_show(self, cache: CacheRecord) -> None:
        """Refuse to show a cache's definition to whoever may not see it.

        Raises:
            ConfigurationError: He may not; says what helps.
        """
        if self._visitor is not None and not self.may_see(cache):
            self._visitor.refuse_to_show(cache)

    def refuse_change(self, cache: CacheRecord) -> None:
        """Refuse to alter, drop or replace a cache to whoever may not.

        Raises:
            ConfigurationError: He may not; says who may.
        """
        if self._visitor is not None:
            self._visitor.refuse_change(cache, may_use=self.may_know(cache))

    @property
    def is_visitor(self) -> bool:
        """Whether he uses a server whose users are others than its own."""
        return self._visitor is not None

    def signed(self, cache: CacheRecord) -> CacheRecord:
        """A cache that he makes, with a note in it where nobody has authenticated his name."""
        if self._visitor is None or self._visitor.authenticated:
            return cache
        return replace(cache, context={**cache.context, CLAIMED: True})

    def refreshed(
        self, cache: CacheRecord, refresh: Callable[[], RefreshRunRecord]
    ) -> RefreshRunRecord:
        """Refresh a cache for him; an error may quote rows.

        Args:
            cache: The cache.
            refresh: Refreshes it.

        Raises:
            RefreshError: It failed; says why to those who may know.
        """
        try:
            return refresh()
        except RefreshError as error:
            if self._visitor is None or self.may_know(cache):
                raise
            code, told = error.code, f"{cache.qualified_name}: {_UNTOLD_FAILURE}"
        raise RefreshError(code, told)

    def refuse_join_drop(self, name: str) -> None:
        """Refuse to drop a record-preserving join to whoever may not.

        Raises:
            ConfigurationError: He may not; says who may.
        """
        if self._visitor is not None:
            self._visitor.refuse_join_drop(name)

    def grantees(self, cache: CacheRecord) -> str:
        """Who may use a cache, as he may be told: at a server admins alone learn the names."""
        grants = self._grants.of(cache.id)
        visitor = self._visitor
        if visitor is None or visitor.is_admin or not cache.narrowed:
            return ", ".join(grants) or ("nobody" if cache.narrowed else "everybody")
        return "you, maybe others too" if self.may_know(cache) else "others"

    def owner(self, cache: CacheRecord) -> str:
        """A cache's owner, as he may be told: a name is all that an unauthenticated user needs to
        claim it."""
        visitor = self._visitor
        shown = visitor is None or visitor.authenticated or cache.owner == visitor.name
        return (cache.owner or "") if shown else "another principal"

    def could_use(self, cache: CacheRecord, at: datetime) -> bool:
        """Whether he could be answered from a cache at a moment of the last days.

        Args:
            cache: The cache, maybe dropped since.
            at: The moment, by the database's clock.
        """
        past = self._grants.past(cache.id)
        held = {who for who, until in past.items() if until >= at}
        held |= set(self._grants.of(cache.id))
        narrowed = cache.narrowed and EVERYBODY not in held
        granted = held if narrowed or self._principal in held else None
        marks = [mark for mark in self._marks if mark.restricted_at <= at]
        reads = self._reads.get(cache.id) or _planned(cache)
        restricted = restricted_keys(marks, self._reads.items())
        return may_use(self._principal, cache.name, granted, reads, restricted) is None

    def run(self, run: RefreshRunRecord, cache: CacheRecord) -> RefreshRunRecord:
        """A refresh as he may be told of it."""
        if self.may_know(cache):
            return run
        reason, account = without_secrets(run.message), run.account
        detail = without_secrets(account.detail)
        parts = {REASON_PARTS: message_data(reason)}
        facts = {**run.facts, **account.without_counts(detail).to_facts(), **parts}
        error = _code_of(run.error)
        return replace(run, rows=None, bytes=None, error=error, reason=str(reason), facts=facts)

    def snapshot(self, snapshot: SnapshotRecord, cache: CacheRecord) -> SnapshotRecord:
        """A published snapshot as he may be told of it."""
        return replace(snapshot, run=self.run(snapshot.run, cache))

    def sets(
        self, sets: tuple[GroupingSetRecord, ...], cache: CacheRecord
    ) -> tuple[GroupingSetRecord, ...]:
        """The stored grouping sets as he may be told of them."""
        if self.may_know(cache):
            return sets
        return tuple(replace(one, rows=None, bytes=None) for one in sets)

    def join(self, join: JoinRecord) -> JoinRecord:
        """A join as anybody may be told of it: grants are on caches, so nobody has one here."""
        if not is_marked(join, self._marked):
            return join
        if self._visitor is not None and not self._visitor.is_admin:
            join = replace(join, keys=())  # columns of a table that he may not read
        return join if join.message is None else replace(join, message=untold(join.name))


def marked_keys(marks: tuple[RestrictedTable, ...]) -> frozenset[str]:
    """The places, names and table ids of restricted base tables."""
    return frozenset(restricted_keys(marks, ()))


def is_marked(join: JoinRecord, marked: frozenset[str]) -> bool:
    """Whether one of a join's tables is restricted.

    Args:
        join: The join.
        marked: From `marked_keys`.
    """
    return not marked.isdisjoint(keys_of_side(join.left) | keys_of_side(join.right))


def untold(join: str) -> str:
    """What is said where a restricted table contradicts a join.

    Args:
        join: Its name.
    """
    return (
        f"record-preserving join {join} does not hold; what contradicts it is not told, since a "
        "table of it is restricted"
    )


def without_secrets(message: Message) -> Message:
    """A text for people who may know neither values nor how many rows and files there are. Of one
    that was stored without its parts, by an earlier release or with a request, all numbers go.

    Args:
        message: What happened to a base table, or why a cache is refreshed.

    >>> from matcher.model.message import Count, Number
    >>> commits, rows = Number(2, noun="commit"), Count(7, "row")
    >>> str(without_secrets(Message("{commits} appended {rows}", commits=commits, rows=rows)))
    '2 commits appended some rows'
    >>> str(without_secrets(literal("2 commits appended 1,234 rows")))
    '… commits appended … rows'
    """
    if is_literal(message):
        return literal(_NUMBER.sub("…", str(message)))
    return message.without(SECRET)


def _planned(cache: CacheRecord) -> frozenset[str]:
    return keys_of_relations((cache.plan or {}).get("relations", ()))


def _reads(metastore: Metastore) -> Mapping[str, frozenset[str]]:
    """What each live cache reads; looked up again after a change of the registry."""
    mark = metastore.registry.mark()
    known = _known.get(metastore)
    if known is None or known[0] != mark:
        entries = metastore.registry.state().entries
        known = mark, {entry.cache.id: reads_of(entry) for entry in entries}
        _known[metastore] = known
    return known[1]


def _code_of(error: str | None) -> str | None:
    """The code of an error whose text may quote rows."""
    if error is None:
        return None
    code = _CODE.match(error)
    return f"{code[0]} {_UNTOLD_FAILURE}" if code else _UNTOLD_FAILURE
