"""One small workload from end to end: the log's filters, the reckoning, five layouts rebuilt."""

from __future__ import annotations

import pytest

from cachemgr.statements.layouts import NO_LAYOUT
from tests.harness.layout.run import QUERIES, TIE, run
from tests.spark_session import compiled

pytestmark = pytest.mark.spark
SEED = 6


def test_what_is_named_is_no_worse_than_nothing_and_the_reckoning_is_near(spark):
    with compiled(spark) as session:
        (judged,) = run(session, [SEED], 60_000)
    assert judged.advice.hits == QUERIES
    assert len(judged.runs) == 5 and NO_LAYOUT in [r.layout for r, _ in judged.runs]
    # of layouts that open as many files it is the bytes of each that decide, which are not reckoned
    costs = {reckoned.layout: measured.cost(1 / QUERIES) for reckoned, measured in judged.runs}
    assert costs[judged.runs[0][0].layout] <= TIE * costs[NO_LAYOUT]
    for reckoned, measured in judged.runs:
        if reckoned.layout == NO_LAYOUT:
            assert measured.files_opened == measured.files
        assert reckoned.bytes_opened == pytest.approx(measured.bytes_opened, rel=0.5)
