"""Which files a query opens, of how many, and what became of dynamic pruning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Scan:
    """What is read of one table.

    Args:
        table: Its name, or where it lies.
        held: Whether it is read from memory.
        files: How many files are opened; at most so many where `dynamic`.
        of_files: How many it has; None where nobody has counted them.
        bytes: The size of the files that are opened.
        of_bytes: The size of all of its files; None where that is not known.
        partitions: How many partitions these files are of; None where it is not partitioned.
        dynamic: Whether rows of a joined table may leave out more of them while it runs.
    """

    table: str
    held: bool = False
    files: int = 0
    of_files: int | None = None
    bytes: int = 0
    of_bytes: int | None = None
    partitions: int | None = None
    dynamic: bool = False

    def told(self) -> str:
        """In one line, for people.

        >>> Scan("sales", files=3, of_files=73, bytes=1_200_000, of_bytes=24_000_000).told()
        'sales: 3 of 73 files, 1.2 MB of 24 MB'
        >>> Scan("days", files=365, of_files=365, bytes=9, partitions=365, dynamic=True).told()
        'days: up to 365 of 365 files, 9 B, 365 partitions; fewer by dynamic pruning'
        >>> Scan("relational_cache.days@v3", held=True).told()
        'relational_cache.days@v3: 0 files, held in memory'
        """
        if self.held:
            return f"{self.table}: 0 files, held in memory"
        of = "" if self.of_files is None else f" of {self.of_files:,}"
        files = f"{self.files:,}{of}"
        size = _size(self.bytes) + ("" if self.of_bytes is None else f" of {_size(self.of_bytes)}")
        parts = [f"{'up to ' if self.dynamic else ''}{files} files", size]
        if self.partitions is not None:
            parts.append(f"{self.partitions:,} partition{'' if self.partitions == 1 else 's'}")
        later = "; fewer by dynamic pruning" if self.dynamic else ""
        return f"{self.table}: {', '.join(parts)}{later}"


@dataclass(frozen=True, slots=True)
class DynamicPruning:
    """What became of pruning a table by the rows of another that it is joined with.

    Args:
        table: The table that is to be pruned.
        outcome: `broadcast reused`, `filter query`, or `none: ` and why.
        key: The column that it is pruned by, as Spark writes it; None where it is not.
    """

    table: str
    outcome: str
    key: str | None = None

    def told(self) -> str:
        """In one line, for people."""
        by = "" if self.key is None else f" by {self.key}"
        return f"{self.table}{by}: {self.outcome}"


@dataclass(frozen=True, slots=True)
class FilesOpened:
    """What a query opens.

    Args:
        scans: Of each table that it reads.
        dynamic: What became of dynamic pruning, for each join that might prune.
    """

    scans: tuple[Scan, ...] = ()
    dynamic: tuple[DynamicPruning, ...] = ()

    @property
    def files(self) -> int:
        """All files together."""
        return sum(scan.files for scan in self.scans)

    @property
    def bytes(self) -> int:
        """Their size."""
        return sum(scan.bytes for scan in self.scans)

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> FilesOpened:
        """What Java (`FilesOpened.java`) says.

        Args:
            found: Its JSON.
        """
        scans = tuple(
            Scan(scan["name"], held=True)
            if scan["held"]
            else Scan(
                scan["name"],
                files=scan["files"],
                of_files=scan["ofFiles"],
                bytes=scan["bytes"],
                of_bytes=scan["ofBytes"],
                partitions=scan["partitions"],
                dynamic=scan["dynamic"],
            )
            for scan in found["scans"]
        )
        dynamic = (DynamicPruning(d["table"], d["outcome"], d["key"]) for d in found["dynamic"])
        return cls(scans, tuple(dynamic))

    def lines(self) -> Iterator[tuple[str, str]]:
        """For people: what each line is about, and the line."""
        for scan in self.scans:
            yield "files", scan.told()
        if not self.scans:
            yield "files", "none"
        for each in dict.fromkeys(self.dynamic):
            yield "dynamic pruning", each.told()

    def as_data(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "scans": [
                {
                    "table": s.table,
                    "held": s.held,
                    "files": s.files,
                    "ofFiles": s.of_files,
                    "bytes": s.bytes,
                    "ofBytes": s.of_bytes,
                    "partitions": s.partitions,
                    "dynamic": s.dynamic,
                }
                for s in self.scans
            ],
            "dynamicPruning": [
                {"table": d.table, "key": d.key, "outcome": d.outcome} for d in self.dynamic
            ],
        }


def _size(size: int) -> str:
    value = float(size)
    for unit in _UNITS[:-1]:
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.3g} {_UNITS[-1]}"
