"""What a refresh will do, as a list of frozen stages: EXPLAIN REFRESH shows them, the run carries
them out.

Pure: everything it decides on is in the request. Where rows were only appended since the last
refresh, they may be added to what is stored (`incremental`); AUTO does so if that is expected to
cost less, by bytes and by what past refreshes took (`past_runs`). A refresh that computes
everything says why, by a code (`why_full`), and `INCREMENTAL ONLY` fails with that code instead.
"""

from __future__ import annotations

from dataclasses import replace

from cachemgr.delta.places import as_path, scheme_of
from cachemgr.errors import ErrorCode, RefreshError
from cachemgr.refresh.by_change.incremental import WORTH_IT, Delta
from cachemgr.refresh.by_change.past_runs import FULL, Weighed, expected, weigh
from cachemgr.refresh.by_change.why_full import FullCode, NotIncremental, WhyFull
from cachemgr.refresh.planning.plan import (
    ADOPT,
    APPEND,
    JOINS,
    PARTIALS,
    REPLACE,
    RESTORE,
    UNCHANGED,
    RefreshPlan,
    RefreshRequest,
)
from cachemgr.refresh.planning.since_published import (
    delta_since,
    moved_on,
    nothing_changed,
    why_stale,
)
from cachemgr.refresh.planning.steps import (
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
from cachemgr.refresh.planning.unpublished import (
    adoptable,
    head_is_published,
    restore_stage,
    restores_published,
)
from cachemgr.vocabulary import RefreshMode
from matcher.model.message import NOTHING, CacheName, Count, Message, Number, Sql, Word, joined


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
    moved = why_stale(request)
    if moved is None and request.mode != RefreshMode.FULL:
        return _nothing_to_compute(request)
    if moved is None:
        return _full(request, WhyFull(FullCode.ASKED_FOR, nothing_changed(request)))
    adopted = adoptable(request)
    if adopted is not None:
        return _adopt(request, adopted)
    if request.mode == RefreshMode.FULL:
        return _full(request, WhyFull(FullCode.ASKED_FOR, moved))
    found = delta_since(request, moved)
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


def _nothing_to_compute(request: RefreshRequest) -> RefreshPlan:
    published, head = request.published, request.head
    assert published is not None
    assert head is not None, "a table that is gone is damage"
    intact = head_is_published(request)
    known = request.joins_known and not _lacks_identity(request)
    nothing = nothing_changed(request)
    if intact and known:
        stage = (
            MoveOn(published.cache_version, request.tables)
            if moved_on(request)
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
    stages: list[Stage] = [PinVersions(request.tables), *restore_stage(request)]
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
    stages += restore_stage(request)
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
