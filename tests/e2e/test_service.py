"""The service as a process on PostgreSQL, with a Spark of its own, and a user's session beside it:
a cache made by REST keeps itself fresh, and the session's queries follow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cachemgr
from cachemgr.metastore import open_metastore
from cachemgr.roles import Role
from tests.processes import Replica, replica_settings, replicas, until

pytestmark = [pytest.mark.spark, pytest.mark.postgres]
QUERY = "SELECT region, SUM(amount) AS total FROM sales GROUP BY region"
DDL = f"CREATE RELATIONAL CACHE totals REFRESH ON COMMIT AUTO STRICT AS {QUERY}"


def operated(url: str, folder: Path) -> Replica:
    """A service over the table `sales` in a folder; its client is an operator's."""
    with open_metastore(url) as store:
        _, token = store.tokens.create("ann", Role.OPERATOR)
    init = [f"CREATE TABLE sales USING delta LOCATION '{folder / 'sales'}'"]
    settings = replica_settings(url, folder, init, lease_seconds="10")
    return Replica("serve", folder, settings, token)


@pytest.fixture
def service(spark, postgres_url: str, tmp_path: Path) -> Iterator[Replica]:
    rows = [("north", 1), ("north", 2), ("south", 40), (None, None)]
    frame = spark.createDataFrame(rows, "region string, amount bigint")
    frame.write.format("delta").save(str(tmp_path / "sales"))
    with replicas(operated(postgres_url, tmp_path)) as (made,):
        yield made


@pytest.fixture
def session(spark, service: Replica, postgres_url: str, tmp_path: Path) -> Iterator[object]:
    """A user's session: it knows the table by the same name, and has the hook on."""
    mine = spark.newSession()
    # what is looked at is when a session hears of a refresh
    mine.conf.set("spark.cachemgr.freshHits", "false")
    mine.conf.set("spark.cachemgr.metastore.url", postgres_url)
    mine.conf.set("spark.cachemgr.location", str(tmp_path / "caches"))
    mine.sql(f"CREATE DATABASE service_{os.getpid()}")
    mine.sql(f"USE service_{os.getpid()}")
    mine.sql(f"CREATE TABLE sales USING delta LOCATION '{tmp_path / 'sales'}'")
    cachemgr.enable(mine)
    yield mine
    cachemgr.disable(mine)
    mine.sql(f"DROP DATABASE service_{os.getpid()} CASCADE")


