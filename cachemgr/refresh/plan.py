"""What a refresh will do, as a list of frozen stages: EXPLAIN REFRESH shows them, the run carries
them out.

Pure: everything it decides on is in the request. Where rows were only appended since the last
refresh, they may be added to what is stored (`incremental`); AUTO does so if that is expected to
cost less, by bytes and by what past refreshes took (`past_runs`). A refresh that computes
everything says why, by a code (`why_full`), and `INCREMENTAL ONLY` fails with that code instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cachemgr.base_state import TableAt
from cachemgr.delta.base_columns import changed_columns, changes_told
from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes
from cachemgr.delta.commits import Head
from cachemgr.delta.places import as_path, scheme_of
from cachemgr.errors import ErrorCode, RefreshError
from cachemgr.metastore.records import SnapshotTableRecord
from cachemgr.refresh.by_change.adopt import Written
from cachemgr.refresh.by_change.incremental import WORTH_IT, Delta, Stored, find_delta
from cachemgr.refresh.by_change.past_runs import FULL, PastRun, Weighed, expected, weigh
from cachemgr.refresh.by_change.why_full import FullCode, NotIncremental, WhyFull
from cachemgr.refresh.replaced import replaced_tables
from cachemgr.refresh.steps import (
    Adopt,
    CheckJoins,
    Measure,
    MoveOn,
    PinVersions,
    PrepareTable,
    Publish,
    RestorePublished,
    SourceOffer,
    Stage,
    Unchanged,
    ValidateJoins,
    WriteDelta,
    WriteFull,
)
from cachemgr.refresh.write import read_versions
from cachemgr.vocabulary import RefreshMode
from matcher.model.ir import CachePlan, MatchOptions
from matcher.model.message import (
    NOTHING,
    CacheName,
    Count,
    Kind,
    Message,
    Number,
    Sql,
    TableName,
    Word,
    joined,
    literal,
)

UNCHANGED, RESTORE, ADOPT, JOINS = "UNCHANGED", "RESTORE", "ADOPT", "JOINS"
# The ways of adding a delta: rows as they are, partial rows of groups, sets written anew.
APPEND, PARTIALS, REPLACE = "APPEND", "PARTIALS", "REPLACE"
DELTA_WAYS: Final = (APPEND, PARTIALS, REPLACE)
INCREMENTAL: Final = RefreshMode.INCREMENTAL.value


@dataclass(frozen=True, slots=True)
class Published:
    """The snapshot that serves now."""

    refresh_id: str
    cache_version: int
    spec: str
    tables: tuple[SnapshotTableRecord, ...]
    stored: Stored | None = None


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """All that decides how a cache is refreshed.

    Args:
        cache: Shown name of the cache.
        mode: What was asked for: a `RefreshMode`.
        plan: The cache's plan as its definition resolves now.
        spec: Fingerprint of plan, settings and layout; see `fingerprint.spec_hash`.
        tables: The base tables' versions now, all current at one moment.
        published: The snapshot that serves now, None before the first one.
        head: The newest commit of the cache's table, None if there is no table.
        adoptable: Refresh id of the cache's last run if that run ended without publishing.
        written: The base tables of that run's commit, if it is the newest one; None where they
            cannot be told.
        properties_changed: The cache's table lacks a property that it should have.
        joins_known: The published snapshot says of every declared join whether it held.
        sources: The caches that it is defined over, nearest first.
        damage: What is wrong with the files that serve now; empty if nothing is.
        changes: What happened since to the rows of base tables that moved, by location; none of
            those that did not, or were created again, or that nobody looked at.
        gone: Appended files that are not there any more.
        repartitioned: The base tables that are partitioned otherwise than files that went.
        feeds: The base tables whose Change Data Feed tells what changed, by location.
        sizes: The bytes of the base tables now, by location.
        options: The settings that the cache is refreshed under.
        has_failed: The last refresh added a delta, and failed.
        refused: Why this run gave up to add a delta; None if it did not.
        past: The cache's last refreshes that computed something, newest first.
    """

    cache: str
    mode: str
    plan: CachePlan
    spec: str
    tables: tuple[TableAt, ...]
    published: Published | None
    head: Head | None
    adoptable: str | None = None
    written: Written | None = None
    properties_changed: bool = False
    joins_known: bool = True
    sources: tuple[SourceOffer, ...] = ()
    damage: str = ""
    changes: Mapping[str, Changes] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    feeds: frozenset[str] = frozenset()
    repartitioned: frozenset[str] = frozenset()
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: MatchOptions = field(default_factory=MatchOptions)
    has_failed: bool = False
    refused: WhyFull | None = None
    past: tuple[PastRun, ...] = ()


@dataclass(frozen=True, slots=True)
class RefreshPlan:
    """How one refresh is done and why.

    Args:
        cache: Shown name of the cache.
        mode: The way taken: `FULL`, `APPEND`, `PARTIALS`, `REPLACE`, `UNCHANGED`, `RESTORE`,
            `JOINS` or `ADOPT`.
        reason: Why this way, for people.
        stages: The steps in order.
        code: Why it is `FULL`; None for the other ways.
        estimate: What it was expected to cost, and the other way, in bytes read; None where there
            was no choice.
        detail: Of what table or part of the definition `code` speaks, for people; `NOTHING`
            without it.
        weighed: The two ways by what past runs took; None where there was no choice.
    """

    cache: str
    mode: str
    reason: Message
    stages: tuple[Stage, ...]
    code: FullCode | None = None
    estimate: tuple[float, float] | None = None
    detail: Message = NOTHING
    weighed: Weighed | None = None

    def describe(self, hidden: tuple[Kind, ...] = ()) -> tuple[tuple[int, str, str], ...]:
        """Rows for EXPLAIN REFRESH: number, stage, detail; row 0 is the way taken and its
        reason.

        Args:
            hidden: What the reader may not see.
        """
        rows = [(self.mode, self.reason), *((s.name, s.detail) for s in self.stages)]
        return tuple((i, name, str(text.without(hidden))) for i, (name, text) in enumerate(rows))

    def to_json(self) -> list[dict[str, str]]:
        """The stages as the run's row stores them."""
        return [
            {"stage": s.name, "detail": str(s.detail)}
            | ({"source": s.source.cache_id} if isinstance(s, WriteFull) and s.source else {})
            for s in self.stages
        ]


