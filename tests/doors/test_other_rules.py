"""Optimizer rules of others beside ours, which authorise a query by its tables or filter their
rows, listed before and after ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import spark_start
from tests.doors.spark_server import CLASS_PATH, server_conf, spark_sql
from tests.javac import compiled, write_jar

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_OURS, _THEIRS = "relationalcache.Extension", "authorising.Rules"
_DELTA = "io.delta.sql.DeltaSparkSessionExtension"
_QUERY = "SELECT k, COUNT(*) FROM t GROUP BY k"


_ORDERS = pytest.mark.parametrize(
    "order",
    [
        pytest.param((_THEIRS, _OURS), id="before"),
        pytest.param((_OURS, _THEIRS), id="after"),
    ],
)


def _with_rules(folder: Path, conf: dict[str, str], order: tuple[str, str]) -> dict[str, str]:
    jar = folder / "rules.jar"
    source = Path(__file__).parent / "java" / "Rules.java"
    write_jar(jar, compiled([source], spark_start.class_path()))
    return conf | {
        CLASS_PATH: f"{conf[CLASS_PATH]}:{jar}",
        "spark.sql.extensions": ",".join((_DELTA, *order)),
    }


@_ORDERS
def test_a_rule_that_authorises_sees_the_tables_of_the_query(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    # what is pinned shows no file to a rule
    conf = _with_rules(tmp_path, server_conf(tmp_path, pin_enabled="false"), order)
    texts = [
        "CREATE TABLE t USING delta AS SELECT id, id % 3 AS k FROM range(3000)",
        f"CREATE RELATIONAL CACHE c AS {_QUERY.replace('COUNT(*)', 'COUNT(*) AS n')}",
        "REFRESH RELATIONAL CACHE c",
    ]
    for where in ("rules", "later"):
        for what, denied in (
            ("", ""),
            ("authorise", "x"),
            ("authorise", "caches/"),
            ("filter", ""),
        ):
            texts += [f"SELECT '#### {where} {what} {denied}'", f"SET test.{where}={what}"]
            texts += [f"SET test.denied={denied}", f"EXPLAIN {_QUERY}", f"{_QUERY} ORDER BY k"]
        texts += [f"RESET test.{where}"]
    texts += ["SET test.rules=authorise", "SET test.denied=warehouse/t", f"{_QUERY} ORDER BY k"]
    done = spark_sql(tmp_path, conf, texts)
    found = {part.splitlines()[0].strip(): part for part in done.stdout.split("#### ")[1:]}
    hits = {what: "FileScan parquet relational_cache.c@v" in found[what] for what in found}
    # who may not read the cache's files has his query answered without them
    expected = {"": True, " authorise x": True, " authorise caches/": False}
    expected = {
        f"{where}{what}": hit for where in ("rules", "later") for what, hit in expected.items()
    }
    # a filter that Spark adds in a later batch is for the query's own tables
    assert hits == expected | {"rules filter": True, "later filter": False}, (
        done.stdout + done.stderr
    )
    rows = "0\t1000\n1\t1000\n"
    assert all(f"{rows}2\t1000\n" in found[what] for what in expected)
    for what in ("rules filter", "later filter"):
        assert rows in found[what] and "2\t1000" not in found[what]
    # who may not read the table has no answer from the cache
    assert done.returncode != 0 and "warehouse/t denied" in done.stderr


@_ORDERS
def test_a_kept_decision_is_shown_to_them_each_time(tmp_path: Path, order: tuple[str, str]) -> None:
    """What a rule does may change with each query, by who asks or by what it asks elsewhere."""
    conf = _with_rules(tmp_path, server_conf(tmp_path), order)
    asked = _QUERY.replace("GROUP", "WHERE k <> {} GROUP") + " ORDER BY k"
    texts = [
        "CREATE TABLE t USING delta AS SELECT id, id % 3 AS k FROM range(3000)",
        f"CREATE RELATIONAL CACHE c AS {_QUERY.replace('COUNT(*)', 'COUNT(*) AS n')}",
        "REFRESH RELATIONAL CACHE c",
    ]
    for k in range(100, 110):
        texts += [asked.format(k), "SELECT java_method('java.lang.Thread', 'sleep', 500L)"]
    for what in ("", "filter", "", "authorise"):
        texts += [f"SET test.rules={what}", "SET test.denied=warehouse/t"]
        texts += [f"SELECT '#### {what}'", f"EXPLAIN {asked.format(200)}", asked.format(200)]
    done = spark_sql(tmp_path, conf, texts)
    open_, filtered, again, *rest = done.stdout.split("#### ")[1:]
    for shown in (open_, again):  # answered by rows held in the driver
        assert "LocalTableScan" in shown and "2\t1000" in shown, done.stdout + done.stderr
    assert "1\t1000" in filtered and "2\t1000" not in filtered
    # who may not read the table has no answer
    assert done.returncode != 0 and "warehouse/t denied" in done.stderr
    assert not any("1\t1000" in shown for shown in rest)