def test_a_cache_made_by_rest_keeps_itself_fresh(service: Replica, session, tmp_path: Path):
    until(service.ready, 60, "the service answers")
    assert service.client.get("/readyz").json()["spark"] == "notStarted"
    made = service.client.post("/api/v1/caches", json={"ddl": DDL})
    assert made.status_code == 201, made.text
    assert service.client.get("/readyz").json()["spark"] == "running"
    assert made.json()["owner"] == "ann" and made.json()["trigger"]["kind"] == "ON_COMMIT"
    assert service.client.post("/api/v1/caches", json={"ddl": DDL}).status_code == 409

    def status() -> str:
        return service.client.get("/api/v1/caches/totals").json()["status"]["combined"]

    until(lambda: status() == "HEALTHY", 90, "the first refresh, by its trigger")
    until(lambda: cachemgr.explain(session, QUERY).hit, 10, "the session hits")
    before = {tuple(r) for r in session.sql(QUERY).collect()}
    assert before == {("north", 3), ("south", 40), (None, None)}

    session.sql("INSERT INTO sales VALUES ('south', 2), ('west', 5)")
    explained = cachemgr.explain(session, QUERY)
    assert not explained.hit and explained.reasons[0].code == "STALE"
    after = {("north", 3), ("south", 42), ("west", 5), (None, None)}
    assert {tuple(r) for r in session.sql(QUERY).collect()} == after
    until(lambda: cachemgr.explain(session, QUERY).hit, 60, "the refresh after the commit")
    assert {tuple(r) for r in session.sql(QUERY).collect()} == after

    runs = service.client.get("/api/v1/caches/totals/refreshes").json()["refreshes"]
    assert [r["state"] for r in runs] == ["PUBLISHED", "PUBLISHED"]
    assert {r["origin"] for r in runs} == {"SCHEDULE"}

    def explained_by_rest() -> dict[str, Any]:
        return service.client.post("/api/v1/explain", json={"sql": QUERY}).json()

    # each follows the metastore for itself
    until(lambda: explained_by_rest()["hit"], 10, "the service hits as well")
    answer = explained_by_rest()
    assert answer["caches"] == ["totals"] and answer["exact"], answer
    rewritten = service.client.post("/api/v1/rewrite", json={"sql": QUERY}).json()["sql"]
    assert {tuple(r) for r in session.sql(rewritten).collect()} == after
    missed = service.client.post("/api/v1/explain", json={"sql": "SELECT region FROM sales"})
    assert not missed.json()["hit"] and missed.json()["candidates"]
    wrong = service.client.post("/api/v1/explain", json={"sql": "SELEC 1"})
    assert not wrong.json()["hit"] and "SYNTAX_ERROR" in wrong.text

    asked = service.client.post("/api/v1/caches/totals/refreshes").json()
    done = service.client.get(f"/api/v1/refreshes/{asked['id']}", params={"waitSeconds": 60})
    assert done.json()["state"] == "UNCHANGED" and done.json()["requestedBy"] == "ann"
    shown = service.client.get("/metrics").text
    assert 'cachemgr_caches{refresh="UNCHANGED"} 1.0' in shown
    assert service.started.stop() == 0
    ours = service.started.events()
    assert any("refresh of default.totals asked for" in line["event"] for line in ours)
    assert not any(line.get("level") == "error" for line in ours)
    told = [line["event"] for line in ours if line["event"].startswith("Spark ")]
    assert len(told) == 2 and "starts" in told[0] and "runs after" in told[1]


def test_a_cache_over_a_cache_follows_it(service: Replica, session):
    until(service.ready, 60, "the service answers")
    over = (
        "CREATE RELATIONAL CACHE whole REFRESH ON COMMIT AUTO STRICT AS "
        "SELECT SUM(total) AS total FROM totals"
    )
    missing = service.client.post("/api/v1/caches", json={"ddl": over})
    assert missing.status_code == 400 and "no relational cache has that name" in missing.text
    for ddl in (DDL, over):
        made = service.client.post("/api/v1/caches", json={"ddl": ddl})
        assert made.status_code == 201, made.text
    assert made.json()["dependsOn"] == ["default.totals"] and "FROM totals" in made.json()["ddl"]
    circle = DDL.replace("CREATE", "CREATE OR REPLACE").replace("FROM sales", "FROM whole")
    circle = circle.replace("amount", "total").replace("region, ", "").split(" GROUP")[0]
    refused = service.client.post("/api/v1/caches", json={"ddl": circle})
    assert refused.status_code == 400 and "totals → whole → totals" in refused.text
    dropped = service.client.delete("/api/v1/caches/totals")
    assert (dropped.status_code, dropped.json()["error"]["type"]) == (409, "CACHE_HAS_DEPENDANTS")

    def published() -> int:
        runs = service.client.get("/api/v1/caches/whole/refreshes").json()["refreshes"]
        return [r["state"] for r in runs].count("PUBLISHED")

    total = "SELECT SUM(amount) AS total FROM sales"
    until(lambda: published() == 1, 120, "both are refreshed")
    until(lambda: cachemgr.explain(session, total).hit, 10, "the session hits")
    assert session.sql(total).collect()[0][0] == 43
    session.sql("INSERT INTO sales VALUES ('south', 2), ('west', 5)")
    until(lambda: published() == 2, 90, "both are refreshed after the commit")
    until(lambda: cachemgr.explain(session, total).hit, 10, "the session hits again")
    assert session.sql(total).collect()[0][0] == 50
    runs = service.client.get("/api/v1/caches/whole/refreshes").json()["refreshes"]
    reasons = [r["reason"] for r in runs if r["state"] == "PUBLISHED"]
    assert all("from cache totals, which holds these versions" in r for r in reasons), reasons
