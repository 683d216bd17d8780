"""The population of caches that the budgets speak of, and their query.

Of 10,000 caches 1,000 are on the query's five tables, 30 of these pass the index and reach the last
check, 5 of them are valid; the other 9,000 are over other tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from cachemgr.metastore import Metastore
from cachemgr.metastore.records import CacheRecord, Publication, SnapshotTableRecord
from matcher.index.registry import Registry
from matcher.model.codec import encode_plan
from matcher.model.expr import Agg, Call, Col, Expr, Lit
from matcher.model.ir import Block, CachePlan, Output, RecordPreservingJoin, Relation
from matcher.normalize.stored_plan import plan_definition

_TABLES = ("lineorder", "dates", "customer", "supplier", "part")
_RELATIONS = tuple(Relation(f"file:/warehouse/{t}", t) for t in _TABLES)
_PREFIX = {"lo": 0, "d": 1, "c": 2, "s": 3, "p": 4}
_NUMBERS = {"d_year": "int", "d_weeknuminyear": "int", "d_yearmonthnum": "int"}
_KEYS = (
    "d_year d_weeknuminyear d_yearmonthnum d_yearmonth lo_discount lo_quantity p_mfgr p_category "
    "p_brand1 s_region s_nation s_city c_region c_nation c_city"
).split()
_NEEDED = ("d_year", "s_region", "c_region", "c_nation", "p_mfgr")
_ON = (
    ("lo_orderdate", "d_datekey"),
    ("lo_custkey", "c_custkey"),
    ("lo_suppkey", "s_suppkey"),
    ("lo_partkey", "p_partkey"),
)


def col(name: str) -> Col:
    """A column of the star schema; never NULL, as in the benchmark's tables."""
    prefix = name.split("_", 1)[0]
    kind = _NUMBERS.get(name, "bigint" if prefix == "lo" or name.endswith("key") else "string")
    return Col(_PREFIX[prefix], name, kind, nullable=False)


def _equal(left: Expr, right: Expr) -> Call:
    return Call("eq", (left, right), "boolean", nullable=False)


def _sum(expr: Expr) -> Agg:
    return Agg("sum", (expr,), "bigint")


_JOINS = tuple(_equal(col(a), col(b)) for a, b in _ON)
_PRESERVING = tuple(
    RecordPreservingJoin(f"lo_{t}", _RELATIONS[0].key, r.key, (on,))
    for t, r, on in zip(_TABLES[1:], _RELATIONS[1:], _ON, strict=True)
)


def query(region: str = "AMERICA", year: int = 1997) -> Block:
    """The shape of SSB Q4.1 with a filter on the year: five tables, a difference of sums."""
    mfgr = tuple(_equal(col("p_mfgr"), Lit(f"MFGR#{i}", "string")) for i in (1, 2))
    profit = _sum(Call("sub", (col("lo_revenue"), col("lo_supplycost")), "bigint", nullable=False))
    return Block(
        _RELATIONS,
        (
            *_JOINS,
            _equal(col("c_region"), Lit(region, "string")),
            _equal(col("s_region"), Lit(region, "string")),
            Call("ge", (col("d_year"), Lit(year, "int")), "boolean", nullable=False),
            Call("or", mfgr, "boolean", nullable=False),
        ),
        (
            Output("d_year", col("d_year")),
            Output("c_nation", col("c_nation")),
            Output("profit", profit),
        ),
        (col("d_year"), col("c_nation")),
    )


def _cache(name: str, keys: tuple[str, ...], *, cost: bool, predicate: Expr | None) -> CachePlan:
    extra = () if predicate is None else (predicate,)
    outputs = [Output(k, col(k)) for k in keys] + [Output("revenue", _sum(col("lo_revenue")))]
    if cost:
        outputs.append(Output("supplycost", _sum(col("lo_supplycost"))))
    block = Block(_RELATIONS, (*_JOINS, *extra), tuple(outputs), tuple(map(col, keys)))
    return plan_definition(name, block, _PRESERVING)


def _on_tables(count: int) -> Iterator[CachePlan]:
    """`count` caches on the five tables: 5 valid, 25 refused at the last check, the rest before."""
    valid, close = min(5, count), 25
    others = [k for k in _KEYS if k not in _NEEDED]
    for i in range(count):
        extra = tuple(others[(i + j) % len(others)] for j in range(1 + i % 4))
        if i < valid:
            yield _cache(f"valid_{i}", (*_NEEDED, *extra), cost=True, predicate=None)
        elif i < valid + close:
            # every column is there, but rows are not: another region than the query's
            narrow = _equal(col("s_region"), Lit("ASIA", "string"))
            yield _cache(f"close_{i}", (*_NEEDED, *extra), cost=True, predicate=narrow)
        else:
            lacking = _NEEDED[i % len(_NEEDED)]
            keys = tuple(k for k in (*_NEEDED, *extra) if k != lacking)
            yield _cache(f"far_{i}", keys, cost=True, predicate=None)


def _elsewhere(count: int) -> Iterator[CachePlan]:
    """Caches of the same kind over the tables of other schemas."""
    for i in range(count):
        plan = _cache(f"other_{i}", tuple(_KEYS[i % 5 : i % 5 + 6]), cost=True, predicate=None)
        moved = tuple(Relation(f"{r.key}_{i % 500}", r.name) for r in plan.relations)
        yield replace(plan, relations=moved)


def plans(count: int) -> Iterator[CachePlan]:
    """`count` caches, at most 1,000 of them on the query's tables."""
    here = min(count, 1_000)
    yield from _on_tables(here)
    yield from _elsewhere(count - here)


def registry_of(count: int) -> Registry:
    """A registry of the same caches."""
    registry = Registry()
    for plan in plans(count):
        registry.put(plan)
    return registry


def plan_document(region: str = "AMERICA", year: int = 1997) -> str:
    """The query as Spark's hook hands it over: the plan as the optimiser had it, as JSON."""
    text = Path(__file__).with_name("q41_plan.json").read_text()
    text = text.replace('["l",1997,"int"]', f'["l",{year},"int"]')
    return text.replace('["l","AMERICA","string"]', f'["l","{region}","string"]')


def published(
    store: Metastore, plan: CachePlan, tables: Sequence[SnapshotTableRecord], now: datetime
) -> CacheRecord:
    """A cache made, refreshed and published by the metastore's own writer: the template of many.

    Args:
        store: An empty metastore.
        plan: What it stores.
        tables: What its snapshot says of the base tables.
        now: The time of all of it.
    """
    text = encode_plan(plan)
    cache = store.caches.create(
        CacheRecord(
            namespace="default",
            name="template",
            definition="SELECT 1",
            definition_hash="h",
            location="file:/warehouse/caches/template",
            plan=text,
        ),
        now=now,
    )
    run = store.refreshes.start(
        cache.id, "bench", now=now, lease_seconds=60, mode="FULL", reason="bench"
    )
    store.refreshes.publish(
        run.id,
        run.fencing_token,
        Publication(cache_version=1, rows=1000, bytes=1000, tables=tables, plan=text),
        now=now,
    )
    return cache
