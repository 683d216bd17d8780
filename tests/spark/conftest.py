"""One star of tables per test module, and the hook taken off after each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytestmark = pytest.mark.spark

_numbers = itertools.count()


@pytest.fixture(scope="session")
def shared_star(spark: object, tmp_path_factory: pytest.TempPathFactory) -> object:
    """One star for the tests that only read."""
    from tests.worlds.hook_star import build_star

    return build_star(spark, tmp_path_factory.mktemp("star"), "star_shared")  # type: ignore[arg-type]


@pytest.fixture
def star(shared_star: object) -> Iterator[object]:
    """The shared star; the hook and all settings of ours are gone before and afterwards."""
    _clean(shared_star)
    yield shared_star
    _clean(shared_star)


@pytest.fixture
def own_star(spark: object, tmp_path: Path) -> Iterator[object]:
    """A fresh star, for tests that write."""
    from tests.worlds.hook_star import build_star

    built = build_star(spark, tmp_path, f"star{next(_numbers)}")  # type: ignore[arg-type]
    yield built
    _clean(built)
    built.spark.sql(f"DROP SCHEMA {built.schema} CASCADE")


def _clean(star: Any) -> None:
    from cachemgr.spark import hook

    hook.uninstall(star.spark)
    hook.uninstall_shared(star.spark)
    hook.set_known_locations(star.spark, [])
    for key in ("spark.cachemgr.mode", "spark.cachemgr.enabled"):
        star.spark.conf.unset(key)
