"""Definitions that name each other: the order in which they can be made."""

from __future__ import annotations

import pytest

from cachemgr.errors import DefinitionError
from cachemgr.statements.document_order import in_order, key_of, sources_in
from cachemgr.statements.export import CacheDefinition


def cache(name: str, source: str, **more: str) -> CacheDefinition:
    return CacheDefinition(name, f"SELECT k, SUM(v) AS v FROM {source} GROUP BY k", **more)


def names(*caches: CacheDefinition) -> list[str]:
    return [c.name for c in in_order(caches)]


def test_a_cache_comes_after_those_that_it_names() -> None:
    a, b = cache("default.a", "default.C x"), cache("default.b", "(SELECT * FROM a)")
    c = cache("default.c", "sales JOIN cust ON k = id")
    assert names(a, b, c) == ["default.c", "default.a", "default.b"]
    assert names(c, b, a) == ["default.c", "default.a", "default.b"]
    assert sources_in(b, [key_of(a), key_of(c)]) == {("default", "a")}


def test_a_cache_of_windows_comes_after_those_that_it_names() -> None:
    of_windows = "SELECT COUNT(*) AS n FROM b GROUP BY window(t, '1 hour'), k"
    a = CacheDefinition("default.a", of_windows)
    assert names(a, cache("default.b", "x")) == ["default.b", "default.a"]


def test_names_are_looked_up_where_the_definition_was() -> None:
    there = cache("s.a", "t")
    assert names(cache("default.b", "a", schema="s"), there) == ["s.a", "default.b"]
    assert names(cache("default.b", "a"), there) == ["default.b", "s.a"]
    assert names(cache("default.b", "`spark_catalog`.`S`.`A`"), there) == ["s.a", "default.b"]


def test_the_order_is_kept_where_nothing_is_named() -> None:
    many = [cache(f"default.c{i}", "sales") for i in range(9)]
    assert in_order(many) == many
    broken = CacheDefinition("default.x", "SELECT FROM (")
    assert in_order([broken]) == [broken]


def test_a_circle_is_printed() -> None:
    with pytest.raises(DefinitionError) as caught:
        in_order([cache("default.a", "b"), cache("default.b", "c"), cache("default.c", "a")])
    assert caught.value.code == "CACHE_CYCLE"
    assert caught.value.message.count(" → ") == 3
