"""Delta's jars are looked up once; where that fails Spark is left to ask Maven itself."""

from __future__ import annotations

import subprocess
from importlib.metadata import version

import pytest
from pyspark.sql import SparkSession

from cachemgr.cli.jar import jar as jar_command
from cachemgr.spark import configure, delta_jars
from cachemgr.spark.configure import configure_builder
from cachemgr.sparks import minor_of

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    # as if no JVM of Spark ran in this process
    monkeypatch.setattr(configure.SparkContext, "_gateway", None)


def maven(monkeypatch, output: str) -> list[list[str]]:
    """Stands in for the process that asks Maven; gives what it was asked."""
    asked: list[list[str]] = []

    def run(command, **_):
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, output, "")

    monkeypatch.setattr(delta_jars.subprocess, "run", run)
    return asked


def test_it_is_asked_once_and_again_when_a_jar_is_gone(monkeypatch, tmp_path, capsys):
    jars = [tmp_path / "delta spark.jar", tmp_path / "storage.jar"]
    for jar in jars:
        jar.touch()
    urls = ",".join(jar.as_uri() for jar in jars)
    asked = maven(monkeypatch, f":: loading settings ::\njars: {urls}\n")
    assert [delta_jars.jars_of(DELTA) for _ in range(3)] == [urls] * 3
    assert len(asked) == 1 and asked[0][-1] == DELTA
    assert capsys.readouterr().err.count("Fetching") == 1
    jars[1].unlink()
    assert delta_jars.jars_of(DELTA) is None and len(asked) == 3


def test_where_there_is_no_home_spark_is_left_to_ask(monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)

    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    asked = maven(monkeypatch, "")
    assert delta_jars.jars_of(DELTA) is None and asked == []
    assert delta_jars.jars_for_a_server(DELTA) == ()


@pytest.mark.parametrize("output", ["", "jars: \n", "jars: file:///nowhere/x.jar\n"])
def test_what_cannot_be_fetched_is_not_remembered(monkeypatch, tmp_path, output):
    asked = maven(monkeypatch, output)
    assert delta_jars.jars_of(DELTA) is delta_jars.jars_of(DELTA) is None
    assert len(asked) == 4 and not (tmp_path / "cache").exists()


POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>a.b</groupId><artifactId>c</artifactId><version>1</version></project>"""


def test_a_module_that_the_users_maven_has_without_its_jar_is_found(monkeypatch, tmp_path):
    """Maven fetches the descriptions of all versions that it weighs, and the jar of one."""
    at = "a/b/c/1"
    home, repository = tmp_path / "home" / ".m2" / "repository" / at, tmp_path / "repository" / at
    for folder in (home, repository):
        folder.mkdir(parents=True)
        (folder / "c-1.pom").write_text(POM)
    (repository / "c-1.jar").write_bytes(b"PK\5\6" + bytes(18))  # an empty zip
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", f"-Duser.home={tmp_path / 'home'}")
    (tmp_path / "spark-defaults.conf").write_text(
        f"spark.jars.repositories {(tmp_path / 'repository').as_uri()}\n"
    )
    found = delta_jars.jars_of("a.b:c:1")
    ours = tmp_path / "cache" / "relational-cache" / "ivy" / "jars" / "a.b_c-1.jar"
    assert found == ours.as_uri()


def test_a_server_is_given_those_of_the_spark_that_is_installed(monkeypatch, tmp_path, capsys):
    ours = delta_jars.delta_coordinates(minor_of(version("pyspark")))
    other = delta_jars.delta_coordinates("3.5")
    for coordinates in (ours, other):  # the other one came last
        _, module, release = coordinates.split(":")
        jar = tmp_path / f"io.delta_{module}-{release}.jar"
        jar.touch()
        maven(monkeypatch, f"jars: {jar.as_uri()}\n")
        assert delta_jars.jars_of(coordinates)
    jar_command(conf=True)
    assert "io.delta_delta-spark_3.5" not in (shown := capsys.readouterr().out)
    _, module, release = ours.split(":")
    assert f"/io.delta_{module}-{release}.jar" in shown
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    jar_command(conf=True)
    assert f"/path/of/{module}-{release}.jar:/path/of/delta-storage-" in capsys.readouterr().out


def built(monkeypatch, found: str | None, **options: str) -> dict[str, str]:
    """The options with which a builder starts Spark."""
    monkeypatch.setattr(configure, "jars_of", lambda packages: found)
    builder = SparkSession.Builder()
    started: dict[str, str] = {}
    builder.getOrCreate = lambda: started.update(builder._options)
    for key, value in options.items():
        builder.config(key.replace("__", "."), value)
    configure_builder(builder, None, lambda spark: None).getOrCreate()
    return started


def test_spark_gets_jars_in_place_of_packages(monkeypatch):
    options = built(monkeypatch, "file:///a.jar,file:///b.jar")
    assert options["spark.jars"] == "file:///a.jar,file:///b.jar"
    assert "spark.jars.packages" not in options


@pytest.mark.parametrize(
    "given",
    [
        {"spark__jars__packages": "c:d:2"},
        {"spark__jars": "/x.jar"},
        {"spark__jars__repositories": "http://mirror"},
        {"spark__master": "spark://host:7077"},
    ],
)
def test_whoever_says_something_of_jars_is_left_alone(monkeypatch, given):
    options = built(monkeypatch, "file:///a.jar", **given)
    assert "delta-spark" in options["spark.jars.packages"]
    assert options.get("spark.jars") == given.get("spark__jars")


def test_so_is_sparks_own_file(monkeypatch, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("# x\n spark.jars /x.jar\n")
    assert "spark.jars.packages" in built(monkeypatch, "file:///a.jar")


def test_without_a_network_spark_is_left_to_say_so(monkeypatch):
    assert "delta-spark" in built(monkeypatch, None)["spark.jars.packages"]
