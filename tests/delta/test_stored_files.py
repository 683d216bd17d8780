"""What is missing of a cache's files, by logs written by hand: chains of commits that add to each
other, and what undoes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from cachemgr.delta.log import stamp_text
from cachemgr.delta.storage import FileInfo, LocalFiles
from cachemgr.delta.stored_files import LOOK_SECONDS, WHOLE, FilesFound, Listings, StoredFiles
from matcher.model.ir import GROUPING_ID_COLUMN

FULL, PARTIALS, RESTORE = "FULL", "INCREMENTAL", "RESTORE"


class Counted(LocalFiles):
    """Files of this machine that count what is asked of them."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def read(self, path: str) -> str | None:
        self.asked["read"] += 1
        return super().read(path)

    def listing(self, folder: str) -> Mapping[str, FileInfo]:
        self.asked["listing"] += 1
        return super().listing(folder)


class Log:
    """A cube's table whose commits are written by hand; its files are named `set/name`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = -1
        self.files = Counted()
        self.stored = StoredFiles(lambda place: self.files)

    def commit(self, kind: str, adds: Iterable[str] = (), removes: Iterable[str] = ()) -> int:
        self.version += 1
        actions = [{"commitInfo": {"userMetadata": stamp_text({"kind": kind})}}]
        actions += [{"remove": {"path": self.path(name)}} for name in removes]
        for name in adds:
            place = self.folder / self.path(name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(b"x" * 100)
            values = {GROUPING_ID_COLUMN: name.partition("/")[0]}
            add = {"path": self.path(name), "partitionValues": values, "size": 100}
            actions.append({"add": add})
        log = self.log_of(self.version)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("\n".join(map(json.dumps, actions)))
        return self.version

    @staticmethod
    def path(name: str) -> str:
        number, _, file = name.partition("/")
        return f"{GROUPING_ID_COLUMN}={number}/{file}.parquet"

    def log_of(self, version: int) -> Path:
        return self.folder / "_delta_log" / f"{version:020d}.json"

    def lose(self, name: str) -> None:
        (self.folder / self.path(name)).unlink()

    def look(self, version: int, grouping_id: int | None = None) -> str:
        """By what is known already, and by one that knows nothing."""
        found = self.stored.look(str(self.folder), version, grouping_id)
        fresh = StoredFiles(lambda place: self.files)
        assert found == fresh.look(str(self.folder), version, grouping_id) and not found.unread
        return found.damage


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """FULL, then partial rows, then partial rows beside a set written anew."""
    made = Log(tmp_path / "cube")
    made.commit(FULL, ["0/a", "1/a", "2/a"])
    made.commit(PARTIALS, ["0/b", "1/b"])
    made.commit(PARTIALS, ["0/c", "1/c", "2/c"], ["2/a"])
    return made


@pytest.mark.parametrize("lost", ["0/a", "1/a", "0/b", "1/b", "0/c", "2/c"])
def test_a_file_of_an_earlier_commit_is_missed(log: Log, lost: str) -> None:
    assert log.look(2) == ""
    log.lose(lost)
    assert log.look(2) == f"its file {log.path(lost)} is gone"
    number = int(lost[0])
    assert log.look(2, number) and not any(log.look(2, n) for n in {0, 1, 2} - {number})


def test_all_files_are_looked_for_where_folders_do_not_name_their_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that are mapped go by other names in paths."""
    monkeypatch.setattr(Log, "path", staticmethod(lambda name: f"col-1={name}.parquet"))
    made = Log(tmp_path / "mapped")
    made.commit(FULL, ["0/a", "1/a"])
    assert made.look(0, 0) == ""
    made.lose("0/a")
    assert made.look(0, 0) == "its file col-1=0/a.parquet is gone"


@pytest.mark.parametrize("cut", ["1/a", "0/b", "1/c"])
def test_a_file_of_an_earlier_commit_that_was_cut_off(log: Log, cut: str) -> None:
    (log.folder / log.path(cut)).write_bytes(b"x" * 40)
    assert log.look(2) == f"its file {log.path(cut)} has 40 bytes, not 100"


def test_what_a_later_commit_replaced_is_not_missed_but_by_the_version_that_held_it(
    log: Log,
) -> None:
    log.lose("2/a")
    assert log.look(2) == ""
    assert log.look(1) == log.look(0) == f"its file {log.path('2/a')} is gone"


def test_a_restore_in_the_chain_is_followed(log: Log) -> None:
    """A commit that was never published is undone, and the chain goes on above."""
    log.commit(PARTIALS, ["0/dead", "2/dead"], ["2/c"])
    log.commit(RESTORE, ["2/c"], ["0/dead", "2/dead"])
    log.commit(PARTIALS, ["1/e"])
    for name in ("0/dead", "2/dead"):
        log.lose(name)
    assert log.look(5) == log.look(4) == log.look(2) == ""
    assert log.look(3)
    for name in ("0/a", "2/c", "1/e"):
        kept = (log.folder / log.path(name)).read_bytes()
        log.lose(name)
        assert log.look(5) == f"its file {log.path(name)} is gone"
        (log.folder / log.path(name)).write_bytes(kept)


def test_a_whole_commit_that_was_undone_hides_nothing(log: Log) -> None:
    held = ["0/a", "1/a", "0/b", "1/b", "0/c", "1/c", "2/c"]
    log.commit(FULL, ["0/dead"], held)
    log.commit(RESTORE, held, ["0/dead"])
    log.commit(PARTIALS, ["0/e"])
    log.lose("0/dead")
    assert log.look(5) == ""
    log.lose("1/b")
    assert log.look(5) == f"its file {log.path('1/b')} is gone"


