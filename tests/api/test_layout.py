"""`cachemgr cache layout` and its operation: from the log's filters to a statement, with what is
said where there is nothing to go by."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from cachemgr.api import dependencies
from cachemgr.cli import main
from cachemgr.errors import DefinitionError
from cachemgr.metastore.records import DecisionRecord, Publication, SnapshotTableRecord
from cachemgr.roles import Role
from cachemgr.statements.layouts import StoredValues
from cachemgr.statements.results import done
from cachemgr.vocabulary import Outcome
from matcher.model.codec import encode_plan
from matcher.model.expr import Agg, Col
from matcher.model.ir import CachePlan, GroupingSet, Measure, Relation, StoredColumn

PLACE = "file:/t"
DAY, SHOP = Col(0, "day", "date"), Col(0, "shop", "string")


def plan(**changed) -> dict:
    keys = (StoredColumn("day", DAY), StoredColumn("shop", SHOP))
    count = Measure("n", Agg("count", (), "bigint", False))
    values = {"visible": ("day", "shop", "n"), **changed}
    return encode_plan(CachePlan("c", (Relation(PLACE, "t"),), (), keys, (count,), **values))


def stored(cache, published, columns) -> StoredValues:
    """A large table: 30 days of 10 shops."""
    of = {"day": range(30), "shop": [f"s{i}" for i in range(10)]}
    days = [float(d) for d in of["day"]]
    combinations = [
        (tuple({"day": d, "shop": s}[c] for c in columns), 1000) for d in days for s in of["shop"]
    ]
    distinct = {c: len(of[c]) for c in columns}
    return StoredValues(tuple(columns), combinations, distinct, 300_000, 3_000_000_000, 50)


@pytest.fixture
def look(monkeypatch):
    """The service's Spark, and what it was asked for."""
    asked: list[tuple[str, ...]] = []

    def noted(cache, published, columns):
        asked.append(columns)
        return stored(cache, published, columns)

    init = dependencies.ApiState.__init__

    def with_stored(self, *args, **options):
        init(self, *args, **{**options, "stored": noted})

    monkeypatch.setattr(dependencies.ApiState, "__init__", with_stored)
    return asked


@pytest.fixture
def made(store, new_cache):
    """A cache that was refreshed."""

    def make(**changed):
        cache = new_cache(
            "c",
            plan=plan(**changed),
            definition="SELECT day, shop, COUNT(*) AS n FROM t GROUP BY day, shop",
        )
        run = store.refreshes.start(
            cache.id, "w", now=None, lease_seconds=60, mode="FULL", reason="r"
        )
        table = SnapshotTableRecord("t", PLACE, "id-t", 1)
        publication = Publication(3, 300_000, 3_000_000_000, [table])
        store.refreshes.publish(run.id, run.fencing_token, publication, now=None)
        return cache

    return make


def log(store, *columns: dict, many: int = 1, **fields) -> None:
    at = store.clock.now() + timedelta(seconds=1)
    filters = ({"cache": "c", "columns": list(columns)},)
    one = DecisionRecord(
        at, "s", "q", **{"outcome": Outcome.HIT, "caches": ("c",), "filters": filters, **fields}
    )
    store.decisions.log([one] * many)


ONE_DAY = {"column": "day", "kind": "points", "points": 1}
ONE_SHOP = {"column": "shop", "kind": "points", "points": 1}


def advice(client) -> dict:
    answer = client.get("/api/v1/caches/c/layout")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_best_layout_comes_first_with_its_statement(look, store, made, client_of):
    made()
    log(store, ONE_DAY, many=30)
    log(store, ONE_SHOP, many=5, local=True)
    found = advice(client_of(Role.OPERATOR))
    assert (found["hits"], found["localHits"]) == (35, 5)
    assert found["columns"] == [{"column": "day", "hits": 30}, {"column": "shop", "hits": 5}]
    best = found["layouts"][0]
    assert best["isBest"] and best["clause"] in found["statement"]
    assert found["statement"].startswith("CREATE OR REPLACE RELATIONAL CACHE")
    now = next(each for each in found["layouts"] if each["isCurrent"])
    assert now["clause"] == "neither clause" and now["filesOpened"] > best["filesOpened"]
    assert all(each["seconds"] is None for each in found["layouts"])
    # text is no folder's name
    assert not any("shop" in each["partitionedBy"] for each in found["layouts"])
    assert any(each["clusterBy"] == ["shop"] for each in found["layouts"])
    assert "5 of the hits were answered from memory" in found["note"]
    assert look == [("day", "shop")]


