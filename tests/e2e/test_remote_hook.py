"""A session that follows the service and has no metastore: it hits, misses and hits again, goes on
while the service is down, and stops when its token is revoked. No query waits for the service."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import cachemgr
from cachemgr.errors import ConfigurationError
from cachemgr.metastore import open_metastore
from cachemgr.roles import Role
from cachemgr.serving import freshness
from cachemgr.spark import api
from tests.e2e.test_service import DDL, QUERY, operated
from tests.processes import Replica, replicas, until

pytestmark = [pytest.mark.spark, pytest.mark.postgres]
LAGGING = (
    "CREATE RELATIONAL CACHE lagging REFRESH ON DEMAND MAX STALENESS INTERVAL 1 HOUR AS "
    "SELECT region, COUNT(*) AS n FROM sales GROUP BY region"
)
COUNTED = "SELECT region, COUNT(*) AS n FROM sales GROUP BY region"
FIRST = {("north", 3), ("south", 40), (None, None)}


@pytest.fixture(scope="module")
def lab(spark, postgres_server: str, tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("remote")
    rows = [("north", 1), ("north", 2), ("south", 40), (None, None)]
    frame = spark.createDataFrame(rows, "region string, amount bigint")
    frame.write.format("delta").save(str(folder / "sales"))
    yield folder


@pytest.fixture
def service(lab: Path, postgres_url: str) -> Iterator[Replica]:
    with replicas(operated(postgres_url, lab)) as (made,):
        yield made


@pytest.fixture
def session(spark, service: Replica, postgres_url: str, lab: Path) -> Iterator[object]:
    with open_metastore(postgres_url) as store:
        record, token = store.tokens.create("bob", Role.VIEWER)
    mine = spark.newSession()
    # what is looked at is when a session hears of a refresh
    mine.conf.set("spark.cachemgr.freshHits", "false")
    mine.conf.set("spark.cachemgr.url", str(service.client.base_url))
    mine.conf.set("spark.cachemgr.token", token)
    name = f"remote_{time.time_ns()}"
    mine.sql(f"CREATE DATABASE {name}")
    mine.sql(f"USE {name}")
    mine.sql(f"CREATE TABLE sales USING delta LOCATION '{lab / 'sales'}'")
    mine.token = record.id
    cachemgr.enable(mine)
    yield mine
    cachemgr.disable(mine)
    mine.sql(f"DROP DATABASE {name} CASCADE")


def hits(session, query: str) -> bool:
    return cachemgr.explain(session, query).hit


def why_not(session, query: str) -> set[str]:
    explained = cachemgr.explain(session, query)
    assert not explained.hit, explained
    return {reason.code for reason in explained.reasons}


def rows(session, query: str) -> set[tuple]:
    return {tuple(r) for r in session.sql(query).collect()}


def feed_of(session):
    return api._of(session).session.feed


def refreshed(service: Replica, name: str) -> None:
    asked = service.client.post(f"/api/v1/caches/{name}/refreshes").json()

    def over() -> bool:
        path, wait = f"/api/v1/refreshes/{asked['id']}", {"waitSeconds": 60}
        state = service.client.get(path, params=wait).json()["state"]
        assert state in ("PENDING", "RUNNING", "PUBLISHED", "UNCHANGED"), state
        return state in ("PUBLISHED", "UNCHANGED")

    until(over, 240, f"the refresh of {name}")


def test_the_whole_life_of_a_remote_session(
    session, service: Replica, postgres_url: str, monkeypatch
):
    until(service.ready, 90, "the service answers")
    for ddl in (DDL, LAGGING):
        made = service.client.post("/api/v1/caches", json={"ddl": ddl})
        assert made.status_code == 201, made.text
    refreshed(service, "lagging")
    until(lambda: hits(session, QUERY), 240, "the session hits")
    assert rows(session, QUERY) == FIRST

    # no query asks the service: what is asked is asked by the feed's thread
    asked: list[str] = []
    request = httpx.Client.request

    def noted(self, *args, **more):
        asked.append(threading.current_thread().name)
        return request(self, *args, **more)

    monkeypatch.setattr(httpx.Client, "request", noted)
    for _ in range(3):
        rows(session, QUERY)
        rows(session, "SELECT region FROM sales")
    until(lambda: asked, 10, "the feed goes on")
    assert set(asked) == {"cachemgr-feed"}

    session.sql("INSERT INTO sales VALUES ('south', 2), ('west', 5)")
    assert "STALE" in why_not(session, QUERY)
    assert hits(session, COUNTED), "an hour's lag is allowed"
    second = {("north", 3), ("south", 42), ("west", 5), (None, None)}
    assert rows(session, QUERY) == second
    until(lambda: hits(session, QUERY), 180, "the refresh after the commit")
    assert rows(session, QUERY) == second

    with open_metastore(postgres_url) as store:
        until(lambda: store.decisions.latest(), 20, "decisions arrive")
        until(
            lambda: {d.outcome.value for d in store.decisions.latest()} >= {"HIT", "MISS"},
            20,
            "both",
        )
        assert {d.principal for d in store.decisions.latest()} == {"bob"}

        # the service is gone: the session goes on, within each cache's promise
        service.started.kill()
        assert hits(session, QUERY) and rows(session, QUERY) == second
        session.sql("INSERT INTO sales VALUES ('east', 1)")
        assert not hits(session, QUERY) and hits(session, COUNTED)
        third = second | {("east", 1)}
        assert rows(session, QUERY) == third

        # a lag that its promise does not allow is seen without the service
        monkeypatch.setattr(freshness, "CLOCK_SKEW_MS", 3_600_000)
        assert "STALE" in why_not(session, COUNTED)
        monkeypatch.setattr(freshness, "CLOCK_SKEW_MS", 30_000)
        assert hits(session, COUNTED)

        # and files that went meanwhile are a miss, not an error
        feed = feed_of(session)
        location = feed.served("lagging").location.removeprefix("file:")
        shutil.rmtree(location)
        monkeypatch.setattr("cachemgr.delta.stored_files.LOOK_SECONDS", 0.0)
        assert "CACHE_DAMAGED" in why_not(session, COUNTED)
        assert len(rows(session, COUNTED)) == 5
        monkeypatch.setattr(feed, "_clock", lambda: time.monotonic() + 48 * 3600)
        assert why_not(session, QUERY) == {"REGISTRY_LOADING"}
        monkeypatch.setattr(feed, "_clock", time.monotonic)


def test_a_service_that_is_back_and_a_token_that_is_revoked(
    session, service: Replica, postgres_url: str, lab: Path
):
    until(service.ready, 90, "the service answers")
    service.client.post("/api/v1/caches", json={"ddl": DDL})
    until(lambda: hits(session, QUERY), 240, "the session hits")
    service.started.kill()
    service.start()
    until(service.ready, 90, "the service is back")
    feed = feed_of(session)
    service.client.post("/api/v1/caches/totals/disable")
    until(lambda: not feed.served("totals").rewrite_enabled, 10, "the session follows again")
    assert why_not(session, QUERY) == {"CACHE_DISABLED"}
    service.client.post("/api/v1/caches/totals/enable")
    until(lambda: feed.served("totals").rewrite_enabled, 5, "it is enabled")
    assert hits(session, QUERY)
    assert service.client.post("/api/v1/caches", json={"ddl": LAGGING}).status_code == 201
    until(lambda: feed.served("lagging"), 10, "another cache arrives")
    service.client.delete("/api/v1/caches/lagging")
    until(lambda: not feed.served("lagging"), 5, "its drop arrives")

    with pytest.raises(ConfigurationError, match="cachemgr cache create"):
        session.sql(DDL)
    assert session.sql(f"EXPLAIN REWRITE {QUERY}").count() > 0

    with open_metastore(postgres_url) as store:
        store.tokens.revoke(session.token)
    until(lambda: feed.why_not_ready(), 5, "nothing is answered any more")
    assert why_not(session, QUERY) == {"NOT_GRANTED"}
    assert "revoked" in cachemgr.explain(session, QUERY).reasons[0].detail
    assert rows(session, QUERY)


def test_the_token_is_not_shown(session):
    secret = session.conf.get("spark.cachemgr.token")
    shown = session.sql("SET").collect() + session.sql("SET -v").collect()
    shown += session.sql("SET spark.cachemgr.token").collect()
    assert secret not in str(shown)
