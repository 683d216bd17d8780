"""What is said to be the same in all minors of Spark was the same when all were asked."""

from __future__ import annotations

import pytest

from cachemgr.serving.other_spark import ALIKE
from cachemgr.sparks import MINORS, minor_of
from tests.harness.sparks.run import SESSIONS, answers, cases, defaults, stored, stored_defaults

# What one minor may bring: the library that knows letters, the format of a sketch, names of days.
BROUGHT = frozenset(
    "upper lower initcap rlike date_format from_unixtime to_timestamp_ltz hll_sketch_agg "
    "approx_count_distinct percentile_approx".split()
)


def _told(op: str) -> list[dict[str, str]]:
    return [told for case, told in stored().items() if case.split()[1] == op]


def _is_error(answer: str) -> bool:
    return answer.startswith("error:")


def test_each_minor_was_asked_for_each_case() -> None:
    asked = {f"{session} {op} {text}" for session in SESSIONS for op, text in cases()}
    found = stored()
    assert found.keys() == asked, "run `make sparks`"
    assert all(set(told) == set(MINORS) for told in found.values())


@pytest.mark.parametrize("op", sorted(ALIKE))
def test_what_is_said_to_be_alike_was(op: str) -> None:
    told = _told(op)
    for answers_ in told:
        values = set(answers_.values())
        # the condition of an error may be called otherwise, as REMAINDER_BY_ZERO is since 4.1
        assert len(values) == 1 or all(map(_is_error, values)), answers_
    for session in SESSIONS:
        mine = [t for case, t in stored().items() if case.split()[:2] == [session, op]]
        assert any(not _is_error(answer) for t in mine for answer in t.values()), session


def test_what_a_minor_brings_is_not_said_to_be_alike() -> None:
    assert not ALIKE & BROUGHT


def test_no_default_that_may_change_a_row_of_a_cache_differs() -> None:
    """A cache keeps what was set, and means the default of whoever refreshes it by the rest."""
    several = {key for key, told in stored_defaults().items() if len(set(told.values())) > 1}
    assert several == {
        # what no cache stores, or is not matched
        "spark.sql.analyzer.singlePassResolver.relationBridging.enabled",
        "spark.sql.geospatial.enabled",
        "spark.sql.scripting.enabled",
        "spark.sql.variant.allowReadingShredded",
        "spark.sql.variant.pushVariantIntoScan",
    }


@pytest.mark.spark
def test_the_defaults_of_this_spark_are_still_those(spark) -> None:
    minor, here = minor_of(spark.version), defaults(spark)
    # others may be here, too: Spark registers some when a class of theirs is first used
    known = {k: v[minor] for k, v in stored_defaults().items() if minor in v}
    assert known and known == {k: here.get(k) for k in known}


@pytest.mark.spark
@pytest.mark.slow
def test_this_spark_still_answers_so(spark) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    minor, known = minor_of(spark.version), stored()
    found = answers(session)
    assert {case: a for case, a in found.items() if known[case][minor] != a} == {}
