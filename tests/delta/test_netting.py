"""What a range of commits did to a table's rows, on plain data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cachemgr.delta.base_commits import BaseCommit, FileAction
from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes, DataFile
from cachemgr.delta.netting import Net, judge

ID = "id"


def file(path: str, vector: str = "", rows: int | None = 10) -> DataFile:
    return DataFile(path, vector, 100, rows)


def commit(version: int = 1, add: str = "", remove: str = "", *, rows: bool = True, **fields):
    """`add` and `remove` are files by letter, with a vector after a colon."""

    def actions(text: str) -> tuple[FileAction, ...]:
        return tuple(FileAction(file(*name.split(":")), rows) for name in text.split())

    values = {"identity": f"txn:{version}", "made_ms": version * 1000} | fields
    return BaseCommit(version, added=actions(add), removed=actions(remove), **values)


def same_rows(version: int = 1, add: str = "", remove: str = ""):
    return commit(version, add, remove, rows=False)


def told(changes: Changes) -> tuple[str, str | None, str, str]:
    def names(files: tuple[DataFile, ...]) -> str:
        return " ".join(sorted(f"{f.path}:{f.vector}".rstrip(":") for f in files))

    code = None if changes.code is None else changes.code.value
    return changes.kind.value, code, names(changes.added), names(changes.removed)


RANGES = {
    "nothing": ([commit()], ("same", None, "", "")),
    "rows appended": ([commit(1, "a"), commit(2, "b")], ("appends", None, "a b", "")),
    "rows removed": ([commit(1, remove="o")], ("signed", "ROWS_REMOVED", "", "o")),
    "a delete by vector is a remove and an add of one path": (
        [commit(1, "o:v", "o")], ("signed", "ROWS_REMOVED", "o:v", "o"),
    ),
    "a vector that replaces a vector": (
        [commit(1, "o:v", "o"), commit(2, "o:w", "o:v")], ("signed", "ROWS_REMOVED", "o:w", "o"),
    ),
    "a vector taken off again": (
        [commit(1, "o:v", "o"), commit(2, "o", "o:v")], ("same", None, "", ""),
    ),
    "an appended file that got a vector": (
        [commit(1, "a"), commit(2, "a:v", "a")], ("appends", None, "a:v", ""),
    ),
    "rows appended and removed again": (
        [commit(1, "a"), commit(2, remove="a")], ("same", None, "", ""),
    ),
    "rows removed and put back": (
        [commit(1, remove="o"), commit(2, "o")], ("same", None, "", ""),
    ),
    "files rewritten": ([same_rows(1, "g", "o p")], ("same", None, "", "")),
    "statistics computed anew": ([same_rows(1, "o")], ("same", None, "", "")),
    "statistics of an appended file computed anew": (
        [commit(1, "a"), same_rows(2, "a o")], ("appends", None, "a", ""),
    ),
    "an append that was compacted": (
        [commit(1, "a"), same_rows(2, "g", "a o")], ("appends", "RANGE_REWRITTEN", "a", ""),
    ),
    "a compaction and then an append": (
        [same_rows(1, "g", "o p"), commit(2, "a")], ("appends", None, "a", ""),
    ),
    "rows removed of what a compaction made": (
        [same_rows(1, "g", "o p"), commit(2, remove="g")], ("signed", "ROWS_REMOVED", "", "g"),
    ),
    "rows removed of an append that was compacted": (
        [commit(1, "a"), same_rows(2, "g", "a o"), commit(3, "g:v", "g")],
        ("signed", "ROWS_REMOVED", "a g:v", "g"),
    ),
    "a compaction undone": (
        [same_rows(1, "g", "o p"), commit(2, "o p", "g")], ("same", None, "", ""),
    ),
    "compactions of what compactions made, undone at once": (
        [same_rows(1, "g", "o p"), same_rows(2, "h", "g q"), commit(3, "o p q", "h")],
        ("same", None, "", ""),
    ),
    "an append, and the compaction of it undone": (
        [commit(1, "a"), same_rows(2, "g", "a o"), commit(3, "a o", "g")],
        ("appends", None, "a", ""),
    ),
    "an append and its compaction undone": (
        [commit(1, "a"), same_rows(2, "g", "a o"), commit(3, "o", "g")], ("same", None, "", ""),
    ),
    "a compaction undone in part": (
        [same_rows(1, "g", "o p"), commit(2, "o", "g")], ("signed", "ROWS_REMOVED", "o", "g"),
    ),
    "an append put back over its compaction": (
        [commit(1, "a"), same_rows(2, "g", "a o"), commit(3, "a")],
        ("unknown", "RANGE_REWRITTEN", "", ""),
    ),
    "a commit that brings rows back and says that it changes none": (
        [commit(1, remove="o"), same_rows(2, "o")], ("unknown", "RANGE_REWRITTEN", "", ""),
    ),
    "metadata of the same table": ([commit(1, table_id=ID)], ("same", None, "", "")),
    "the table created again": (
        [commit(1, "a"), commit(2, table_id="other")], ("unknown", "TABLE_RECREATED", "", ""),
    ),
    "an action that nobody knows": (
        [commit(1, "a", unknown=("rowFilter",))], ("unknown", "UNKNOWN_ACTION", "", ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_a_range(name):
    commits, expected = RANGES[name]
    changes = judge(commits, ID)
    assert told(changes) == expected
    assert changes.commits == len(commits) and changes.detail
    for cut in range(len(commits)):  # however much of it was known before
        known = Net().then(commits[:cut], ID)
        assert known.then(commits[cut:], ID).changes == changes


@pytest.mark.parametrize(
    ("commits", "first"),
    [
        ([commit(1)], None),
        ([commit(1, "a"), commit(2, "b")], 1000),
        ([same_rows(1, "g", "o"), commit(2, "a")], 2000),
        ([commit(1, "a"), commit(2, remove="a"), commit(3, "b")], 3000),
        ([commit(1, "a"), commit(2, remove="a")], None),
        ([commit(1, unknown=("x",))], 0),
    ],
)
def test_when_rows_changed_first(commits, first):
    assert judge(commits, ID).first_change_ms == first


def test_a_feed_is_read_commit_by_commit():
    """Its change rows where a commit has some, else what came and went, perhaps twice."""
    rows = (DataFile("_change_data/1", "", 5, None),)
    update = replace(commit(1, remove="a", add="b"), change_rows=rows)
    found = judge([update, commit(2, remove="b", add="c")], "id").change_rows
    assert [file.path for file in found or ()] == ["_change_data/1", "b", "c"]
    assert judge([update, commit(2, table_id="id")], "id").change_rows is None
    assert judge([commit(1, add="a")], "id").change_rows is None, "read by its files"


def test_what_is_said_of_it():
    def said(*commits):
        return str(judge(commits, ID).detail)

    assert said(commit(1, "a"), commit(2, "b")) == ("2 commits appended 20 rows in 2 files")
    assert said(same_rows(1, "g", "o")) == "1 commit without data change"
    assert said(commit(1, "o:v", "o")) == (
        "1 commit changed rows: those of 1 file went, those of 1 file came"
    )
    unsaid = BaseCommit(1, "i", 1, added=(FileAction(file("a", rows=None), True),))
    assert said(unsaid) == "1 commit appended rows in 1 file"
    assert judge([unsaid], ID).rows_added is None


def test_a_remove_that_leaves_a_files_size_out_does_not_hide_what_its_add_said():
    bare = BaseCommit(2, "i", 1, removed=(FileAction(DataFile("a", "", 0, None), True),))
    back = Net().then([commit(1, "a"), bare, commit(3, "a")], ID).changes
    assert back.added[0].bytes == 100 and back.rows_added == 10


# -- against a table that holds its rows ----------------------------------------------------------


@dataclass
class Table:
    """A table that knows the rows of each of its files, and writes the log of what is done."""

    live: dict[tuple[str, str], Counter] = field(default_factory=dict)
    rows_of: dict[tuple[str, str], Counter] = field(default_factory=dict)
    log: list[BaseCommit] = field(default_factory=list)
    past: list[dict[tuple[str, str], Counter]] = field(default_factory=list)
    made: int = 0

    def new(self, rows: Counter, key: tuple[str, str] | None = None) -> tuple[str, str]:
        self.made += 1
        key = key or (f"f{self.made}", "")
        self.rows_of[key] = Counter(rows)
        return key

    def commit(self, add, remove, data_change):
        self.past.append(dict(self.live))

        def actions(keys):
            return tuple(
                FileAction(DataFile(*k, 1, self.rows_of[k].total()), data_change) for k in keys
            )

        version = len(self.log) + 1
        self.log.append(
            BaseCommit(version, "i", version, added=actions(add), removed=actions(remove))
        )
        for key in remove:
            del self.live[key]
        for key in add:
            self.live[key] = self.rows_of[key]

    @property
    def rows(self) -> Counter:
        return sum(self.live.values(), Counter())


ROWS = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(Counter)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "delete", "vector", "compact", "stats", "restore", "replace"]),
        ROWS,
        st.integers(0, 10**6),
    ),
    max_size=9,
)


def do(table: Table, what: str, rows: Counter, pick: int) -> None:
    live = sorted(table.live)
    some = [key for i, key in enumerate(live) if pick >> i & 1]
    if what == "append":
        table.commit([table.new(rows)], [], True)
    elif what == "delete" and some:
        table.commit([], some, True)
    elif what == "replace" and some:
        table.commit([table.new(rows)], some, True)
    elif what == "vector" and live:
        key = live[pick % len(live)]
        left = table.live[key] - Counter([min(table.live[key])])
        if left:
            table.commit([table.new(left, (key[0], f"v{table.made}"))], [key], True)
    elif what == "compact" and some:
        rows = sum((table.live[key] for key in some), Counter())
        table.commit([table.new(rows)], some, False)
    elif what == "stats" and some:
        table.commit(some, [], False)
    elif what == "restore" and table.past:
        then = table.past[pick % len(table.past)]
        add, remove = then.keys() - table.live.keys(), table.live.keys() - then.keys()
        table.commit(sorted(add), sorted(remove), True)


ONE = Counter([0])


@settings(max_examples=600)
@given(STEPS)
@example(
    [("append", ONE, 0)] * 3 + [("compact", ONE, 4), ("restore", ONE, 1), ("restore", ONE, 664)]
)
def test_the_changes_are_the_rows_that_came_and_went(steps):
    table = Table()
    for rows in ([1, 2], [2, 2, 3]):
        key = table.new(Counter(rows))
        table.live[key] = table.rows_of[key]
    before, files_before = table.rows, set(table.live)
    for step in steps:
        do(table, *step)
    changes = judge(table.log, ID)
    assert told(Net().then(table.log[:3], ID).then(table.log[3:], ID).changes) == told(changes)

    def rows(files) -> Counter:
        return sum((table.rows_of[f.key] for f in files), Counter())

    if changes.kind is ChangeKind.UNKNOWN:
        assert changes.code is ChangeCode.RANGE_REWRITTEN
        return
    assert before + rows(changes.added) == table.rows + rows(changes.removed)
    if changes.kind is ChangeKind.APPENDS:
        assert not changes.removed and changes.added
        readable = all(f.key in table.live and f.key not in files_before for f in changes.added)
        assert (changes.code is None) is readable
    if changes.kind is ChangeKind.SIGNED:
        assert changes.removed
    if table.live.keys() == files_before:
        assert changes.kind is ChangeKind.SAME
