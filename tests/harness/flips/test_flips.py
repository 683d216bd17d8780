"""Settings that are said to change no row of a query over Delta tables change none: see `run`."""

from __future__ import annotations

import pytest

from cachemgr.config.judged.judge import judge
from cachemgr.config.judged.kinds import Kind
from tests.config.spark_registry import entries
from tests.harness.flips.run import WORDS, Flip, answers, changed, flip_session, flips_of, run

pytestmark = pytest.mark.spark
# so many flips at once, where no row changes; which of them it was is looked for where one does
TOGETHER = 16
SHARES = 17


@pytest.fixture(scope="module")
def session(spark):
    with flip_session(spark) as found:
        yield found


@pytest.mark.long
def test_a_setting_that_changes_rows_is_seen(session):
    usual = answers(session)
    for key, value in (
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.decimalOperations.allowPrecisionLoss", "false"),
    ):
        assert list(changed(session, usual, (Flip(key, value),))), key


def test_each_setting_of_words_has_other_values(session):
    keys = {
        key
        for key, entry in entries(session).items()
        if judge(key).kind is not Kind.RESULTS and entry.spelled() == "words"
    }
    assert sorted(keys - WORDS.keys()) == []


@pytest.mark.long
@pytest.mark.parametrize("share", range(SHARES))
def test_no_flip_changes_a_row(session, share):
    found = flips_of(session)[share::SHARES]
    assert found and list(run(session, found, TOGETHER)) == []
