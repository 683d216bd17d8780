"""Statements that write, by REST and by the command line: what they change and who may."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest

from cachemgr import statements
from cachemgr.errors import CacheManagerError
from cachemgr.metastore.statement_records import commit_mark
from tests.processes import until
from tests.worlds.statement_world import BY_REGION, World

# minutes of it, whatever the machine
ENDLESS = "INSERT INTO sales (id, amt) SELECT 99, SUM(hash(a.id, b.id)) FROM big a CROSS JOIN big b"


def commits(world: World, statement_id: str, table: str = "sales") -> list[dict[str, Any]]:
    """What the commits of a statement say of it."""
    found = []
    for file in sorted((world.folder / "tables" / table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        found += [
            {**a["commitInfo"], "version": int(file.stem)} for a in actions if "commitInfo" in a
        ]
    return [c for c in found if c.get("userMetadata") == commit_mark(statement_id)]


def check_by_region(world: World) -> None:
    """The cache's query has the rows that the table has, whoever asks for them."""
    query = f"{BY_REGION} ORDER BY region"
    expected = [tuple(r) for r in world.lab.plain.sql(query).collect()]
    assert world.rows(query) == expected
    code, piped, told = world.query(query, "-o", "-")
    assert code == 0, told
    import pyarrow as pa

    rows = pa.ipc.open_stream(piped).read_all().to_pylist()
    assert [tuple(row.values()) for row in rows] == expected


def test_what_is_written_is_read_at_once(world: World) -> None:
    assert world.run(BY_REGION)["caches"] == [f"{world.lab.schema}.by_region"]
    for text, told in (
        ("INSERT INTO sales (id, region, amt) VALUES (20, 'north', 5), (21, 'east', 7)", []),
        ("UPDATE sales SET amt = 6 WHERE id = 20", [{"num_affected_rows": 1}]),
        ("DELETE FROM sales WHERE region = 'west'", [{"num_affected_rows": 1}]),
        (
            "MERGE INTO sales t USING (SELECT id FROM big WHERE id IN (21, 22)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET amt = 8 WHEN NOT MATCHED THEN INSERT (id, region, amt) "
            "VALUES (s.id, 'east', 1)",
            [
                {
                    "num_affected_rows": 2,
                    "num_updated_rows": 1,
                    "num_deleted_rows": 0,
                    "num_inserted_rows": 1,
                }
            ],
        ),
        ("INSERT OVERWRITE sales SELECT * FROM sales WHERE id <> 22", []),
    ):
        found = world.run(text, "wil")
        assert found["state"] == "FINISHED", found
        (commit,) = commits(world, found["id"])
        assert found["written"] == {"table": "sales", "version": commit["version"]}
        assert found["caches"] is None and found["rows"] == len(told)
        with world.client("wil") as client:
            rows = [r for b in client.batches(found["id"]) for r in b.to_pylist()]
        assert rows == told
        check_by_region(world)


def sums(world: World) -> list[tuple[Any, ...]]:
    rows = world.lab.plain.sql("SELECT region, s, n FROM sums ORDER BY ALL").collect()
    return [tuple(row) for row in rows]


def test_what_a_cache_answers_is_inserted_as_it_is_now(world: World) -> None:
    world.lab.sql("REFRESH RELATIONAL CACHE by_region")
    text = f"INSERT OVERWRITE sums BY NAME {BY_REGION}"
    for change in ("", "INSERT INTO sales (id, region, amt) VALUES (60, 'south', 11)"):
        if change:
            assert world.run(change, "wil")["state"] == "FINISHED"
        found = world.run(text, "wil")
        assert found["state"] == "FINISHED", found
        expected = world.lab.plain.sql(f"{BY_REGION} ORDER BY ALL").collect()
        assert sums(world) == [tuple(row) for row in expected]


def test_what_overwrites_some_partitions(world: World) -> None:
    """The one setting of writes that a statement may bring with it."""
    mode = "spark.sql.sources.partitionOverwriteMode"
    assert world.run("INSERT OVERWRITE sums VALUES (1, 1, 'a'), (2, 2, 'b')", "wil")["written"]
    text = "INSERT OVERWRITE sums SELECT 3, 3, 'b'"
    found = world.run(text, "wil", settings={mode: "dynamic"})
    assert found["state"] == "FINISHED", found
    assert sums(world) == [("a", 1, 1), ("b", 3, 3)]
    assert world.run(text, "wil")["state"] == "FINISHED"
    assert sums(world) == [("b", 3, 3)]
    with world.http("wil") as http:
        refused = http.post("/statements", json={"sql": text, "settings": {mode: "x"}})
    assert refused.json()["error"]["type"] == "SETTING_REFUSED"


def test_where_there_is_nothing_to_change(world: World) -> None:
    found = world.run("DELETE FROM sales WHERE id = -1", "wil")
    assert (found["state"], found["written"]["version"]) == ("FINISHED", None)
    code, _, told = world.query("UPDATE sales SET amt = 1 WHERE id = -1", who="wil")
    assert code == 0 and "nothing to change in sales" in told


def test_who_may_write_where(world: World) -> None:
    insert = "INSERT INTO sales (id) VALUES (30)"
    before = world.lab.plain.sql("SELECT COUNT(*) FROM sales").collect()
    assert "statement_writers" in world.run(insert)["error"]["message"]
    assert world.refused(insert, "bob") == "STATEMENT_REFUSED"
    assert world.refused("INSERT INTO cust VALUES (9, 'x', 'y')", "wil") == "SELECT_NOT_GRANTED"
    assert world.refused("INSERT INTO sales (id) SELECT cid FROM cust", "wil") == (
        "SELECT_NOT_GRANTED"
    )
    assert world.refused("DROP TABLE sales", "wil") == "STATEMENT_REFUSED"
    assert world.refused("REFRESH RELATIONAL CACHE by_region", "wil") == "STATEMENT_REFUSED"
    with world.http("wil") as http:
        key = "spark.databricks.delta.schema.autoMerge.enabled"
        refused = http.post("/statements", json={"sql": insert, "settings": {key: "true"}})
        assert refused.json()["error"]["type"] == "SETTING_REFUSED"
    assert world.lab.plain.sql("SELECT COUNT(*) FROM sales").collect() == before


