"""`cachemgr db` on both metastores, and the light commands."""

from __future__ import annotations

import os

import pytest
from typer.testing import CliRunner

from cachemgr import __version__
from cachemgr.cli import main
from cachemgr.metastore import open_metastore


def test_upgrade_current_check(empty_metastore_url: str) -> None:
    runner = CliRunner()
    given = ["--metastore", empty_metastore_url]
    assert runner.invoke(main, ["db", "check", *given]).exit_code == 1
    up = runner.invoke(main, ["db", "upgrade", *given])
    assert up.exit_code == 0, up.output
    assert runner.invoke(main, ["db", "check", *given]).exit_code == 0
    now = runner.invoke(main, ["db", "current", *given])
    assert now.exit_code == 0
    reached, needed = now.stdout.replace(",", "").split("metastore is at ")[1].split(" ", 1)
    assert reached == needed.split()[-1]


def test_a_metastore_that_cannot_be_opened(tmp_path) -> None:
    file = tmp_path / "text.db"
    file.write_text("this is no database, and long enough to be sure of it" * 100)
    run = CliRunner().invoke(main, ["db", "upgrade", "--metastore", f"sqlite:///{file}"])
    assert run.exit_code == 1 and run.stderr.startswith("error: ")
    assert file.read_text().startswith("this is no database")


def test_version_and_help() -> None:
    runner = CliRunner()
    assert runner.invoke(main, ["--version"]).stdout.strip() == __version__
    shown = runner.invoke(main, ["--help"]).stdout
    assert all(word in shown for word in ("explain", "demo", "db"))


def test_every_command_finds_the_metastore_that_serve_would_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [n for n in os.environ if n.startswith("CACHEMGR_")]:
        monkeypatch.delenv(name)
    (tmp_path / "cachemgr.toml").write_text('metastore_url = "sqlite:///here/own.db"\n')
    (tmp_path / "here").mkdir()
    for words in (
        ("db", "upgrade"), ("db", "current"), ("token", "create", "ann", "--role", "admin"),
        ("token", "list"), ("cache", "list"), ("join", "list"), ("doctor", "--no-spark"),
        ("export",), ("table", "list"),
    ):  # fmt: skip
        done = CliRunner().invoke(main, list(words))
        assert done.exit_code == 0, (words, done.output)
    assert [p.name for p in tmp_path.rglob("*.db")] == ["own.db"]
    with open_metastore("sqlite:///here/own.db") as store:
        assert [t.principal for t in store.tokens.all()] == ["ann"]
    monkeypatch.setenv("CACHEMGR_CONFIG", str(tmp_path / "none.toml"))
    for words in (("db", "current"), ("token", "list")):
        done = CliRunner().invoke(main, list(words))
        assert done.exit_code == 1 and "CACHEMGR_CONFIG" in done.output, words


@pytest.mark.parametrize("folder", ["", "elsewhere/"])
def test_a_metastore_that_is_not_here_may_be_in_another_folder(tmp_path, monkeypatch, folder):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["cache", "list", "--metastore", f"sqlite:///{folder}x.db"])
    assert done.exit_code == 1 and "METASTORE_MISSING" in done.stderr
    told = "if this is the wrong folder, go to the one where it was made" in done.stderr
    assert told is (folder == "")
