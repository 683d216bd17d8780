# ruff: noqa: E501 - tables of SQL read better unbroken
"""Settings that published set-ups of Spark name, against caches created without them: those that
change no row of a query over Delta tables cost no hit, and those that do are a miss."""

from __future__ import annotations

import contextlib

import pytest

from cachemgr.config.judged.judge import judge
from cachemgr.config.judged.kinds import Kind
from tests.worlds.lab_star import make_lab

pytestmark = pytest.mark.spark

TOTALS = "SELECT region, SUM(amt) AS total FROM sales GROUP BY region"
# From guides and default files of EMR, HDInsight, Dataproc, Glue, Databricks, Cloudera and of dbt.
# Each has another value than Spark's default where it is one of Spark's.
HARMLESS = {
    # writes
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.output.committer.class": "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
    "spark.sql.parquet.fs.optimized.committer.optimization-enabled": "true",
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol",
    "spark.sql.sources.outputCommitterClass": "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
    "spark.sql.sources.default": "delta",
    "spark.sql.legacy.allowNonEmptyLocationInCTAS": "true",
    "spark.sql.legacy.createHiveTableByDefault": "true",
    "spark.sql.files.maxRecordsPerFile": "5000000",
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    "spark.sql.hive.convertInsertingPartitionedTable": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "true",
    "spark.databricks.delta.autoCompact.enabled": "true",
    "spark.databricks.delta.schema.autoMerge.enabled": "true",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.vacuum.parallelDelete.enabled": "true",
    "spark.databricks.delta.merge.repartitionBeforeWrite.enabled": "false",
    "spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true",
    "spark.databricks.delta.preview.enabled": "true",
    "spark.databricks.delta.formatCheck.enabled": "false",
    # other sources
    "spark.sql.orc.impl": "hive",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.enableVectorizedReader": "false",
    "spark.sql.orc.compression.codec": "snappy",
    "spark.sql.orc.mergeSchema": "true",
    "spark.sql.hive.convertMetastoreOrc": "false",
    "spark.sql.hive.convertMetastoreParquet": "false",
    "spark.sql.hive.metastorePartitionPruning": "false",
    "spark.sql.hive.caseSensitiveInferenceMode": "INFER_ONLY",
    "spark.sql.hive.manageFilesourcePartitions": "false",
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.avro.compression.codec": "deflate",
    "spark.sql.csv.filterPushdown.enabled": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.streaming.schemaInference": "true",
    "spark.sql.execution.pandas.convertToArrowArraySafely": "false",
    # effort and transport
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.adaptive.skewJoin.enabled": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "128m",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.autoBroadcastJoinThreshold": "100m",
    "spark.sql.broadcastTimeout": "1200",
    "spark.sql.cbo.enabled": "true",
    "spark.sql.cbo.joinReorder.enabled": "true",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.files.maxPartitionBytes": "256m",
    "spark.sql.inMemoryColumnarStorage.batchSize": "20000",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    "spark.sql.debug.maxToStringFields": "200",
    "spark.sql.repl.eagerEval.enabled": "true",
    "spark.sql.ui.explainMode": "extended",
    "spark.sql.legacy.setCommandRejectsSparkCoreConfs": "false",
    "spark.sql.fromJsonForceNullableSchema": "true",
    "spark.databricks.delta.stalenessLimit": "1h",
    "spark.databricks.delta.stats.skipping": "false",
    "spark.databricks.delta.snapshotPartitions": "4",
}
# Of Spark's core and Hadoop's: nothing that the SQL of a session reads, so they are given as SET gives them.
CORE = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryoserializer.buffer.max": "512m",
    "spark.speculation": "true",
    "spark.hadoop.fs.s3a.committer.name": "magic",
    "spark.hadoop.fs.s3a.connection.maximum": "200",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.network.timeout": "800s",
}
COUNTS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.statisticalAggregate": "true",
    "spark.sql.legacy.charVarcharAsString": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96TimestampConversion": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.crossJoin.enabled": "false",
    "parquet.strings.signed-min-max.enabled": "true",
    "spark.sql.a.plug-in.of.somebody": "1",
    "spark.databricks.delta.a.fork.of.somebody": "1",
    "spark.databricks.delta.normalizePartitionValuesOnRead": "false",
}
# Another value of each, and a call of a function that it is about.
FUNCTIONS = {
    "spark.sql.mapKeyDedupPolicy": (
        "LAST_WIN",
        "map_keys(map_concat(map(coalesce(region, 'y'), 1), map('x', 2)))",
    ),
    "spark.sql.jsonGenerator.ignoreNullFields": ("false", "to_json(named_struct('r', region))"),
    "spark.sql.json.enablePartialResults": ("false", "from_json(region, 'a INT').a"),
    "spark.sql.csv.parser.columnPruning.enabled": ("false", "from_csv(region, 'a STRING').a"),
    "spark.sql.chunkBase64String.enabled": ("false", "base64(CAST(repeat(region, 30) AS BINARY))"),
    "spark.sql.legacy.sizeOfNull": ("false", "size(split(region, 'o'))"),
    "spark.sql.legacy.truncateForEmptyRegexSplit": ("true", "split(region, '', 3)"),
}
# Those of them that a cache can store.
STORED = ("spark.sql.legacy.sizeOfNull", "spark.sql.legacy.truncateForEmptyRegexSplit")


