"""One commit of a cache's Delta log, read from the JSON that Delta wrote: pure text, no Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from cachemgr.delta.base_commits import bounds_said
from matcher.model.integer_bounds import Bounds
from matcher.model.ir import GROUPING_ID_COLUMN

_T = TypeVar("_T")
_AS_THEY_ARE: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class AddedFile:
    """One file of a commit; `path` is as the log spells it, `rows`, `nulls` and the `bounds` of
    whole numbers come from Delta's statistics and may be unknown.
    """

    path: str
    partition: Mapping[str, str | None]
    bytes: int
    rows: int | None
    nulls: Mapping[str, int]
    bounds: Mapping[str, Bounds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest commit of the cache's own Delta table, and what its userMetadata says (empty if
    not ours).
    """

    version: int
    stamp: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: what it says about itself, its transaction identifier, the files that it added,
    the paths of those that it removed, and the grouping ids of these (None: it says none).
    """

    version: int
    stamp: Mapping[str, Any]
    txn: tuple[str, int] | None
    added: tuple[AddedFile, ...]
    removed: tuple[str, ...] = ()
    removed_sets: frozenset[str | None] = frozenset()

    @property
    def rows(self) -> int | None:
        """Rows of the added files, None if Delta wrote no statistics."""
        counts = [f.rows for f in self.added]
        return None if None in counts else sum(c for c in counts if c is not None)

    @property
    def bytes(self) -> int:
        """Bytes of the added files."""
        return sum(f.bytes for f in self.added)


def parse_commit(version: int, text: str, names: Mapping[str, str] = _AS_THEY_ARE) -> Commit:
    """Read a commit.

    Args:
        version: Its number.
        text: Its file: a JSON action a line.
        names: Those of the columns that the log has by other names, by these
            (`names_by_physical`).

    Returns:
        The commit; the stamp is empty if it is not ours.
    """
    stamp: Mapping[str, Any] = {}
    txn = None
    added = []
    removed = []
    sets: set[str | None] = set()
    for line in text.splitlines():
        action = json.loads(line)
        if "commitInfo" in action:
            stamp = _stamp(action["commitInfo"].get("userMetadata"))
        elif "txn" in action:
            txn = (action["txn"]["appId"], action["txn"]["version"])
        elif "add" in action:
            added.append(_added(action["add"], names))
        elif "remove" in action:
            removed.append(action["remove"]["path"])
            partition = _named(action["remove"].get("partitionValues") or {}, names)
            sets.add(partition.get(GROUPING_ID_COLUMN))
    return Commit(version, stamp, txn, tuple(added), tuple(removed), frozenset(sets))


def _stamp(text: str | None) -> Mapping[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.get("by") == "relational-cache" else {}


def _named(values: Mapping[str, _T], names: Mapping[str, str]) -> dict[str, _T]:
    return {names.get(name, name): value for name, value in values.items()}


def _added(action: Mapping[str, Any], names: Mapping[str, str]) -> AddedFile:
    stats = json.loads(action.get("stats") or "{}")
    nulls = {k: v for k, v in stats.get("nullCount", {}).items() if isinstance(v, int)}
    return AddedFile(
        action["path"],
        _named(action["partitionValues"], names),
        action["size"],
        stats.get("numRecords"),
        _named(nulls, names),
        _named(bounds_said(stats), names),
    )
