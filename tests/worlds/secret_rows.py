"""Rows that nobody may hear of: a metastore in which values and numbers of rows stand wherever
something of rows is kept, which are so odd that they can be looked for in whatever is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import update

from cachemgr.metastore import Metastore
from cachemgr.metastore.accounts import RunAccount
from cachemgr.metastore.logged_reasons import logged_reason
from cachemgr.metastore.models import GroupingSetRow, RefreshRunRow
from cachemgr.metastore.records import REASON_PARTS, DecisionRecord, JoinRecord, JoinSide
from cachemgr.serving.served_cache import matcher_name
from cachemgr.vocabulary import JoinState, Outcome
from matcher.model.message import CacheName, Cause, Count, Message, Value
from matcher.model.message_codec import message_data
from matcher.model.reasons import Reason, ReasonCode
from tests.harness.load.population import populate, write_commit

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


def secret_world(store: Metastore, folder: Path, caches: int) -> None:
    """Make caches over a restricted table that `ann` alone has a grant on.

    Sentinels stand wherever something of rows is kept: in sizes, why refreshes ran and failed,
    logged reasons, what contradicts a join, and the log of the table itself.

    Args:
        store: An empty metastore.
        folder: Where the tables' logs are made.
        caches: How many caches.
    """
    fact = populate(store, folder, caches)["lineorder"]
    _plant(store, folder)
    for cache in store.caches.matching():
        store.grants.add(cache.id, "ann")
    store.tables.restrict(fact.name, fact.location, fact.table_id, by="root")


def places(store: Metastore) -> Iterator[str]:
    """What can be asked with GET, below the API's version: of each cache, each refresh, the join
    and what is not there."""
    yield from ("/caches", "/catalog", "/definitions", "/joins", "/joins/j", "/decisions", "/info")
    yield from ("/refreshes/nothing", "/caches/nothing", "/tables/restricted")
    for cache in store.caches.matching():
        own = f"/caches/{cache.name}"
        yield from (own, f"{own}/refreshes", f"{own}/why", f"{own}/grants")
        yield from (f"/refreshes/{run.id}" for run in store.refreshes.of(cache.id, 5))


def leaks(told: str) -> set[str]:
    """The sentinels in a text, in any form in which a number is written."""
    forms = {VALUE: (VALUE,), QUOTED: (QUOTED,)}
    for number in (ROWS, APPENDED):
        exponents = f"{number:.9e}".partition("e")[0], f"{number:.3e}".partition("+")[0]
        forms[str(number)] = (str(number), f"{number:,}", f"{number:_}", *exponents)
    return {name for name, spelled in forms.items() if any(form in told for form in spelled)}


def _plant(store: Metastore, folder: Path) -> None:
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