def plan_refresh(request: RefreshRequest) -> RefreshPlan:
    """Decide what a refresh does.

    Args:
        request: The cache, its base versions now, its last snapshot and its table's head.

    Returns:
        The way taken, the reason, and the stages in order.

    Raises:
        RefreshError: The mode is unknown.
        NotIncremental: `INCREMENTAL ONLY` was asked for and cannot be done.
    """
    if request.mode not in set(RefreshMode):
        accepted = ", ".join(RefreshMode)
        raise RefreshError(
            ErrorCode.REFRESH_MODE,
            f"unknown refresh mode {request.mode!r} for cache {request.cache}; use {accepted}",
        )
    moved = _why_stale(request)
    if moved is None and request.mode != RefreshMode.FULL:
        return _nothing_to_compute(request)
    if moved is None:
        return _full(request, WhyFull(FullCode.ASKED_FOR, _nothing_changed(request)))
    adopted = _adoptable(request)
    if adopted is not None:
        return _adopt(request, adopted)
    if request.mode == RefreshMode.FULL:
        return _full(request, WhyFull(FullCode.ASKED_FOR, moved))
    found = _delta(request, moved)
    if isinstance(found, Delta):
        return _by_change(request, found, moved)
    first = found.code is FullCode.NEVER_REFRESHED
    if request.mode == RefreshMode.INCREMENTAL_ONLY and not first:
        raise NotIncremental(request.cache, found)
    return _full(request, found)


