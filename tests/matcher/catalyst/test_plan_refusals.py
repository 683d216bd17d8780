"""Plan documents that the Catalyst door must refuse, by hand and without Spark: each would be read
as something that it is not."""

from __future__ import annotations

from typing import Any

import pytest

from matcher.catalyst.document import VERSION, queries_in
from matcher.catalyst.reader import (
    LocatedBlock,
    blocks,
    build_block,
    definition_block,
    walk_blocks,
)
from matcher.catalyst.subqueries import without_distinct
from matcher.index.registry import Registry
from matcher.model.errors import NotSupported
from matcher.model.ir import MatchOptions
from matcher.model.reasons import Reason
from matcher.normalize.stored_plan import plan_definition
from matcher.partials.split import split

K, V = ["a", 1, "k", "int", 1], ["a", 2, "v", "bigint", 0]
SUM = ["as", 3, "s", ["g", "Sum", "sum", [V], "bigint", 1, 0, None, []]]
TABLE: dict[str, Any] = {
    "name": "t", "location": "file:/t", "table_id": "1", "version": 3, "kind": "delta",
    "pinned": False, "elsewhere": False,
}  # fmt: skip


def relation(**more: Any) -> dict[str, Any]:
    return {"n": "LogicalRelation", "t": 0, "o": [K, V], **more}


def aggregate(child: dict[str, Any], *items: Any, keys: Any = (K,)) -> dict[str, Any]:
    return {"n": "Aggregate", "g": list(keys), "p": list(items), "c": [child]}


def document(plan: dict[str, Any], **table: Any) -> dict[str, Any]:
    return {
        "v": VERSION, "ansi": True, "precision_loss": True, "time_zone": "UTC",
        "tables": [{**TABLE, **table}], "plan": plan,
    }  # fmt: skip


def joined(kind: str) -> dict[str, Any]:
    return {"n": "Join", "j": kind, "p": [], "c": [relation(), relation()]}


def expand(o: list[Any], rows: list[list[Any]]) -> dict[str, Any]:
    return {"n": "Expand", "o": o, "e": rows, "c": [relation()]}


def window(start: list[Any]) -> list[Any]:
    kind = "struct<start:timestamp,end:timestamp>"
    return ["f", "CreateNamedStruct", "named_struct", [start], kind, 0, []]


GID = ["a", 9, "spark_grouping_id", "bigint", 0]
NULL, ONE, ZERO = ["l", None, "int"], ["l", 1, "bigint"], ["l", 0, "bigint"]
KEY = ["a", 8, "k", "int", 1]


def test_what_is_read_when_nothing_is_wrong() -> None:
    block = build_block(aggregate(relation(), K, SUM), document({}))
    assert [repr(o.expr) for o in block.outputs] == ["$0.k", "sum($0.v)"]
    good = aggregate(expand([KEY, GID], [[K, ZERO], [NULL, ONE]]), KEY, keys=(KEY, GID))
    assert build_block(good, document({})).grouping_sets == ((0,), ())


@pytest.mark.parametrize("name", ["max_by", "min_by", "SUM", "hll_union_agg"])
def test_a_class_that_is_not_known_takes_no_name_that_is(name: str) -> None:
    """MAX_BY(x, y, k) has three arguments and goes by the name of what has two."""
    first = ["g", "MaxMinByK", name, [V, K, ["l", 2, "int"]], "array<bigint>", 1, 0, None, []]
    block = build_block(aggregate(relation(), K, ["as", 4, "m", first]), document({}))
    counts = ["as", 4, "n", ["g", "Count", "count", [ONE], "bigint", 0, 0, None, []]]
    stored = definition_block(document(aggregate(relation(), K, V, counts, keys=(K, V))))
    registry = Registry()
    registry.put(plan_definition("c", stored))
    decision = registry.decide(block)
    assert [r.code.value for r in decision.reasons] == ["AGG_NOT_DERIVABLE"]
    states = split(block, MatchOptions())
    assert isinstance(states, Reason) and states.code.value == "NOT_MERGEABLE"


