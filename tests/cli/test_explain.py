"""`cachemgr explain`: files in, text or JSON out, exit codes; no Spark, no database."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cachemgr.cli import main
from cachemgr.demo.ssb_cube import RECORD_PRESERVING_JOINS, cube_ddl, published_ddl, published_view
from cachemgr.demo.ssb_queries import QUERIES
from cachemgr.demo.ssb_schema import TABLES
from cachemgr.serving.explain import Explanation
from cachemgr.text import offline
from matcher.model.errors import MatcherError

SCHEMA = "CREATE TABLE sales (region STRING, day DATE, amount BIGINT NOT NULL, qty INT)"
CACHES = """CREATE RELATIONAL CACHE by_day REFRESH EVERY 1 HOUR AS
SELECT region, day, SUM(amount) AS amount, SUM(qty) AS qty, COUNT(qty) AS n FROM sales
GROUP BY region, day;
CREATE RELATIONAL CACHE off DISABLE REWRITE AS
SELECT region, SUM(amount) AS amount FROM sales GROUP BY region;
"""
QUERY = (
    "SELECT region, SUM(amount) AS total FROM sales WHERE day >= '2020-01-01' GROUP BY region;\n"
)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    given = []
    for name, text in (("schema", SCHEMA), ("caches", CACHES), ("query", QUERY)):
        path = tmp_path / f"{name}.sql"
        path.write_text(text)
        given += [f"--{name}", str(path)]
    return given


def test_json(files: list[str]) -> None:
    run = CliRunner().invoke(main, ["explain", *files, "--json"])
    assert run.exit_code == 0, run.output
    result = json.loads(run.stdout)
    assert result.keys() == {*Explanation(hit=True).as_data(), "stored"}
    assert result["version"] == 2 and result["groupingSet"] is None
    assert result["hit"] is True and result["caches"] == ["by_day"]
    assert "FROM `by_day`" in result["rewrittenSql"]
    outcomes = {c["cache"]: c["outcome"] for c in result["candidates"]}
    assert outcomes == {"by_day": "chosen", "off": "refused"}
    (off,) = [c for c in result["candidates"] if c["cache"] == "off"]
    assert [set(r) for r in off["reasons"]] == [{"code", "detail", "suggestion"}]
    assert off["reasons"][0]["code"] == "CACHE_DISABLED" and off["groupingSet"] is None
    assert set(result["stored"]) == {"by_day", "off"}
    assert "`__rows`" in result["stored"]["off"]


def test_for_people(files: list[str]) -> None:
    run = CliRunner().invoke(main, ["explain", *files])
    assert run.exit_code == 0
    assert "hit: by_day" in run.stdout and "CACHE_DISABLED" in run.stdout


def test_a_miss_is_no_error(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "query.sql").write_text("SELECT rand() AS r FROM sales")
    run = CliRunner().invoke(main, ["explain", *files, "--json"])
    assert run.exit_code == 0
    result = json.loads(run.stdout)
    assert result["hit"] is False and result["rewrittenSql"] is None
    codes = {c["cache"]: c["reasons"][0]["code"] for c in result["candidates"]}
    assert codes == {"by_day": "NON_DETERMINISTIC", "off": "CACHE_DISABLED"}


@pytest.mark.parametrize(
    ("name", "text", "fragment"),
    [
        ("query", "SELECT regoin FROM sales", "did you mean region?"),
        ("query", "SELECT region FROM", "[SYNTAX_ERROR]"),
        ("schema", "CREATE TABLE sales (a INT", "[SYNTAX_ERROR]"),
        ("caches", "CREATE RELATIONAL CACH x AS SELECT 1", "line 1"),
        ("caches", "CREATE RELATIONAL CACHE x AS SELECT a FROM nowhere", "cache x: table nowhere"),
        (
            "caches",
            "CREATE RELATIONAL CACHE x AS SELECT rand() AS r FROM sales",
            "NON_DETERMINISTIC",
        ),
        ("caches", "CREATE RELATIONAL CACHE sales AS SELECT region FROM sales", "NAME_TAKEN"),
        ("caches", "DROP RELATIONAL CACHE x", "STATEMENT_NOT_SUPPORTED"),
        ("caches", CACHES + CACHES, "declared twice"),
        (
            "caches",
            "CREATE RECORD PRESERVING JOIN j AS sales INNER JOIN shops ON qty = k PRESERVES sales",
            "table shops is not declared",
        ),
    ],
)
def test_input_at_fault(
    files: list[str], tmp_path: Path, name: str, text: str, fragment: str
) -> None:
    (tmp_path / f"{name}.sql").write_text(text)
    run = CliRunner().invoke(main, ["explain", *files, "--json"])
    assert run.exit_code == 1
    assert fragment in run.stderr and run.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [[], ["--schema", "nowhere.sql"], ["--conf", "x"], ["--nonsense"]],
    ids=["nothing", "no-file", "conf", "option"],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, ["explain", *arguments]).exit_code == 2


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("spark.sql.caseSensitive=true", "SETTING_NOT_MODELLED"),
        ("spark.sql.legacy.timeParserPolicy=LEGACY", "SETTING_NOT_MODELLED"),
        ("spark.sql.ansi.enabled=perhaps", "BAD_SETTING"),
        ("spark.cachemgr.assumeExactAvreages=true", "UNKNOWN_SETTING"),
    ],
)
def test_settings_at_fault(files: list[str], setting: str, code: str) -> None:
    run = CliRunner().invoke(main, ["explain", *files, "--conf", setting])
    assert run.exit_code == 1 and code in run.stderr


@pytest.mark.parametrize(
    "setting",
    [
        "spark.sql.legacy.timeParserPolicy=corrected",  # its default
        "spark.sql.legacy.createHiveTableByDefault=true",
        "spark.sql.sources.partitionOverwriteMode=dynamic",
    ],
)
def test_settings_that_change_nothing_offline(files: list[str], setting: str) -> None:
    usual = CliRunner().invoke(main, ["explain", *files])
    run = CliRunner().invoke(main, ["explain", *files, "--conf", setting])
    assert (run.exit_code, run.stdout) == (usual.exit_code, usual.stdout), run.output


def test_settings_reach_the_matcher(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "query.sql").write_text("SELECT region, AVG(qty) AS a FROM sales GROUP BY region")
    runner = CliRunner()
    cold = json.loads(runner.invoke(main, ["explain", *files, "--json"]).stdout)
    assert "AVG_NOT_EXACT" in json.dumps(cold["candidates"])
    allowed = ["--conf", "spark.cachemgr.assumeExactAverages=true"]
    assert json.loads(runner.invoke(main, ["explain", *files, "--json", *allowed]).stdout)["hit"]


def test_batch(tmp_path: Path) -> None:
    case = {"schema": SCHEMA, "caches": CACHES, "query": QUERY}
    average = "SELECT region, AVG(qty) AS a FROM sales GROUP BY region"
    exact = {"spark.cachemgr.assumeExactAverages": True}
    cases = [
        {"id": "hit", **case},
        {"id": "at fault", **case, "query": "SELECT nope FROM sales"},
        {"id": "no query", "schema": SCHEMA, "caches": CACHES},
        {"id": "conf", **case, "query": average, "conf": exact},
        {"id": 7, **case, "query": average},
    ]
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases))
    run = CliRunner().invoke(main, ["explain", "--batch", str(path)])
    assert run.exit_code == 0, run.output
    results = json.loads(run.stdout)
    assert [r["id"] for r in results] == ["hit", "at fault", "no query", "conf", 7]
    assert [r.get("hit") for r in results] == [True, None, None, True, False]
    assert results[1]["error"]["code"] == "COLUMN_NOT_FOUND"
    assert set(results[1]) == {"id", "error"} and results[2]["error"]["code"] == "BAD_CASE"


def test_batch_at_fault(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    for text in ("{", "{}", "[1]"):
        path.write_text(text)
        run = CliRunner().invoke(main, ["explain", "--batch", str(path)])
        assert run.exit_code == 1 and "BAD_BATCH" in run.stderr


def test_an_error_of_ours_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("injected")

    workspace = offline.prepare(SCHEMA, CACHES)
    monkeypatch.setattr(type(workspace.registry), "decide", broken)
    result = offline.explain_query(workspace, QUERY)
    assert result["hit"] is False
    assert "INTERNAL_ERROR" in json.dumps(result["candidates"])


def test_neither_spark_nor_a_database_is_imported(files: list[str]) -> None:
    code = (
        "import sys; from cachemgr.cli import main\n"
        "try: main(['explain', '--json', *sys.argv[1:]])\n"
        "except SystemExit as end: assert not end.code\n"
        "bad = {m.split('.')[0] for m in sys.modules} & "
        "{'pyspark', 'delta', 'py4j', 'sqlalchemy', 'alembic', 'psycopg', 'psycopg2'}\n"
        "assert not bad, bad"
    )
    run = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["hit"]


def _ssb() -> str:
    tables = [
        f"CREATE TABLE {name} ({', '.join(f'{c} {t} NOT NULL' for c, t in columns)})"
        for name, columns in TABLES.items()
    ]
    return ";\n".join([*tables, published_view()])


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.name)
def test_the_demo_cube_answers_ssb(query) -> None:
    caches = ";\n".join([*RECORD_PRESERVING_JOINS, cube_ddl()])
    for number in range(len(query.parameters)):
        result = offline.explain(_ssb(), caches, query.sql(number))
        assert result["hit"], result["candidates"]
        assert result["caches"] == ["ssb_cube"]


def test_the_published_cube_is_read_in_its_own_spelling() -> None:
    caches = ";\n".join([*RECORD_PRESERVING_JOINS, published_ddl()])
    workspace = offline.prepare(_ssb(), caches)
    (plan,) = workspace.plans.values()
    assert len(plan.grouping_sets) == 14
    assert plan.grouping_sets[0].grouping_id != plan.grouping_sets[1].grouping_id


def test_a_text_that_is_too_deep_or_too_long_says_so() -> None:
    many = " OR ".join(f"(qty = {i} AND amount > {i})" for i in range(1_500))
    united = " UNION ALL ".join(["SELECT SUM(amount) AS a FROM sales"] * 1_500)
    for query in (f"SELECT SUM(amount) AS a FROM sales WHERE {many}", united):
        with pytest.raises(MatcherError) as caught:
            offline.explain(SCHEMA, CACHES, query)
        assert caught.value.code == "TEXT_TOO_DEEP"