def _by_change(request: RefreshRequest, found: Delta, moved: Message) -> RefreshPlan:
    """By the change alone, unless that failed before or AUTO finds that it costs too much."""
    if request.refused is not None:
        failed = WhyFull(
            FullCode.LAST_ATTEMPT_FAILED,
            Message("this run's; {why}", why=request.refused.message),
        )
        return _full(request, failed)
    if request.has_failed and request.mode != RefreshMode.INCREMENTAL_ONLY:
        failed = WhyFull(
            FullCode.LAST_ATTEMPT_FAILED, Message("by the change alone; {moved}", moved=moved)
        )
        return _full(request, failed)
    weighed = _weighed(request, found)
    if weighed.takes_change or request.mode != RefreshMode.AUTO:
        return _incremental(request, found, moved, weighed)
    share = found.cost / max(found.full_cost, 1)
    dearer = Message(
        "by the bytes to read, the change alone costs {share} of a full refresh, and is taken up "
        "to {most}",
        share=Count(share, form=".0%"),
        most=Number(WORTH_IT, ".0%"),
    )
    told = weighed.told()
    if weighed.by_time:
        dearer = told
    elif told:
        few = Message("{told}: too few runs, or too little between them, to go by", told=told)
        dearer = joined((dearer, few))
    detail = joined((dearer, _feed_told(request, found), moved))
    why = WhyFull(FullCode.FULL_IS_CHEAPER, detail)
    return replace(_full(request, why), estimate=(found.full_cost, found.cost), weighed=weighed)


def _feed_told(request: RefreshRequest, delta: Delta) -> Message:
    """Where updates would cost less with the Change Data Feed: how to have it."""
    # where the metadata changed nobody knows whether the feed was on all the while
    known = delta.changes.change_rows is not None
    if not delta.is_signed or not known or delta.table.location in request.feeds:
        return NOTHING
    return Message(
        "with a Change Data Feed it would cost less: ALTER TABLE {table} SET TBLPROPERTIES "
        "('delta.enableChangeDataFeed' = 'true')",
        table=Sql(_in_sql(delta.table.name)),
    )


def _in_sql(name: str) -> str:
    """A table as a statement names it: one without a name in the catalog by its path."""
    by_path = scheme_of(name) or name.startswith("/")
    return f"delta.`{as_path(name)}`" if by_path else name


def _why_stale(request: RefreshRequest) -> Message | None:
    """What moved since the published snapshot or is lost of it; None if nothing is."""
    published = request.published
    if published is None:
        return Message("the cache was never refreshed")
    if request.damage:
        return literal(request.damage)
    if published.spec != request.spec:
        return _why_other_plan(published, request)
    then = {t.location: t for t in published.tables}
    moved: list[Message] = []
    for table in request.tables:
        old, name = then.pop(table.location, None), TableName(table.name)
        if old is None:
            moved.append(Message("{table} was not read before", table=name))
        elif old.table_id != table.table_id:
            moved.append(Message("{table} was re-created", table=name))
        elif old.version != table.version:
            why = _why_moved(old, table, request.changes.get(table.location))
            if why is not None:
                moved.append(
                    Message(
                        "{table} moved from version {then} to {now}{why}",
                        table=name,
                        then=Number(old.version),
                        now=Number(table.version),
                        why=why,
                    )
                )
        elif not old.state.is_same(table.state):
            moved.append(
                Message(
                    "version {version} of {table} is another commit than the one read before: the "
                    "table was put back from a copy",
                    version=Number(table.version),
                    table=name,
                )
            )
    gone = map(TableName, (t.name for t in then.values()))
    moved.extend(Message("{table} is no longer read", table=name) for name in gone)
    return joined(moved) or None


def _why_other_plan(published: Published, request: RefreshRequest) -> Message:
    """What changed of the definition or its tables."""
    other = Message("the definition, its views, the settings or the layout changed")
    replaced = replaced_tables(published.tables, request.tables)
    if replaced is None:
        return other
    return replaced.told if replaced.explains_all else joined((replaced.told, other))


def _why_moved(old: SnapshotTableRecord, table: TableAt, changes: Changes | None) -> Message | None:
    """What happened to a table that is at another version than the one read; None if that is
    nothing: its rows are the same, and the columns that the cache reads."""
    if changes is None:
        return NOTHING
    told = Message(
        ": {what}" if changes.code is None else ": {what} [{code}]",
        what=changes.detail,
        code=Word(str(changes.code)),
    )
    if changes.kind is not ChangeKind.SAME or old.columns is None:
        return told
    columns = changed_columns(old.columns, table.columns)
    if not columns:
        return None
    return Message("{told}, but {columns}", told=told, columns=Word(changes_told(columns)))


