"""The published 16-set cube, built at a small scale: duplicates, the example, and its mend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cachemgr
from cachemgr.demo.measure import failures, measure
from cachemgr.demo.published import EXAMPLE, published_cube_coverage
from cachemgr.demo.ssb_cube import (
    PUBLISHED_EXAMPLE,
    PUBLISHED_FIX,
    PUBLISHED_NAME,
    RECORD_PRESERVING_JOINS,
    published_ddl,
    published_view,
)
from cachemgr.demo.ssb_queries import QUERIES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hooked(ssb: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of its own, enabled, with the tables, the joins and the view."""
    folder: Path = tmp_path_factory.mktemp("published")
    session = ssb.newSession()
    session.sql("USE ssb_small")
    session.conf.set("spark.cachemgr.metastore.url", f"sqlite:///{folder / 'metastore.db'}")
    session.conf.set("spark.cachemgr.location", str(folder / "caches"))
    cachemgr.enable(session)
    for statement in RECORD_PRESERVING_JOINS:
        session.sql(statement)
    session.sql(published_view())
    yield session
    cachemgr.disable(session)


def both(session: Any, sql: str) -> tuple[list[Any], list[Any], bool]:
    """The rows without and with the hook, and whether the explanation says hit."""
    session.conf.set("spark.cachemgr.mode", "off")
    without = session.sql(sql).collect()
    session.conf.set("spark.cachemgr.mode", "failFast")
    with_hook = session.sql(sql).collect()
    return without, with_hook, cachemgr.explain(session, sql).hit


def test_a_query_without_a_cache_counts_as_a_miss(hooked: Any) -> None:
    result = measure(hooked, QUERIES[0])
    assert result.equal and not result.hit
    assert failures([result], 0.02)[0].startswith("Q1.1 missed with set 1, 2, 3, 4, 5")


def test_coverage_is_explained_without_building(hooked: Any) -> None:
    coverage = {one.query: one for one in published_cube_coverage(hooked)}
    assert [name for name, one in coverage.items() if not one.answered] == [EXAMPLE]
    assert "d_yearmonth" in coverage[EXAMPLE].why and "c_nation" in coverage[EXAMPLE].why
    assert coverage["Q3.4"].grouping_set == "(d_year, d_yearmonth, s_city, c_city)"
    assert hooked.sql("SHOW RELATIONAL CACHES").count() == 0


def test_the_published_cube_and_the_set_that_it_lacks(hooked: Any) -> None:
    hooked.sql(published_ddl())
    hooked.sql(f"REFRESH RELATIONAL CACHE {PUBLISHED_NAME}")
    for query in (QUERIES[2], QUERIES[12]):
        without, with_hook, hit = both(hooked, query.sql())
        # Q4.3 reads the set that is there three times: a naive SUM would count it three times.
        assert hit and without and with_hook == without, query.name
    assert not both(hooked, PUBLISHED_EXAMPLE)[2]
    why = " ".join(f"{r.detail} {r.suggestion}" for r in cachemgr.explain(
        hooked, PUBLISHED_EXAMPLE
    ).reasons)  # fmt: skip
    assert all(column in why for column in ("d_yearmonth", "c_nation", "s_nation"))

    hooked.sql(f"DROP RELATIONAL CACHE {PUBLISHED_NAME}")
    hooked.sql(published_ddl(extra_sets=(PUBLISHED_FIX,)))
    hooked.sql(f"REFRESH RELATIONAL CACHE {PUBLISHED_NAME}")
    without, with_hook, hit = both(hooked, PUBLISHED_EXAMPLE)
    assert hit and without and with_hook == without
    result = measure(hooked, QUERIES[2])
    assert result.hit and result.equal and [run.hit for run in result.runs] == [True] * 5
