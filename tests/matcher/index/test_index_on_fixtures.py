"""The index proposes what an explanation finds by asking every cache: on each text case, and on
TPC-H and TPC-DS."""

from __future__ import annotations

import pytest

from cachemgr.text import offline
from tests.harness.tpc import suite
from tests.matcher.fixture_cases import Case, load_all

HITS = [c for c in load_all() if not c.reasons]


def _agree(workspace: offline.Workspace, query: str) -> None:
    thorough = list(offline.answer(workspace, query).rewrites)
    for _ in range(2):  # first sight, then the remembered shape
        quick = offline.answer(workspace, query, explain=False)
        assert list(quick.rewrites) == thorough


@pytest.mark.parametrize("case", HITS, ids=lambda c: c.id)
def test_text_cases(case: Case) -> None:
    _agree(offline.prepare(case.schema, case.caches, case.conf), case.query)


@pytest.mark.parametrize("name", suite.SUITES)
def test_tpc(name: str) -> None:
    for query in suite.queries(name).values():
        _agree(suite.workspace(name), query)