@pytest.fixture(scope="module")
def wide(spark, tmp_path_factory):
    """One cache for all tests."""
    folder = tmp_path_factory.mktemp("wide")
    for lab in make_lab(spark, folder, f"sqlite:///{folder / 'm.db'}"):
        lab.cache(
            "wide AS SELECT region, cust, SUM(amt) AS s, COUNT(*) AS n FROM sales GROUP BY region, cust"
        )
        yield lab


@contextlib.contextmanager
def having(lab, values):
    """The session under test with these settings, static ones and those of no registry as well."""
    conf = lab.spark._jsparkSession.sessionState().conf()
    old = {key: conf.getConfString(key, None) for key in values}
    try:
        for key, value in values.items():
            conf.setConfString(key, value)
        yield
    finally:
        for key, value in old.items():
            if value is None:
                conf.unsetConf(key)
            else:
                conf.setConfString(key, value)


def test_published_settings_cost_no_hit(wide):
    assert len(HARMLESS) >= 66 and all(judge(key).kind is not Kind.RESULTS for key in HARMLESS)
    with having(wide, {**HARMLESS, **CORE}):
        wide.hit(TOTALS)
        wide.hit("SELECT COUNT(*) AS n FROM sales WHERE region = 'north'")
    wide.hit(TOTALS)


def test_a_setting_that_says_its_default_costs_no_hit(wide):
    said = {
        "spark.sql.ansi.enabled": "TRUE",
        "spark.sql.legacy.timeParserPolicy": "corrected",
        "spark.sql.mapKeyDedupPolicy": "exception",
        "spark.sql.parquet.int96RebaseModeInRead": "Corrected",
        "spark.sql.timestampType": "timestamp_ltz",
        "spark.sql.pivotMaxValues": " 10000",
        "spark.sql.legacy.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.databricks.delta.checkLatestSchemaOnRead": "True",
    }
    with having(wide, said):
        wide.hit(TOTALS)


@pytest.mark.parametrize("key", COUNTS)
def test_noop_settings_that_may_change_rows_are_a_miss(wide, key):
    with wide.conf(**{key.replace(".", "__"): COUNTS[key]}):
        wide.miss(TOTALS, "SETTINGS_DIFFER")
    wide.hit(TOTALS)


@pytest.mark.parametrize("key", FUNCTIONS)
def test_a_setting_of_one_function_costs_no_hit_elsewhere(wide, key):
    """Nor where the function stands above what the cache gives: Spark calls it in the session."""
    value, call = FUNCTIONS[key]
    with wide.conf(**{key.replace(".", "__"): value}):
        wide.hit(TOTALS)
        if key not in STORED:
            wide.hit(f"SELECT {call} AS c, SUM(amt) AS s FROM sales GROUP BY region")


@pytest.mark.parametrize("key", STORED)
def test_a_setting_of_one_function_counts_where_that_is_called(wide, key):
    value, call = FUNCTIONS[key]
    calling = f"SELECT {call} AS c, SUM(amt) AS s FROM sales GROUP BY {call}"
    name = f"calls{STORED.index(key)}"
    wide.cache(f"{name} AS {calling}")
    filtered = f"SELECT COUNT(*) AS n FROM sales WHERE {call} IS NOT NULL"
    try:
        wide.hit(calling)
        wide.hit(filtered)
        with wide.conf(**{key.replace(".", "__"): value}):
            wide.hit(TOTALS)
            wide.miss(calling, "SETTINGS_DIFFER")
            wide.miss(filtered, "SETTINGS_DIFFER")
            wide.cache(f"{name}_too AS {calling}")
            wide.hit(calling)  # from the one that was made so
        wide.hit(calling)
    finally:
        for each in (name, f"{name}_too"):
            wide.sql(f"DROP RELATIONAL CACHE IF EXISTS {each}")


def test_one_zone_by_another_name_costs_a_hit_where_names_are_shown(wide):
    """UTC in one image, Etc/UTC in the other."""
    moment = "CAST(day AS TIMESTAMP)"
    for name, shown in (
        ("hours", f"date_trunc('HOUR', {moment})"),
        ("zones", f"date_format({moment}, 'y VV')"),
    ):
        query = f"SELECT {shown} AS t, SUM(amt) AS s FROM sales GROUP BY {shown}"
        wide.cache(f"{name} AS {query}")
        try:
            wide.hit(query)
            for zone in ("Etc/UTC", "+00:00", "GMT"):
                with wide.conf(spark__sql__session__timeZone=zone):
                    wide.hit(TOTALS)
                    if name == "hours":
                        wide.hit(query)
                    else:
                        wide.miss(query, "SETTINGS_DIFFER")
        finally:
            wide.sql(f"DROP RELATIONAL CACHE IF EXISTS {name}")


def test_a_refresh_writes_by_no_setting_of_the_applications(lab):
    """INSERT OVERWRITE of some partitions, casts as of old, calendars as of old."""
    values = {key: value for key, value in HARMLESS.items() if judge(key).kind is Kind.WRITES}
    with having(lab, values):
        lab.cache(
            "r PARTITIONED BY (cust) AS SELECT cust, region, SUM(amt) AS s FROM sales GROUP BY cust, region"
        )
        lab.hit(TOTALS)
        lab.plain.sql("DELETE FROM sales WHERE cust = 1")
        lab.sql("REFRESH RELATIONAL CACHE r FULL")
        lab.hit("SELECT cust, SUM(amt) AS s FROM sales GROUP BY cust")
        shown = {row[0] for row in lab.sql("DESCRIBE RELATIONAL CACHE r")}
        assert not {f"setting {key}" for key in values} & shown
    lab.hit(TOTALS)
