"""Which base tables statements may read for whom, by REST and by CLI; Spark's part, which finds the
table of a name, is a table of places here."""

from __future__ import annotations

import json

import httpx
import pytest
from typer.testing import CliRunner

from cachemgr.base_state import TableAt
from cachemgr.cli import main
from cachemgr.ddl import parse
from cachemgr.errors import DefinitionError, ErrorCode
from cachemgr.roles import Role
from cachemgr.statements import select_grants

PATH = "/api/v1/tables/select-grants"
PLACES = {
    "hr.pay": ("hr.pay", "file:/pay"),
    "t": ("default.t", "file:/t"),
    "hr.`a b.c`": ("hr.a b.c", "s3a://b/a%20b.c+d&e=1"),
}


class Catalog:
    """Knows where each table is."""

    def resolve_table(self, name: str) -> TableAt:
        if name not in PLACES:
            raise DefinitionError(ErrorCode.NOT_A_DELTA_TABLE, f"{name} is none: name another")
        return TableAt(*PLACES[name], "id", 1, 1)


class Grants:
    """Carries a GRANT out as the service does, but for Spark."""

    def __init__(self, store) -> None:
        self._store = store

    def execute(self, text: str, principal: str):
        return select_grants.grant(self._store.select_grants, Catalog(), parse(text))


@pytest.fixture
def url(serve, store) -> str:
    return serve(statements=Grants(store))


@pytest.fixture
def client_of(url, store):
    made = []

    def client(role: Role, principal: str = "") -> httpx.Client:
        _, token = store.tokens.create(principal or role.value, role)
        headers = {"Authorization": f"Bearer {token}"}
        made.append(httpx.Client(base_url=url, headers=headers, timeout=30))
        return made[-1]

    yield client
    for one in made:
        one.close()


@pytest.fixture
def admin(client_of) -> httpx.Client:
    return client_of(Role.ADMIN)


def granted(store) -> list[tuple[str, str]]:
    return [(each.place, each.principal) for each in store.select_grants.all()]


@pytest.mark.parametrize("table", PLACES)
@pytest.mark.parametrize("principal", ["ann@example.com", "o'hara", "a`b", "é ü", "a+b&c=d"])
def test_granted_listed_and_taken_back(admin, store, table, principal):
    made = admin.post(PATH, json={"table": table, "principal": principal})
    assert made.status_code == 201, made.text
    name, place = PLACES[table]
    shown = made.json()
    assert (shown["principal"], shown["table"], shown["location"]) == (principal, name, place)
    assert granted(store) == [(place, principal)]
    assert admin.get(PATH).json() == {"grants": [shown]}
    key = {"location": shown["location"], "principal": principal}
    assert admin.delete(PATH, params=key).status_code == 204
    assert granted(store) == []
    again = admin.delete(PATH, params=key)
    assert again.status_code == 404 and again.json()["error"]["type"] == "GRANT_NOT_FOUND"


def test_granted_twice_it_is_the_grant_that_was_there(admin, store):
    store.select_grants.add("file:/pay", "ann", "hr.wages")
    body = {"table": "hr.pay", "principal": " ann "}
    first, second = (admin.post(PATH, json=body) for _ in range(2))
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json() and first.json()["table"] == "hr.wages"
    assert granted(store) == [("file:/pay", "ann")]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_only_admins_grant_and_others_see_their_own(client_of, store, role):
    store.select_grants.add("file:/pay", "me", "hr.pay")
    store.select_grants.add("file:/pay", "bob", "hr.pay")
    me = client_of(role, "me")
    refused = [
        me.post(PATH, json={"table": "t", "principal": "me"}),
        me.delete(PATH, params={"location": "file:/pay", "principal": "bob"}),
        me.delete(PATH, params={"location": "file:/nothing", "principal": "bob"}),
    ]
    assert [answer.status_code for answer in refused] == [403] * 3
    assert granted(store) == [("file:/pay", "bob"), ("file:/pay", "me")]
    seen = me.get(PATH)
    assert [each["principal"] for each in seen.json()["grants"]] == ["me"]
    assert "bob" not in seen.text
    assert client_of(role, "eve").get(PATH).json() == {"grants": []}


