"""What the text cases alone do not check: a session decides as the explanation says, at first sight
and again."""

from __future__ import annotations

import pytest

from cachemgr.text import offline
from tests.matcher.fixture_cases import Case, load_all

# What a session does not look for, so that its cost does not grow with the caches: a cache that
# lacks a table whose columns are added up. An explanation, which tries all caches, finds it.
NOT_PROPOSED = {
    "joins_delta: columns of the joined table are added up, once for each row of the group",
    "joins_delta: columns of a LEFT joined table are added up",
}


@pytest.mark.parametrize("case", load_all(), ids=lambda case: case.id)
def test_decided_as_explained(case: Case) -> None:
    workspace = offline.prepare(case.schema, case.caches, case.conf)
    answer = offline.answer(workspace, case.query)
    if answer.parsed.reasons or not workspace.conf.enabled:
        return
    for block in answer.parsed.walk():
        if block.block is None:
            continue
        options = workspace.conf.options
        explained = workspace.registry.decide(block.block, options, explain=True).rewrite
        for _ in range(2):
            found = workspace.registry.decide(block.block, options).rewrite
            if found is None and case.id in NOT_PROPOSED:
                continue
            assert (found and found.cache) == (explained and explained.cache)
            assert (found and found.outputs) == (explained and explained.outputs)
            assert (found and found.filters) == (explained and explained.filters)
