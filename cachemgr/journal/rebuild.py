"""A metastore made again from the records beside the caches' tables, each held to the Delta log.

A cache serves again only the version that was published last, and only if the log has that commit
and it is one of ours of that very cache. Whatever else stands in the log (a commit of a stale
replica, one that was never published) stays unpublished, as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cachemgr.delta.commits import Commit, parse_commit
from cachemgr.delta.places import absolute_location
from cachemgr.delta.storage import Files
from cachemgr.errors import ErrorCode, MetastoreError
from cachemgr.journal.journal import FOLDER, SHARED
from cachemgr.metastore.dumps import FORMATS, CacheDump, Rows
from cachemgr.metastore.records import CacheRecord
from cachemgr.metastore.store import Metastore

_COMMIT = re.compile(r"(\d{20})\.json")
TAKEN_OVER, AHEAD, BEHIND, NO_RECORD = "TAKEN_OVER", "AHEAD", "BEHIND", "NO_RECORD"
_REMEDIES: Final = {
    TAKEN_OVER: "another metastore took these records over: go on with that one, or end its "
    "processes and make the records this one's again with `cachemgr db records --take-over`",
    AHEAD: "the records know more than this metastore, which was put back from a copy: `cachemgr "
    "db rebuild` brings that back into an empty one, `cachemgr db records` keeps what this one has",
    BEHIND: "`cachemgr db records` writes the records that are missing or behind",
}
OpenFiles = Callable[[str], Files]


@dataclass(frozen=True)
class Restored:
    """What became of one cache.

    Args:
        id: The cache's id.
        name: Its namespace and name.
        state: PUBLISHED, NOT_PUBLISHED, DROPPED, or LEFT_OUT.
        version: The version of its table that it serves.
        note: What a person should know; empty if all is as it was.
        is_lost: It does not serve what it served.
    """

    id: str
    name: str
    state: str
    version: int | None
    note: str
    is_lost: bool = False


@dataclass(frozen=True)
class Found:
    """All that the records under some roots say.

    Args:
        caches: The caches, with what each may serve.
        shared: What belongs to no cache.
        revision: The highest revision seen.
        restored: What becomes of each cache.
        has_shared: There was a record of what belongs to no cache.
    """

    caches: tuple[CacheDump, ...]
    shared: Rows
    revision: int
    restored: tuple[Restored, ...]
    has_shared: bool


def look(roots: Sequence[str], files_of: OpenFiles) -> Found:
    """Read all records and the logs that they point at; changes nothing.

    Args:
        roots: The caches' root folders.
        files_of: The files of a root.

    Returns:
        What a metastore can be made of.

    Raises:
        MetastoreError: A record is of a format that is not known here.
    """
    dumps: dict[str, tuple[CacheDump, Files]] = {}
    shared: tuple[str, Rows] = ("", {})
    revisions = [0]
    for root in dict.fromkeys(map(absolute_location, roots)):
        files = files_of(root)
        for folder in files.names(f"{root}/{FOLDER}"):
            revision, content = _newest(files, f"{root}/{FOLDER}/{folder}")
            if content is None:
                continue
            revisions.append(revision)
            if folder.startswith(SHARED):
                # of a metastore and the one that was made of it, the later
                shared = max(shared, (content["at"], content["shared"]), key=lambda pair: pair[0])
                continue
            epoch = str(content.get("metastore") or "")
            dump = CacheDump(revision, content["location"], content["rows"], epoch)
            dumps[dump.cache["id"]] = (dump, files)
    kept: list[CacheDump] = []
    restored: list[Restored] = []
    for dump, files in _one_a_name(dumps.values(), restored):
        checked, result = _check(dump, files)
        kept.append(checked)
        restored.append(result)
    told = tuple(sorted(restored, key=lambda r: (r.name, r.id)))
    return Found(tuple(kept), shared[1], max(revisions), told, has_shared=bool(shared[0]))


def rebuild(metastore: Metastore, found: Found) -> None:
    """Fill an empty metastore.

    Args:
        metastore: It holds no cache.
        found: What `look` found.

    Raises:
        MetastoreError: It does hold one; nothing was changed.
    """
    metastore.dumps.restore(found.caches, found.shared, found.revision)


def differences(metastore: Metastore, roots: Sequence[str], files_of: OpenFiles) -> list[Restored]:
    """Where the records and logs say something else than the metastore.

    Args:
        metastore: What is in force.
        roots: More root folders than those of the metastore's caches.
        files_of: The files of a root.

    Returns:
        One line for each cache that a rebuild would bring back otherwise than it is.
    """
    caches = metastore.caches.all(include_dropped=True)
    found = look(_all_roots(caches, roots), files_of)
    epoch = metastore.registry.mark().epoch
    told = {r.id: r for r in found.restored}
    lines = []
    for cache in caches:
        name, mine = cache.qualified_name, told.pop(cache.id, None)
        published = metastore.snapshots.published(cache.id)
        version = None if published is None else published.run.cache_version
        if mine is None and cache.dropped_at is not None:
            continue  # nothing would bring it back
        if mine is None:
            lines.append(Restored(cache.id, name, NO_RECORD, version, "it has no record yet"))
            continue
        dump = next((d for d in found.caches if d.cache["id"] == cache.id), None)
        if dump is not None and dump.revision != cache.revision:
            state, note = _other_revision(dump, cache, epoch)
            lines.append(Restored(cache.id, name, state, version, note))
        elif mine.note or (cache.dropped_at is None and mine.version != version):
            note = mine.note or f"its record says version {mine.version}"
            lines.append(Restored(cache.id, name, mine.state, version, note))
    for other in told.values():
        if other.state != "DROPPED":
            lines.append(replace(other, state="UNKNOWN", note="the metastore does not know it"))
    return lines


def remedies(lines: Iterable[Restored]) -> list[str]:
    """What to do about `differences`, one sentence for each kind of them."""
    states = {BEHIND if line.state == NO_RECORD else line.state for line in lines}
    return [text for state, text in _REMEDIES.items() if state in states]


def is_taken_over(metastore: Metastore, roots: Sequence[str], files_of: OpenFiles) -> bool:
    """Whether records of caches that a metastore knows are another's; see `differences`."""
    return any(line.state == TAKEN_OVER for line in differences(metastore, roots, files_of))