def test_one_that_fails_has_written_nothing(world: World) -> None:
    half = "SELECT IF(id = 150000, raise_error('half'), id) FROM big"
    found = world.run(f"INSERT INTO sales (id) {half}", "wil")
    assert (found["state"], found["error"]["type"]) == ("FAILED", "USER_RAISED_EXCEPTION")
    assert commits(world, found["id"]) == []
    found = world.run("INSERT INTO sales (id, amt) VALUES (NULL, 1)", "wil")
    assert found["state"] == "FAILED" and "NOT_NULL" in found["error"]["type"], found


def test_no_column_comes_with_a_write(world: World) -> None:
    """Though the application's sessions let schemas evolve."""
    for text in (
        "INSERT INTO sales BY NAME SELECT 1L AS id, 2 AS nope",
        "MERGE INTO sales t USING (SELECT 70L AS id, 2 AS nope) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *",
    ):
        found = world.run(text, "wil")
        assert found["state"] == "FAILED" and commits(world, found["id"]) == [], found
    assert "nope" not in world.lab.plain.table("sales").columns


def test_one_that_is_cancelled_or_late_has_written_nothing(world: World) -> None:
    statement_id = world.submitted(ENDLESS, "wil")
    with world.http("wil") as http:
        until(
            lambda: http.get(f"/statements/{statement_id}").json()["written"], 60, "it is Spark's"
        )
        assert http.post(f"/statements/{statement_id}/cancel").status_code == 200
        seen = http.get(f"/statements/{statement_id}", params={"waitSeconds": 60}).json()
    assert seen["state"] == "CANCELED", seen
    late = world.run(ENDLESS, "wil", timeoutSeconds=2)
    assert (late["state"], late["error"]["type"]) == ("FAILED", "STATEMENT_TIMED_OUT")
    time.sleep(1)
    assert commits(world, statement_id) == commits(world, late["id"]) == []
    assert world.run("UPDATE sales SET amt = amt WHERE id = 1", "wil")["state"] == "FINISHED"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_tells_how_it_ended(world: World, number: signal.Signals) -> None:
    process = world.cli("query", ENDLESS, who="wil")
    with world.http("wil") as http:

        def spark_has_it() -> bool:
            listed = http.get("/statements", params={"state": "RUNNING"}).json()["statements"]
            return any(s["written"] for s in listed)

        until(spark_has_it, 60, "it is Spark's")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and b"CANCELED: nothing was written" in err, err


def test_a_process_that_is_stopped_tells_how_it_ended(world: World) -> None:
    statement_id = world.submitted(ENDLESS, "wil")
    with world.http("wil") as http:
        until(
            lambda: http.get(f"/statements/{statement_id}").json()["written"], 60, "it is Spark's"
        )
        assert world.worker.started.stop() == 0
        seen = http.get(f"/statements/{statement_id}").json()
    world.worker.start()
    assert (seen["state"], seen["error"]["type"]) == ("FAILED", "OWNER_LOST"), seen
    assert commits(world, statement_id) == []


def test_by_the_command_line_and_in_python(world: World) -> None:
    code, out, told = world.query("INSERT INTO sales (id) VALUES (40)", "--key", "k", who="wil")
    assert (code, out) == (0, b"") and "of sales is written" in told
    again = world.query("INSERT INTO sales (id) VALUES (40)", "--key", "k", who="wil")
    assert again == (code, out, told)
    code, _, other = world.query("INSERT INTO sales (id) VALUES (41)", "--key", "k", who="wil")
    assert code == 1 and "STATEMENT_KEY_USED" in other
    code, out, told = world.query("UPDATE sales SET amt = 2 WHERE id = 40", who="wil")
    assert code == 0 and b"num_affected_rows" in out and b"1" in out
    assert world.query("INSERT INTO sales (id) VALUES (42)")[0] == 1
    asked = {"server": world.serve.address, "token": world.tokens["wil"]}
    text = "DELETE FROM sales WHERE id BETWEEN 40 AND 45"
    for _ in range(2):
        (batch,) = statements.fetch(text, key="purge", **asked)
        assert batch.to_pylist() == [{"num_affected_rows": 1}]
    (batch,) = statements.fetch("INSERT INTO sales (id) VALUES (43)", **asked)
    assert (batch.num_rows, batch.num_columns) == (0, 0)
    with pytest.raises(CacheManagerError, match="STATEMENT_REFUSED"):
        next(statements.fetch("TRUNCATE TABLE sales", **asked))


def test_a_result_without_rows_is_read_in_every_way(world: World) -> None:
    found = world.run("INSERT INTO sales (id) VALUES (50)", "wil")
    path = f"/statements/{found['id']}"
    with world.http("wil") as http, world.http("olga") as olga:
        for end in ("result?format=arrow", "result?format=parquet", "rows"):
            assert http.get(f"{path}/{end}").status_code == 200, end
        assert http.get(f"{path}/files").json() == {"columns": [], "files": []}
        assert http.get(f"{path}/files/0").status_code == 404
        assert olga.get(path).json()["written"] == found["written"]
        assert http.delete(f"{path}/result").status_code == 204
        told = http.get(f"{path}/rows").json()["error"]
        assert told["type"] == "STATEMENT_EXPIRED" and "is written" in told["message"]
