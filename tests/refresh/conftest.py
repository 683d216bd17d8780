"""The star of `refresh_star`, fresh for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cachemgr.metastore import open_metastore
from tests.worlds.copies import copy_table, warehouse
from tests.worlds.refresh_star import SALES, SALES_ROWS, SHOPS, SHOPS_ROWS, Clock, Star


@pytest.fixture
def star(spark: object, tmp_path: Path) -> Iterator[Star]:
    with open_metastore(f"sqlite:///{tmp_path / 'metastore.db'}") as store:
        made = Star(spark, store, tmp_path, Clock())
        template = Star(spark, store, warehouse(spark) / "refresh_template", Clock())
        for name, rows, schema in (("sales", SALES_ROWS, SALES), ("shops", SHOPS_ROWS, SHOPS)):
            if not Path(template.path(name)).exists():
                template.write(name, rows, schema, "overwrite")
            copy_table(Path(template.path(name)), Path(made.path(name)))
        yield made
