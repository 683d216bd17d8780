"""A restricted table holds values and numbers of rows that stand nowhere else. Whatever REST, its
metrics and its log say, none of them is in it for who has no grant on the caches, whatever his
role; and that is so by the kinds of what texts are made of, as switching one off shows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

import matcher.model.message as messages
from cachemgr.delta.head_lookup import Heads
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.accounts import RunAccount
from cachemgr.metastore.logged_reasons import logged_reason
from cachemgr.metastore.models import GroupingSetRow, RefreshRunRow
from cachemgr.metastore.records import REASON_PARTS, DecisionRecord, JoinRecord, JoinSide
from cachemgr.roles import Role
from cachemgr.serving.feed import Feed
from cachemgr.serving.served_cache import matcher_name
from cachemgr.serving.sources import MetastoreSource
from cachemgr.telemetry import logger
from cachemgr.text.door import TextDoor
from cachemgr.vocabulary import JoinState, Outcome
from matcher.model.message import CacheName, Cause, Count, Message, Value
from matcher.model.message_codec import message_data
from matcher.model.reasons import Reason, ReasonCode
from tests.harness.load.population import SETTINGS, populate, write_commit

# so long that no time and no id holds them by chance
ROWS, APPENDED, VALUE, QUOTED = 471_108_151_923, 8_812_377_013, "N10156Sentinel", "Q77031Sentinel"
FROM = """FROM lineorder, dates, customer, supplier, part
WHERE lo_orderdate = d_datekey AND lo_custkey = c_custkey
AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey"""
QUERIES = (
    f"SELECT d_year, c_nation, SUM(lo_revenue) AS r {FROM} GROUP BY d_year, c_nation",
    f"SELECT lo_orderkey, c_name {FROM}",
    "SELECT SUM(lo_quantity) AS q FROM lineorder",
    "SELECT no_such_column FROM lineorder",
    "SELECT lo_orderkey FROM lineorder WHERE lo_orderkey = 'x' + 1",
)
JOIN = "CREATE RECORD PRESERVING JOIN j AS lineorder INNER JOIN dates ON lo_orderdate = d_datekey"


@dataclass
class World:
    """A service over a restricted table, and clients of it."""

    store: Metastore
    url: str
    feed: Feed
    log: list[str]

    def client(self, role: Role, principal: str) -> httpx.Client:
        _, token = self.store.tokens.create(principal, role)
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=30)

    def told(self, role: Role, principal: str) -> str:
        """All that the service says to somebody, by its answers, its metrics and its log."""
        del self.log[:]
        caches = self.store.caches.matching()
        places = [
            "/caches",
            "/catalog",
            "/definitions",
            "/joins",
            "/joins/j",
            "/decisions",
            "/info",
        ]
        places += ["/refreshes/nothing", "/caches/nothing", "/tables/restricted"]
        for cache in caches:
            own = f"/caches/{cache.name}"
            places += [own, f"{own}/refreshes", f"{own}/why", f"{own}/grants"]
            runs = self.store.refreshes.of(cache.id, 5)
            places += [f"/refreshes/{run.id}" for run in runs]
        with self.client(role, principal) as client:
            answers = [client.get(place) for place in places]
            for sql in QUERIES:
                answers.append(client.post("/rewrite", json={"sql": sql}))
                answers.append(client.post("/explain", json={"sql": sql, "candidates": 1000}))
            answers.append(client.post(f"/caches/{caches[0].name}/refreshes", json={"mode": "?"}))
        texts = [answer.text for answer in answers]
        texts.append(httpx.get(f"{self.url}/metrics").text)
        return "\n".join([*texts, *self.log])


@pytest.fixture
def world(serve, store: Metastore, metastore_url: str, tmp_path: Path) -> Iterator[World]:
    tables = populate(store, tmp_path, 10)
    _plant(store, tmp_path)
    for cache in store.caches.matching():
        store.grants.add(cache.id, "ann")
    fact = tables["lineorder"]
    store.tables.restrict(fact.name, fact.location, fact.table_id, by="root")
    feed = Feed(MetastoreSource(open_metastore(metastore_url)))
    feed.start()
    assert feed.wait_loaded(20)
    lines: list[str] = []
    handler = _Lines(lines)
    logger.addHandler(handler)
    url = serve(texts=TextDoor(feed, Heads(), SETTINGS))
    found = World(store, url, feed, lines)
    granted = found.told(Role.OPERATOR, "ann")  # what he asks is in the decision log then
    assert str(APPENDED) in granted
    feed.flush_log()
    yield found
    logger.removeHandler(handler)
    feed.close()


class _Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.DEBUG)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))


def _plant(store: Metastore, folder: Path) -> None:
    """Sentinels wherever something of rows is kept: sizes, why refreshes ran and failed, logged
    reasons, what contradicts a join, and the log of the table itself."""
    statistics = f'{{"numRecords":{APPENDED},"minValues":{{"lo_orderkey":{ROWS}}}}}'
    file = {"path": "part-9", "size": ROWS, "partitionValues": {}, "dataChange": True}
    added = {"add": {**file, "stats": statistics}}
    write_commit(folder / "lineorder" / "_delta_log", 3, [added])
    args = {"rows": Count(ROWS, "row"), "value": Value(VALUE), "cause": Cause(QUOTED)}
    template = "lineorder got {rows}, {value} among them: {cause}"
    why = Message(template, **args)
    account = RunAccount("FULL", "ROWS_REMOVED", why, "", ROWS, ROWS, ROWS, ROWS, ROWS, ROWS)
    facts = {**account.to_facts(), REASON_PARTS: message_data(why)}
    with store.engine.begin() as connection:
        sized = update(RefreshRunRow).values(rows=ROWS, bytes=ROWS, reason=str(why), facts=facts)
        connection.execute(sized)
        connection.execute(update(GroupingSetRow).values(rows=ROWS, bytes=ROWS))
    reasons = []
    for cache in store.caches.matching():
        failed = store.refreshes.start(
            cache.id, "w", now=None, lease_seconds=60, mode="FULL", reason=str(why)
        )
        store.refreshes.update(failed.id, failed.fencing_token, facts=facts)
        error = f"[CAST_INVALID_INPUT] The value '{VALUE}' of {ROWS} rows cannot be cast"
        store.refreshes.fail(failed.id, failed.fencing_token, error, now=None)
        name = CacheName(matcher_name(cache))
        refresh = "REFRESH RELATIONAL CACHE {cache}"
        reason = Reason(ReasonCode.STALE, template, refresh, cache=name, **args)
        reasons.append(logged_reason(reason, [f"file:{folder}/lineorder"]))
    at = store.clock.now()
    decision = DecisionRecord(at, "s", "q", Outcome.MISS, reasons=tuple(reasons), principal="ann")
    store.decisions.log([decision])
    left, right = (
        JoinSide(f"default.{name}", f"file:{folder}/{name}", f"id-of-{name}")
        for name in ("lineorder", "dates")
    )
    message = f"{ROWS} rows of lineorder would be lost, for example lo_orderdate = '{VALUE}'"
    keys = (("lo_orderdate", "d_datekey"),)
    join = JoinRecord("j", JOIN, left, right, keys, state=JoinState.BROKEN, message=message)
    store.joins.create(join, now=store.clock.now())


def leaks(told: str) -> set[str]:
    """The sentinels in a text, in any form in which a number is written."""
    forms = {VALUE: (VALUE,), QUOTED: (QUOTED,)}
    for number in (ROWS, APPENDED):
        forms[str(number)] = (str(number), f"{number:,}", f"{number:_}", f"{number:.3e}"[:5])
    return {name for name, spelled in forms.items() if any(form in told for form in spelled)}


@pytest.mark.parametrize("role", list(Role))
def test_none_is_told_to_who_has_no_grant(world: World, role: Role) -> None:
    assert leaks(world.told(role, f"bob-{role.value}")) == set()


def test_all_are_told_to_who_has_one(world: World) -> None:
    assert leaks(world.told(Role.OPERATOR, "ann")) == {str(ROWS), str(APPENDED), VALUE, QUOTED}


@pytest.mark.parametrize(
    ("kind", "sentinel"), [(Count, str(ROWS)), (Value, VALUE), (Cause, QUOTED)]
)
def test_without_the_redaction_of_a_kind_its_sentinel_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: messages.Kind, sentinel: str
) -> None:
    hide = messages._without

    def but_for_one(arg: messages.Arg, kinds: tuple[messages.Kind, ...]) -> messages.Arg:
        return hide(arg, tuple(other for other in kinds if other is not kind))

    monkeypatch.setattr(messages, "_without", but_for_one)
    assert sentinel in leaks(world.told(Role.OPERATOR, "bob"))
