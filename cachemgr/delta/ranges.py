"""What changed of a base table since a state: asked of its log, and remembered.

That never changes for two states with commits of their own. A range that is known is extended by
the commits after it, so that a table which gets one every few seconds is not read from the start
each time.
"""

from __future__ import annotations

from typing import Final

from cachemgr.base_state import BaseState, TableAt
from cachemgr.delta.base_commits import MOST_COMMITS, CommitRange, CommitsOf
from cachemgr.delta.changes import NO_CHANGE, ChangeCode, Changes, not_known
from cachemgr.delta.netting import Net
from matcher.memory.bounded import Bounded
from matcher.model.message import Message, Number

_MOST: Final = 1_000
# A range of many files takes megabytes.
_MANY_FILES: Final = 2_000
_MOST_OF_MANY: Final = 10


def changes_between(
    table: TableAt, since: BaseState, read: CommitsOf, most_commits: int = MOST_COMMITS
) -> Changes:
    """What happened to a table's rows since a state, without a memory.

    Args:
        table: The table as it is seen.
        since: A state of it, not later.
        read: Reads its log.
        most_commits: A range of more commits is not read.
    """
    found = refused_unread(table, since, most_commits) or _read(table, since, since, read, Net())
    return found if isinstance(found, Changes) else found.changes


class Ranges:
    """Remembers what happened between states of tables; safe for several threads.

    Args:
        read: Reads a table's log.
        most_commits: A range of more commits is not read.
    """

    def __init__(self, read: CommitsOf, most_commits: int = MOST_COMMITS) -> None:
        self._lookup = read
        self._most_commits = most_commits
        self._known: Bounded[Changes] = Bounded(_MOST)
        self._large: Bounded[Changes] = Bounded(_MOST_OF_MANY)
        # the latest range from a state on, to go on from
        self._nets: Bounded[tuple[TableAt, Net]] = Bounded(_MOST)
        self._large_nets: Bounded[tuple[TableAt, Net]] = Bounded(_MOST_OF_MANY)

    def changes(self, table: TableAt, since: BaseState) -> Changes:
        """What happened to a table's rows since a state; see `Changes`.

        Args:
            table: The table as it is seen.
            since: A state of it.
        """
        refused = refused_unread(table, since, self._most_commits)
        if refused is not None:
            return refused
        key = (table.location, table.state, since)
        known = self._known.get(key) or self._large.get(key)
        if known is not None:
            return known
        found = self._extended(table, since) or _read(table, since, since, self._lookup, Net())
        changes = found if isinstance(found, Changes) else found.changes
        # without a commit of its own, a state may be of another history the next time
        if table.commit and changes.code is not ChangeCode.LOG_UNREADABLE:
            self._keep(key, table, changes, found)
        return changes

    def _extended(self, table: TableAt, since: BaseState) -> Net | None:
        """A known range and the commits after it; None where that cannot be had."""
        key = (table.location, since)
        last = self._nets.get(key) or self._large_nets.get(key)
        if last is None:
            return None
        head, net = last
        if not head.version < table.version or head.table_id != table.table_id:
            return None
        found = _read(table, head.state, since, self._lookup, net)
        return found if isinstance(found, Net) else None

    def _keep(
        self,
        key: tuple[str, BaseState, BaseState],
        table: TableAt,
        changes: Changes,
        found: Net | Changes,
    ) -> None:
        large = isinstance(found, Net) and len(found.files) > _MANY_FILES
        (self._large if large else self._known).put(key, changes)
        if isinstance(found, Net):
            (self._large_nets if large else self._nets).put((key[0], key[2]), (table, found))


def refused_unread(table: TableAt, since: BaseState, most_commits: int) -> Changes | None:
    """What can be said of a range without reading it; None if it has to be read.

    Args:
        table: The table as it is seen.
        since: A state of it.
        most_commits: The most commits that are read.
    """
    if since.table_id != table.table_id or since.version is None:
        return not_known(ChangeCode.TABLE_RECREATED, Message("the table was created again"))
    commits = table.version - since.version
    if commits == 0 and since.is_same(table.state):
        return NO_CHANGE
    if commits <= 0:
        return _rewritten(since.version)
    if commits > most_commits:
        return not_known(
            ChangeCode.TOO_FAR_BEHIND,
            Message(
                "{commits} commits were made, more than {most}",
                commits=Number(commits),
                most=Number(most_commits),
            ),
            commits,
        )
    return None


def _read(
    table: TableAt, after: BaseState, since: BaseState, read: CommitsOf, start: Net
) -> Net | Changes:
    """The range from `since` on, of which `start` is known up to `after`."""
    assert after.version is not None and since.version is not None
    commits = table.version - since.version
    found = read(table, after.version)
    if found.refused is not None:
        return not_known(found.refused, found.detail, commits)
    before = BaseState(after.table_id, after.version, found.before, found.before_ms)
    if not after.is_same(before):
        return _rewritten(after.version)
    if not _is_whole(table, after.version, found):
        return not_known(
            ChangeCode.LOG_UNREADABLE, Message("the log was changed while it was read"), commits
        )
    return start.then(found.commits, table.table_id)


def _is_whole(table: TableAt, after: int, found: CommitRange) -> bool:
    """Whether a range ends with the very commit that the table is seen at."""
    numbers = [commit.version for commit in found.commits]
    if numbers != list(range(after + 1, table.version + 1)):
        return False
    return not table.commit or found.commits[-1].identity == table.commit


def _rewritten(version: int) -> Changes:
    return not_known(
        ChangeCode.HISTORY_REWRITTEN,
        Message(
            "version {version} is another commit now, or none: the table was put back from a copy",
            version=Number(version),
        ),
    )
