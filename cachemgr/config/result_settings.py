"""Which `spark.sql.*` settings can change rows, and whether two sessions agree on those that can.

Decides by one allow-list of settings that cannot change a row. Whatever is set explicitly and is
not on the list counts as changing results, since a setting that nobody here has thought about must
cost a hit and never a wrong row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from matcher.memory.bounded import Bounded
from matcher.model.reasons import Reason, ReasonCode

TIME_ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
# What is meant by a setting that is not named, where the environment of a process makes another
# default (SPARK_ANSI_SQL_MODE): settings of a cache mean the same in all processes.
MEANT_UNSET: Mapping[str, str] = {ANSI: "true"}
FILE_SETTINGS = "spark.sql.files."
# Settings with that prefix, and options of a reader: whether Spark passes over such files. It may
# do so with those of the user's tables, and not with those of a cache.
PASSES_OVER: Sequence[str] = ("ignoreMissingFiles", "ignoreCorruptFiles")
_PREFIX = "spark.sql."
_MOST_VERDICTS = 10_000

# Key, or prefix ending in a dot or a star, and why it cannot change rows.
ALLOWED: tuple[tuple[str, str], ...] = (
    ("spark.sql.adaptive.*", "adaptive execution picks join and partition strategies only"),
    ("spark.sql.shuffle.partitions", "number of tasks"),
    ("spark.sql.autoBroadcastJoinThreshold", "join strategy"),
    ("spark.sql.broadcastTimeout", "fails or not, never other rows"),
    ("spark.sql.broadcastExchange.*", "threads of the broadcast"),
    ("spark.sql.join.preferSortMergeJoin", "join strategy"),
    ("spark.sql.sortMergeJoinExec.*", "buffers of a join"),
    ("spark.sql.cartesianProductExec.*", "buffers of a join"),
    ("spark.sql.windowExec.*", "buffers of a window"),
    ("spark.sql.objectHashAggregate.*", "memory strategy of an aggregate"),
    ("spark.sql.codegen.*", "generated or interpreted code, same semantics"),
    ("spark.sql.cbo.*", "join order"),
    ("spark.sql.statistics.*", "estimates for planning"),
    ("spark.sql.defaultSizeInBytes", "estimates for planning"),
    ("spark.sql.execution.useObjectHashAggregateExec", "memory strategy of an aggregate"),
    ("spark.sql.execution.sortBeforeRepartition", "order of tasks' rows only"),
    ("spark.sql.execution.reuseSubquery", "whether equal work is done twice"),
    ("spark.sql.exchange.reuse", "whether equal work is done twice"),
    ("spark.sql.execution.arrow.pyspark.enabled", "transport of results to Python"),
    ("spark.sql.execution.arrow.maxRecordsPerBatch", "transport of results to Python"),
    ("spark.sql.execution.topKSortFallbackThreshold", "memory strategy of a sort"),
    ("spark.sql.sort.enableRadixSort", "sort algorithm"),
    ("spark.sql.optimizer.dynamicPartitionPruning.*", "which files are skipped unread"),
    ("spark.sql.optimizer.runtime.bloomFilter.*", "rows filtered early that a join drops anyway"),
    ("spark.sql.optimizer.runtimeFilter.*", "rows filtered early that a join drops anyway"),
    ("spark.sql.optimizer.inSetConversionThreshold", "form of the same predicate"),
    ("spark.sql.optimizer.maxIterations", "effort of the optimiser"),
    ("spark.sql.analyzer.maxIterations", "effort of the analyser"),
    ("spark.sql.files.maxPartitionBytes", "size of tasks"),
    ("spark.sql.files.openCostInBytes", "size of tasks"),
    ("spark.sql.files.minPartitionNum", "number of tasks"),
    ("spark.sql.files.maxPartitionNum", "number of tasks"),
    ("spark.sql.files.maxRecordsPerFile", "size of written files"),
    ("spark.sql.parquet.enableVectorizedReader", "reader implementation"),
    ("spark.sql.parquet.enableNestedColumnVectorizedReader", "reader implementation"),
    ("spark.sql.parquet.columnarReaderBatchSize", "reader batch size"),
    ("spark.sql.parquet.filterPushdown*", "rows filtered early, and again above the scan"),
    ("spark.sql.parquet.aggregatePushdown", "counts and bounds from footers are exact"),
    ("spark.sql.parquet.compression.codec", "compression of written files"),
    ("spark.sql.parquet.fieldId.read.enabled", "Delta reads the same rows, or refuses"),
    ("spark.sql.parquet.fieldId.write.enabled", "Delta writes the same rows, or refuses"),
    ("spark.sql.inMemoryColumnarStorage.*", "layout of cached data"),
    ("spark.sql.columnVector.*", "memory placement"),
    ("spark.sql.defaultCacheStorageLevel", "where cached data lies"),
    ("spark.sql.sources.parallelPartitionDiscovery.*", "how files are listed"),
    ("spark.sql.sources.bucketing.*", "shuffles saved by bucketing"),
    ("spark.sql.sources.default", "format of tables created without USING"),
    ("spark.sql.sources.v2.bucketing.*", "shuffles saved by bucketing"),
    ("spark.sql.ui.*", "web pages"),
    ("spark.sql.event.*", "event log"),
    ("spark.sql.debug.*", "texts of plans"),
    ("spark.sql.maxPlanStringLength", "texts of plans"),
    ("spark.sql.maxMetadataStringLength", "texts of plans"),
    ("spark.sql.maxSinglePartitionBytes", "shuffle strategy"),
    ("spark.sql.planChangeLog.*", "logging"),
    ("spark.sql.redaction.*", "texts of plans"),
    ("spark.sql.repl.*", "display in notebooks"),
    ("spark.sql.pyspark.jvmStacktrace.enabled", "texts of errors"),
    ("spark.sql.pyspark.plotting.*", "plots"),
    ("spark.sql.dataFrameQueryContext.*", "texts of errors"),
    ("spark.sql.metadataCacheTTLSeconds", "how long file listings are kept; Delta has its log"),
    ("spark.sql.extensions", "installs Delta and others; what they do to a plan, the hook sees"),
    ("spark.sql.queryExecutionListeners", "observers"),
    ("spark.sql.streaming.*", "streaming queries are never matched"),
    ("spark.sql.catalog.*", "plumbing of names, resolved before the hook sees a plan"),
    ("spark.sql.catalogImplementation", "plumbing of names, resolved before the hook"),
    ("spark.sql.defaultCatalog", "plumbing of names, resolved before the hook"),
    ("spark.sql.globalTempDatabase", "plumbing of names, resolved before the hook"),
    ("spark.sql.warehouse.dir", "where new managed tables lie"),
    ("spark.sql.hive.metastore.*", "plumbing of names, resolved before the hook"),
    ("spark.sql.hive.version", "which Hive a server says that it is"),
    ("spark.sql.hive.thriftServer.*", "connections and results of the Thrift server"),
    ("spark.sql.thriftServer.*", "connections and results of the Thrift server"),
    ("spark.sql.thriftserver.*", "connections and results of the Thrift server"),
    ("spark.sql.datetime.java8API.enabled", "Java classes of collected dates, same values"),
    ("spark.sql.cli.print.header", "display in spark-sql"),
    ("spark.sql.connect.*", "transport of Spark Connect"),
    ("spark.sql.binaryOutputStyle", "display, and TO_CSV of a binary, which no cache holds"),
    ("spark.sql.artifact.*", "class loading of Connect sessions"),
    ("spark.sql.runSQLOnFiles", "whether a path may be named in FROM, resolved before the hook"),
    ("spark.sql.variable.substitute", "text before the parser; the hook sees what was parsed"),
    ("spark.sql.stackTracesInDataFrameContext", "texts of errors"),
    ("spark.sql.legacy.createHiveTableByDefault", "format of tables created without USING"),
    (
        "spark.sql.legacy.parameterSubstitution.constantsOnly",
        "where parameters may stand in a text; the hook sees what was parsed",
    ),
)

_EXACT = frozenset(key for key, _ in ALLOWED if not key.endswith("*"))
_STARTS = tuple(key[:-1] for key, _ in ALLOWED if key.endswith("*"))


@lru_cache(maxsize=4096)
def changes_results(key: str) -> bool:
    """Whether a setting must be equal for a cache to serve a session.

    Args:
        key: A configuration key.

    Returns:
        False for keys outside of `spark.sql.` and for those on the allow-list.

    >>> changes_results("spark.sql.ansi.enabled"), changes_results("spark.sql.shuffle.partitions")
    (True, False)
    """
    return key.startswith(_PREFIX) and key not in _EXACT and not key.startswith(_STARTS)


def result_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings among those explicitly set that can change rows, the time zone among them.

    Args:
        settings: All settings explicitly set in a session, and its time zone, as
            `explicit_settings` gives them.

    Returns:
        The ones to store with a cache, by key.
    """
    return {key: settings[key] for key in sorted(settings) if changes_results(key)}


