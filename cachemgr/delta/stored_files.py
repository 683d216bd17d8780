"""Whether the files of a published version are where the log says, looked at once in a while.

Commits of ours list the files that they wrote, with their length, back to the last one that
replaced all, so one listing of each folder tells. A file that is gone or cut off is damage: the
cache answers nothing until a refresh has written it anew. A storage that denies, does not answer or
fails in any other way says nothing of the files: whoever asked does without the cache, and nobody
else hears of it. Only a part of what can go wrong shows here; what does not shows when a query
fails on a file (`cachemgr.spark.failures`).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from cachemgr.causes import cause_of
from cachemgr.delta.commits import parse_commit
from cachemgr.delta.storage import Files, root_of, under
from cachemgr.telemetry import logger
from cachemgr.vocabulary import RefreshMode
from matcher.model.ir import GROUPING_ID_COLUMN

LOOK_SECONDS: Final = 10.0
# A storage that took longer to say that it cannot be asked is not asked for other caches either.
_SLOW_SECONDS: Final = 1.0
_CAPACITY: Final = 1024
# Each commit of a chain adds to the files of the version below, so few versions are worth keeping.
_VERSIONS: Final = 3

# Of each file its path as `Files` takes it, and its length.
_Listed = Mapping[str, int]
_Key = tuple[str, int, int | None]
_K = TypeVar("_K")
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True)
class FilesFound:
    """What a look at the files of a version found; neither where they are all there.

    Args:
        damage: Which file is gone or has another length, for people.
        unread: Why the storage cannot be asked, for people: what became of the files is not known.
    """

    damage: str = ""
    unread: str = ""


WHOLE: Final = FilesFound()


class Listings:
    """Remembers which files versions have by their log, which never changes, so that of a chain of
    commits each is read once. Safe for several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listed: OrderedDict[str, OrderedDict[int, _Listed]] = OrderedDict()

    def get(self, root: str, version: int) -> _Listed | None:
        """The files of a version of the table at `root`; None if they are not known."""
        with self._lock:
            versions = self._listed.get(root)
            return None if versions is None else versions.get(version)

    def keep(self, root: str, version: int, listed: Mapping[str, int]) -> None:
        """Remember them."""
        with self._lock:
            versions = self._listed.get(root, OrderedDict())
            _keep(versions, version, listed, _VERSIONS)
            _keep(self._listed, root, versions)


