"""Statements by REST: rows, rights, bounds."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cachemgr.errors import CacheManagerError
from cachemgr.metastore import open_metastore
from cachemgr.results.client import StatementClient
from cachemgr.roles import Role
from tests.worlds.statement_world import BIG, BY_REGION, ENDLESS, World


def test_rows_and_the_cache_that_they_came_from(world: World) -> None:
    found = world.run(f"{BY_REGION} ORDER BY region")
    assert (found["state"], found["rows"], found["ordered"]) == ("FINISHED", 4, True)
    assert found["caches"] == [f"{world.lab.schema}.by_region"] and found["truncated"] is False
    assert [c["name"] for c in found["columns"]] == ["region", "s", "n"]
    expected = [tuple(r) for r in world.lab.plain.sql(f"{BY_REGION} ORDER BY region").collect()]
    with world.client() as client:
        (batch,) = client.batches(found["id"])
    assert [tuple(row.values()) for row in batch.to_pylist()] == expected
    assert world.run("SELECT id FROM sales")["caches"] == []


def test_a_page_at_a_time(world: World) -> None:
    found = world.run("SELECT * FROM big ORDER BY id DESC")
    with world.http() as http:
        pages, params = [], {"pageSize": 70_001}
        while True:
            answer = http.get(f"/statements/{found['id']}/rows", params=params)
            assert answer.status_code == 200, answer.text
            pages.append(pa.ipc.open_stream(answer.content).read_all())
            token = answer.headers.get("Cachemgr-Next-Page-Token")
            if token is None:
                break
            params["pageToken"] = token
        assert [len(p) for p in pages] == [70_001, 70_001, BIG - 140_002]
        ids = [n for page in pages for n in page.column("id").to_pylist()]
        assert ids == list(range(BIG - 1, -1, -1))
        wrong = {"pageToken": f"{params['pageToken'][:-3]}abc"}
        refused = http.get(f"/statements/{found['id']}/rows", params=wrong)
        assert (refused.status_code, refused.json()["error"]["type"]) == (400, "PAGE_TOKEN")


def test_two_clients_read_one_result(world: World) -> None:
    found = world.run("SELECT id FROM big ORDER BY id")

    def read(_: int) -> list[int]:
        with world.client() as client:
            return [n for b in client.batches(found["id"]) for n in b.column(0).to_pylist()]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(read, range(2))) == [list(range(BIG))] * 2


def test_who_may_read_what(world: World) -> None:
    assert world.refused("SELECT * FROM sales", "bob") == "SELECT_NOT_GRANTED"
    assert world.refused("SELECT * FROM cust") == "SELECT_NOT_GRANTED"
    assert world.refused("SELECT * FROM nothing") == "SELECT_NOT_GRANTED"
    assert world.refused("INSERT INTO sales (id) VALUES (1)") == "STATEMENT_REFUSED"
    assert world.refused("SET spark.sql.ansi.enabled = false") == "STATEMENT_REFUSED"
    assert world.refused("SELECT reflect('java.lang.System', 'exit')") == "STATEMENT_REFUSED"
    found = world.run("SELECT * FROM sales")
    path = f"/statements/{found['id']}"
    with world.http("bob") as bob, world.http("olga") as olga:
        for end in ("", "/rows", "/result", "/files", "/files/0"):
            assert bob.get(path + end).json()["error"]["type"] == "STATEMENT_NOT_FOUND"
            told = olga.get(path + end)
            assert told.status_code == (200 if end == "" else 403), told.text
        assert bob.post(f"{path}/cancel").status_code == 404
        assert bob.get("/statements").json()["statements"][0]["principal"] == "bob"
        everybody = {s["principal"] for s in olga.get("/statements").json()["statements"]}
        assert everybody == {"ann", "bob"}
        assert {s["principal"] for s in bob.get("/statements").json()["statements"]} == {"bob"}


def test_a_right_that_is_taken_ends_the_reading(world: World) -> None:
    world.grant("cust")
    found = world.run("SELECT * FROM cust")
    place = f"file:{world.folder}/tables/cust"
    with world.http() as http:
        assert http.get(f"/statements/{found['id']}/rows").status_code == 200
        with open_metastore(world.lab.url) as store:
            assert store.select_grants.remove(place, "ann")
        for end in ("rows", "result", "files", "files/0"):
            told = http.get(f"/statements/{found['id']}/{end}")
            assert (told.status_code, told.json()["error"]["type"]) == (403, "SELECT_NOT_GRANTED")


def test_a_statement_is_run_once_by_its_key(world: World) -> None:
    key = {"Idempotency-Key": "nightly"}
    with world.http() as http, world.http("bob") as bob:
        first, second = (
            http.post("/statements", json={"sql": "SELECT 1", "waitSeconds": wait}, headers=key)
            for wait in (30, 0)
        )
        assert first.json() == second.json() and first.json()["state"] == "FINISHED"
        other = http.post("/statements", json={"sql": "SELECT 2"}, headers=key)
        assert (other.status_code, other.json()["error"]["type"]) == (409, "STATEMENT_KEY_USED")
        assert bob.post("/statements", json={"sql": "SELECT 2"}, headers=key).status_code == 202


def test_no_view_setting_or_variable_survives_a_statement(world: World) -> None:
    asked = {"settings": {"spark.sql.session.timeZone": "Asia/Tokyo"}}
    query = "SELECT CAST(TIMESTAMP'2024-01-01 00:00:00 UTC' AS STRING) AS t"
    found = world.run(query, **asked)
    with world.client() as client:
        (batch,) = client.batches(found["id"])
        assert batch.to_pylist() == [{"t": "2024-01-01 09:00:00"}]
    assert world.rows(query) == [("2024-01-01 00:00:00",)]
    with world.http() as http:
        for key in (
            "spark.driver.memory",
            "spark.sql.catalog.other",
            "spark.sql.shuffle.partitions",
            "spark.hadoop.fs.s3a.endpoint",
            "fs.s3a.endpoint",
            "spark.cachemgr.mode",
        ):
            refused = http.post("/statements", json={"sql": "SELECT 1", "settings": {key: "x"}})
            assert refused.json()["error"]["type"] == "SETTING_REFUSED", key


def test_whoever_waits_too_much_is_refused(world: World) -> None:
    ids = [world.submitted(ENDLESS) for _ in range(2)]
    ids += [world.submitted("SELECT 1", state="PENDING") for _ in range(3)]
    with world.http() as http:
        refused = http.post("/statements", json={"sql": "SELECT 1"})
        assert (refused.status_code, refused.json()["error"]["type"]) == (
            429, "TOO_MANY_STATEMENTS",
        )  # fmt: skip
        for each in reversed(ids):
            assert http.post(f"/statements/{each}/cancel").status_code == 200
        for each in ids:
            seen = http.get(f"/statements/{each}", params={"waitSeconds": 60}).json()
            assert seen["state"] == "CANCELED" and "ann" in seen["error"]["message"]
        assert http.post(f"/statements/{ids[0]}/cancel").status_code == 409


def test_a_statement_ends_when_its_time_is_up(world: World) -> None:
    found = world.run(ENDLESS, timeoutSeconds=1.5)
    assert (found["state"], found["error"]["type"]) == ("FAILED", "STATEMENT_TIMED_OUT")
    assert not (world.folder / "results" / found["id"] / "1" / "manifest.json").exists()


def test_a_failing_query_says_what_spark_says(world: World) -> None:
    found = world.run("SELECT IF(id = 150000, raise_error('half'), id) AS v FROM big")
    assert found["error"]["type"] == "USER_RAISED_EXCEPTION"
    assert "half" in found["error"]["message"] and "\n" not in found["error"]["message"]
    assert world.refused("SELECT nothing FROM sales") == "STATEMENT_INVALID"
    assert world.refused("SELEC 1") == "SYNTAX_ERROR"
    assert world.refused("SELECT make_interval(1) AS v FROM big") == "RESULT_TYPE"


def test_files_are_private_and_read_in_ranges(world: World) -> None:
    found = world.run("SELECT * FROM big")
    run = world.folder / "results" / found["id"] / "1"
    assert (run.stat().st_mode & 0o777, run.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    assert {p.stat().st_mode & 0o777 for p in run.iterdir()} == {0o600}
    with world.http() as http:
        listed = http.get(f"/statements/{found['id']}/files").json()
        assert sum(f["rows"] for f in listed["files"]) == BIG == found["rows"]
        path = listed["files"][0]["href"].removeprefix("/api/v1")
        whole = http.get(path)
        assert pq.ParquetFile(io.BytesIO(whole.content)).schema_arrow.names == ["c0", "c1", "c2"]
        part = http.get(path, headers={"Range": "bytes=100-199", "If-Range": whole.headers["etag"]})
        assert (part.status_code, part.content) == (206, whole.content[100:200])
        other = http.get(path, headers={"Range": "bytes=100-199", "If-Range": '"other"'})
        assert (other.status_code, len(other.content)) == (200, len(whole.content))
        assert http.get(f"{path}9").json()["error"]["type"] == "NOT_FOUND"


def test_a_result_as_one_parquet_file(world: World) -> None:
    found = world.run("SELECT id, id AS id, s FROM big ORDER BY id", maxRows=150_000)
    assert found["truncated"] and found["rows"] == 150_000
    with world.http() as http:
        params = {"format": "parquet"}
        content = http.get(f"/statements/{found['id']}/result", params=params).content
        table = pq.ParquetFile(io.BytesIO(content)).read()
        assert table.schema.names == ["id", "id", "s"]
        assert table.column(0).to_pylist() == list(range(150_000))
        unknown = http.get(f"/statements/{found['id']}/result", params={"format": "csv"})
        assert unknown.status_code == 422 or unknown.status_code == 400


def test_a_result_that_is_damaged_or_given_up(world: World) -> None:
    found = world.run("SELECT id FROM big")
    path = f"/statements/{found['id']}"
    run = world.folder / "results" / found["id"] / "1"
    next(run.glob("part-*")).write_bytes(b"PAR1")
    with world.http() as http:
        assert http.get(f"{path}/rows").json()["error"]["type"] == "RESULT_DAMAGED"
        assert http.delete(f"{path}/result").status_code == 204
        told = http.get(f"{path}/rows")
        assert (told.status_code, told.json()["error"]["type"]) == (409, "STATEMENT_EXPIRED")
        assert http.get(path).json()["state"] == "EXPIRED"


def test_a_stream_that_breaks_off_looks_like_none_that_is_whole(
    world: World, tmp_path: Path
) -> None:
    found = world.run("SELECT id, hash(id) AS h, CONCAT('s', id * 7919) AS s FROM big ORDER BY id")
    run = world.folder / "results" / found["id"] / "1"
    (file,) = run.glob("part-*")
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 4096] = bytes(4096)
    file.write_bytes(content)
    path = f"/statements/{found['id']}/result"
    with world.http() as http:
        for kind in ("arrow", "parquet"):
            try:
                answer = http.get(path, params={"format": kind})
            except httpx.RemoteProtocolError:
                continue
            assert answer.json()["error"]["type"] == "RESULT_DAMAGED"
    client = StatementClient(world.serve.address, world.tokens["ann"], patience=3)
    with pytest.raises(CacheManagerError, match=r"RESULT_DAMAGED|SERVICE_UNREACHABLE"):
        list(client.batches(found["id"]))
    out = tmp_path / "out.parquet"
    assert world.query("--statement", found["id"], "-o", str(out))[0] == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("taken", ["grant", "token", "result"])
def test_who_has_no_right_any_more_reads_no_further(world: World, taken: str) -> None:
    with open_metastore(world.lab.url) as store:
        token, bearer = store.tokens.create("ann", Role.VIEWER)
        place = f"file:{world.folder}/tables/big"
        found = world.run("SELECT repeat(s, 300) AS t FROM big WHERE id < 60000")
        http = httpx.Client(
            base_url=f"{world.serve.address}/api/v1",
            headers={"Authorization": f"Bearer {bearer}"},
            timeout=60,
        )
        with http, http.stream("GET", f"/statements/{found['id']}/result") as answer:
            pieces = answer.iter_raw(1 << 16)
            got = len(next(pieces))
            if taken == "grant":
                assert store.select_grants.remove(place, "ann")
            elif taken == "token":
                store.tokens.revoke(token.id)
            else:
                store.statements.discard(found["id"])
            time.sleep(1.5)
            with pytest.raises(httpx.RemoteProtocolError):
                got += sum(map(len, pieces))
        assert got < 300 * 6 * 60_000
        world.grant("big")


def test_wide_values_cost_the_service_no_memory(world: World) -> None:
    found = world.run("SELECT repeat('x', 20000) AS t FROM big WHERE id < 30000")
    before = world.serve.rss_mb()
    with world.client() as client:
        assert sum(len(b) for b in client.batches(found["id"])) == 30_000
    with world.http() as http:
        page = http.get(f"/statements/{found['id']}/rows", params={"pageSize": 1})
        assert len(page.content) < 100_000
    assert world.serve.rss_mb() - before < 200


def test_the_user_is_who_asks(world: World) -> None:
    assert world.rows("SELECT current_user() AS u, session_user() AS s") == [("ann", "ann")]


def test_no_values_of_rows_are_told_to_others(world: World) -> None:
    failed = world.run("SELECT CAST(s AS INT) AS n FROM big")
    assert "n1" in failed["error"]["message"] or "'n" in failed["error"]["message"]
    with world.http("olga") as olga:
        told = olga.get(f"/statements/{failed['id']}").json()
    assert told["error"] == {"type": failed["error"]["type"], "message": None}
    assert "The value 'n" not in world.worker.started.text()


def test_a_statement_that_spark_plans_for_ever_is_given_up(world: World) -> None:
    endless = (
        "SELECT aggregate(sequence(1, 3000), 0L, (a, x) -> a + aggregate(sequence(1, 30000), 0L, "
        "(b, y) -> b + y)) AS n"
    )
    found = world.run(endless, timeoutSeconds=1.5)
    assert (found["state"], found["error"]["type"]) == ("FAILED", "STATEMENT_TIMED_OUT")
    assert world.rows("SELECT 7 AS n") == [(7,)]