def _moved_on(request: RefreshRequest) -> bool:
    """Whether base tables got versions that hold the rows which were read."""
    assert request.published is not None
    then = {t.location: t.version for t in request.published.tables}
    return any(then[table.location] != table.version for table in request.tables)


def _nothing_changed(request: RefreshRequest) -> Message:
    """Where nothing is to be computed: that no table moved, or that no row changed."""
    if not _moved_on(request):
        return Message("no base table moved")
    moved = [changes for changes in request.changes.values() if changes.commits]
    count = sum(changes.commits for changes in moved)
    commits = Number(count, noun="commit")
    what = "no row of a base table changed: {commits} without data change"
    return Message(what, commits=commits)


def restores_published(head: Head, published: Published) -> bool:
    """True if `head` is a restore commit of ours that put the published state back."""
    stamp = head.stamp
    return stamp.get("kind") == RESTORE and stamp.get("restores") == published.cache_version


def _head_is_published(request: RefreshRequest) -> bool:
    if request.published is None or request.head is None:
        return True
    return request.head.version == request.published.cache_version


def _nothing_to_compute(request: RefreshRequest) -> RefreshPlan:
    published, head = request.published, request.head
    assert published is not None
    assert head is not None, "a table that is gone is damage"
    intact = _head_is_published(request)
    known = request.joins_known and not _lacks_identity(request)
    nothing = _nothing_changed(request)
    if intact and known:
        stage = (
            MoveOn(published.cache_version, request.tables)
            if _moved_on(request)
            else Unchanged(published.cache_version)
        )
        return RefreshPlan(request.cache, UNCHANGED, nothing, (stage,))
    stages: list[Stage] = []
    if not request.joins_known:
        stages += [PinVersions(request.tables), *_join_stage(request)]
    if intact:
        but = (
            "{nothing}, but the snapshot does not say yet which commits it was made from"
            if request.joins_known
            else "{nothing}, but joins were declared, dropped or changed since"
        )
        reason = Message(but, nothing=nothing)
        publish = Publish(published.cache_version)
        return RefreshPlan(request.cache, JOINS, reason, (*stages, publish))
    # Each hit on a version below the head rebuilds an old snapshot of the log.
    publish = Publish(head.version)
    if not restores_published(head, published):
        stages.append(RestorePublished(published.cache_version, head.version))
        publish = Publish()
    reason = Message(
        "{nothing}, but version {version} on top was never published",
        nothing=nothing,
        version=Number(head.version),
    )
    return RefreshPlan(request.cache, RESTORE, reason, (*stages, publish))


def _lacks_identity(request: RefreshRequest) -> bool:
    """Whether the published snapshot was stored before commits' identities and columns were."""
    assert request.published is not None
    now = {t.location: t for t in request.tables}
    return any(
        t.columns is None or bool(now[t.location].commit and not t.commit_id)
        for t in request.published.tables
    )


def _adoptable(request: RefreshRequest) -> Adopt | None:
    """The commit on top, if the run before left it complete; see `Adopt`."""
    head, refresh_id = request.head, request.adoptable
    if head is None or refresh_id is None or request.damage:
        return None
    stamp = head.stamp
    if (
        stamp.get("refresh_id") != refresh_id
        or stamp.get("parent_version") != head.version - 1
        or stamp.get("spec") != request.spec
    ):
        return None
    kind, written = stamp.get("kind"), request.written
    now = [t.identity for t in request.tables]
    if request.mode == RefreshMode.FULL and (kind != RefreshMode.FULL or stamp.get("source")):
        return None  # whoever asks for it may not trust what was stored before
    if kind == RefreshMode.FULL and _is_of(stamp.get("base_versions"), now):
        return Adopt(refresh_id, head.version, request.tables)
    if written is None or request.mode == RefreshMode.FULL:
        return None
    found = Adopt(refresh_id, head.version, written.tables, is_behind=written.is_behind)
    if kind == RefreshMode.FULL:
        return found
    delta = _written_delta(request, written, stamp) if kind == INCREMENTAL else None
    return None if delta is None else replace(found, delta=delta)


