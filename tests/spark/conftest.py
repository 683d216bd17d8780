"""One star of tables per test module, and the hook taken off after each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

_numbers = itertools.count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture
def star(spark: object, tmp_path: Path) -> Iterator[object]:
    """A fresh star; its schema, the hook and all settings of ours are gone afterwards."""
    from tests.spark.star import build_star

    from cachemgr.spark import hook

    built = build_star(spark, tmp_path, f"star{next(_numbers)}")  # type: ignore[arg-type]
    try:
        yield built
    finally:
        hook.uninstall(built.spark)
        hook.uninstall_shared(built.spark)
        hook.set_known_locations(built.spark, [])
        for key in ("spark.cachemgr.mode", "spark.cachemgr.enabled"):
            built.spark.conf.unset(key)
        built.spark.sql(f"DROP SCHEMA {built.schema} CASCADE")