class SettingsComparer:
    """Compares a session's settings with caches', at the cost of a look-up once both were seen.

    Args:
        default: The value of a key that is not set, or None if there is no such key. Not asked for
            those of `MEANT_UNSET`.
    """

    def __init__(self, default: Callable[[str], str | None]) -> None:
        self._default = default
        self._defaults: dict[str, str | None] = {}
        # in tuples: None is a verdict as well
        self._verdicts: Bounded[tuple[Reason | None]] = Bounded(_MOST_VERDICTS)

    def fingerprint(self, settings: Mapping[str, str]) -> frozenset[tuple[str, str]]:
        """The settings that count, as one hashable value.

        Args:
            settings: All settings explicitly set, or those stored with a cache.
        """
        return frozenset((k, v) for k, v in settings.items() if changes_results(k))

    def compare(
        self, session: frozenset[tuple[str, str]], cache: frozenset[tuple[str, str]]
    ) -> Reason | None:
        """Why a cache may not serve a session, if so.

        Args:
            session: Fingerprint of the session's settings.
            cache: Fingerprint of the settings that the cache is refreshed under.

        Returns:
            A `SETTINGS_DIFFER` that names the first differing key and both values, or None.
        """
        if session == cache:
            return None
        pair = (session, cache)
        found = self._verdicts.get(pair)
        if found is None:
            found = (self._compare(dict(session), dict(cache)),)
            self._verdicts.put(pair, found)
        return found[0]

    def _compare(self, session: Mapping[str, str], cache: Mapping[str, str]) -> Reason | None:
        for key in sorted({*session, *cache}):
            here = session[key] if key in session else self._default_of(key)
            there = cache[key] if key in cache else self._default_of(key)
            if not _same(here, there):
                return Reason(
                    ReasonCode.SETTINGS_DIFFER,
                    f"{key} is {_show(here)} in this session and {_show(there)} in the cache",
                    f"set {key} to {_show(there)} in this session, "
                    "or create the cache again under this session's settings",
                )
        return None

    def _default_of(self, key: str) -> str | None:
        if key not in self._defaults:
            self._defaults[key] = MEANT_UNSET.get(key) or self._default(key)
        return self._defaults[key]


def _same(left: str | None, right: str | None) -> bool:
    if left == right:
        return True
    # Booleans are read without regard to case; any other value is compared as it stands.
    words = {str(left).lower(), str(right).lower()}
    return len(words) == 1 and words <= {"true", "false"}


def _show(value: str | None) -> str:
    return "not set" if value is None else value