def test_nothing_is_looked_for_in_a_plan_that_was_not_written_whole() -> None:
    plan = {**aggregate(relation(), K, SUM), "x": "it is too long"}
    [found] = blocks(document(plan))
    assert found.block is None
    assert [reason.code.value for reason in found.reasons] == ["QUERY_TOO_LARGE"]


def exists(query: dict[str, Any], *conditions: Any) -> dict[str, Any]:
    """The groups of a table's rows for which `query` finds something."""
    test = ["q", "SUBQUERY", "exists t", None, query, list(conditions)]
    return aggregate({"n": "Filter", "p": [test], "c": [relation()]}, K, SUM)


FAR = [["a", 21, "k", "int", 1], ["a", 22, "v", "bigint", 0]]
SAME_K = ["f", "EqualTo", "equalto", [FAR[0], K], "boolean", 1, []]


def test_a_subquery_in_a_filter_is_a_join() -> None:
    block = build_block(exists(relation(o=FAR), SAME_K), document({}))
    assert [(j.kind, j.right, repr(j.on)) for j in block.outer] == [
        ("semi", (1,), "(eq($1.k, $0.k),)")
    ]


def test_an_escape_character_is_neither_a_subquery_nor_an_aggregate() -> None:
    def like(escape: str) -> list[Any]:
        text = ["l", "a_b", "string"]
        return ["f", "Like", "like", [["a", 4, "s", "string", 1], text], "boolean", 1, [escape]]

    assert list(queries_in([like("q")])) == []
    distinct = aggregate(relation(o=FAR), FAR[0], ["as", 30, "l", like("g")], keys=(FAR[0],))
    assert without_distinct(distinct)["n"] == "Project"
    summed = aggregate(relation(o=FAR), FAR[0], SUM, keys=(FAR[0],))
    assert without_distinct(summed)["n"] == "Aggregate"


