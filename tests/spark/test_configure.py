"""The builder: Delta and our defaults are added, what the user set is kept."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cachemgr.errors import ConfigurationError
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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.jars", "{0}/other.jar, file:{0}/io.delta_delta-spark_4.2_2.13-4.4.0.jar"),
        ("spark.jars", "s3://jars/delta-spark_4.2_2.13-4.4.0.jar"),
        ("spark.driver.extraClassPath", "{0}/x.jar:{0}/delta-spark_4.2_2.13-4.4.0.jar"),
        ("spark.driver.extraClassPath", "{0}/*"),
    ],
)
def test_delta_is_not_fetched_where_the_user_has_it(tmp_path, key, value):
    tmp_path.joinpath("delta-spark_4.2_2.13-4.4.0.jar").touch()
    given = {key.replace(".", "__"): value.format(tmp_path)}
    builder, _ = configured(**given, spark__jars__packages="c:d:2")
    assert builder._options["spark.jars.packages"] == "c:d:2,a:b:1"


def test_delta_is_not_fetched_where_spark_itself_has_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert "delta-spark" in configured()[0]._options["spark.jars.packages"]
    tmp_path.joinpath("jars").mkdir()
    tmp_path.joinpath("jars", "delta-spark_4.2_2.13-4.4.0.jar").touch()
    assert configured()[0]._options["spark.jars.packages"] == "a:b:1"


def test_on_a_cluster_the_executors_must_have_delta_too(tmp_path):
    jar = tmp_path / "delta-spark_4.2_2.13-4.4.0.jar"
    given = {"spark__master": "spark://host:7077", "spark__driver__extraClassPath": str(jar)}
    assert "delta-spark" in configured(**given)[0]._options["spark.jars.packages"]
    given["spark__executor__extraClassPath"] = str(jar)
    assert configured(**given)[0]._options["spark.jars.packages"] == "a:b:1"
    shared = {"spark__master": "spark://host:7077", "spark__jars": str(jar)}
    assert configured(**shared)[0]._options["spark.jars.packages"] == "a:b:1"


def test_delta_is_fetched_where_other_jars_are_named(tmp_path):
    tmp_path.joinpath("other.jar").touch()
    given = {
        "spark__jars": str(tmp_path / "other.jar"),
        "spark__driver__extraClassPath": f"{tmp_path}/*",
    }
    assert "delta-spark" in configured(**given)[0]._options["spark.jars.packages"]


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


def test_our_settings_are_looked_at_before_spark_starts(caplog):
    builder, started = configured(spark__cachemgr__enabled="maybe")
    with pytest.raises(ConfigurationError, match=r"spark\.cachemgr\.enabled is 'maybe'"):
        builder.getOrCreate()
    builder.config("spark.cachemgr.enabled", True).getOrCreate()
    assert len(started) == 1
    configured(spark__cachemgr__enable="true")[0].getOrCreate()
    assert "did you mean spark.cachemgr.enabled?" in caplog.text
