"""Export, plan and apply: definitions as one document, at REST and at the command line."""

from __future__ import annotations

import json

import httpx
import pytest
import yaml

from cachemgr.cache_spec import Freshness, RefreshPolicy
from cachemgr.errors import DefinitionError
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.roles import Role
from cachemgr.statements.results import done
from cachemgr.vocabulary import FreshnessKind, JoinState, RefreshMode
from scheduler.triggers import Cron

JOIN = (
    "CREATE RECORD PRESERVING JOIN sc AS\n"
    "  sales INNER JOIN cust ON sales.cust = cust.cid\n  PRESERVES sales"
)


@pytest.fixture
def client(client_of):
    return client_of(Role.ADMIN)


@pytest.fixture
def full(store, new_cache):
    """A cache with every clause, granted, and a join."""
    made = new_cache(
        "Cube",
        namespace="sales",
        comment="it's a cube",
        partitioned_by=("a",),
        properties={"z": "1", "b": "2"},
        refresh=RefreshPolicy(Cron("0 3 * * *", "Europe/Rome"), RefreshMode.FULL),
        freshness=Freshness(FreshnessKind.MAX_STALENESS, 3600),
        rewrite_enabled=False,
        paused=True,
        settings={"spark.sql.ansi.enabled": "true"},
        given="/own",
        context={"catalog": "spark_catalog", "schema": "sales"},
    )
    store.grants.add(made.id, "bob")
    store.grants.add(made.id, "ann")
    side = JoinSide("t", "/t", None)
    join = JoinRecord("sc", JOIN, side, side, (("a", "b"),), state=JoinState.VALID)
    store.joins.create(join, now=store.clock.now())
    return made


