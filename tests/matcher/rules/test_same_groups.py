"""Groups that a cache has as they are asked for are not made again."""

from __future__ import annotations

import pytest

from matcher.examples import block_of, plan_of
from matcher.index.registry import Registry


def groups_again(definition: str, query: str) -> bool:
    registry = Registry()
    registry.put(plan_of(definition))
    found = registry.decide(block_of(query)).rewrite
    assert found is not None
    return found.group_keys is not None


# of -0.0 and 0.0 Spark makes one group, which it shows as 0.0: so the cache has them
@pytest.mark.parametrize("key", ["item", "ratio"])
def test_the_same_key(key: str) -> None:
    text = f"SELECT {key}, COUNT(*) AS n FROM sales GROUP BY {key}"
    assert not groups_again(text, text)


def test_fewer_keys() -> None:
    definition = "SELECT item, ratio, COUNT(*) AS n FROM sales GROUP BY item, ratio"
    assert groups_again(definition, "SELECT ratio, COUNT(*) AS n FROM sales GROUP BY ratio")
