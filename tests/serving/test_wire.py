"""What a service tells sessions of a cache arrives."""

from __future__ import annotations

import json

import pytest

from cachemgr.metastore.records import CacheRecord, RegistryEntry
from cachemgr.serving.served_cache import serve
from cachemgr.serving.wire import decode_entry, encode_entry
from matcher.model.codec import encode_plan
from matcher.model.ir import CachePlan

PLAN = encode_plan(CachePlan("c", (), (), None))


@pytest.mark.parametrize("value", ["true", "false", None])
def test_the_switch_of_hits_between_refreshes_reaches_sessions(value: str | None) -> None:
    properties = {"team": "bi"} | ({} if value is None else {"cachemgr.freshHits": value})
    cache = CacheRecord("s", "c", "SELECT", "h", "file:/c", plan=PLAN, properties=properties)
    entry = RegistryEntry(cache, (), None, frozenset())
    sent = json.loads(json.dumps(encode_entry(entry, "ann")))
    assert "bi" not in json.dumps(sent), "the other properties do not travel"
    for known in (entry, decode_entry(sent, "ann")):
        assert serve(known, (), frozenset()).fresh_hits is (value != "false")