@pytest.mark.parametrize(
    "fields",
    [
        {"outcome": Outcome.PLAN_ONLY},
        {"caches": ("other",)},
        {"filters": ({"cache": "other", "columns": [ONE_DAY]},)},
        {"filters": None},
    ],
    ids=["explained", "of another", "filters of another", "of an earlier release"],
)
def test_what_is_no_hit_of_it_does_not_count(look, store, made, client_of, fields):
    made()
    log(store, ONE_DAY, many=19)
    log(store, ONE_DAY, many=50, **fields)
    found = advice(client_of(Role.OPERATOR))
    assert (found["hits"], found["layouts"], found["statement"]) == (19, [], None)
    assert "19 of its hits" in found["note"] and "ask again" in found["note"]
    assert look == []


def test_columns_that_it_does_not_store_are_passed_over(look, store, made, client_of):
    made()
    log(store, {"column": "secret", "kind": "points", "points": 1}, many=30)
    found = advice(client_of(Role.OPERATOR))
    assert found["columns"] == [] and "no layout would leave a file out" in found["note"]
    assert look == []


def test_a_cube_and_a_cache_without_rows_say_so(look, store, made, new_cache, client_of):
    client = client_of(Role.OPERATOR)
    new_cache("fresh", plan=plan())
    assert "never refreshed" in client.get("/api/v1/caches/fresh/layout").json()["note"]
    made(grouping_sets=(GroupingSet(0, (0, 1)), GroupingSet(3, ())))
    log(store, ONE_DAY, many=30)
    assert "it is a cube" in advice(client)["note"]
    assert look == []


def test_without_a_spark_nothing_is_reckoned(store, made, client_of):
    made()
    log(store, ONE_DAY, many=30)
    assert "has no Spark" in advice(client_of(Role.OPERATOR))["note"]


def test_who_may_not_be_answered_from_it_is_told_nothing(look, store, made, client_of):
    cache = made()
    log(store, ONE_DAY, many=30)
    store.grants.add(cache.id, "bob")
    found = advice(client_of(Role.OPERATOR, "ann"))
    assert (found["hits"], found["columns"], found["layouts"]) == (0, [], [])
    assert advice(client_of(Role.OPERATOR, "bob"))["layouts"]
    refused = client_of(Role.VIEWER, "bob").get("/api/v1/caches/c/layout")
    assert refused.status_code == 403


def test_the_command_shows_a_table(look, store, made, run):
    made()
    log(store, ONE_DAY, many=30)
    code, out, err = run("cache", "layout", "c")
    assert code == 0, err
    assert "30 hits with filters logged: day in 30" in out and "unknown" in out
    assert "CREATE OR REPLACE RELATIONAL CACHE" in out and "best" in out
    code, out, err = run("cache", "layout", "c", "-o", "json")
    assert code == 0 and json.loads(out)["layouts"][0]["isBest"]


def test_there_is_nothing_to_apply_where_nothing_was_reckoned(store, made, run):
    made()
    code, _, err = run("cache", "layout", "c", "--apply", "--yes")
    assert code == 0 and "nothing to apply: the log has 0 of its hits" in err


class Noting:
    """The service's statements, carried out by nobody."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def execute(self, text, principal):
        raise AssertionError("a cache is replaced where it was made")

    def execute_in(self, text, principal, context):
        self.texts.append(text)
        return done("c", "replaced")


def test_apply_replaces_the_cache_where_it_was_made_and_asks_for_a_refresh(
    look, store, made, serve
):
    cache = made()
    log(store, ONE_DAY, many=30)
    noting = Noting()
    _, token = store.tokens.create("ann", Role.OPERATOR)
    words = ["cache", "layout", "c", "--server", serve(statements=noting), "--token", token]
    left = CliRunner().invoke(main, [*words, "--apply"], input="n\n")
    assert left.exit_code == 1 and noting.texts == []
    ended = CliRunner().invoke(main, [*words, "--apply", "--yes"])
    assert ended.exit_code == 0, ended.output
    best = ended.stdout.splitlines()[2]
    clause = "PARTITIONED BY (day)" if "PARTITIONED" in best else "CLUSTER BY (day)"
    *checked, replaced = noting.texts
    assert all(text.startswith("EXPLAIN CREATE") for text in checked)
    assert replaced.startswith("CREATE OR REPLACE RELATIONAL CACHE") and clause in replaced
    assert [asked.cache_id for asked in store.queue.waiting()] == [cache.id]


def test_a_change_that_fails_is_told(look, store, made, serve):
    made()
    log(store, ONE_DAY, many=30)

    class Failing(Noting):
        def execute_in(self, text, principal, context):
            if text.startswith("EXPLAIN"):
                return done("c", "fine")
            raise DefinitionError("UNKNOWN_COLUMN", "there is no such column: name another")

    _, token = store.tokens.create("ann", Role.OPERATOR)
    words = ["cache", "layout", "c", "--apply", "--yes"]
    words += ["--server", serve(statements=Failing()), "--token", token]
    ended = CliRunner().invoke(main, words)
    assert ended.exit_code == 1 and "c is as it was: [UNKNOWN_COLUMN]" in ended.stderr
    assert store.queue.waiting() == ()