def test_a_log_whose_start_was_cleaned_up_is_no_damage(log: Log) -> None:
    log.log_of(0).unlink()
    log.lose("0/a")  # nobody can tell any more
    assert log.look(2) == ""
    assert log.stored.has_version(str(log.folder), 2)
    log.lose("0/b")
    assert log.look(2) == f"its file {log.path('0/b')} is gone"


def test_a_version_that_only_a_checkpoint_tells_of(log: Log) -> None:
    for version in range(3):
        log.log_of(version).unlink()
    place = str(log.folder)
    assert not log.stored.has_version(place, 2) and "no version 2" in log.look(2)
    log.log_of(2).with_suffix("").with_suffix(".checkpoint.parquet").touch()
    assert log.stored.has_version(place, 2) and log.look(2) == ""


def test_a_version_that_was_listed_and_left_the_log_is_gone(log: Log) -> None:
    assert log.look(2) == ""
    log.log_of(2).unlink()
    assert not log.stored.has_version(str(log.folder), 2)


def test_each_commit_of_a_long_chain_is_read_once(tmp_path: Path) -> None:
    log = Log(tmp_path / "cube")
    log.commit(FULL, ["0/a"])
    place = str(log.folder)
    for number in range(500):
        log.commit(PARTIALS, [f"0/b{number}"])
        if number % 50 == 0:  # not each of them is looked at
            assert log.stored.look(place, log.version) == WHOLE
    assert log.stored.look(place, log.version) == WHOLE
    assert log.files.asked["read"] == 501
    before = log.files.asked.copy()
    for _ in range(20):
        assert log.stored.look(place, log.version) == WHOLE
    asked = log.files.asked - before
    assert asked["read"] == 0 and asked["listing"] == 20
    log.commit(PARTIALS, ["0/last"])
    assert log.stored.look(place, log.version) == WHOLE
    assert log.files.asked["read"] == 502


def test_those_who_look_once_share_what_is_known(tmp_path: Path) -> None:
    """As each refresh does before it begins."""
    log, listings = Log(tmp_path / "cube"), Listings()
    log.commit(FULL, ["0/a"])
    for number in range(50):
        log.commit(PARTIALS, [f"0/b{number}"])
        once = StoredFiles(lambda place: log.files, listings=listings)
        assert once.look(str(log.folder), log.version) == WHOLE
    assert log.files.asked["read"] == 51
    log.lose("0/b7")
    once = StoredFiles(lambda place: log.files, listings=listings)
    assert once.look(str(log.folder), log.version).damage == f"its file {log.path('0/b7')} is gone"


def test_little_is_remembered_of_a_long_chain(tmp_path: Path) -> None:
    """Each version holds the files of all those before it."""
    log, listings = Log(tmp_path / "cube"), Listings()
    stored = StoredFiles(lambda place: log.files, listings=listings)
    log.commit(FULL, ["0/a"])
    for number in range(20):
        stored.look(str(log.folder), log.commit(PARTIALS, [f"0/b{number}"]))
    known = [v for v in range(21) if listings.get(str(log.folder), v) is not None]
    assert known == [18, 19, 20]


class Away(LocalFiles):
    """Files of this machine whose storage says something else, if told to."""

    def __init__(self) -> None:
        self.says: Exception | None = None
        self.seconds = 0.0
        self.now = 1000.0
        self.asked = 0

    def exists(self, path: str) -> bool:
        self.asked += 1
        if self.says is not None:
            self.now += self.seconds
            raise self.says
        return super().exists(path)


TROUBLE = [
    PermissionError(13, "Permission denied", "/caches/x"),
    TimeoutError(110, "Connection timed out"),
    OSError(5, "Input/output error"),
    RuntimeError("anything that a storage may say"),
]


@pytest.mark.parametrize("says", TROUBLE, ids=lambda e: type(e).__name__)
def test_what_cannot_be_asked_is_no_damage(log: Log, says: Exception) -> None:
    files = Away()
    stored = StoredFiles(lambda place: files, clock=lambda: files.now)
    place = str(log.folder)
    files.says = says
    found = stored.found(place, 2)
    assert found.damage == "" and found.unread and "Error" not in found.unread.split()[0]
    files.says = None
    assert stored.found(place, 2) == found, "it is not asked for each query"
    files.now += LOOK_SECONDS
    assert stored.found(place, 2) == WHOLE
    log.lose("0/c")
    files.now += LOOK_SECONDS
    assert stored.found(place, 2).damage == f"its file {log.path('0/c')} is gone"


@pytest.mark.parametrize(("seconds", "asked"), [(30.0, 1), (0.1, 2)])
def test_a_storage_that_takes_long_to_say_no_is_asked_for_one_cache(
    log: Log, tmp_path: Path, seconds: float, asked: int
) -> None:
    files = Away()
    stored = StoredFiles(lambda place: files, clock=lambda: files.now)
    files.says, files.seconds = OSError(110, "Connection timed out"), seconds
    first = stored.found(str(log.folder), 2)
    assert stored.found(f"{tmp_path}/other", 0) == first and files.asked == asked
    files.says = None
    files.now += LOOK_SECONDS
    assert stored.found(str(log.folder), 2) == WHOLE


def test_a_folder_that_may_not_be_looked_into_is_not_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("cachemgr.delta.storage.os.stat", denied)
    assert StoredFiles(lambda place: LocalFiles()).look("/caches/x", 1) == FilesFound(
        unread="permission denied: [Errno 13] Permission denied: '/caches/x/_delta_log/"
        "00000000000000000001.json'"
    )
