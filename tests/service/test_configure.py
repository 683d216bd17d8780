"""The builder: Delta and our defaults are added, what the user set is kept."""

from __future__ import annotations

from pyspark.sql import SparkSession

from cachemgr.spark.configure import configure_builder


def configured(**options):
    """A builder that starts nothing, with these options and then ours."""
    started, session = [], object()
    builder = SparkSession.Builder()
    builder.getOrCreate = lambda: session
    for key, value in options.items():
        builder.config(key.replace("__", "."), value)
    assert configure_builder(builder, ["a:b:1"], started.append) is builder
    return builder, started


def test_packages_and_extensions_are_merged_with_the_users():
    builder, _ = configured(spark__jars__packages="c:d:2", spark__sql__extensions="my.Extension")
    packages = builder._options["spark.jars.packages"].split(",")
    assert {"a:b:1", "c:d:2"} <= set(packages) and any("delta-spark" in p for p in packages)
    assert builder._options["spark.sql.extensions"] == (
        "my.Extension,io.delta.sql.DeltaSparkSessionExtension"
    )


def test_what_the_user_set_is_kept():
    key = "spark.sql.legacy.parameterSubstitution.constantsOnly"
    builder, _ = configured(**{key: "false"}, spark__sql__shuffle__partitions="7")
    assert builder._options[key] == "false"
    assert builder._options["spark.sql.shuffle.partitions"] == "7"
    assert configured()[0]._options[key] == "true"


def test_local_defaults_are_for_local_masters_only():
    assert "spark.databricks.delta.snapshotPartitions" in configured()[0]._options
    cluster, _ = configured(spark__master="spark://host:7077")
    assert "spark.databricks.delta.snapshotPartitions" not in cluster._options


def test_enabled_in_the_builder_enables_its_session_and_no_other():
    builder, started = configured(spark__cachemgr__enabled="true")
    assert started == []
    assert started == [builder.getOrCreate()]
    other, started = configured()
    other.getOrCreate()
    assert started == []
