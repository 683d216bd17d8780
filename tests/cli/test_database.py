"""`cachemgr db` on both metastores, and the light commands."""

from __future__ import annotations

from typer.testing import CliRunner

from cachemgr import __version__
from cachemgr.cli import main


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