def plan(client, definitions, **more):
    body = {"definitions": definitions, **more}
    answer = client.post("/api/v1/definitions/plan", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["changes"]


def apply(client, definitions, **more):
    body = {"definitions": definitions, **more}
    answer = client.post("/api/v1/definitions/apply", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["changes"]


def test_export_has_every_clause_and_no_state(client, full, new_cache):
    new_cache("plain")
    found = client.get("/api/v1/definitions").json()
    assert [c["name"] for c in found["caches"]] == ["default.plain", "sales.Cube"]
    assert found["caches"][1] == {
        "name": "sales.Cube",
        "definition": "SELECT a, SUM(b) AS s FROM t GROUP BY a",
        "comment": "it's a cube",
        "partitionedBy": ["a"],
        "clusterBy": [],
        "location": "/own",
        "properties": {"b": "2", "z": "1"},
        "refresh": "CRON '0 3 * * *' AT TIME ZONE 'Europe/Rome' FULL",
        "freshness": "MAX STALENESS INTERVAL 1 HOUR",
        "rewriteEnabled": False,
        "paused": True,
        "grants": ["ann", "bob"],
        "catalog": "spark_catalog",
        "schema": "sales",
        "settings": {"spark.sql.ansi.enabled": "true"},
    }
    assert found["joins"] == [{"name": "sc", "ddl": JOIN}]
    assert client.get("/api/v1/definitions").text == client.get("/api/v1/definitions").text


def test_what_was_exported_is_true_already(client, full, new_cache):
    new_cache("plain")
    found = client.get("/api/v1/definitions").json()
    assert plan(client, found, prune=True) == []
    assert apply(client, found, prune=True) == []


def test_changes_in_place_need_no_refresh(client, full, store):
    found = client.get("/api/v1/definitions").json()
    found["caches"][0] |= {
        "refresh": "every 2 hours",
        "freshness": "strict",
        "properties": {"b": "3"},
        "comment": None,
        "rewriteEnabled": True,
        "paused": False,
        "grants": ["eve", "ann"],
    }
    changes = plan(client, found)
    assert [(c["action"], c["name"], c["outcome"]) for c in changes] == [
        ("CHANGE", "sales.Cube", "PLANNED")
    ]
    fields = {f["field"]: (f["before"], f["after"]) for f in changes[0]["fields"]}
    assert fields["refresh"] == ("CRON '0 3 * * *' AT TIME ZONE 'Europe/Rome' FULL",
                                 "EVERY 2 HOURS AUTO")  # fmt: skip
    assert sorted(fields) == ["comment", "freshness", "grants", "paused", "properties", "refresh",
                              "rewrite_enabled"]  # fmt: skip
    assert store.caches.get(full.id).version == full.version  # nothing was changed
    assert [c["outcome"] for c in apply(client, found)] == ["DONE"]
    now = store.caches.get(full.id)
    assert now.spec.properties == {"b": "3"} and now.spec.comment is None and not now.paused
    assert store.grants.of(full.id) == ("ann", "eve")
    assert apply(client, found) == []


def test_what_the_document_does_not_name_is_left_alone_or_pruned(client, full, new_cache, store):
    new_cache("plain")
    assert plan(client, {}) == []
    changes = apply(client, {}, prune=True)
    assert [(c["action"], c["kind"], c["name"], c["outcome"]) for c in changes] == [
        ("DROP", "cache", "default.plain", "DONE"),
        ("DROP", "cache", "sales.Cube", "DONE"),
        ("DROP", "join", "sc", "DONE"),
    ]
    assert store.caches.all() == () and store.joins.all() == ()


def test_grants_and_settings_left_out_stay(client, full):
    found = client.get("/api/v1/definitions").json()
    del found["caches"][0]["grants"], found["caches"][0]["settings"]
    assert plan(client, found) == []
    found["caches"][0]["settings"] = {"spark.sql.ansi.enabled": "false"}
    assert [c["action"] for c in plan(client, found)] == ["REPLACE"]
    found["caches"][0] |= {"settings": None, "grants": []}
    assert [c["action"] for c in plan(client, found)] == ["CHANGE"]


class Refusing:
    """A Spark to which one statement is wrong."""

    def __init__(self, wrong: str) -> None:
        self.wrong = wrong
        self.ran: list[str] = []

    def execute_in(self, text, principal, context):
        self.ran.append(text)
        if text.startswith(self.wrong):
            raise DefinitionError("NOT_CACHEABLE", "it cannot be cached")
        return done("c", "created")


def new(name: str, **more):
    return {"name": name, "definition": "SELECT 1 AS one", **more}


def test_nothing_is_changed_if_one_definition_is_wrong(serve, store, cache):
    spark = Refusing("EXPLAIN CREATE RELATIONAL CACHE default.b")
    body = {"definitions": {"caches": [new("a"), new("b")]}, "prune": True}
    with httpx.Client(base_url=serve(open_to_all=True, statements=spark)) as client:
        answer = client.post("/api/v1/definitions/apply", json=body)
    assert answer.status_code == 400 and answer.json()["error"]["type"] == "NOT_CACHEABLE"
    assert all(text.startswith("EXPLAIN") for text in spark.ran)
    assert [c.name for c in store.caches.all()] == ["cube"]


def test_a_change_that_fails_after_all_is_told_with_the_rest(serve, store, cache):
    spark = Refusing("CREATE RELATIONAL CACHE default.d")
    known = new("cube", definition="SELECT a, SUM(b) AS s FROM t GROUP BY a", paused=True)
    body = {"definitions": {"caches": [known, new("d")]}, "prune": True}
    body["definitions"]["caches"].append(new("e"))
    with httpx.Client(base_url=serve(open_to_all=True, statements=spark)) as client:
        changes = client.post("/api/v1/definitions/apply", json=body).json()["changes"]
    assert [(c["name"], c["outcome"]) for c in changes] == [
        ("default.cube", "DONE"),
        ("default.d", "FAILED"),
        ("default.e", "NOT_TRIED"),
    ]
    assert "NOT_CACHEABLE" in changes[1]["message"]
    assert store.caches.get(cache.id).paused


@pytest.mark.parametrize(
    "wrong, code",
    [
        ({"caches": [new("a", refresh="EVERY 3 FORTNIGHTS")]}, "SYNTAX_ERROR"),
        ({"caches": [new("a b c")]}, "SYNTAX_ERROR"),
        ({"caches": [new("a"), new("DEFAULT.A")]}, "NAMED_TWICE"),
        ({"joins": [{"name": "j", "ddl": "SHOW RELATIONAL CACHES"}]}, "NOT_A_CREATE"),
        ({"joins": [{"name": "other", "ddl": JOIN}]}, "NAMES_DIFFER"),
        ({"caches": [new("a", colour="red")]}, "INVALID_REQUEST"),
        ({"version": 2}, "INVALID_REQUEST"),
    ],
)
def test_wrong_documents(client, wrong, code):
    answer = client.post("/api/v1/definitions/plan", json={"definitions": wrong})
    assert answer.status_code in (400, 422) and answer.json()["error"]["type"] == code


def test_a_viewer_may_look_and_plan_but_not_apply(client_of, cache):
    viewer = client_of(Role.VIEWER)
    assert viewer.get("/api/v1/definitions").status_code == 200
    assert plan(viewer, {}, prune=True)
    answer = viewer.post("/api/v1/definitions/apply", json={"definitions": {}, "prune": True})
    assert answer.status_code == 403


def test_grants_and_places_are_the_admins(client_of, full, store):
    operator = client_of(Role.OPERATOR)
    found = operator.get("/api/v1/definitions").json()
    assert [c["grants"] for c in found["caches"]] == [None] and plan(operator, found) == []
    granted = {"definitions": {"caches": [{**found["caches"][0], "grants": ["operator"]}]}}
    placed = {"definitions": {"caches": [new("a", location="/etc")]}}
    for path, body in (("plan", granted), ("apply", granted), ("apply", placed)):
        answer = operator.post(f"/api/v1/definitions/{path}", json=body)
        assert answer.status_code == 403 and "ann" not in answer.text, path
    assert store.grants.of(full.id) == ("ann", "bob") and len(store.caches.all()) == 1


def test_the_commands(run, full, store, tmp_path):
    file = tmp_path / "caches.yaml"
    code, out, err = run("export")
    assert code == 0 and err == "" and "refresh: CRON" in out
    assert run("export", "-f", str(file))[0] == 0 and file.read_text() == out
    assert json.loads(run("export", "-o", "json")[1]) == yaml.safe_load(out)
    assert run("diff", "-f", str(file), "--prune") == (0, "", "")

    file.write_text(out.replace("paused: true", "paused: false"))
    code, out, err = run("diff", "-f", str(file))
    assert code == 2 and "CHANGE" in out and "paused: true -> false" in out and err == ""
    assert run("apply", "-f", str(file), "--dry-run")[0] == 0
    assert store.caches.get(full.id).paused
    assert run("apply", "-f", str(file))[0] == 0
    assert not store.caches.get(full.id).paused
    code, out, err = run("apply", "-f", "-", input=file.read_text())
    assert (code, out) == (0, "") and "nothing to change" in err

    file.write_text("{}")
    code, out, err = run("apply", "-f", str(file), "--prune")
    assert (code, out) == (1, "") and "NOT_CONFIRMED" in err and "sales.Cube" in err
    assert run("apply", "-f", str(file), "--prune", "--yes")[0] == 0
    assert store.caches.all() == ()


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "\t{", "- {" * 2000])
def test_files_that_are_no_document(run, text):
    code, out, err = run("diff", "-f", "-", input=text)
    assert (code, out) == (1, "") and "BAD_DOCUMENT" in err
