"""From a text to what it asks of which tables, read by the columns that these have now."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from cachemgr.base_state import TableAt
from cachemgr.delta.columns import read_columns
from cachemgr.delta.head_lookup import Heads
from cachemgr.errors import CacheManagerError
from cachemgr.serving.feed import Feed
from cachemgr.serving.sources import metastore_of
from cachemgr.telemetry import logger
from cachemgr.text.table_names import Names
from cachemgr.text.templates import Templates
from matcher.model.budget import DECISION_STEPS, OutOfSteps, OutOfTime, decision
from matcher.model.errors import InputCode, MatcherError
from matcher.model.message import Number, Sql, TableName, Word, listed
from matcher.model.reasons import Reason, ReasonCode
from matcher.sql.reader import TextQuery, TextSettings, parse_query
from matcher.sql.schema import Table

_READS: Final = 3
_STEPS_TO_READ: Final = DECISION_STEPS // 2
# With what the parser takes, in which nobody looks at the clock.
_SECONDS_TO_READ: Final = 1.0
TOO_MUCH_TO_READ: Final = Reason(
    ReasonCode.TOO_MANY_STEPS,
    "reading it takes more than the {most} steps that reading a text may take",
    "split or simplify the query",
    most=Number(_STEPS_TO_READ, ","),
)
_READ_BY_SPARK: Final = "correct it if it is wrong; if Spark can read it, run it there"


class TextReader:
    """Reads texts for everybody who asks this process, and remembers their shapes.

    Args:
        feed: The caches.
        heads: Looks where the base tables stand.
    """

    def __init__(self, feed: Feed, heads: Heads) -> None:
        self._feed = feed
        self._heads = heads
        self._templates = Templates()
        self.names: Names | None = None
        self._lock = threading.Lock()
        feed.listen(self._renew_names)

    def read_known(
        self, sql: str, session: tuple[str, str], settings: TextSettings, names: Names
    ) -> tuple[TextQuery, dict[str, TableAt]] | None:
        """Read a text of a known shape, without the parser and without waiting for anything but
        local files.

        Args:
            sql: The text.
            session: The session's current catalog and schema.
            settings: What it is read under.
            names: What its names stand for.

        Returns:
            What `read` would say; None where that takes longer to find out.
        """
        schema = names.schema(*session)
        try:
            with decision(_STEPS_TO_READ, _SECONDS_TO_READ):
                parsed = self._templates.read(sql, schema, settings)
        except (OutOfSteps, OutOfTime):  # `read` says so
            return None
        heads = None if parsed is None else self._local_heads(parsed, names)
        return None if parsed is None or heads is None else (parsed, heads)

    def read(
        self, sql: str, session: tuple[str, str], settings: TextSettings, names: Names
    ) -> tuple[TextQuery, dict[str, TableAt]]:
        """Read a text by the columns that its tables have now.

        Args:
            sql: The text.
            session: The session's current catalog and schema.
            settings: What it is read under.
            names: What its names stand for.

        Returns:
            What it asks, and its tables as they are now.

        Raises:
            MatcherError: It cannot be read.
            OutOfSteps: That takes more than reading a text may take.
            OutOfTime: As before.
        """
        with decision(_STEPS_TO_READ, _SECONDS_TO_READ):
            return self._read(sql, session, settings, names)

    def current_names(self) -> Names:
        """What texts are read by; waits for the metastore where nobody asked before.

        Raises:
            MetastoreError: It cannot be asked.
        """
        with self._lock:
            if self.names is None:
                self.names = self._read_names(None)
            return self.names

    def _read(
        self, sql: str, session: tuple[str, str], settings: TextSettings, names: Names
    ) -> tuple[TextQuery, dict[str, TableAt]]:
        for _ in range(_READS):
            schema = names.schema(*session)
            try:
                parsed = parse_query(sql, schema, settings)
            except MatcherError:
                # by columns that the tables may not have any more
                if not self._columns_moved(sql, names):
                    raise
                continue
            tables = {table.place: table for _, table in parsed.document.tables.values()}
            heads = self._heads.look(names.tables[place] for place in tables)
            if _as_read(tables, heads):
                self._templates.learn(sql, parsed, schema, settings)
                return parsed, heads
            names.take_over(heads)
        raise MatcherError(
            InputCode.TABLES_CHANGING, "the tables' columns are changing all the time"
        )

    def _local_heads(self, parsed: TextQuery, names: Names) -> dict[str, TableAt] | None:
        """The tables of a text as they are now; None where only a Spark can tell, or where they
        have other columns than the text was read by."""
        tables = {table.place: table for _, table in parsed.document.tables.values()}
        seeds = [seed for place in tables if (seed := names.tables.get(place)) is not None]
        heads = self._heads.look_local(seeds) if len(seeds) == len(tables) else None
        return heads if heads is not None and _as_read(tables, heads) else None

    def _columns_moved(self, sql: str, names: Names) -> bool:
        """Look at the tables that a text may name; whether some have other columns now."""
        heads = self._heads.look(names.mentioned(sql))
        moved = {p: h for p, h in heads.items() if names.tables[p].columns != h.columns}
        if moved:
            names.take_over(moved)
        return bool(moved)

    def _renew_names(self) -> None:
        """Read the names again after a change of the caches, in the thread that saw it: requests go
        on by the old ones until then. Nothing where nobody asked for any yet."""
        with self._lock:
            if self.names is None:
                return
            try:
                self.names = self._read_names(self.names)
            except CacheManagerError as error:  # who asks next tries again, and is told
                self.names = None
                logger.warning("the names of tables cannot be read: %s", error)

    def _read_names(self, before: Names | None) -> Names:
        metastore = metastore_of(self._feed.source)
        joins = (side.location for j in metastore.joins.all() for side in (j.left, j.right))
        places = self._feed.registry.tables() | frozenset(joins)
        return Names(metastore.tables.noted(), places, before)


def unreadable(error: MatcherError, names: Names) -> Reason:
    """Why a text was not read, as a reason of a miss."""
    if error.code == InputCode.TABLE_NOT_FOUND:
        twice = names.twice()
        return Reason(
            ReasonCode.UNSUPPORTED_RELATION,
            "{error}" + ("; ambiguous names (two locations each): {twice}" if twice else ""),
            "name a table that a cache reads; views and tables without caches are not known here",
            error=Sql(str(error)),
            twice=listed(TableName, twice[:5]),
        )
    return Reason(
        ReasonCode.UNSUPPORTED_OPERATOR,
        "{code}: {error}",
        _READ_BY_SPARK,
        code=Word(error.code),
        error=Sql(str(error)),
    )


def _as_read(tables: Mapping[str, Table], heads: Mapping[str, TableAt]) -> bool:
    """Whether tables have the columns now by which a text was read."""
    return all(read_columns(h.columns) == tables[p].columns for p, h in heads.items())
