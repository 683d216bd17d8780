"""The jar that is committed is that of the sources, and is refused beside others than its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyspark
import pytest
from typer.testing import CliRunner

from cachemgr.cli import main
from cachemgr.errors import ErrorCode
from cachemgr.jvm import loader
from cachemgr.jvm.jar import BUILD, build_of, decode_build, jar_for
from cachemgr.sparks import DELTA, MINORS, minor_of
from tests import jar
from tests.javac import compiler
from tests.processes import ROOT, SMALL_SPARK

INSTALLED = minor_of(pyspark.__version__)
JAVAC = build_of(jar_for(INSTALLED)).javac


@pytest.mark.parametrize("minor", MINORS)
def test_the_jar_is_of_these_sources(minor: str) -> None:
    build = build_of(jar_for(minor))
    assert build.sources == jar.digest(jar.sources()), "run `make jar`"
    assert (build.spark, build.delta, build.minors) == (minor, DELTA, MINORS)
    names = {path.stem for path in jar.sources_for(minor)}
    with zipfile.ZipFile(jar_for(minor)) as files:
        made = {Path(name).stem for name in files.namelist()}
    assert names >= {door.rpartition(".")[2] for door in loader.DOORS} and names <= made


def test_make_knows_the_same_minors() -> None:
    made = dict(re.findall(r"^(NEWEST|OLDER) := (.*)$", (ROOT / "Makefile").read_text(), re.M))
    assert (*made["OLDER"].split(), made["NEWEST"]) == MINORS


def test_each_shim_is_there_once_for_each_minor() -> None:
    """Those of a Spark that Delta has no jar for, too."""
    made = {}
    for minor in (*MINORS, "4.3"):
        paths = [path for path in jar.sources_for(minor) if jar.SHIMS in path.parents]
        names = [path.name for path in paths]
        assert len(names) == len(set(names)), minor
        made[minor] = set(names) - {"Exchange.java"}  # of ShuffleOnce, which 4.0 has not
    assert len(set(map(frozenset, made.values()))) == 1
    common = {path.name for path in jar.COMMON.rglob("*.java")}
    assert not common & made["4.3"]


def test_a_source_that_differs_has_another_digest(tmp_path: Path) -> None:
    first, second = tmp_path / "A.java", tmp_path / "B.java"
    first.write_text("class A {}")
    second.write_text("class B {}")
    both = jar.digest([first, second])
    assert both != jar.digest([first])
    second.write_text("class B { }")
    assert both != jar.digest([first, second])


@pytest.mark.spark
@pytest.mark.skipif(compiler() != JAVAC, reason=f"the jar is one of {JAVAC}")
def test_the_same_compiler_builds_the_same_jar(tmp_path: Path) -> None:
    jar.write(tmp_path / "again.jar", INSTALLED)
    assert (tmp_path / "again.jar").read_bytes() == jar_for(INSTALLED).read_bytes()


def test_its_path_is_printed() -> None:
    done = CliRunner().invoke(main, ["jar"])
    assert done.exit_code == 0 and Path(done.stdout.strip()) == jar_for(INSTALLED)


@pytest.mark.parametrize("told", ["4.0", "4.0.1", "4.0.3-amzn-0"])
def test_that_of_another_spark_is_printed(told: str) -> None:
    done = CliRunner().invoke(main, ["jar", "--spark", told])
    assert done.exit_code == 0 and Path(done.stdout.strip()) == jar_for("4.0")
    done = CliRunner().invoke(main, ["jar", "--conf", "--spark", told])
    assert f"{jar_for('4.0')}:" in done.stdout and "delta-spark_4.0_2.13-4.4.0" in done.stdout


@pytest.mark.parametrize("told", ["3.5.1", "4.3.0", "5", "new"])
def test_there_is_none_for_a_spark_that_is_not_served(told: str) -> None:
    done = CliRunner().invoke(main, ["jar", "--spark", told])
    assert done.exit_code == 2 and f"no jar for Spark {told}" in done.stderr
    assert all(minor in done.stderr for minor in MINORS)


def test_without_pyspark_one_is_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    done = CliRunner().invoke(main, ["jar"])
    assert done.exit_code == 2 and "no PySpark is installed: say one of 4.0" in done.stderr


def over(spark: Any, place: Path) -> Any:
    """A class loader over another jar than ours."""
    jvm = spark._jvm
    parent = jvm.java.lang.ClassLoader.getPlatformClassLoader()
    return loader._loader_over_jar(jvm, parent, place)


def built(place: Path, **other: str) -> Path:
    """A jar that was built from something else."""
    told = json.loads(zipfile.ZipFile(jar_for(INSTALLED)).read(BUILD))
    with zipfile.ZipFile(place, "w") as files:
        files.writestr(BUILD, json.dumps({**told, **other}))
    return place


@pytest.mark.spark
def test_a_jar_of_another_release_is_refused(spark: Any, tmp_path: Path) -> None:
    other = built(tmp_path / "other.jar", sources="0" * 64)
    with pytest.raises(loader.HookError, match="`cachemgr jar` names") as caught:
        loader._refuse_other_build(spark._jvm, over(spark, other), pyspark.__version__)
    assert caught.value.code == ErrorCode.HOOK_VERSION and str(other) in str(caught.value)


@pytest.mark.spark
def test_a_jar_for_another_minor_is_refused(spark: Any, tmp_path: Path) -> None:
    other = built(tmp_path / "other.jar", spark="4.9")
    with pytest.raises(loader.HookError, match=f"--spark {INSTALLED}` names") as caught:
        loader._refuse_other_build(spark._jvm, over(spark, other), pyspark.__version__)
    assert caught.value.code == ErrorCode.HOOK_VERSION and str(other) in str(caught.value)
    loader._refuse_other_build(spark._jvm, over(spark, jar_for(INSTALLED)), pyspark.__version__)


def test_what_an_older_release_wrote_is_read() -> None:
    found = decode_build('{"sources": "x", "spark": "4.2.0", "delta": "4.4.0", "javac": "y"}')
    assert (found.sources, found.spark, found.minors) == ("x", "4.2.0", ())


@pytest.mark.parametrize(
    ("spark", "delta"),
    [("4.3.0", DELTA), ("3.5.7", DELTA), ("5.0.0-SNAPSHOT", DELTA), ("4.2.0", "4.3.1"),
     ("4.20.0", DELTA)],
)  # fmt: skip
def test_a_spark_or_a_delta_that_is_not_served_is_refused(spark: str, delta: str) -> None:
    with pytest.raises(loader.HookError, match=f"Spark {spark} with Delta {delta}") as caught:
        loader.refuse_unknown(spark, delta)
    assert f"is built for Spark {', '.join(MINORS)} with Delta {DELTA}" in str(caught.value)


@pytest.mark.parametrize("spark", ["4.0.1", "4.1.0", "4.2.1", "4.2.0-amzn-1"])
def test_each_patch_of_a_minor_is_served(spark: str) -> None:
    loader.refuse_unknown(spark, DELTA)
    loader.refuse_unknown(spark, f"{DELTA}-vendor")


@pytest.mark.parametrize(
    ("spark", "python", "delta", "said"),
    [
        ("4.2.0", "4.1.4", "/x/delta-spark_4.2_2.13-4.4.0.jar", "driven by PySpark 4.1.4"),
        ("4.2.0", "4.2.0", "/x/io.delta_delta-spark_4.0_2.13-4.4.0.jar", "is for Spark 4.0"),
    ],
)
def test_parts_for_different_minors_are_refused(
    spark: str, python: str, delta: str, said: str
) -> None:
    with pytest.raises(loader.HookError, match=re.escape(said)) as caught:
        loader.refuse_mixed(spark, python, delta)
    assert caught.value.code == ErrorCode.HOOK_VERSION


@pytest.mark.parametrize(
    "delta",
    ["/x/delta-spark_4.2_2.13-4.4.0.jar", "/x/vendors-lake.jar", "/delta-spark_4.0_y/z.jar"],
)
def test_a_jar_whose_name_tells_no_other_minor_is_taken(delta: str) -> None:
    loader.refuse_mixed("4.2.0-amzn-1", "4.2.1", delta)


PROGRAM = """
import json, sys
import cachemgr
from pyspark.sql import SparkSession
from cachemgr.jvm.loader import java_class
builder = SparkSession.builder.master("local[1]")
for key, value in json.loads(sys.argv[1]).items():
    builder = builder.config(key, value)
