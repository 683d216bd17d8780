"""The flip test: whether settings that are said to change no row of a query over Delta tables do
change one.

Each boolean or enumerated setting of that kind is given another value, and a hundred queries give
the rows, names and types that they give without it. `python -m tests.harness.flips.run` flips all,
each alone, or `--together N` at once: where rows differ, the ones that make a difference are looked
for by halves.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from cachemgr.config.judged.judge import judge
from cachemgr.config.judged.kinds import Kind
from tests.config.spark_registry import Entry, entries
from tests.harness.flips.queries import QUERIES, make_tables
from tests.spark_session import spark_session

_CODEGEN: Final = "spark.sql.codegen."

# Of settings whose values are words, those besides the default.
WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "spark.databricks.delta.checkConstraints.validation.enabled": (),
    "spark.databricks.delta.commitValidation.consistentDataChange.mode": (),
    "spark.databricks.delta.conflictDetection.partitionLevelConcurrency.widenNonDeterministicPredicates": (  # noqa: E501
        "off",
    ),
    "spark.databricks.delta.generatedColumn.validateOnWrite.enabled": (),
    "spark.databricks.delta.insertReplaceOnOrUsing.materializeSource": ("none", "all"),
    "spark.databricks.delta.merge.materializeSource": ("none", "all"),
    "spark.databricks.delta.merge.materializeSource.rddStorageLevel": ("MEMORY_ONLY",),
    "spark.databricks.delta.merge.materializeSource.rddStorageLevelFirstRetry": ("MEMORY_ONLY",),
    "spark.databricks.delta.merge.materializeSource.rddStorageLevelRetry": ("MEMORY_ONLY",),
    "spark.databricks.delta.optimize.maxDeletedRowsRatio": ("0.5",),
    "spark.databricks.delta.partitionColumnChangeCheck": ("true", "false"),
    "spark.databricks.delta.properties.defaults.minReaderVersion": ("3",),
    "spark.databricks.delta.typeWidening.allowAutomaticWidening": ("NEVER",),
    "spark.sql.adaptive.logLevel": ("INFO",),
    "spark.sql.adaptive.rebalancePartitionsSmallPartitionFactor": ("0.5",),
    "spark.sql.avro.compression.codec": ("deflate",),
    "spark.sql.catalog.spark_catalog": (),
    "spark.sql.cbo.joinReorder.card.weight": ("0.2",),
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": ("10",),
    "spark.sql.codegen.factoryMode": ("CODEGEN_ONLY", "NO_CODEGEN"),
    "spark.sql.codegen.logLevel": ("INFO",),
    "spark.sql.dataframeCache.logLevel": ("INFO",),
    "spark.sql.defaultCacheStorageLevel": ("MEMORY_ONLY", "DISK_ONLY"),
    "spark.sql.defaultSizeInBytes": ("1",),
    "spark.sql.error.messageFormat": ("MINIMAL", "STANDARD"),
    "spark.sql.execution.arrow.compression.codec": ("zstd",),
    "spark.sql.execution.pandas.structHandlingMode": ("row", "dict"),
    "spark.sql.expressionTreeChangeLog.level": ("INFO",),
    "spark.sql.globalTempDatabase": (),
    "spark.sql.hive.caseSensitiveInferenceMode": ("INFER_ONLY", "INFER_AND_SAVE"),
    "spark.sql.hive.metastore.version": (),
    "spark.sql.hive.version": (),
    # less than the smallest broadcast takes fails queries instead of changing them
    "spark.sql.maxBroadcastTableSize": ("1g",),
    "spark.sql.nameResolutionLog.level": ("INFO",),
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": ("1b",),
    "spark.sql.orc.compression.codec": ("snappy",),
    "spark.sql.orc.impl": ("hive",),
    "spark.sql.parquet.compression.codec": ("zstd", "uncompressed"),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("LEGACY", "EXCEPTION"),
    "spark.sql.parquet.int96RebaseModeInWrite": ("LEGACY", "EXCEPTION"),
    "spark.sql.parquet.outputTimestampType": ("TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"),
    "spark.sql.planChangeLog.level": ("INFO",),
    "spark.sql.session.localRelationSizeLimit": ("1GB",),  # of Spark 4.1
    "spark.sql.sources.partitionOverwriteMode": ("DYNAMIC",),
    "spark.sql.sources.useListFilesFileSystemList": ("",),
    "spark.sql.storeAssignmentPolicy": ("LEGACY", "STRICT"),
    "spark.sql.streaming.aggregation.stateFormatVersion": ("1",),
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": ("1",),
    "spark.sql.streaming.join.stateFormatVersion": ("1",),
    "spark.sql.streaming.multipleWatermarkPolicy": ("max",),
    "spark.sql.streaming.offsetLog.formatVersion": (),
    "spark.sql.streaming.sessionWindow.stateFormatVersion": (),
    "spark.sql.streaming.stateStore.encodingFormat": ("avro",),
    "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion": ("1",),
    "spark.sql.ui.explainMode": ("extended", "codegen"),
    "spark.sql.window.segmentTree.blockSize": ("64",),
}

# Under these Delta cannot read a table with deletion vectors: an error of its own, no other row.
FAILING: Final[Mapping[str, str]] = {"spark.databricks.delta.stats.skipping": "false"}


@dataclass(frozen=True)
class Flip:
    """A setting and its other value."""

    key: str
    value: str


@dataclass(frozen=True)
class Changed:
    """A query that gave something else under some flips."""

    flips: tuple[Flip, ...]
    query: str
    before: str
    after: str


def flips(registry: Mapping[str, Entry], is_static: Mapping[str, bool]) -> list[Flip]:
    """The flips of all settings that are said to change no row and may be set in a session.

    Args:
        registry: All settings.
        is_static: Whether a setting is the same in all sessions of an application.
    """
    found = []
    for key, entry in sorted(registry.items()):
        if judge(key).kind is Kind.RESULTS or is_static[key]:
            continue
        if entry.spelled() == "booleans":
            others = [value for value in ("true", "false") if value != entry.default]
            found += [Flip(key, value) for value in others if FAILING.get(key) != value]
        else:
            found += [Flip(key, value) for value in WORDS.get(key, ())]
    return found


def answers(session: Any, queries: Sequence[str] = QUERIES) -> list[str]:
    """Names, types and rows of each query, or the class of its error.

    Args:
        session: The session.
        queries: The queries.
    """
    return [_answer(session, query) for query in queries]


def _answer(session: Any, query: str) -> str:
    try:
        frame = session.sql(query)
        rows = [repr(row) for row in frame.collect()]
    except PySparkException as error:
        return f"{type(error).__name__} {error.getCondition()}"
    except Py4JJavaError as error:
        return f"{error.java_exception.getClass().getName()} {error.java_exception.getMessage()}"
    ordered = rows if "ORDER BY id" in query or "ORDER BY d" in query else sorted(rows)
    return "\n".join((frame.schema.simpleString(), *ordered))


def changed(session: Any, usual: Sequence[str], some: Sequence[Flip]) -> Iterator[Changed]:
    """The queries that give something else under some flips at once.

    Args:
        session: A session with the tables.
        usual: What the queries give without.
        some: The flips, none of them of a key that another has.
    """
    conf = session._jsparkSession.sessionState().conf()
    old = {flip.key: conf.getConfString(flip.key, None) for flip in some}
    try:
        for flip in some:
            conf.setConfString(flip.key, flip.value)
        for query, before, after in zip(QUERIES, usual, answers(session), strict=True):
            if before != after:
                yield Changed(tuple(some), query, before, after)
    finally:
        for key, value in old.items():
            if value is None:
                conf.unsetConf(key)
            else:
                conf.setConfString(key, value)


def groups(found: Sequence[Flip], together: int) -> Iterator[tuple[Flip, ...]]:
    """So many flips at once, those of one family in different groups: one that switches a family
    off would hide what the others do.

    Args:
        found: The flips.
        together: How many.
    """
    count = -(-len(found) // together)
    dealt: list[list[Flip]] = [[] for _ in range(count)]
    for number, flip in enumerate(found):  # sorted by key
        place = next(
            dealt[(number + step) % count]
            for step in range(count)
            if all(other.key != flip.key for other in dealt[(number + step) % count])
        )
        place.append(flip)
    yield from map(tuple, dealt)


def run(
    session: Any, found: Sequence[Flip], together: int = 1, begin: int = 1
) -> Iterator[Changed]:
    """Flip all, and tell what changed.

    Args:
        session: A session with the tables.
        found: The flips.
        together: How many at once.
        begin: The group to begin with, as the lines that are printed count them.
    """
    code = [flip for flip in found if flip.key.startswith(_CODEGEN)]
    others = [flip for flip in found if not flip.key.startswith(_CODEGEN)]
    # interpreted, which is quicker for tables of some rows, but where code is what is asked about
    for some, compiled in ((code, "true"), (others, "false")):
        if not some:
            continue
        for key in ("wholeStage", "factoryMode"):
            session.conf.unset(f"{_CODEGEN}{key}")
        if compiled == "false":
            session.conf.set(f"{_CODEGEN}wholeStage", "false")
            session.conf.set(f"{_CODEGEN}factoryMode", "NO_CODEGEN")
        yield from _run(session, some, together, begin)


def _run(session: Any, found: Sequence[Flip], together: int, begin: int = 1) -> Iterator[Changed]:
    usual = answers(session)
    again = answers(session)
    assert usual == again, "a query gives other rows each time"
    dealt = list(groups(found, together))
    for number, some in enumerate(dealt, 1):
        if number < begin:
            continue
        print(f"flips {number} of {len(dealt)}: {some[0].key}, …", flush=True)
        yield from _fewest(session, usual, some)


def _fewest(session: Any, usual: Sequence[str], some: Sequence[Flip]) -> list[Changed]:
    """What changes under flips at once, told of as few of them as change something: by halves."""
    different = list(changed(session, usual, some))
    if not different or len(some) == 1:
        return different
    middle = len(some) // 2
    halves = (some[:middle], some[middle:])
    return [each for half in halves for each in _fewest(session, usual, half)] or different


@contextlib.contextmanager
def flip_session(spark: Any) -> Iterator[Any]:
    """A session of its own with the tables.

    Args:
        spark: Any session with Delta.
    """
    session = spark.newSession()
    session.sql("CREATE SCHEMA flips")
    try:
        session.sql("USE flips")
        make_tables(session)
        yield session
    finally:
        session.sql("DROP SCHEMA flips CASCADE")


def flips_of(session: Any) -> list[Flip]:
    """See `flips`."""
    registry = entries(session)
    is_static = {key: not session.conf.isModifiable(key) for key in registry}
    return flips(registry, is_static)


def main() -> None:
    """See the module."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--together", type=int, default=1)
    asked.add_argument("--only", default="")
    asked.add_argument("--begin", type=int, default=1, help="the group to begin with")
    arguments = asked.parse_args()
    with spark_session() as spark, flip_session(spark) as session:
        started = time.monotonic()
        found = [flip for flip in flips_of(session) if arguments.only in flip.key]
        keys = {flip.key for flip in found}
        print(f"{len(found)} flips of {len(keys)} settings, {len(QUERIES)} queries", flush=True)
        for each in run(session, found, arguments.together, arguments.begin):
            told = (each.query, each.before[:300], each.after[:300])
            print(*each.flips, *told, sep="\n  ", flush=True)
        print(f"done in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