class StoredFiles:
    """Looks for the files of caches, each part at most once in `LOOK_SECONDS`. Safe for several
    threads.

    Args:
        files_of: The storage of a place.
        clock: Monotonic seconds.
        listings: What is known of logs already; nothing unless given.
    """

    def __init__(
        self,
        files_of: Callable[[str], Files],
        clock: Callable[[], float] = time.monotonic,
        listings: Listings | None = None,
    ) -> None:
        self._files_of = files_of
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[_Key, tuple[FilesFound, float]] = OrderedDict()
        # By the folder around the caches: why it could not be asked, and when it said so.
        self._away: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._listed = listings or Listings()

    def found(self, location: str, version: int, grouping_id: int | None = None) -> FilesFound:
        """What was found within the last `LOOK_SECONDS`; see `look`."""
        key, around = (location, version, grouping_id), location.rpartition("/")[0]
        began = self._clock()
        with self._lock:
            found, at = self._seen.get(key, (WHOLE, -LOOK_SECONDS))
            away, since = self._away.get(around, ("", -LOOK_SECONDS))
        if began - at < LOOK_SECONDS:
            return found
        if began - since < LOOK_SECONDS:
            return FilesFound(unread=away)
        found = self.look(location, version, grouping_id)
        now = self._clock()
        with self._lock:
            _keep(self._seen, key, (found, now))
            if found.unread and now - began > _SLOW_SECONDS:
                _keep(self._away, around, (found.unread, now))
        return found

    def forget(self, location: str) -> None:
        """Look again when asked next: somebody has noted that files of that place are gone."""
        with self._lock:
            for key in [k for k in self._seen if k[0] == location]:
                del self._seen[key]

    def has_version(self, location: str, version: int) -> bool:
        """Whether the log still tells of a version, by its commit or by a checkpoint."""
        files, root = self._files_of(location), root_of(location)
        return _has_commit(files, root, version) or _has_checkpoint(files, root, version)

    def look(self, location: str, version: int, grouping_id: int | None = None) -> FilesFound:
        """How the files of a version are, now.

        Args:
            location: Where the cache's table lies.
            version: The version that it serves.
            grouping_id: Look for the files of that grouping set alone; None looks for all.
        """
        try:
            return FilesFound(damage=self._look(location, version, grouping_id))
        except Exception as error:  # whatever a storage says: it is no word about the files
            why = cause_of(error)
            logger.debug("the files at %s cannot be looked at: %s", location, why)
            return FilesFound(unread=why)

    def _look(self, location: str, version: int, grouping_id: int | None) -> str:
        files, root = self._files_of(location), root_of(location)
        listed = self._files(files, root, version)
        if listed is None:
            return f"its log has no version {version} any more"
        mark = None if grouping_id is None else f"/{GROUPING_ID_COLUMN}={grouping_id}/"
        if mark is not None and not any(f"/{GROUPING_ID_COLUMN}=" in path for path in listed):
            mark = None  # where columns are mapped, folders do not say which set is in them
        folders: dict[str, dict[str, int]] = defaultdict(dict)
        for path, size in listed.items():
            if mark is None or mark in path:
                folder, _, name = path.rpartition("/")
                folders[folder][name] = size
        for folder, wanted in folders.items():
            there = files.listing(folder)
            for name, size in wanted.items():
                # told to people who may not know the place
                told = f"{folder}/{name}".removeprefix(f"{root}/")
                if name not in there:
                    return f"its file {told} is gone"
                if there[name].size != size:
                    return f"its file {told} has {there[name].size} bytes, not {size}"
        return ""

    def _files(self, files: Files, root: str, version: int) -> _Listed | None:
        """The files of a version, as far as the log still says; None where it holds nothing of
        it."""
        log = f"{root}/_delta_log"
        if not _has_commit(files, root, version):  # asked each time: the log may be lost
            return {} if _has_checkpoint(files, root, version) else None
        known = self._listed.get(root, version)
        if known is not None:
            return known
        listed: dict[str, int] = {}
        removed: set[str] = set()
        # downwards, to the last commit that replaced all that was there
        for number in range(version, -1, -1):
            below = self._listed.get(root, number)
            if below is not None:
                listed |= {path: size for path, size in below.items() if path not in removed}
                break
            text = files.read(f"{log}/{number:020d}.json")
            if text is None:
                break  # cleaned up: what it added is not looked for
            commit = parse_commit(number, text)
            added = ((under(root, file.path), file.bytes) for file in commit.added)
            listed |= {path: size for path, size in added if path not in removed}
            if commit.stamp.get("kind") == RefreshMode.FULL:
                break
            removed |= {under(root, path) for path in commit.removed} - listed.keys()
        self._listed.keep(root, version, listed)
        return listed


def _has_commit(files: Files, root: str, version: int) -> bool:
    return files.exists(f"{root}/_delta_log/{version:020d}.json")


def _has_checkpoint(files: Files, root: str, version: int) -> bool:
    """Whether a checkpoint tells of a version whose commit may be gone."""
    names = files.names(f"{root}/_delta_log")
    return any(int(n[:20]) >= version for n in names if n[:20].isdigit() and ".checkpoint" in n)


def _keep(store: OrderedDict[_K, _V], key: _K, value: _V, most: int = _CAPACITY) -> None:
    store[key] = value
    store.move_to_end(key)
    while len(store) > most:
        store.popitem(last=False)
