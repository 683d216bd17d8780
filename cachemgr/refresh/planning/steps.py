"""The stages that a refresh is made of, each with what EXPLAIN REFRESH says of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from cachemgr.base_state import TableAt
from cachemgr.refresh.by_change.incremental import Delta
from matcher.model.ir import RecordPreservingJoin
from matcher.model.message import (
    NOTHING,
    Arg,
    CacheName,
    Count,
    JoinName,
    Message,
    Number,
    Several,
    TableName,
    Word,
    joined,
    listed,
)


@dataclass(frozen=True, slots=True)
class SourceOffer:
    """A cache that this one may be built from.

    Args:
        cache_id: Its id.
        cache: Its shown name.
        version: Its published version; None if it has none.
        why_not: Why it cannot be; empty if it can.
        steps: What is done to its rows.
    """

    cache_id: str
    cache: str
    version: int | None
    why_not: str = ""
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a refresh."""

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def detail(self) -> Message:
        return NOTHING


@dataclass(frozen=True, slots=True)
class Unchanged(Stage):
    """No base table moved since the published snapshot: no Spark job runs."""

    version: int

    @property
    def detail(self) -> Message:
        version = Number(self.version)
        return Message("no base table moved; version {version} keeps serving", version=version)


@dataclass(frozen=True, slots=True)
class MoveOn(Stage):
    """Base tables got new versions with the same rows: the snapshot is noted down at these, and no
    Spark job runs."""

    version: int
    tables: tuple[TableAt, ...]

    @property
    def detail(self) -> Message:
        return Message(
            "version {version} keeps serving, for {tables}",
            version=Number(self.version),
            tables=_at_versions(self.tables),
        )


@dataclass(frozen=True, slots=True)
class PinVersions(Stage):
    """Every base table is read at one version."""

    tables: tuple[TableAt, ...]

    @property
    def detail(self) -> Message:
        return Message("{tables}", tables=_at_versions(self.tables))


@dataclass(frozen=True, slots=True)
class ValidateJoins(Stage):
    """Declared record-preserving joins are checked at the pinned versions."""

    joins: tuple[RecordPreservingJoin, ...]

    @property
    def detail(self) -> Message:
        return Message("{joins}", joins=listed(JoinName, (j.name for j in self.joins)))


@dataclass(frozen=True, slots=True)
class PrepareTable(Stage):
    """The cache's Delta table is created, or gets the properties it should have."""

    create: bool

    @property
    def detail(self) -> Message:
        what = "create the Delta table" if self.create else "set the table's properties"
        return Message(what)


@dataclass(frozen=True, slots=True)
class RestorePublished(Stage):
    """A commit that was never published lies on top: the published state is put back first."""

    version: int
    head: int

    @property
    def detail(self) -> Message:
        return Message(
            "version {head} was never published; restore version {version}",
            head=Number(self.head),
            version=Number(self.version),
        )


@dataclass(frozen=True, slots=True)
class WriteFull(Stage):
    """The whole definition is computed and written in one commit. `sets` are the grouping ids of a
    cube, `source` the cache whose rows are read instead of the base tables.
    """

    sets: tuple[int, ...] = ()
    source: SourceOffer | None = None

    @property
    def detail(self) -> Message:
        sets: Arg = Word("all rows")
        if self.sets:
            sets = Message("{n} grouping sets", n=Number(len(self.sets)))
        if self.source is None:
            return Message("compute {sets}, one commit", sets=sets)
        steps = f" ({', '.join(self.source.steps)})" if self.source.steps else ""
        return Message(
            "compute {sets} from cache {cache} at its version {version}{steps}, one commit",
            sets=sets,
            cache=CacheName(self.source.cache),
            version=Number(self.source.version),
            steps=Word(steps),
        )


@dataclass(frozen=True, slots=True)
class WriteDelta(Stage):
    """The definition is computed over the rows that came to one base table and those that went, and
    what comes out is added to what is stored, in one commit: `delta` says to which sets how. `head`
    is the version that holds what is stored, unless that is put back first.
    """

    delta: Delta
    grouped: bool
    head: int

    @property
    def detail(self) -> Message:
        return Message(
            "compute {rows} in versions {first} to {last}; {written}, one commit",
            rows=self._rows(),
            first=Number(self.delta.since + 1),
            last=Number(self.delta.table.version),
            written=self._written(),
        )

    def _rows(self) -> Message:
        """What is computed."""
        delta, changes = self.delta, self.delta.changes
        template = "the {rows} in {files} that came to {table}"
        if delta.by_feed:
            template = "the changed rows of {table}, from its Change Data Feed,"
        elif delta.is_signed:
            template += ", less those of the {removed} that went,"
        return Message(
            template,
            rows=Count(changes.rows_added, "row"),
            files=Count(len(changes.added), "file"),
            table=TableName(delta.table.name),
            removed=Count(len(changes.removed), "file"),
        )

    def _written(self) -> Message:
        """What becomes of it."""
        delta = self.delta
        if not self.grouped:
            return Message("append them")
        if delta.replaced == (0,):
            return Message("add them to the stored groups, which are written anew")
        if delta.appended == (0,):
            return Message("append them as partial rows")
        told = []
        if delta.replaced:
            sets = Number(len(delta.replaced))
            told.append(Message("write {sets} grouping sets anew", sets=sets))
        if delta.appended:
            sets = Number(len(delta.appended))
            told.append(Message("append partial rows to {sets} grouping sets", sets=sets))
        return joined(told, " and ")


@dataclass(frozen=True, slots=True)
class CheckJoins(Stage):
    """The record-preserving joins that held before are checked on the appended rows; those whose
    joined side changed, or that were declared since, are validated as a whole.
    """

    joins: tuple[RecordPreservingJoin, ...]
    delta: Delta

    @property
    def detail(self) -> Message:
        joins = listed(JoinName, (j.name for j in self.joins))
        return Message("{joins}, on the appended rows", joins=joins)


@dataclass(frozen=True, slots=True)
class Adopt(Stage):
    """A crashed run's commit is whole: it is published and not computed again, for the versions of
    the base tables that it was made from.

    `delta` is what it added, None where it computed everything; `is_behind` says that the tables
    have later versions by now, which another run adds.
    """

    refresh_id: str
    version: int
    tables: tuple[TableAt, ...]
    delta: Delta | None = None
    is_behind: bool = False

    @property
    def detail(self) -> Message:
        wrote = Message(
            "version {version}, written by refresh {id}, which ended before publishing",
            version=Number(self.version),
            id=Word(self.refresh_id),
        )
        if not self.is_behind:
            return wrote
        return joined((wrote, Message("it holds {tables}", tables=_at_versions(self.tables))))


@dataclass(frozen=True, slots=True)
class Measure(Stage):
    """Rows, bytes and the facts that the matcher relies on."""

    @property
    def detail(self) -> Message:
        return Message("rows and bytes of each set, exact sums, columns that are never NULL")


@dataclass(frozen=True, slots=True)
class Publish(Stage):
    """The new state starts to serve, if the lease still holds and the log says what was written.

    `version` is the one to publish where this refresh writes none.
    """

    version: int | None = None

    @property
    def detail(self) -> Message:
        return Message("compare the log and the lease, then publish")


def _at_versions(tables: tuple[TableAt, ...]) -> Several:
    at = "{table} at version {version}"
    return Several(
        tuple(Message(at, table=TableName(t.name), version=Number(t.version)) for t in tables)
    )
