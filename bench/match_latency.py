"""Match latency with 1, 100 and 10,000 caches: first sight, shape seen before, cannot hit (design,
section 9).

The population follows the budget's wording: of 10,000 caches 1,000 are on the query's five tables,
30 of these pass the index and
reach the last check, 5 of them are valid; the other 9,000 are over other tables. A decision is
timed alone, from the
block to the chosen rewrite and its SQL text, as the Catalyst hook does it after it has read the
plan.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from bench.results import Figure, percentile
from matcher.definition import plan_definition
from matcher.expr import Agg, Call, Col, Expr, Lit
from matcher.ir import Block, CachePlan, Output, RecordPreservingJoin, Relation
from matcher.registry import Registry
from matcher.render import render_rewrite

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
_REPEATS = 400


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


def registry_of(count: int) -> Registry:
    """A registry of `count` caches, at most 1,000 of them on the query's tables."""
    registry = Registry()
    here = min(count, 1_000)
    for plan in (*_on_tables(here), *_elsewhere(count - here)):
        registry.put(plan)
    return registry


def _timed(action: Callable[[int], None], repeats: int) -> list[float]:
    """Milliseconds of each call, the garbage collector held off as a real session's is mostly
    idle."""
    times = []
    gc.collect()
    gc.freeze()
    for i in range(repeats):
        start = time.perf_counter_ns()
        action(i)
        times.append((time.perf_counter_ns() - start) / 1e6)
    gc.unfreeze()
    return times


def _decide(registry: Registry, block: Block, hit: bool) -> None:
    found = registry.decide(block).rewrite
    if (found is not None) != hit:
        raise AssertionError(f"expected {'a hit' if hit else 'a miss'} and got the other")
    if found is not None:
        render_rewrite(found, "`__c`", positional=True)


def run() -> list[Figure]:
    """All figures of this module."""
    figures: list[Figure] = []
    first_p50: dict[int, float] = {}
    for count in (1, 100, 10_000):
        registry = registry_of(count)
        blocks = [query("AMERICA", 1992 + i % 7) for i in range(_REPEATS)]
        strange = [_strange(i) for i in range(_REPEATS)]

        def first(i: int, registry: Registry = registry, blocks: list[Block] = blocks) -> None:
            registry.forget_decisions()
            _decide(registry, blocks[i], hit=True)

        def again(i: int, registry: Registry = registry, blocks: list[Block] = blocks) -> None:
            _decide(registry, blocks[i], hit=True)

        def never(i: int, registry: Registry = registry, strange: list[Block] = strange) -> None:
            registry.forget_decisions()
            _decide(registry, strange[i], hit=False)

        sight = _timed(first, _REPEATS)
        seen = _timed(again, _REPEATS)
        missed = _timed(never, _REPEATS)
        first_p50[count] = percentile(sight, 0.5)
        budgets = count == 10_000
        figures += [
            Figure(
                f"first sight p50, {count} caches", first_p50[count], "ms", 5.0 if budgets else None
            ),
            Figure(
                f"first sight p99, {count} caches",
                percentile(sight, 0.99),
                "ms",
                15.0 if budgets else None,
            ),
            Figure(f"seen before p99, {count} caches", percentile(seen, 0.99), "ms", 0.3),
            Figure(f"cannot hit p99, {count} caches", percentile(missed, 0.99), "ms", 5.0),
        ]
    ratio = first_p50[10_000] / first_p50[100]
    figures.append(Figure("first sight p50, 10,000 caches against 100", ratio, "x", 1.3))
    return figures


def _strange(i: int) -> Block:
    """A query on the same tables that needs a measure which no cache stores."""
    block = query("ASIA", 1992 + i % 7)
    return replace(block, outputs=(*block.outputs[:2], Output("tax", _sum(col("lo_tax")))))