def _is_of(stamped: object, states: Iterable[Sequence[object]]) -> bool:
    """Whether a stamp names these states of base tables, in whatever order."""
    if not isinstance(stamped, list):
        return False
    return sorted(map(tuple, stamped), key=str) == sorted(map(tuple, states), key=str)


def _written_delta(
    request: RefreshRequest, written: Written, stamp: Mapping[str, Any]
) -> Delta | None:
    """What the commit on top added to the published version; None if that is not certain.

    Its rows are right only above the very rows and base versions that it was added to. One that
    failed after it was written is not tried again, and one above a restored version is not looked
    into: they are undone.
    """
    published, sets = request.published, stamp.get("sets")
    given_up = request.has_failed or request.refused is not None
    if published is None or given_up or not isinstance(sets, Mapping):
        return None
    if stamp.get("parent_version") != published.cache_version:
        return None
    if not _is_of(stamp.get("since"), read_versions(published.tables)):
        return None
    found = _delta(
        replace(request, tables=written.tables, changes=written.changes, gone=written.gone), NOTHING
    )
    if not isinstance(found, Delta):
        return None
    return replace(found, replaced=tuple(sets["replaced"]), appended=tuple(sets["appended"]))


def _adopt(request: RefreshRequest, adopted: Adopt) -> RefreshPlan:
    joins = request.plan.joins
    before: tuple[Stage, ...] = _join_stage(request)
    after: tuple[Stage, ...] = ()
    if adopted.delta is not None:
        before, after = (), (CheckJoins(joins, adopted.delta),) if joins else ()
    behind = NOTHING
    if adopted.is_behind:
        behind = Message("a run of its own adds what came since")
    wrote = Message(
        "refresh {id} wrote these base versions and ended before publishing; computed once only",
        id=Word(adopted.refresh_id),
    )
    return RefreshPlan(
        request.cache,
        ADOPT,
        joined((wrote, behind)),
        (PinVersions(adopted.tables), *before, adopted, Measure(), *after, Publish()),
    )


def _delta(request: RefreshRequest, moved: Message) -> Delta | WhyFull:
    """The change to add to what is stored, or why everything has to be computed."""
    published = request.published
    if published is None:
        return WhyFull(FullCode.NEVER_REFRESHED, moved)
    if request.damage:
        return WhyFull(FullCode.CACHE_DAMAGED, literal(request.damage))
    if published.spec != request.spec or published.stored is None:
        return WhyFull(_other_plan(published, request), moved)
    then = {t.location: t for t in published.tables}
    tables = {t.location: t for t in request.tables}
    if then.keys() != tables.keys():
        return WhyFull(FullCode.OTHER_TABLES, moved)
    for place, table in tables.items():
        if then[place].table_id != table.table_id:
            return WhyFull(FullCode.TABLE_RECREATED, moved)
        same = then[place].version == table.version and then[place].state.is_same(table.state)
        if not same and place not in request.changes:
            return WhyFull(FullCode.HISTORY_REWRITTEN, moved)
    found = find_delta(
        request.plan,
        published.stored,
        then,
        tables,
        request.changes,
        request.sizes,
        request.options,
        request.feeds,
    )
    if isinstance(found, Delta) and found.table.location in request.repartitioned:
        return WhyFull(FullCode.PARTITIONING_CHANGED, moved)
    if isinstance(found, Delta) and request.gone and not found.by_feed:
        gone = Message(
            "{table}: {file} is gone",
            table=TableName(found.table.name),
            file=Word(request.gone[0]),
        )
        return WhyFull(FullCode.FILES_GONE, gone)
    if isinstance(found, WhyFull) and found.code is FullCode.ROWS_REMOVED:
        return WhyFull(found.code, joined((found.detail, moved)))
    if isinstance(found, WhyFull) and found.code.value in set(ChangeCode):
        return WhyFull(found.code, moved)  # which says it of each table
    return found


