"""The jar that is committed is that of the sources, and is refused beside others than its own."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cachemgr.cli import main
from cachemgr.errors import ErrorCode
from cachemgr.jvm import loader
from cachemgr.jvm.jar import BUILD, JAR, Build, build_of
from tests import jar
from tests.javac import compiler
from tests.processes import ROOT, SMALL_SPARK


def test_the_jar_is_of_these_sources() -> None:
    assert build_of().sources == jar.digest(jar.sources()), "run `make jar`"
    names = {path.stem for path in jar.sources()}
    with zipfile.ZipFile(JAR) as files:
        made = {Path(name).stem for name in files.namelist()}
    assert names >= {door.rpartition(".")[2] for door in loader.DOORS} and names <= made


def test_a_source_that_differs_has_another_digest(tmp_path: Path) -> None:
    first, second = tmp_path / "A.java", tmp_path / "B.java"
    first.write_text("class A {}")
    second.write_text("class B {}")
    both = jar.digest([first, second])
    assert both != jar.digest([first])
    second.write_text("class B { }")
    assert both != jar.digest([first, second])


@pytest.mark.spark
@pytest.mark.skipif(compiler() != build_of().javac, reason=f"the jar is one of {build_of().javac}")
def test_the_same_compiler_builds_the_same_jar(tmp_path: Path) -> None:
    jar.write(tmp_path / "again.jar")
    assert (tmp_path / "again.jar").read_bytes() == JAR.read_bytes()


def test_its_path_is_printed() -> None:
    done = CliRunner().invoke(main, ["jar"])
    assert done.exit_code == 0 and Path(done.stdout.strip()) == JAR


def over(spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A class loader over another jar than ours."""
    monkeypatch.setattr(loader, "JAR", place)
    jvm = spark._jvm
    return loader._loader_over_jar(jvm, jvm.java.lang.ClassLoader.getPlatformClassLoader())


@pytest.mark.spark
def test_a_jar_of_another_release_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.jar"
    build = build_of()
    with zipfile.ZipFile(other, "w") as files:
        files.writestr(BUILD, json.dumps({**_told(build), "sources": "0" * 64}))
    with pytest.raises(loader.HookError, match="`cachemgr jar` names") as caught:
        loader._refuse_other_build(spark._jvm, over(spark, other, monkeypatch))
    assert caught.value.code == ErrorCode.HOOK_VERSION and str(other) in str(caught.value)


@pytest.mark.spark
@pytest.mark.parametrize("which", ["spark", "delta"])
def test_another_spark_or_delta_is_refused(
    spark: Any, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = loader._loader_over_jar(spark._jvm, None)
    loader._refuse_other_build(spark._jvm, ours)
    monkeypatch.setattr(loader, "build_of", lambda: replace(build_of(), **{which: "4.9.1"}))
    with pytest.raises(loader.HookError, match=r"built for .*4\.9\.1"):
        loader._refuse_other_build(spark._jvm, ours)


def test_what_vendors_add_to_a_version_is_no_difference() -> None:
    assert loader._release("4.2.0-amzn-1") == loader._release("4.2.0")
    assert loader._release("4.2.1") != loader._release("4.2.0")


def _told(build: Build) -> dict[str, str]:
    return {"spark": build.spark, "delta": build.delta, "javac": build.javac}


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
    place.write_bytes(JAR.read_bytes())
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
