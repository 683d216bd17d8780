"""What a service tells sessions of a cache arrives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cachemgr.cache_spec import CacheSpec
from cachemgr.metastore.records import CacheRecord, RefreshRunRecord, SnapshotRecord
from cachemgr.metastore.registry_records import RegistryEntry
from cachemgr.serving.served_cache import serve
from cachemgr.serving.wire import NEVER, decode_entry, encode_entry
from cachemgr.vocabulary import RunState
from matcher.model.codec import encode_plan
from matcher.model.ir import CachePlan, Relation

PLAN = encode_plan(CachePlan("c", (), (), None))


def published(facts: Mapping[str, Any], plan: Mapping[str, Any] = PLAN) -> RegistryEntry:
    """A cache that was refreshed once."""
    run = RefreshRunRecord(
        "r", "i", RunState.PUBLISHED, "FULL", "", "", 1, NEVER, cache_version=1, facts=facts,
        plan=plan,
    )  # fmt: skip
    cache = CacheRecord("s", "c", "SELECT", "h", "file:/c", published_refresh_id="r")
    return RegistryEntry(cache, (), SnapshotRecord(run, ()), frozenset())


@pytest.mark.parametrize("value", ["true", "false", None])
def test_the_switch_of_hits_between_refreshes_reaches_sessions(value: str | None) -> None:
    properties = {"team": "bi"} | ({} if value is None else {"cachemgr.freshHits": value})
    cache = CacheRecord(
        "s", "c", "SELECT", "h", "file:/c", plan=PLAN, spec=CacheSpec(properties=properties)
    )
    entry = RegistryEntry(cache, (), None, frozenset())
    sent = json.loads(json.dumps(encode_entry(entry, "ann")))
    assert "bi" not in json.dumps(sent), "the other properties do not travel"
    for known in (entry, decode_entry(sent, "ann")):
        assert serve(known, (), frozenset()).fresh_hits is (value != "false")


def test_bounds_of_columns_reach_sessions_rounded() -> None:
    """Proofs hold with wider ones, and who is told of a cache may not have read its tables."""
    relations = (Relation("file:/t", "t"), Relation("file:/u", "u"), Relation("file:/t", "t"))
    facts = {
        "base_rows": 9,
        "bounds": [[0, "X", -3, 777_000_777], [1, "y", 5, 5], [2, "X", -900_000_900, 1]],
    }
    plan = encode_plan(CachePlan("c", relations, (), None))
    entry = published(facts, plan)
    assert dict(serve(entry, (), frozenset()).plan.bounds) == {
        ("file:/t", "x"): (-900_000_900, 777_000_777),
        ("file:/u", "y"): (5, 5),
    }
    sent = json.dumps(encode_entry(entry, "ann"))
    assert "777000777" not in sent and "900000900" not in sent
    assert dict(serve(decode_entry(json.loads(sent), "ann"), (), frozenset()).plan.bounds) == {
        ("file:/t", "x"): (-(2**30), 2**30),
        ("file:/u", "y"): (-8, 8),
    }
    assert entry.published is not None
    run = replace(entry.published.run, plan=None)
    unplanned = replace(entry, published=SnapshotRecord(run, ()))
    other = replace(unplanned, cache=replace(entry.cache, plan=plan))
    assert serve(other, (), frozenset()).plan.bounds == (), "their relations are those of no plan"


@pytest.mark.parametrize("sparks", [["4.0"], ["4.1", "4.2"], None])
def test_who_computed_a_cache_reaches_sessions(sparks: list[str] | None) -> None:
    """Of what an earlier release wrote down nobody says so: it worked with 4.2 alone."""
    facts = {"base_rows": 9} | ({} if sparks is None else {"sparks": sparks})
    entry = published(facts)
    sent = json.loads(json.dumps(encode_entry(entry, "ann")))
    for known in (entry, decode_entry(sent, "ann")):
        assert serve(known, (), frozenset()).sparks == frozenset(sparks or {"4.2"})