spark = cachemgr.configure_spark_with_cachemgr(builder).getOrCreate()
cachemgr.enable(spark)
found = java_class(spark, "Hook").getClass()
print(found.getClassLoader().getClass().getSimpleName(), found.getProtectionDomain()
      .getCodeSource().getLocation().getPath())
spark.sql("CREATE TABLE t USING delta AS SELECT id % 3 AS k, id AS v FROM range(9)")
spark.sql("CREATE RELATIONAL CACHE c AS SELECT k, SUM(v) AS s FROM t GROUP BY k")
spark.sql("REFRESH RELATIONAL CACHE c")
rows = spark.sql("SELECT k, SUM(v) FROM t GROUP BY k ORDER BY k").collect()
print([tuple(row) for row in rows], cachemgr.counters(spark)["hits"])
"""


@pytest.mark.spark
@pytest.mark.slow
def test_classes_on_the_class_path_are_those_that_are_used(tmp_path: Path) -> None:
    place = tmp_path / "on-the-path.jar"
    place.write_bytes(jar_for(INSTALLED).read_bytes())
    settings = {
        **SMALL_SPARK,
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.cachemgr.metastore.url": f"sqlite:///{tmp_path / 'm.db'}",
        "spark.cachemgr.location": str(tmp_path / "caches"),
    }
    path = settings.get("spark.driver.extraClassPath")
    settings["spark.driver.extraClassPath"] = f"{path}:{place}" if path else str(place)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings)],
        capture_output=True, text=True, cwd=ROOT, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = done.stdout.splitlines()[-2:]
    assert first == f"AppClassLoader {place}"
    assert second == "[(0, 9), (1, 12), (2, 15)] 1"
