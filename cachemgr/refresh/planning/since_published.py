"""What changed since the published snapshot, and whether that alone can be added to it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from cachemgr.base_state import TableAt
from cachemgr.delta.base_columns import changed_columns, changes_told
from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes
from cachemgr.metastore.records import SnapshotTableRecord
from cachemgr.refresh.by_change.incremental import Delta, find_delta
from cachemgr.refresh.by_change.why_full import FullCode, WhyFull
from cachemgr.refresh.planning.plan import Published, RefreshRequest
from cachemgr.refresh.replaced import replaced_tables
from cachemgr.serving.other_spark import differing, printed, unlike
from matcher.model.message import NOTHING, Message, Number, TableName, Word, joined, literal


def why_stale(request: RefreshRequest) -> Message | None:
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
    """What changed of the definition or its tables; or that nobody can tell, since another Spark
    has read the definition."""
    if _of_another_spark(published, request):
        return _computed_by(published, request)
    other = Message("the definition, its views, the settings or the layout changed")
    replaced = replaced_tables(published.tables, request.tables)
    if replaced is None:
        return other
    return replaced.told if replaced.explains_all else joined((replaced.told, other))


def _of_another_spark(published: Published, request: RefreshRequest) -> bool:
    """Whether none of the published rows are of the minor of Spark that would compute."""
    return request.spark is not None and request.spark not in published.sparks


def _computed_by(published: Published, request: RefreshRequest) -> Message:
    return Message(
        "the published rows were computed by Spark {then}, and this is Spark {now}",
        then=Word(" and ".join(sorted(published.sparks))),
        now=Word(str(request.spark)),
    )


def _why_not_beside(published: Published, request: RefreshRequest) -> WhyFull | None:
    """Why what this Spark computes must not stand beside the published rows, if so."""
    if request.spark is None or published.sparks <= {request.spark}:
        return None
    plan = request.plan
    part = differing(published.sparks, request.spark, unlike(plan), printed(plan))
    if part is None:
        return None
    detail = Message(
        "{other}, which may compute {part} otherwise",
        other=_computed_by(published, request),
        part=Word(part),
    )
    return WhyFull(FullCode.OTHER_SPARK, detail)


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


def moved_on(request: RefreshRequest) -> bool:
    """Whether base tables got versions that hold the rows which were read."""
    assert request.published is not None
    then = {t.location: t.version for t in request.published.tables}
    return any(then[table.location] != table.version for table in request.tables)


def nothing_changed(request: RefreshRequest) -> Message:
    """Where nothing is to be computed: that no table moved, or that no row changed."""
    if not moved_on(request):
        return Message("no base table moved")
    moved = [changes for changes in request.changes.values() if changes.commits]
    count = sum(changes.commits for changes in moved)
    commits = Number(count, noun="commit")
    what = "no row of a base table changed: {commits} without data change"
    return Message(what, commits=commits)


def delta_since(request: RefreshRequest, moved: Message) -> Delta | WhyFull:
    """The change to add to what is stored, or why everything has to be computed."""
    published = request.published
    if published is None:
        return WhyFull(FullCode.NEVER_REFRESHED, moved)
    if request.damage:
        return WhyFull(FullCode.CACHE_DAMAGED, literal(request.damage))
    if published.spec != request.spec or published.stored is None:
        return WhyFull(_other_plan(published, request), moved)
    other = _why_not_beside(published, request)
    if other is not None:
        return other
    then = {t.location: t for t in published.tables}
    tables = {t.location: t for t in request.tables}
    code = _other_tables(then, tables, request)
    if code is not None:
        return WhyFull(code, moved)
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


def _other_tables(
    then: Mapping[str, SnapshotTableRecord], tables: Mapping[str, TableAt], request: RefreshRequest
) -> FullCode | None:
    """The code where the published rows are of other tables, or of another past of one."""
    if then.keys() != tables.keys():
        return FullCode.OTHER_TABLES
    for place, table in tables.items():
        if then[place].table_id != table.table_id:
            return FullCode.TABLE_RECREATED
        same = then[place].version == table.version and then[place].state.is_same(table.state)
        if not same and place not in request.changes:
            return FullCode.HISTORY_REWRITTEN
    return None


def _other_plan(published: Published, request: RefreshRequest) -> FullCode:
    """The code where the published rows are of another plan."""
    if published.spec == request.spec:
        return FullCode.DEFINITION_CHANGED  # another version of this program stored it
    if _of_another_spark(published, request):
        return FullCode.OTHER_SPARK  # which may read the same definition otherwise
    replaced = replaced_tables(published.tables, request.tables)
    return FullCode.DEFINITION_CHANGED if replaced is None else replaced.code