@pytest.mark.parametrize(
    ("plan", "table", "words"),
    [
        (exists(relation(), SAME_K), {}, "exists t, which reads the very columns"),
        (
            exists({**joined("LEFT OUTER"), "c": [relation(o=FAR), relation(o=[])]}, SAME_K),
            {},
            "exists t, whose tables are outer joined or grouped",
        ),
        (exists(aggregate(relation(o=FAR), FAR[0], SUM, keys=()), SAME_K), {},
         "neither a group key nor an aggregate"),
        (aggregate({"n": "Sample", "c": [relation()]}, K, SUM), {}, "TABLESAMPLE"),
        (aggregate(relation(cache=True), K, SUM), {}, "LogicalRelation"),
        (aggregate(joined("ANY_KIND_TO_COME"), K, SUM), {}, "ANY_KIND_TO_COME"),
        (aggregate(relation(), K, SUM), {"kind": "other"}, "not a table of files"),
        (aggregate(relation(), K, SUM), {"kind": "managed"}, "managed by a catalog"),
        ({**aggregate(relation(), K, SUM), "x": "it is too deep"}, {}, "it is too deep"),
        (aggregate(relation(), K, SUM), {"pinned": True}, "version 3 of t"),
        (
            {"n": "Project", "p": [["x", "METADATA_COLUMN", "path"]], "c": [relation()]},
            {},
            "stored",
        ),
        (relation(o=[K, ["x", "METADATA_COLUMN", "path"]]), {}, "stored"),
        (
            {"n": "Project", "p": [["as", 5, "r", ["x", "UDF", "f"]]], "c": [relation()]},
            {},
            "f is a user-defined function",
        ),
        (
            aggregate({**joined("LEFT OUTER"), "c": [relation(), joined("LEFT OUTER")]}, K, SUM),
            {},
            "LEFT OUTER JOIN of tables that are outer joined",
        ),
        (
            aggregate({**joined("FULL OUTER"), "c": [relation(), joined("LEFT OUTER")]}, K, SUM),
            {},
            "FULL OUTER JOIN of tables that are outer joined",
        ),
        (aggregate(relation(), ["a", 7, "far", "int", 1], SUM), {}, "far comes from outside"),
        (
            aggregate(
                {"n": "Project", "p": [["as", 5, "r", ["x", "UDF", "f"]]], "c": [relation()]},
                ["a", 5, "r", "int", 1],
                keys=(["a", 5, "r", "int", 1],),
            ),
            {},
            "f is a user-defined function",
        ),
        (
            aggregate(relation(), ["as", 3, "s", ["g", "Sum", "sum", [V], "bigint", 1, 0, None,
                                                  ["NumericEvalContext(ANSI,false)"]]]),
            {},
            "under other settings",
        ),
        (
            aggregate(expand([KEY, GID], [[K, ZERO], [NULL, ONE]]), KEY,
                      keys=(KEY, GID, ["f", "Year", "year", [KEY], "int", 1, []])),
            {},
            "groups by an expression over an Expand",
        ),
        (
            aggregate({"n": "Filter", "p": [["f", "IsNotNull", "isnotnull", [V], "boolean", 0, []]],
                       "c": [expand([KEY, GID, V], [[K, ZERO, V], [NULL, ONE, V]])]},
                      KEY, keys=(KEY, GID)),
            {},
            "filtered by what is no grouping key",
        ),
        (
            aggregate(expand([KEY, GID], [[K, ZERO], [NULL, ONE]]), KEY,
                      ["as", 3, "s", ["g", "Sum", "sum", [KEY], "bigint", 1, 0, None, []]],
                      keys=(KEY, GID)),
            {},
            "aggregates a grouped column",
        ),
        (
            aggregate(expand([KEY], [[K], [NULL]]), KEY, keys=(KEY,)),
            {},
            "no grouping id",
        ),
        (
            aggregate(expand([KEY, GID], [[K, ONE], [NULL, ZERO]]), KEY, keys=(KEY, GID)),
            {},
            "another order",
        ),
        (
            aggregate(expand([KEY, GID], [[K, ZERO], [V, ONE]]), KEY, keys=(KEY, GID)),
            {},
            "differs between sets",
        ),
        (
            aggregate(expand([KEY, GID], [[window(K), ZERO], [window(V), ONE]]), KEY,
                      keys=(KEY, GID)),
            {},
            "that of a sliding window",
        ),
        (
            aggregate(expand([KEY, GID], [[K, V], [NULL, ONE]]), KEY, keys=(KEY, GID)),
            {},
            "a grouping id that is no constant",
        ),
    ],
)  # fmt: skip
def test_refused(plan: dict[str, Any], table: dict[str, Any], words: str) -> None:
    with pytest.raises(NotSupported, match=words):
        build_block(plan, document(plan, **table))


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (
            {"n": "Project", "p": [K],
             "c": [{"n": "Filter", "p": [], "c": [{"n": "Window", "c": [relation()]}]}]},
            "a window function",
        ),
        (
            {"n": "Project", "p": [K],
             "c": [{"n": "Filter", "p": [], "c": [{"n": "Sort", "c": [relation()]}]}]},
            "a filter on a subquery",
        ),
        (
            aggregate(relation(), K, ["as", 3, "s", ["g", "ApproximatePercentile", "approx", [V],
                                                     "bigint", 1, 0, None, ["0.5"]]]),
            "cannot be stored",
        ),
    ],
)  # fmt: skip
def test_refused_as_a_definition(plan: dict[str, Any], words: str) -> None:
    with pytest.raises(NotSupported, match=words):
        definition_block(document(plan))


def test_a_document_of_another_version_is_not_read() -> None:
    other = {**document(relation()), "v": VERSION + 1}
    for read in (definition_block, lambda d: walk_blocks(d, lambda _: False)):
        with pytest.raises(ValueError, match=f"version {VERSION + 1}"):
            read(other)


def test_below_data_that_spark_caches_nothing_is_looked_at() -> None:
    seen: list[LocatedBlock] = []
    plan = {"n": "Sort", "c": [aggregate(relation(), K, SUM) | {"cache": True}]}
    walk_blocks(document(plan), lambda located: bool(seen.append(located)))
    assert seen == []
