"""`cachemgr explain` on a service: the answer of its Spark, shown like the offline one."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cachemgr.cli import main
from cachemgr.results import table

ANSWER = {
    "hit": True,
    "caches": ["cube"],
    "rewritten_sql": "SELECT 1 FROM cube",
    "candidates": [
        {"cache": "cube", "grouping_set": ["a"], "outcome": "chosen", "cost": 3.0, "reasons": []}
    ],
}


class Explaining:
    """A Spark that knows the answer."""

    def execute(self, text, principal):
        assert text.endswith("SELECT 1")
        return table(["json"], [(json.dumps(ANSWER),)])


@pytest.fixture
def url(serve, store, monkeypatch):
    monkeypatch.delenv("CACHEMGR_TOKEN", raising=False)
    return serve(open_to_all=True, statements=Explaining())


def explain(*words: str, **more):
    done = CliRunner().invoke(main, ["explain", *words], **more)
    return done.exit_code, done.stdout, done.stderr


def test_on_a_service(url, tmp_path):
    code, out, err = explain("SELECT 1", "--server", url, "--json")
    assert (code, err) == (0, "") and json.loads(out) == ANSWER
    assert json.loads(explain("-", "--server", url, "-o", "json", input="SELECT 1")[1]) == ANSWER
    (tmp_path / "q.sql").write_text("SELECT 1")
    code, out, _ = explain("--query", str(tmp_path / "q.sql"), "--server", url)
    assert code == 0 and "hit: cube" in out and "SELECT 1 FROM cube" in out


@pytest.mark.parametrize(
    "words", [[], ["SELECT 1", "--conf", "a=b"], ["SELECT 1", "--batch", "pyproject.toml"]]
)
def test_wrong_usage(words):
    assert explain(*words, "--server", "http://127.0.0.1:9")[0] == 2