def _other_plan(published: Published, request: RefreshRequest) -> FullCode:
    """The code where the published rows are of another plan."""
    if published.spec == request.spec:
        return FullCode.DEFINITION_CHANGED  # another version of this program stored it
    replaced = replaced_tables(published.tables, request.tables)
    return FullCode.DEFINITION_CHANGED if replaced is None else replaced.code


def _weighed(request: RefreshRequest, delta: Delta) -> Weighed:
    """The change against everything, by bytes and by what past runs took."""
    from_cache = _source(request)[0] is not None
    return weigh(
        delta.is_worth_it,
        expected(_way(request, delta), delta.cost, request.past),
        expected(FULL, delta.full_cost, request.past, is_from_cache=from_cache),
    )


def _way(request: RefreshRequest, delta: Delta) -> str:
    if request.plan.keys is None:
        return APPEND
    return PARTIALS if delta.appended else REPLACE


def _incremental(
    request: RefreshRequest, delta: Delta, moved: Message, weighed: Weighed
) -> RefreshPlan:
    assert request.published is not None and request.head is not None
    stages: list[Stage] = [PinVersions(request.tables), *_restore_stage(request)]
    if request.properties_changed:
        stages.append(PrepareTable(create=False))
    stages += [WriteDelta(delta, request.plan.keys is not None, request.head.version), Measure()]
    if request.plan.joins:
        stages.append(CheckJoins(request.plan.joins, delta))
    share = delta.cost / max(delta.full_cost, 1)
    cost = Count(share, form=".0%")
    told = [
        moved,
        Message("expected to cost {share} of a full refresh", share=cost),
        weighed.told(),
    ]
    if not weighed.takes_change:
        told += [Message("AUTO would compute everything"), _feed_told(request, delta)]
    return RefreshPlan(
        request.cache,
        _way(request, delta),
        joined(told),
        (*stages, Publish()),
        estimate=(delta.cost, delta.full_cost),
        weighed=weighed,
    )


def _full(request: RefreshRequest, why: WhyFull) -> RefreshPlan:
    stages: list[Stage] = [PinVersions(request.tables), *_join_stage(request)]
    stages += _restore_stage(request)
    if request.head is None or request.properties_changed:
        stages.append(PrepareTable(create=request.head is None))
    sets = tuple(s.grouping_id for s in request.plan.grouping_sets)
    source, told = _source(request)
    stages += [WriteFull(sets, source), Measure(), Publish()]
    asked = RefreshMode(request.mode)
    fell = asked is RefreshMode.INCREMENTAL and why.code is not FullCode.NEVER_REFRESHED
    because = "INCREMENTAL requested; running FULL, because {why}" if fell else "{why}"
    reason = joined((Message(because, why=why.message), told))
    return RefreshPlan(
        request.cache, RefreshMode.FULL.value, reason, tuple(stages), why.code, detail=why.detail
    )


def _restore_stage(request: RefreshRequest) -> tuple[Stage, ...]:
    """Puts the published state back where something else lies on top. What is damaged cannot be
    put back, and is written anew."""
    published, head = request.published, request.head
    if published is None or head is None or request.damage or _head_is_published(request):
        return ()
    if restores_published(head, published):
        return ()
    return (RestorePublished(published.cache_version, head.version),)


def _source(request: RefreshRequest) -> tuple[SourceOffer | None, Message]:
    """The cache to build from, and why that or none. FULL reads the base tables: whoever asks for
    it may not trust what is stored.
    """
    if not request.sources:
        return None, NOTHING
    if request.mode == RefreshMode.FULL:
        return None, Message("from the base tables, as FULL asks for")
    for offer in request.sources:
        if not offer.why_not:
            name = CacheName(offer.cache)
            return offer, Message("from cache {cache}, which holds these versions", cache=name)
    why = joined(
        Message("cache {cache}: {why}", cache=CacheName(o.cache), why=Word(o.why_not))
        for o in request.sources
    )
    return None, Message("from the base tables, since {why}", why=why)


def _join_stage(request: RefreshRequest) -> tuple[Stage, ...]:
    return (ValidateJoins(request.plan.joins),) if request.plan.joins else ()
