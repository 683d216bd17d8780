# ruff: noqa: E501 - lists of names read better unbroken
"""Names of caches and joins: each that is taken works at every door, and each that is not is refused
where it is made, with the reason. The real server, the real metastore, names drawn at random."""

from __future__ import annotations

import json
from urllib.parse import quote as escaped

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cachemgr.api.responses import path_of
from cachemgr.cli import main
from cachemgr.ddl import parse
from cachemgr.ddl.render import render
from cachemgr.ddl.statements import QualifiedName
from cachemgr.errors import DefinitionError
from cachemgr.spark.hints import read_hints
from cachemgr.statements.create_cache import LONGEST_NAME, refuse_name
from tests.api.conftest import make_cache

ODD = (
    "x y", "Größe", "日本語の表", "emoji 🦄", "a`b", "``", "it's", 'say "so"', "a,b", "x)y", "(", "100%", "%2F",
    "%25", "?", "a?b=c&d", "#", "a#b", "a\\b", "*", "$x", "{name}", "[1]", "a;b", "a:b", "a@b", "-", "--", "~",
    "+", "a+b", "select", "why", "İstanbul", "ẞ", "e\u0301", "é", "<b>", "=1+1", "null", "'", '"', "|", "^",
    "x" * LONGEST_NAME, "🦄" * LONGEST_NAME,
)  # fmt: skip
REFUSED = (
    "x/y", "/", "a.b", ".", "..", " x", "x ", " ", "tab\tb", "line\nb", "nul\0", "\x1b[2J", "\u202eabc",
    "no\u00a0break", "x" * (LONGEST_NAME + 1), "half\ud800",
)  # fmt: skip
# what people type, what breaks things, and anything
NAMES = st.one_of(
    st.sampled_from(ODD + REFUSED),
    st.text("ab/.%?#&+ `'\"\\,()*ßé日🦄\u00a0\t", min_size=1, max_size=8),
    st.text(min_size=1, max_size=12),
)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def is_taken(name: str) -> bool:
    try:
        refuse_name(QualifiedName((name,)))
    except DefinitionError as error:
        assert error.code == "NAME_NOT_ALLOWED" and "take another name" in error.message
        return False
    return True


def test_each_kind_is_decided_as_it_should_be():
    assert [name for name in ODD if not is_taken(name)] == []
    assert [name for name in REFUSED if is_taken(name)] == []


@settings(max_examples=300)
@given(NAMES)
def test_a_name_that_is_taken_comes_back_the_same_from_every_text(name):
    if not is_taken(name):
        return
    ddl = f"CREATE RELATIONAL CACHE {quoted('s')}.{quoted(name)} AS SELECT 1 AS a FROM t"
    statement = parse(ddl)
    assert statement.name.parts == ("s", name)
    assert parse(render(statement)).name == statement.name
    dropped = parse(f"DROP RELATIONAL CACHE IF EXISTS {quoted(name)}")
    assert dropped.name.parts == (name,)
    hint = f"SELECT /*+ RELATIONAL_CACHE({quoted(name)}, {quoted('s')}.{quoted(name)}) */ 1"
    if "*/" not in name:
        assert read_hints([hint]).caches == (name, f"s.{name}")
    assert read_hints([], [f"RELATIONAL_CACHE({quoted(name)})"]).caches == (name,)
    location = path_of("/caches", name)
    assert location.isascii() and httpx.URL(f"http://h{location}").path == f"/caches/{name}"


class Creates:
    """Carries a CREATE out as the service does, but for Spark's analysis of its SELECT."""

    def __init__(self, store) -> None:
        self._store = store

    def execute(self, text: str, principal: str) -> None:
        statement = parse(text)
        refuse_name(statement.name)
        record = make_cache(statement.name.last, definition=statement.select.text, owner=principal)
        self._store.caches.create(record, (), now=self._store.clock.now())


@pytest.fixture
def door(store, serve):
    url = serve(open_to_all=True, statements=Creates(store))
    with httpx.Client(base_url=f"{url}/api/v1", timeout=30) as client:
        yield client


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(NAMES)
@example("x" * LONGEST_NAME)
@example("🦄" * LONGEST_NAME)
@example("x/y")
@example("x ")
@example("日本語")
@example("%2F")
def test_a_name_works_at_each_route_or_is_refused_when_it_is_made(door, name):
    ddl = f"CREATE RELATIONAL CACHE {quoted(name)} AS SELECT 1 AS a FROM t"
    body = json.dumps({"ddl": ddl}).encode()
    made = door.post("/caches", content=body, headers={"Content-Type": "application/json"})
    if not is_taken(name):
        assert made.status_code == 400, made.text
        return
    assert made.status_code == 201, made.text
    place = f"/caches/{escaped(name, safe='')}"
    # the header leads there
    assert door.get(f"http://{door.base_url.netloc.decode()}{made.headers['Location']}").is_success
    assert door.get(place).json()["name"] == name
    assert name in [c["name"] for c in door.get("/caches").json()["caches"]]
    paged = door.get("/caches", params={"pageSize": 1}).json()
    while paged.get("nextPageToken"):
        token = paged["nextPageToken"]
        paged = door.get("/caches", params={"pageSize": 1, "pageToken": token}).json()
    version = door.get(place).json()["version"]
    answers = [
        door.patch(place, json={"version": version, "rewriteEnabled": False}),
        door.post(f"{place}/enable"),
        door.post(f"{place}/pause"),
        door.post(f"{place}/resume"),
        door.get(f"{place}/why"),
        door.get(f"{place}/grants"),
        door.get(f"{place}/refreshes"),
        door.post(f"{place}/refreshes"),
    ]
    assert [a.status_code for a in answers if not a.is_success] == []
    assert door.delete(place).status_code == 204
    assert door.get(place).status_code == 404


@pytest.mark.parametrize("name", ["x y", "Größe 日本", "100%", "%2F", "a?b#c", "it's `so`"])
def test_an_odd_name_by_the_command_line(store, serve, name):
    store.caches.create(make_cache(name), (), now=store.clock.now())
    url = serve(open_to_all=True)
    run = CliRunner()
    shown = run.invoke(main, ["cache", "show", name, "--server", url, "-o", "json"])
    assert shown.exit_code == 0 and json.loads(shown.output)["name"] == name
    paused = run.invoke(main, ["cache", "pause", name, "--server", url])
    assert paused.exit_code == 0, paused.output
    assert httpx.get(f"{url}/metrics").is_success
    assert store.caches.named("default", name).paused
