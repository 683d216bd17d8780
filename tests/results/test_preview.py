"""The first rows of a query, by several jobs at once: the rows that `take` gives, and no more work
than they need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors import PySparkException

from cachemgr.errors import ConfigurationError
from cachemgr.spark.results.preview import first_rows
from tests.processes import until
from tests.worlds.lab_star import make_lab

JOBS = "spark.cachemgr.preview.concurrentJobs"
GROWTH = "spark.cachemgr.preview.growth"
# 200 partitions of 10 rows each; how many there are is not in the plan
MANY = "(SELECT explode(array(id)) AS id, id DIV 10 AS part FROM range(0, 2000, 1, 200))"


@pytest.fixture
def session(spark: Any) -> Any:
    made = spark.newSession()
    made.conf.set(JOBS, "3")
    return made


def took(session: Any, query: str) -> list[tuple[Any, ...]] | None:
    """The rows of a query that was taken so; None if it is to run as ever."""
    frame = session.sql(query)
    taken = first_rows(session, frame)
    return None if taken is frame else [tuple(row) for row in taken.collect()]


def tasks(session: Any, query: str) -> int:
    """How many tasks its jobs have."""
    context = session.sparkContext
    group = str(uuid4())
    context.setJobGroup(group, query)
    try:
        frame = session.sql(query)
        assert first_rows(session, frame) is not frame
    finally:
        context._jsc.sc().clearJobGroup()
    context._jsc.sc().listenerBus().waitUntilEmpty()
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    return sum(tracker.getStageInfo(stage).numTasks for job in jobs for stage in job.stageIds)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (f"SELECT id FROM {MANY} LIMIT 5", [(i,) for i in range(5)]),
        (f"SELECT id FROM {MANY} WHERE part > 150 LIMIT 25", [(i,) for i in range(1510, 1535)]),
        (f"SELECT id FROM {MANY} WHERE part = 199 LIMIT 25", [(i,) for i in range(1990, 2000)]),
        (f"SELECT id FROM {MANY} WHERE part > 500 LIMIT 3", []),
        (f"SELECT id FROM {MANY} LIMIT 3000", [(i,) for i in range(2000)]),
        (f"SELECT id FROM {MANY} WHERE id % 100 = 7 LIMIT 4 OFFSET 3",
         [(307,), (407,), (507,), (607,)]),
        (f"SELECT id FROM {MANY} LIMIT 4 OFFSET 1998", [(1998,), (1999,)]),
        (f"SELECT id FROM {MANY} LIMIT 4 OFFSET 5000", []),
        (f"SELECT a.id, b.id FROM {MANY} a JOIN range(20) b ON a.part = b.id + 180 LIMIT 3",
         [(1800, 0), (1801, 0), (1802, 0)]),
        (f"SELECT id AS a, id AS a, id AS `` FROM {MANY} LIMIT 2", [(0, 0, 0), (1, 1, 1)]),
    ],
)  # fmt: skip
def test_they_are_the_rows_of_the_first_partitions(
    session: Any, query: str, rows: list[tuple[Any, ...]]
) -> None:
    for jobs in ("1", "3", "40"):
        session.conf.set(JOBS, jobs)
        assert took(session, query) == rows


@pytest.mark.parametrize("growth", ["1", "1.5", "9"])
def test_they_are_those_of_take_whatever_partitions_hold(session: Any, growth: str) -> None:
    session.conf.set(GROWTH, growth)
    random = Random(growth)
    for _ in range(8):
        rows, parts = random.choice([1, 50, 3000]), random.choice([2, 7, 60])
        kept, limit = random.choice([1, 3, 97, 1000]), random.choice([1, 2, 30, 5000])
        offset = random.choice(["", "", " OFFSET 2"])
        query = (
            f"SELECT id, rand({kept}) AS r, spark_partition_id() AS p FROM "
            f"(SELECT explode(array(id)) AS id FROM range(0, {rows}, 1, {parts})) "
            f"WHERE hash(id) % {kept} = 0 LIMIT {limit}{offset}"
        )
        session.conf.set(JOBS, str(random.choice([1, 2, 5, 16])))
        expected = [tuple(row) for row in session.sql(query).collect()]
        assert took(session, query) == expected, query


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT id FROM {MANY}",
        f"SELECT id FROM {MANY} ORDER BY id LIMIT 5",
        f"SELECT id FROM {MANY} LIMIT 0",
        f"SELECT id FROM {MANY} OFFSET 5",
        f"SELECT id FROM {MANY} LIMIT 1 OFFSET 20000",
        "SELECT id FROM range(0, 100, 1, 1) LIMIT 5",
        "VALUES (1), (2) LIMIT 1",
        "SHOW TABLES",
    ],
)
def test_what_looks_at_all_rows_or_has_one_partition_runs_as_ever(session: Any, query: str) -> None:
    assert took(session, query) is None


def test_nothing_is_taken_so_over_a_shuffle_that_spark_does_not_adapt(session: Any) -> None:
    query = f"SELECT part, COUNT(*) AS n FROM {MANY} GROUP BY part LIMIT 5"
    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    assert len(took(session, query) or ()) == 5
    session.conf.set("spark.sql.adaptive.enabled", "false")
    assert took(session, query) is None


def test_partitions_behind_are_not_computed(session: Any) -> None:
    assert tasks(session, f"SELECT id FROM {MANY} LIMIT 5") <= 3
    assert tasks(session, f"SELECT id FROM {MANY} WHERE part = 20 LIMIT 5") <= 100
    assert tasks(session, f"SELECT id FROM {MANY} WHERE part = 500 LIMIT 5") == 200


def test_an_error_behind_the_rows_that_are_wanted_is_not_raised(session: Any) -> None:
    raises = f"SELECT id, 1 DIV (IF(part = {{}}, 0, 1)) AS x FROM {MANY} LIMIT 10"
    assert took(session, raises.format(1)) == [(i, 1) for i in range(10)]
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        took(session, raises.format(0))


def test_nor_are_they_in_a_session_whose_limits_are_planned_by_a_rule_of_ours(
    spark: Any, tmp_path: Path
) -> None:
    """Statements run in such: see `FewTasks.java`."""
    for lab in make_lab(spark, tmp_path, f"sqlite:///{tmp_path / 'metastore.db'}"):
        lab.spark.conf.set(JOBS, "3")
        query = f"SELECT id FROM {MANY} WHERE part >= 0 LIMIT 5"
        assert took(lab.spark, query) == [(i,) for i in range(5)]
        assert tasks(lab.spark, query) <= 3


def test_types_are_those_of_the_query(session: Any) -> None:
    query = (
        "SELECT CAST(id AS DECIMAL(38,10)) AS d, CAST(id AS VARCHAR(5)) AS v, "
        "TIMESTAMP'2024-01-01' AS t, X'00' AS b, CAST('NaN' AS DOUBLE) AS f, "
        "CAST(NULL AS DATE) AS n FROM range(0, 50, 1, 5) LIMIT 3"
    )
    frame = session.sql(query)
    taken = first_rows(session, frame)
    assert taken is not frame and taken.schema == frame.schema
    assert str(taken.collect()) == str(frame.collect())


def test_a_value_that_is_none_is_told(session: Any) -> None:
    session.conf.set(GROWTH, "0.5")
    with pytest.raises(ConfigurationError, match=r"preview\.growth is '0\.5'.*1\.5"):
        took(session, f"SELECT id FROM {MANY} LIMIT 5")


@pytest.fixture(autouse=True)
def no_jobs_left(spark: Any) -> Iterator[None]:
    """What is not wanted any more has been cancelled."""
    yield
    tracker = spark.sparkContext.statusTracker()
    until(lambda: not tracker.getActiveJobsIds(), 30, "no job is left")
