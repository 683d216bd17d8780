"""A Java that Spark does not start with is refused in one message, before Spark says anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.jvm import runtime
from cachemgr.spark import configure
from tests.processes import ROOT

TOLD = {
    "1.8.0_402": ('java version "1.8.0_402"', 8),
    "11": ('openjdk version "11.0.22" 2024-01-16', 11),
    "17": ('openjdk version "17.0.15" 2025-04-15', 17),
    "25": ('openjdk version "25" 2025-09-16', 25),
    "with options": ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21.0.1" 2023', 21),
    "options that name a version": (
        'Picked up JAVA_TOOL_OPTIONS: -Dservice.version=1.2\nopenjdk version "21.0.1" 2023',
        21,
    ),
    "another one": ("GraalVM of somebody's own", None),
}


def written(folder: Path, text: str) -> Path:
    """A home of a program that says this of itself, and fails whatever else it is asked."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >&2 <<'TOLD'\n{text}\nTOLD\n[ \"$1\" = -version ]\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("which", TOLD)
def test_its_version(which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, major = TOLD[which]
    monkeypatch.setenv("JAVA_HOME", str(written(tmp_path, text)))
    found = runtime.java()
    assert found.major == major and found.told == text.splitlines()[-1]
    if major is None or major >= 17:
        runtime.refuse_unfit()
    else:
        with pytest.raises(ConfigurationError, match="needs Java 17 or newer, and ") as caught:
            runtime.refuse_unfit()
        assert caught.value.code == ErrorCode.NO_JAVA and text in str(caught.value)


@pytest.mark.parametrize(("spark", "fits"), [("4.0", 22), ("4.1", 22), ("4.2", 99)])
def test_one_too_new(
    spark: str, fits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java 23 took away what the Hadoop of older Sparks calls as it starts."""
    program = written(tmp_path, "?") / "bin" / "java"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for major in (17, 21, 22, 23, 25):
        program.write_text(f"#!/bin/sh\necho 'openjdk version \"{major}.0.1\"' >&2\n")
        if major <= fits:
            runtime.refuse_unfit(spark)
            continue
        with pytest.raises(runtime.NoJavaError, match=f"Spark {spark} needs Java 17 to 22, and "):
            runtime.refuse_unfit(spark)


def test_none_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=f"there is none at {tmp_path}/bin/java: install"):
        runtime.refuse_unfit()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match="there is none on PATH: install"):
        runtime.refuse_unfit()


def test_one_that_gives_no_answer_is_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = written(tmp_path, "?")
    (home / "bin" / "java").write_bytes(b"#!/bin/sh\necho '\xfc' >&2\n")
    monkeypatch.setenv("JAVA_HOME", str(home))
    runtime.refuse_unfit()

    def late(command: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(command, 60)

    monkeypatch.setattr(runtime.subprocess, "run", late)
    runtime.refuse_unfit()


def test_sparks_own_file_may_name_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setattr(configure.SparkContext, "_gateway", None)
    with pytest.raises(runtime.NoJavaError):
        configure.refuse_java()
    (tmp_path / "spark-env.sh").touch()
    configure.refuse_java()


@pytest.mark.slow
def test_a_command_says_it_in_one_line(tmp_path: Path) -> None:
    """Nothing of Spark's own start is among it."""
    home = written(tmp_path, TOLD["11"][0])
    done = subprocess.run(
        [sys.executable, "-m", "cachemgr", "sql", "-e", "SELECT 1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(home)},
    )
    assert done.returncode == 1 and "NO_JAVA" in done.stderr
    told = [line for line in done.stderr.splitlines() if not line.startswith("Starting Spark")]
    assert len(told) == 1 and TOLD["11"][0] in told[0], done.stderr
