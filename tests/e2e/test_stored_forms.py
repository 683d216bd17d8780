# ruff: noqa: E501 - statements read better unbroken
"""All that commit 9e095e5 stored is read by this release: clauses of caches, plans, joins, grants,
runs and their accounts, decisions, a token, Delta logs, records beside the caches, and the file of
definitions."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import cachemgr
from cachemgr.api.app import create_app
from cachemgr.api.dependencies import ApiState
from cachemgr.cli import main
from cachemgr.metastore import migrate, open_metastore
from cachemgr.refresh.fingerprint import spec_hash
from cachemgr.roles import Role
from matcher.model.codec import decode_plan
from tests.processes import CACHEMGR, ROOT, SMALL_SPARK, free_port
from tests.servers import ServerThread
from tests.worlds import upgraded
from tests.worlds.lab_star import Lab

DROPPED = "gone"
LIVE = (
    "after", "by_shop", "cube", "days", "deep", "detail", "elsewhere", "loose", "only", "slow",
    "totals", "towns", "wages",
)  # fmt: skip
# Each answered from its cache alone, by the hint.
QUERIES = {
    "after": "SELECT shop, MIN(day) AS d FROM sales GROUP BY shop",
    "by_shop": "SELECT shop, SUM(amount) AS s FROM sales GROUP BY shop",
    "cube": "SELECT town, SUM(amount) AS s FROM sales JOIN shops ON sales.shop = shops.shop GROUP BY town",
    "days": "SELECT day, AVG(amount) AS a, COUNT(DISTINCT shop) AS k FROM sales GROUP BY day",
    "deep": "SELECT day, COUNT(amount) AS k, SUM(amount) AS s FROM sales GROUP BY day",
    "detail": "SELECT id, amount FROM sales WHERE amount > 2",
    "elsewhere": "SELECT day, COUNT(*) AS n FROM sales GROUP BY day",
    "totals": "SELECT SUM(amount) AS s, COUNT(*) AS n FROM sales",
    "towns": "SELECT town, SUM(ms) AS ms FROM visits LEFT JOIN shops ON visits.shop = shops.shop GROUP BY town",
    "wages": "SELECT SUM(amount) AS s FROM pay",
}
# By record-preserving joins of both kinds, which held when the caches were refreshed.
WITHOUT_SHOPS = {
    "cube": "SELECT day, SUM(amount) AS s FROM sales GROUP BY day",
    "towns": "SELECT COUNT(*) AS n, SUM(ms) AS ms FROM visits",
}
# By a join that the cache does not have: each row of `sales` finds one in `shops`.
WITH_SHOPS = (
    "SELECT /*+ RELATIONAL_CACHE(elsewhere) */ day, COUNT(*) AS n FROM sales "
    "JOIN shops ON sales.shop = shops.shop GROUP BY day"
)
LOOSE = "SELECT shop, SUM(id) AS s FROM sales WHERE amount < 100 GROUP BY shop"
ONLY = "SELECT shop, MAX(id) AS m FROM visits GROUP BY shop"
SLOW = "SELECT MAX(ms) AS m FROM visits"


@pytest.fixture
def url(request, tmp_path) -> str:
    """The metastore of a world as it was left."""
    user = "me"
    if "spark" in request.fixturenames:
        user = request.getfixturevalue("spark").sparkContext.sparkUser()
    return upgraded.make(upgraded.ALL_FORMS, tmp_path, user)


def run(root: Path, url: str, *words: str) -> str:
    env = {"COLUMNS": "200", "CACHEMGR_LOCATION": str(root / "caches")}
    done = CliRunner(env=env).invoke(main, [*words, "--metastore", url])
    assert done.exit_code == 0, done.stdout + done.stderr
    return done.stdout


def roots(tmp_path: Path) -> tuple[str, ...]:
    return tuple(w for name in ("caches", "other") for w in ("--location", str(tmp_path / name)))


# -- what is read ------------------------------------------------------------------------------


def test_it_is_in_order_once_it_is_brought_up(tmp_path, url) -> None:
    assert migrate.current(url) == "0012"
    run(tmp_path, url, "db", "upgrade")
    run(tmp_path, url, "db", "check", *roots(tmp_path))
    with open_metastore(url) as store:
        caches = {c.name: c for c in store.caches.all()}
        assert tuple(sorted(caches)) == LIVE
        spec = caches["by_shop"].spec
        assert (spec.comment, dict(spec.properties)) == (
            "of shops", {"team": "tills", "cachemgr.freshHits": "false"},
        )  # fmt: skip
        assert caches["detail"].spec.partitioned_by == ("shop",)
        assert caches["days"].spec.cluster_by == ("day",)
        assert caches["elsewhere"].spec.location == str(tmp_path / "other")
        assert caches["loose"].settings["spark.sql.ansi.enabled"] == "false"
        assert caches["slow"].paused and not caches["slow"].spec.rewrite_enabled
        assert store.grants.of(caches["wages"].id) == ("ann", "me")
        assert [t.name for t in store.tables.restricted()] == ["world.pay"]
        joins = {j.name: (j.kind, j.state.value, j.validated_under) for j in store.joins.all()}
        assert joins == {
            "believed": ("INNER", "NOT_VALIDATED", None),
            "sales_shops": ("INNER", "VALID", None),
            "visits_shops": ("LEFT", "VALID", None),
        }
        for cache in caches.values():  # else each would be computed anew, or fail INCREMENTAL ONLY
            published, spec = store.snapshots.published(cache.id), cache.spec
            assert published.run.facts["spec"] == spec_hash(
                decode_plan(cache.plan), cache.settings, spec.partitioned_by, spec.cluster_by
            )


@dataclass
class Service:
    """The REST application over the world.

    Args:
        url: Its own.
        admin: A client.
        ann: That of the principal whose token the world has.
    """

    url: str
    admin: httpx.Client
    ann: httpx.Client


class NoSpark:
    """Nothing here needs one."""

    def execute(self, text: str, principal: str):
        raise AssertionError("no statement was expected")


@pytest.fixture
def service(tmp_path, url) -> Iterator[Service]:
    run(tmp_path, url, "db", "upgrade")
    with open_metastore(url) as store:
        state = ApiState(store, NoSpark(), lambda: False, None, lambda: None, lambda: None)
        port = free_port()
        server = ServerThread(create_app(state), port)
        there = f"http://127.0.0.1:{port}"
        _, token = store.tokens.create("root", Role.ADMIN)
        tokens = (token, (tmp_path / "token").read_text())
        admin, ann = (
            httpx.Client(
                base_url=f"{there}/api/v1", headers={"Authorization": f"Bearer {t}"}, timeout=30
            )
            for t in tokens
        )
        with admin, ann:
            yield Service(there, admin, ann)
        server.stop()


def got(client: httpx.Client, path: str):
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_its_decisions_are_shown(service) -> None:
    """Their reasons are texts, which say no number to who has no grant on what they speak of."""
    decisions = got(service.admin, "/decisions")["decisions"]
    assert [d["outcome"] for d in decisions] == ["MISS", "HIT", "MISS", "MISS", "HIT", "HIT", "HIT"]
    assert [d["caches"] for d in decisions if d["caches"]] == [
        ["world.deep"], ["world.wages"], ["world.cube"], ["world.by_shop"],
    ]  # fmt: skip
    (reason,) = decisions[2]["reasons"]
    assert reason["code"] == "AGG_NOT_DERIVABLE"
    assert reason["detail"] == (
        "MAX(amount) cannot be computed from cache world.wages, which stores COUNT(*), SUM(amount)"
    )
    assert "parts" not in reason
    (of_ann,) = got(service.ann, "/decisions?outcome=MISS&limit=1")["decisions"]
    assert of_ann["reasons"] == [{"code": "CACHE_IS_AGGREGATED"}]


def test_its_caches_and_runs_are_told(service, monkeypatch) -> None:
    told = {name: got(service.admin, f"/caches/world.{name}/why") for name in LIVE}
    assert {name for name, why in told.items() if why["hits"]} == {
        "by_shop", "cube", "deep", "wages",
    }  # fmt: skip
    assert told["wages"]["misses"] == 2
    for name in LIVE:
        got(service.admin, f"/caches/world.{name}")
    got(service.ann, "/caches")
    failed = got(service.admin, "/caches/world.only/refreshes")["refreshes"][0]
    assert failed["state"] == "FAILED"
    assert "MAX(id) is not known once rows are taken away" in json.dumps(failed)
    ways = [r["way"] for r in got(service.admin, "/caches/world.towns/refreshes")["refreshes"]]
    assert ways == ["PARTIALS", "UNCHANGED", "FULL"]
    monkeypatch.setenv("CACHEMGR_SERVER", service.url)
    monkeypatch.setenv("CACHEMGR_TOKEN", service.ann.headers["Authorization"].split()[1])
    for words in (
        ("cache", "list"), ("cache", "show", "world.wages"), ("cache", "history", "world.towns"),
        ("cache", "why", "world.wages"), ("cache", "why-full", "world.only"), ("join", "list"),
    ):  # fmt: skip
        done = CliRunner(env={"COLUMNS": "200"}).invoke(main, list(words))
        assert done.exit_code == 0, done.stderr


# -- hits, refreshes, rebuild ------------------------------------------------------------------


@pytest.fixture
def plain(spark, tmp_path):
    """A session without us, over the tables under the names that they had."""
    session = spark.newSession()
    session.sql("CREATE SCHEMA world")
    session.sql("USE world")
    yield session
    session.sql("DROP SCHEMA world CASCADE")


@pytest.fixture
def tables(url, plain, tmp_path) -> None:
    for folder in sorted((tmp_path / "tables").iterdir()):
        plain.sql(f"CREATE TABLE {folder.name} USING delta LOCATION '{folder}'")


def opened(spark, plain, tmp_path: Path, url: str) -> Lab:
    session = spark.newSession()
    session.sql("USE world")
    session.conf.set("spark.cachemgr.metastore.url", url)
    session.conf.set("spark.cachemgr.location", str(tmp_path / "caches"))
    session.conf.set("spark.cachemgr.mode", "failFast")
    cachemgr.enable(session)
    return Lab(session, plain, url, "world", tmp_path)


def hit_each(lab: Lab, queries: dict[str, str] = QUERIES) -> None:
    for name, query in queries.items():
        hinted = query.replace("SELECT", f"SELECT /*+ RELATIONAL_CACHE({name}) */", 1)
        lab.hit(hinted)
        assert cachemgr.explain(lab.spark, hinted).caches == (f"world.{name}",)
    with lab.conf(spark__sql__ansi__enabled="false"):
        lab.hit(LOOSE)
    lab.miss(SLOW, "CACHE_DISABLED")


def refreshed(lab: Lab, mode: str = "") -> dict[str, str]:
    ways = {}
    for name in LIVE:
        (done,) = lab.sql(f"REFRESH RELATIONAL CACHE {name} {mode}")
        ways[name] = done["mode"]
    return ways


def test_it_hits_and_is_refreshed_by_the_change_alone_and_in_full(
    spark, plain, tables, url, tmp_path
) -> None:
    run(tmp_path, url, "db", "upgrade")
    lab = opened(spark, plain, tmp_path, url)
    try:
        hit_each(lab)
        hit_each(lab, WITHOUT_SHOPS)
        lab.miss(ONLY, "STALE")
        for name in LIVE:
            lab.sql(f"DESCRIBE RELATIONAL CACHE EXTENDED {name}")
            lab.sql(f"EXPLAIN REFRESH {name} INCREMENTAL")
            assert (
                "CREATE RELATIONAL CACHE" in lab.sql(f"SHOW CREATE RELATIONAL CACHE {name}")[0][0]
            )
        # under which settings it was read is not known
        lab.miss(WITH_SHOPS)
        for name in ("sales_shops", "visits_shops"):
            (told,) = lab.sql(f"VALIDATE RECORD PRESERVING JOIN {name}")
            assert told.state == "VALID"
        lab.hit(WITH_SHOPS)

        lab.plain.sql("INSERT INTO sales VALUES (6, 2, DATE'2024-01-04', 16.00)")
        lab.plain.sql("INSERT INTO pay VALUES ('cid', 7.00)")
        lab.plain.sql("INSERT INTO visits VALUES (5, 1, 50)")
        lab.sql("REFRESH RELATIONAL CACHE only FULL")
        ways = refreshed(lab, "INCREMENTAL")
        full = {"days", "slow", "only"}
        assert {
            n for n, way in ways.items() if way not in ("REPLACE", "PARTIALS", "APPEND")
        } <= full
        hit_each(lab)
        hit_each(lab, WITHOUT_SHOPS)
        lab.hit(ONLY)

        lab.plain.sql("DELETE FROM sales WHERE id = 2")
        lab.plain.sql("UPDATE visits SET ms = 11 WHERE id = 1")
        lab.sql("REFRESH RELATIONAL CACHE only FULL")
        refreshed(lab)
        hit_each(lab)

        assert set(refreshed(lab, "FULL").values()) == {"FULL"}
        hit_each(lab)
        hit_each(lab, WITHOUT_SHOPS)
    finally:
        cachemgr.disable(lab.spark)
    run(tmp_path, url, "db", "check", *roots(tmp_path))


def test_a_metastore_is_made_of_its_records_alone(spark, plain, tables, url, tmp_path) -> None:
    """They are as that commit wrote them, together with its Delta logs."""
    (tmp_path / "metastore.db").unlink()
    again = f"sqlite:///{tmp_path / 'again.db'}"
    command = ("db", "rebuild", "--take-over", "-o", "json", *roots(tmp_path))
    found = json.loads(run(tmp_path, again, *command))
    states = {line["name"]: line["state"] for line in found}
    assert states == {f"world.{n}": "PUBLISHED" for n in LIVE} | {f"world.{DROPPED}": "DROPPED"}
    run(tmp_path, again, "db", "check", *roots(tmp_path))
    lab = opened(spark, plain, tmp_path, again)
    try:
        hit_each(lab)
        hit_each(lab, WITHOUT_SHOPS)
        lab.plain.sql("INSERT INTO sales VALUES (6, 2, DATE'2024-01-04', 16.00)")
        lab.sql("REFRESH RELATIONAL CACHE only FULL")
        refreshed(lab)
        hit_each(lab)
        with lab.metastore() as store:
            (wages,) = store.caches.matching("wages")
            assert store.grants.of(wages.id) == tuple(sorted(("ann", lab.me)))
            assert [t.name for t in store.tables.restricted()] == ["world.pay"]
            assert len(store.joins.all()) == 3
    finally:
        cachemgr.disable(lab.spark)


# -- the file of definitions -------------------------------------------------------------------


def run_apart(root: Path, url: str, *words: str) -> str:
    """A command in a process with a Spark of its own."""
    init = ["CREATE SCHEMA world", "USE world"]  # where names of a join's ddl are looked up
    init += [
        f"CREATE TABLE {folder.name} USING delta LOCATION '{folder}'"
        for folder in sorted((root / "tables").iterdir())
    ]
    conf = {**SMALL_SPARK, "spark.sql.warehouse.dir": str(root / "warehouse")}
    environment = {
        **os.environ,
        "CACHEMGR_LOCATION": str(root / "caches"),
        "CACHEMGR_LOCATIONS": json.dumps([str(root / "other")]),
        "CACHEMGR_SPARK_MASTER": "local[1]",
        "CACHEMGR_SPARK_CONF": json.dumps(conf),
        "CACHEMGR_SPARK_INIT": json.dumps(init),
        "PYTHONPATH": str(ROOT),
    }
    command = [*CACHEMGR, *words, "--metastore", url]
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.spark
def test_its_file_of_definitions_is_applied(url, tmp_path) -> None:
    run(tmp_path, url, "db", "upgrade")
    same = run_apart(tmp_path, url, "diff", "-f", str(tmp_path / "definitions.json"), "--prune")
    assert same == "", "it is what it was exported from"
    file, other = str(tmp_path / "definitions.yaml"), f"sqlite:///{tmp_path / 'other.db'}"
    run(tmp_path, other, "db", "upgrade")
    done = json.loads(run_apart(tmp_path, other, "apply", "-f", file, "-o", "json"))
    assert sorted(c["name"] for c in done if c["kind"] == "cache") == [f"world.{n}" for n in LIVE]
    assert {c["outcome"] for c in done} == {"DONE"}
    with open_metastore(other) as store, open_metastore(url) as before:
        made, were = ({c.name: c for c in s.caches.all()} for s in (store, before))
        for name in LIVE:
            ours, theirs = made[name], were[name]
            assert (ours.spec, ours.columns) == (theirs.spec, theirs.columns)
            assert ours.settings.items() >= theirs.settings.items()
            assert store.grants.of(ours.id) == before.grants.of(theirs.id)
        states = {j.name: j.state.value for j in store.joins.all()}
        assert states == {j.name: j.state.value for j in before.joins.all()}
