"""Tables for people: words and no JSON."""

from __future__ import annotations

from typer.testing import CliRunner

from cachemgr.cli import main
from cachemgr.cli.output import Format, show, show_one
from cachemgr.printable import plural
from cachemgr.vocabulary import RefreshMode

CACHE = {
    "name": "totals",
    "rewriteEnabled": True,
    "grants": [],
    "status": {"combined": "HEALTHY", "refresh": "OK"},
    "published": {
        "finishedAt": "2026-11-23T00:15:55.123456Z",
        "tables": [{"name": "sales", "version": 7}, {"name": "shops", "version": None}],
    },
    "trigger": {},
    "dependsOn": ["a", "b"],
    "millis": 36.6986850003741,
}


def test_a_thing_with_things_in_it(capsys):
    show_one(CACHE, Format.TABLE)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "name totals",
        "rewrite enabled yes",
        "grants -",
        "status combined HEALTHY",
        "status refresh OK",
        "published finished at 2026-11-23 00:15:55Z",
        "published tables name sales, version 7",
        "name shops, version -",
        "trigger -",
        "depends on a, b",
        "millis 36.7",
    ]


def test_headings_are_the_fields_words_unless_another_is_given(capsys):
    show([CACHE], ("rewriteEnabled", ("refreshed", "published.finishedAt")), Format.TABLE)
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split() == ["REWRITE", "ENABLED", "REFRESHED"]
    assert row.split() == ["yes", "2026-11-23", "00:15:55Z"]


def test_a_pipe_folds_nothing(capsys):
    show([{"message": "long " * 300}], ("message",), Format.TABLE)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_nouns_agree_with_their_numbers():
    assert [plural(n, "miss", "misses") for n in (0, 1, 2)] == ["0 misses", "1 miss", "2 misses"]
    assert [plural(n, "row") for n in (1, 5)] == ["1 row", "5 rows"]


def test_the_help_names_each_mode_of_a_refresh_and_what_it_does():
    told = CliRunner().invoke(main, ["cache", "refresh", "--help"], env={"COLUMNS": "500"}).output
    for mode in RefreshMode:
        assert f"{mode.value}: {mode.summary}" in " ".join(told.split())
    words = ["cache", "refresh", "c", "--mode", "incremental-only"]
    wrong = CliRunner().invoke(main, words, env={"COLUMNS": "500"})
    assert wrong.exit_code == 2 and "INCREMENTAL, INCREMENTAL_ONLY" in wrong.output