def outdo(metastore: Metastore, roots: Sequence[str], files_of: OpenFiles) -> None:
    """Have a metastore's next records be newer than all that there are; see `differences`."""
    caches = metastore.caches.all(include_dropped=True)
    metastore.dumps.go_above(look(_all_roots(caches, roots), files_of).revision)


def _all_roots(caches: Iterable[CacheRecord], roots: Sequence[str]) -> list[str]:
    return [*roots, *(c.location.rpartition("/")[0] for c in caches)]


def _other_revision(dump: CacheDump, cache: CacheRecord, epoch: str) -> tuple[str, str]:
    of = f"its record is of revision {dump.revision}, not {cache.revision}"
    if dump.revision < cache.revision:
        return BEHIND, of
    if dump.metastore == epoch:
        return AHEAD, of
    return TAKEN_OVER, f"{of}, and of another metastore"


def _newest(files: Files, folder: str) -> tuple[int, dict[str, Any] | None]:
    for name in sorted(files.names(folder), reverse=True):
        text = files.read(f"{folder}/{name}") if _COMMIT.fullmatch(name) else None
        if text is None:
            continue
        try:
            content = json.loads(text)
        except ValueError:
            continue
        if not isinstance(content, dict) or content.get("format") not in FORMATS:
            raise MetastoreError(
                ErrorCode.RECORD_FORMAT,
                f"{folder}/{name} is of a later release's format: use that release, or a newer one",
            )
        return int(name.partition(".")[0]), content
    return -1, None


def _one_a_name(
    found: Iterable[tuple[CacheDump, Files]], restored: list[Restored]
) -> Iterator[tuple[CacheDump, Files]]:
    """Of several live caches of one name, which two metastores may have left, the last changed."""
    taken: set[tuple[str, str]] = set()
    for dump, files in sorted(found, key=lambda pair: pair[0].cache["updated_at"], reverse=True):
        row = dump.cache
        key = (row["namespace_key"], row["name_key"])
        if row["dropped_at"] is None and key in taken:
            note = "another cache of that name was changed later: it is left out"
            restored.append(Restored(row["id"], _name(row), "LEFT_OUT", None, note, is_lost=True))
            continue
        if row["dropped_at"] is None:
            taken.add(key)
        yield dump, files


def _name(row: dict[str, Any]) -> str:
    return f"{row['namespace']}.{row['name']}" if row["namespace"] else str(row["name"])


def _check(dump: CacheDump, files: Files) -> tuple[CacheDump, Restored]:
    row, run = dump.cache, dump.published
    if row["dropped_at"] is not None:
        return dump, Restored(row["id"], _name(row), "DROPPED", None, "")
    log = f"{dump.location}/_delta_log"
    versions = [int(m[1]) for n in files.names(log) if (m := _COMMIT.fullmatch(n))]
    head = max(versions, default=None)
    if run is None:
        note = "" if head is None else f"version {head} of its table was never published"
        return dump, Restored(row["id"], _name(row), "NOT_PUBLISHED", None, note)
    version = run["cache_version"]
    wrong = _why_not(dump, run, _commit(files, log, version))
    if wrong:
        rows = dump.rows | {"caches": [{**row, "published_refresh_id": None}]}
        note = f"{wrong}: it answers nothing until it is refreshed"
        return replace(dump, rows=rows), Restored(
            row["id"], _name(row), "NOT_PUBLISHED", None, note, is_lost=True
        )
    above = head is not None and head > version
    note = (
        f"version {head} on top was never published, the next refresh removes it" if above else ""
    )
    return dump, Restored(row["id"], _name(row), "PUBLISHED", version, note)


def _commit(files: Files, log: str, version: int) -> Commit | None:
    text = files.read(f"{log}/{version:020d}.json")
    return None if text is None else parse_commit(version, text)


def _why_not(dump: CacheDump, run: dict[str, Any], commit: Commit | None) -> str:
    if commit is None:
        return f"its table's log has no version {run['cache_version']}"
    stamp = commit.stamp
    if stamp.get("cache_id") != dump.cache["id"]:
        return f"version {commit.version} of its table was not written for it"
    if not isinstance(token := stamp.get("fencing_token"), int) or token > run["fencing_token"]:
        return f"version {commit.version} of its table was written by a later refresh"
    return ""
