"""One small workload from end to end: the log's filters, the reckoning, five layouts rebuilt."""

from __future__ import annotations

import pytest

from cachemgr.statements.layouts import NO_LAYOUT
from tests.harness.layout.run import QUERIES, run
from tests.spark_session import compiled

pytestmark = pytest.mark.spark
SEED = 8


def test_the_best_of_five_is_named_and_the_reckoning_is_near(spark):
    with compiled(spark) as session:
        (judged,) = run(session, [SEED], 200_000)
    assert judged.advice.hits == QUERIES
    assert len(judged.runs) == 5 and NO_LAYOUT in [r.layout for r, _ in judged.runs]
    assert judged.is_right
    for reckoned, measured in judged.runs:
        if reckoned.layout == NO_LAYOUT:
            assert measured.files_opened == measured.files
        assert reckoned.bytes_opened == pytest.approx(measured.bytes_opened, rel=0.5)
