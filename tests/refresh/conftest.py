"""The star of `refresh_star`, fresh for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cachemgr.metastore import open_metastore
from tests.worlds.refresh_star import SALES, SALES_ROWS, SHOPS, SHOPS_ROWS, Clock, Star


@pytest.fixture
def star(spark: object, tmp_path: Path) -> Iterator[Star]:
    with open_metastore(f"sqlite:///{tmp_path / 'metastore.db'}") as store:
        made = Star(spark, store, tmp_path, Clock())
        made.write("sales", SALES_ROWS, SALES, "overwrite")
        made.write("shops", SHOPS_ROWS, SHOPS, "overwrite")
        yield made
