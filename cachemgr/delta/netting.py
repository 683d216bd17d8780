"""What a range of commits did to a table's rows, all told. Pure.

Files are told apart by path and deletion vector, and counted: each that rows came by adds one, each
that rows went by takes one away. What came and went again is then nothing. Files that hold rows
which were there before (`dataChange=false`) count nothing by themselves; but where such a rewrite
was undone (RESTORE), the files that it replaced came and those that it made went, with the same
rows, and the two are set off against each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cachemgr.delta.base_commits import BaseCommit
from cachemgr.delta.changes import ChangeCode, ChangeKind, Changes, DataFile, not_known
from matcher.model.message import NOTHING, Count, Message, Number, Word, listed

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """Files that a commit replaced by others with the same rows."""

    replaced: tuple[_Key, ...]
    made: tuple[_Key, ...]


@dataclass(frozen=True, slots=True)
class Net:
    """A range of commits added up, to which later ones can be added.

    Args:
        commits: How many it has.
        counts: How often rows came by a file, less how often they went by it; never 0.
        files: The files by what tells them apart.
        gone: Those of the files that are not there now.
        rewrites: The rewrites, in order.
        first_ms: When the first commit was made that changed a row, as far as it still shows.
        refused: Why it cannot be said what changed.
        change_rows: As in `Changes`.
    """

    commits: int = 0
    counts: Mapping[_Key, int] = field(default_factory=dict)
    files: Mapping[_Key, DataFile] = field(default_factory=dict)
    gone: frozenset[_Key] = frozenset()
    rewrites: tuple[_Rewrite, ...] = ()
    first_ms: int | None = None
    refused: Changes | None = None
    change_rows: tuple[DataFile, ...] | None = ()

    def then(self, commits: Iterable[BaseCommit], table_id: str) -> Net:
        """This range and the commits after it.

        Args:
            commits: The commits that follow, in order.
            table_id: The table's id; metadata of another one is a table created again.
        """
        sums = _Sums(self)
        for commit in commits:
            sums.add(commit, table_id)
        return sums.net()

    @property
    def changes(self) -> Changes:
        """What the range did."""
        if self.refused is not None:
            return self.refused
        counts = self._settled()
        if any(abs(count) > 1 for count in counts.values()):
            return not_known(
                ChangeCode.RANGE_REWRITTEN,
                Message(
                    "{commits} put files back that had been rewritten meanwhile",
                    commits=_commits(self.commits),
                ),
                self.commits,
            )
        added = tuple(self.files[key] for key, count in counts.items() if count > 0)
        removed = tuple(self.files[key] for key, count in counts.items() if count < 0)
        code = self._code(added, removed)
        redefined = self.change_rows is None
        if not added and not removed:
            told = Message("{commits} without data change", commits=_commits(self.commits))
            return Changes(ChangeKind.SAME, detail=told, commits=self.commits, redefined=redefined)
        kind = ChangeKind.SIGNED if removed else ChangeKind.APPENDS
        # what came alone is read by its files
        feed = self.change_rows if removed else None
        found = Changes(kind, code, NOTHING, added, removed, self.commits, self.first_ms, feed)
        return replace(found, detail=_told(found), redefined=redefined)

    def _code(self, added: Sequence[DataFile], removed: Sequence[DataFile]) -> ChangeCode | None:
        if removed:
            return ChangeCode.ROWS_REMOVED
        if any(file.key in self.gone for file in added):
            return ChangeCode.RANGE_REWRITTEN
        return None

    def _settled(self) -> Mapping[_Key, int]:
        """The counts, with rewrites that were undone set off; as they are where rows went still.

        The files of a rewrite that are gone all stand for those that it replaced. What it replaced
        may itself be what an earlier one made, so the latest comes first.
        """
        if not self.rewrites or all(count > 0 for count in self.counts.values()):
            return self.counts
        counts = Counter(self.counts)
        for rewrite in reversed(self.rewrites):
            if rewrite.made and all(counts[key] < 0 for key in rewrite.made):
                counts.update(rewrite.made)
                counts.subtract(rewrite.replaced)
        if any(count < 0 for count in counts.values()):
            return self.counts
        return {key: count for key, count in counts.items() if count}


def judge(commits: Sequence[BaseCommit], table_id: str) -> Changes:
    """What a range of commits did to a table's rows.

    Args:
        commits: All commits of the range, in order.
        table_id: The table's id.
    """
    return Net().then(commits, table_id).changes


class _Sums:
    """Adds commits to a range."""

    def __init__(self, start: Net) -> None:
        self._commits = start.commits
        self._counts = dict(start.counts)
        self._files = dict(start.files)
        self._gone = set(start.gone)
        self._rewrites = list(start.rewrites)
        self._first_ms = start.first_ms
        self._refused = start.refused
        self._change_rows = None if start.change_rows is None else list(start.change_rows)

    def net(self) -> Net:
        kept = {*self._counts, *(k for r in self._rewrites for k in (*r.replaced, *r.made))}
        return Net(
            self._commits,
            self._counts,
            {key: file for key, file in self._files.items() if key in kept},
            frozenset(self._gone & kept),
            tuple(self._rewrites),
            self._first_ms,
            self._refused,
            None if self._change_rows is None else tuple(self._change_rows),
        )

    def add(self, commit: BaseCommit, table_id: str) -> None:
        self._commits += 1
        if self._refused is not None:
            return
        self._refused = self._why_not(commit, table_id)
        self._rewrite(commit)
        self._feed(commit)
        changed = False
        for action in commit.removed:
            if action.data_change:
                self._count(action.file, -1)
                # of what came twice and went once, by a rewrite, one is left, and not the file
                self._gone.add(action.file.key)
                changed = True
        for action in commit.added:
            if action.data_change:
                self._count(action.file, 1)
                self._gone.discard(action.file.key)
                changed = True
        if not self._counts:
            self._first_ms = None  # what a snapshot of before holds is what is there now
        elif changed and self._first_ms is None:
            self._first_ms = commit.made_ms

    def _why_not(self, commit: BaseCommit, table_id: str) -> Changes | None:
        if commit.unknown:
            return not_known(
                ChangeCode.UNKNOWN_ACTION,
                Message(
                    "commit {version} holds what this program does not know: {kinds}",
                    version=Number(commit.version),
                    kinds=listed(Word, commit.unknown),
                ),
                self._commits,
            )
        if commit.table_id not in (None, table_id):
            return not_known(
                ChangeCode.TABLE_RECREATED,
                Message("commit {version} created the table again", version=Number(commit.version)),
                self._commits,
            )
        return None

    def _feed(self, commit: BaseCommit) -> None:
        """What the Change Data Feed reads of a commit: its change rows, else what came and went."""
        if commit.table_id is not None:
            self._change_rows = None
        if self._change_rows is None:
            return
        actions = (*commit.removed, *commit.added)
        followed = (action.file for action in actions if action.data_change)
        self._change_rows += commit.change_rows or followed

    def _rewrite(self, commit: BaseCommit) -> None:
        made = [action.file for action in commit.added if not action.data_change]
        replaced = [action.file for action in commit.removed if not action.data_change]
        for file in replaced:
            self._files.setdefault(file.key, file)
            self._gone.add(file.key)
        for file in made:
            self._files[file.key] = file
            self._gone.discard(file.key)
            if self._counts.get(file.key, 0) < 0 and self._refused is None:
                self._refused = not_known(
                    ChangeCode.RANGE_REWRITTEN,
                    Message(
                        "commit {version} brings back a file whose rows had gone, and says that "
                        "it changes no row",
                        version=Number(commit.version),
                    ),
                    self._commits,
                )
        if made and replaced:
            keys = (tuple(f.key for f in files) for files in (replaced, made))
            self._rewrites.append(_Rewrite(*keys))

    def _count(self, file: DataFile, by: int) -> None:
        key = file.key
        count = self._counts.get(key, 0) + by
        if count:
            self._counts[key] = count
            # what an add says of a file is complete; a remove may leave its size and rows out
            if by > 0 or key not in self._files:
                self._files[key] = file
        else:
            del self._counts[key]


def _told(changes: Changes) -> Message:
    commits, came = _commits(changes.commits), Count(len(changes.added), "file")
    if changes.kind is ChangeKind.APPENDS:
        since = " that were compacted since" if changes.code is not None else ""
        return Message(
            "{commits} appended {rows} in {files}{since}",
            commits=commits,
            rows=Count(changes.rows_added, "row"),
            files=came,
            since=Word(since),
        )
    went = Count(len(changes.removed), "file")
    if changes.added:
        return Message(
            "{commits} changed rows: those of {went} went, those of {came} came",
            commits=commits,
            went=went,
            came=came,
        )
    return Message("{commits} removed rows: those of {went} went", commits=commits, went=went)


def _commits(count: int) -> Number:
    return Number(count, noun="commit")
