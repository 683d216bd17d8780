"""`cachemgr explain` on a service: its answer, shown like the offline one."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cachemgr.cli import main
from cachemgr.delta.head_lookup import Heads
from cachemgr.metastore import open_metastore
from cachemgr.serving.feed import Feed
from cachemgr.serving.sources import MetastoreSource
from cachemgr.text.door import TextDoor
from tests.harness.load.population import SETTINGS, populate

SQL = "SELECT d_year, SUM(lo_revenue) AS r FROM lineorder, dates, customer, supplier, part WHERE \
lo_orderdate = d_datekey AND lo_custkey = c_custkey AND lo_suppkey = s_suppkey \
AND lo_partkey = p_partkey GROUP BY d_year"


@pytest.fixture
def url(serve, store, metastore_url, tmp_path, monkeypatch):
    monkeypatch.delenv("CACHEMGR_TOKEN", raising=False)
    populate(store, tmp_path, 10)
    feed = Feed(MetastoreSource(open_metastore(metastore_url)))
    feed.start()
    assert feed.wait_loaded(20)
    yield serve(open_to_all=True, texts=TextDoor(feed, Heads(), SETTINGS))
    feed.close()


def explain(*words: str, **more):
    done = CliRunner().invoke(main, ["explain", *words], **more)
    return done.exit_code, done.stdout, done.stderr


def test_on_a_service(url, tmp_path):
    code, out, err = explain(SQL, "--server", url, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["hit"] and found["caches"] == ["valid_0"] and "VERSION" in found["rewrittenSql"]
    assert found["candidates"][0]["outcome"] == "chosen"
    assert found["candidates"][0]["groupingSet"] is None
    assert json.loads(explain("-", "--server", url, "-o", "json", input=SQL)[1]) == found
    (tmp_path / "q.sql").write_text(SQL)
    code, out, _ = explain("--query", str(tmp_path / "q.sql"), "--server", url)
    assert code == 0 and "hit: valid_0" in out
    other = explain(SQL, "--server", url, "--json", "--conf", "spark.sql.ansi.enabled=false")
    assert not json.loads(other[1])["hit"] and "SETTINGS_DIFFER" in other[1]


def test_what_is_wrong_with_a_query_is_said(url):
    code, out, _ = explain("SELEC 1", "--server", url)
    assert code == 0 and out.startswith("miss\nUNSUPPORTED_OPERATOR: SYNTAX_ERROR: ")
    assert "(correct it" in out and "no cache reads" not in out
    out = explain("SELECT d_yera, SUM(lo_revenue) AS r FROM lineorder, dates GROUP BY d_yera",
                  "--server", url)[1]  # fmt: skip
    assert "COLUMN_NOT_FOUND" in out and "did you mean d_year?" in out
    out = explain(SQL, "--server", url, "--conf", "spark.sql.ansi.enabled=false")[1]
    assert "SETTINGS_DIFFER" in out and "set spark.sql.ansi.enabled to" in out


def test_the_sql_can_be_copied(url):
    """Each line whole: not cropped, not folded and not padded, however long."""
    wanted = json.loads(explain(SQL, "--server", url, "--json")[1])["rewrittenSql"]
    assert max(map(len, wanted.splitlines())) > 80
    out = explain(SQL, "--server", url, env={"COLUMNS": "40"})[1]
    assert out.endswith(f"\n\n{wanted}\n")


@pytest.mark.parametrize("words", [[], ["SELECT 1", "--batch", "pyproject.toml"]])
def test_wrong_usage(words):
    assert explain(*words, "--server", "http://127.0.0.1:9")[0] == 2