@pytest.mark.parametrize(
    "body",
    [
        *(
            {"table": t, "principal": "ann"}
            for t in ("", "t TO eve", "t; DROP TABLE x", "`", "a.b.c.d", "x" * 600)
        ),
        *({"table": "t", "principal": p} for p in ("", " ", "a\nb", "x" * 257, "a\u202eb")),
        {"table": "hr.people", "principal": "ann"},
        {"table": "t"},
        {"table": "t", "principal": "ann", "until": "noon"},
    ],
)
def test_what_is_refused(admin, store, body):
    answer = admin.post(PATH, json=body)
    assert answer.status_code in (400, 422), answer.text
    assert granted(store) == []


def test_a_name_with_a_credential_is_refused_and_not_repeated(admin, store):
    body = {"table": "delta.`s3a://K:topsecret@b/t`", "principal": "ann"}
    answer = admin.post(PATH, json=body)
    assert answer.json()["error"]["type"] == "SECRET_IN_DEFINITION"
    assert "topsecret" not in answer.text and granted(store) == []


@pytest.fixture
def cli(url, store):
    """Runs `cachemgr select …` against the service, as an admin."""
    _, token = store.tokens.create("root", Role.ADMIN)

    def run(*words: str):
        return CliRunner().invoke(main, ["select", *words, "--server", url, "--token", token])

    return run


def test_by_cli(cli, store):
    done = cli("grant", "t", "ann")
    assert done.exit_code == 0 and "file:/t" in done.stdout
    assert cli("grant", "hr.`a b.c`", "ann").exit_code == 0
    assert cli("grant", "hr.pay", "bob").exit_code == 0
    listed = json.loads(cli("list", "-o", "json").stdout)
    assert [(each["table"], each["principal"]) for each in listed] == [
        ("default.t", "ann"),
        ("hr.a b.c", "ann"),
        ("hr.pay", "bob"),
    ]
    assert cli("list").stdout.split()[:4] == ["PRINCIPAL", "TABLE", "LOCATION", "GRANTED"]
    failed = cli("grant", "hr.people", "ann")
    assert failed.exit_code == 1 and "NOT_A_DELTA_TABLE" in failed.stderr


@pytest.mark.parametrize(
    ("table", "written"),
    [
        ("t", "t"),
        ("t", "default.T"),
        ("t", "spark_catalog.default.t"),
        ("t", "file:/t"),
        ("hr.`a b.c`", "hr.`a b.c`"),
        ("hr.`a b.c`", "s3a://b/a%20b.c+d&e=1"),
    ],
)
def test_taken_back_by_cli_as_it_was_granted_or_is_shown(cli, store, table, written):
    for principal in ("ann", "bob"):
        assert cli("grant", table, principal).exit_code == 0
    assert cli("grant", "hr.pay", "ann").exit_code == 0
    failed = cli("revoke", written, "eve")
    assert failed.exit_code == 1 and "GRANT_NOT_FOUND" in failed.stderr
    assert cli("revoke", written, "ann").exit_code == 0
    assert sorted(granted(store)) == sorted([(PLACES[table][1], "bob"), ("file:/pay", "ann")])


def test_taken_back_by_cli_on_a_metastore_without_spark(store):
    store.select_grants.add("file:/pay", "ann", "hr.pay")

    def run(*words: str):
        return CliRunner().invoke(main, ["select", *words, "--metastore", store.url])

    assert "hr.pay" in run("list").stdout
    done = run("revoke", "hr.pay", "ann")
    assert (
        done.exit_code == 0 and "hr.pay at file:/pay is not granted to ann any more" in done.stderr
    )
    assert granted(store) == []
