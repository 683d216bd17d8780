"""The stages that a refresh is made of, each with what EXPLAIN REFRESH says of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from cachemgr.base_state import TableAt
from cachemgr.printable import plural
from cachemgr.refresh.by_change.incremental import Delta
from matcher.model.ir import RecordPreservingJoin


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
    def detail(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Unchanged(Stage):
    """No base table moved since the published snapshot: no Spark job runs."""

    version: int

    @property
    def detail(self) -> str:
        return f"no base table moved; version {self.version} keeps serving"


@dataclass(frozen=True, slots=True)
class MoveOn(Stage):
    """Base tables got new versions with the same rows: the snapshot is noted down at these, and no
    Spark job runs."""

    version: int
    tables: tuple[TableAt, ...]

    @property
    def detail(self) -> str:
        at = ", ".join(f"{t.name} at version {t.version}" for t in self.tables)
        return f"version {self.version} keeps serving, for {at}"


@dataclass(frozen=True, slots=True)
class PinVersions(Stage):
    """Every base table is read at one version."""

    tables: tuple[TableAt, ...]

    @property
    def detail(self) -> str:
        return ", ".join(f"{t.name} at version {t.version}" for t in self.tables)


@dataclass(frozen=True, slots=True)
class ValidateJoins(Stage):
    """Declared record-preserving joins are checked at the pinned versions."""

    joins: tuple[RecordPreservingJoin, ...]

    @property
    def detail(self) -> str:
        return ", ".join(j.name for j in self.joins)


@dataclass(frozen=True, slots=True)
class PrepareTable(Stage):
    """The cache's Delta table is created, or gets the properties it should have."""

    create: bool

    @property
    def detail(self) -> str:
        return "create the Delta table" if self.create else "set the table's properties"


@dataclass(frozen=True, slots=True)
class RestorePublished(Stage):
    """A commit that was never published lies on top: the published state is put back first."""

    version: int
    head: int

    @property
    def detail(self) -> str:
        return f"version {self.head} was never published; restore version {self.version}"


@dataclass(frozen=True, slots=True)
class WriteFull(Stage):
    """The whole definition is computed and written in one commit. `sets` are the grouping ids of a
    cube, `source` the cache whose rows are read instead of the base tables.
    """

    sets: tuple[int, ...] = ()
    source: SourceOffer | None = None

    @property
    def detail(self) -> str:
        sets = f"{len(self.sets)} grouping sets" if self.sets else "all rows"
        if self.source is None:
            return f"compute {sets}, one commit"
        steps = f" ({', '.join(self.source.steps)})" if self.source.steps else ""
        return (
            f"compute {sets} from cache {self.source.cache} at its version {self.source.version}"
            f"{steps}, one commit"
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
    def detail(self) -> str:
        delta, changes = self.delta, self.delta.changes
        rows = "rows" if changes.rows_added is None else plural(changes.rows_added, "row")
        files = plural(len(changes.added), "file")
        came = f"the {rows} in {files} that came to {delta.table.name}"
        if delta.by_feed:
            came = f"the changed rows of {delta.table.name}, from its Change Data Feed,"
        elif delta.is_signed:
            came += f", less those of the {plural(len(changes.removed), 'file')} that went,"
        text = f"compute {came} in versions {delta.since + 1} to {delta.table.version}"
        if not self.grouped:
            return f"{text}; append them, one commit"
        if delta.replaced == (0,):
            return f"{text}; add them to the stored groups, which are written anew, one commit"
        if delta.appended == (0,):
            return f"{text}; append them as partial rows, one commit"
        told = []
        if delta.replaced:
            told.append(f"write {len(delta.replaced)} grouping sets anew")
        if delta.appended:
            told.append(f"append partial rows to {len(delta.appended)} grouping sets")
        return f"{text}; {' and '.join(told)}, one commit"


@dataclass(frozen=True, slots=True)
class CheckJoins(Stage):
    """The record-preserving joins that held before are checked on the appended rows; those whose
    joined side changed, or that were declared since, are validated as a whole.
    """

    joins: tuple[RecordPreservingJoin, ...]
    delta: Delta

    @property
    def detail(self) -> str:
        return f"{', '.join(j.name for j in self.joins)}, on the appended rows"


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
    def detail(self) -> str:
        at = ", ".join(f"{t.name} at version {t.version}" for t in self.tables)
        behind = f"; it holds {at}" if self.is_behind else ""
        return (
            f"version {self.version}, written by refresh {self.refresh_id}, "
            f"which ended before publishing{behind}"
        )


@dataclass(frozen=True, slots=True)
class Measure(Stage):
    """Rows, bytes and the facts that the matcher relies on."""

    @property
    def detail(self) -> str:
        return "rows and bytes of each set, exact sums, columns that are never NULL"


@dataclass(frozen=True, slots=True)
class Publish(Stage):
    """The new state starts to serve, if the lease still holds and the log says what was written.

    `version` is the one to publish where this refresh writes none.
    """

    version: int | None = None

    @property
    def detail(self) -> str:
        return "compare the log and the lease, then publish"
