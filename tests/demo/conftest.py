"""SSB at a small scale in a schema of its own, made once for the tests that only read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark_session import compiled

SCALE, SEED = 0.02, 10


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        here = Path(__file__).parent in item.path.parents
        if here and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="module")
def spark(spark: Any) -> Iterator[Any]:
    """Compiled queries: these tables have a hundred thousand rows."""
    with compiled(spark) as session:
        yield session


@pytest.fixture
def schema(spark: Any) -> Iterator[str]:
    """An empty schema that is the current one; `default` is again afterwards."""
    spark.sql("CREATE SCHEMA ssb_empty")
    spark.sql("USE ssb_empty")
    yield "ssb_empty"
    spark.sql("USE default")
    spark.sql("DROP SCHEMA ssb_empty CASCADE")


@pytest.fixture(scope="module")
def ssb(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session whose current schema holds the five tables; at this seed the published example
    selects a row at this small scale."""
    from cachemgr.demo.ssb_data import prepare

    spark.sql("CREATE SCHEMA ssb_small")
    spark.sql("USE ssb_small")
    prepare(spark, tmp_path_factory.mktemp("ssb"), SCALE, SEED)
    yield spark
    spark.sql("USE default")
    spark.sql("DROP SCHEMA ssb_small CASCADE")
