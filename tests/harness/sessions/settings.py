"""Settings that a session may have, drawn from those that its Spark and Delta register: such as
change no row of a query, by the judgement of ours that the fuzzers try; such as may; and defaults
of the latter in other spellings, which are the same values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from cachemgr.config.judged.judge import judge
from cachemgr.config.judged.kinds import Kind
from tests.config.spark_registry import Entry, entries
from tests.harness.flips.run import WORDS

# What Delta reads with no regard to how it is written: every query fails, with and without us.
_READ_RAW: Final = frozenset({"spark.databricks.delta.catalog.enableServerSidePlanning"})
# Of settings that are no booleans and change no row, values that published set-ups have.
_OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "spark.sql.sources.partitionOverwriteMode": ("dynamic", "Dynamic", "STATIC", "static"),
    "spark.sql.storeAssignmentPolicy": ("legacy", "Ansi", "STRICT"),
    "spark.sql.files.maxPartitionBytes": ("1g", "1024m", "1048576", "256MB"),
    "spark.sql.files.openCostInBytes": ("0", "4m", "1g"),
    "spark.sql.files.maxRecordsPerFile": ("0", "5", "5000000"),
    "spark.sql.autoBroadcastJoinThreshold": ("-1", "0", "10m", "1g"),
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": ("1b", "64m", "1g"),
    "spark.sql.adaptive.autoBroadcastJoinThreshold": ("-1", "100m"),
    "spark.sql.broadcastTimeout": ("20min", "1200"),
    "spark.sql.shuffle.partitions": ("1", "3", " 2 "),
    "spark.sql.inMemoryColumnarStorage.batchSize": ("1", "20000"),
    "spark.sql.parquet.columnarReaderBatchSize": ("1", "4096"),
    "spark.sql.warehouse.somewhere.else": ("/x",),
    "spark.app.of.somebody": ("1",),
}
# Whose other value is a text, and changes rows of some query.
_ZONES: Final = ("Europe/Berlin", "America/New_York", "+05:30", "Z")
_TIME_ZONE: Final = "spark.sql.session.timeZone"


class Drawn:
    """Draws settings.

    Args:
        session: A session with Delta.
    """

    def __init__(self, session: Any) -> None:
        self._entries = entries(session)
        keys = [key for key in sorted(self._entries) if session.conf.isModifiable(key)]
        self._harmless = [key for key in keys if judge(key).kind is not Kind.RESULTS]
        self._telling = [key for key in keys if judge(key).kind is Kind.RESULTS]

    def harmless(self, rng: Random) -> dict[str, str]:
        """Settings that are said to change no row."""
        found = {}
        for _ in range(rng.randint(1, 6)):
            known = [key for key in _OTHERS if judge(key).kind is not Kind.RESULTS]
            key = rng.choice(known if rng.random() < 0.35 else self._harmless)
            values = _OTHERS.get(key) or WORDS.get(key) or self._flags(key)
            if values:
                found[key] = self.spelled(rng, key, rng.choice(values))
        return found

    def respelled(self, rng: Random) -> dict[str, str]:
        """Settings that may change rows, with their defaults in other spellings."""
        found = {}
        for _ in range(rng.randint(2, 12)):
            entry = self._entries[rng.choice(self._telling)]
            if entry.default is not None and not entry.fallback and self._flags(entry.key):
                found[entry.key] = self.spelled(rng, entry.key, entry.default)
        return found

    def telling(self, rng: Random) -> dict[str, str]:
        """One or two settings that may change rows."""
        if rng.random() < 0.2:
            return {_TIME_ZONE: rng.choice(_ZONES)}
        found = {}
        for _ in range(rng.randint(1, 2)):
            entry = self._entries[rng.choice(self._telling)]
            values = [v for v in self._flags(entry.key) if v != entry.default]
            if values:
                found[entry.key] = self.spelled(rng, entry.key, rng.choice(values))
        return found

    def spelled(self, rng: Random, key: str, value: str) -> str:
        """A value as a person may write it, which Spark reads as the same."""
        entry = self._entries.get(key)
        other = rng.choice((value, value.upper(), value.lower(), value.title(), f" {value} "))
        if entry is None or other == value or key in _READ_RAW or rng.random() < 0.4:
            return value
        return other if entry.read(other) == entry.read(value) is not None else value

    def _flags(self, key: str) -> tuple[str, ...]:
        entry = self._entries.get(key)
        return ("true", "false") if entry is not None and _is_flag(entry) else ()


def _is_flag(entry: Entry) -> bool:
    return entry.spelled() == "booleans"


@contextlib.contextmanager
def having(settings: Mapping[str, str], *sessions: Any) -> Iterator[dict[str, str]]:
    """Sessions that have settings for a time.

    Args:
        settings: The settings.
        sessions: The sessions.

    Yields:
        Those that Spark took: what it refuses of one session is set in none.
    """
    old = [{key: session.conf.get(key, None) for key in settings} for session in sessions]
    taken: dict[str, str] = {}
    try:
        for key, value in settings.items():
            with contextlib.suppress(PySparkException, Py4JJavaError):
                for session in sessions:
                    session.conf.set(key, value)
                taken[key] = value
        yield taken
    finally:
        for session, before in zip(sessions, old, strict=True):
            for key, was in before.items():
                with contextlib.suppress(PySparkException, Py4JJavaError):
                    session.conf.unset(key) if was is None else session.conf.set(key, was)
