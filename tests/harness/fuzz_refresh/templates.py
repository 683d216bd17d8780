"""Base tables and a metastore, made once a run and copied for each world."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any, Final

from cachemgr.metastore import migrate
from tests.harness.fuzz_refresh.layouts import Layout, statements
from tests.harness.sessions.settings import Drawn

_numbers = itertools.count(1)
# What sessions are started with where it cannot change a row: small tables, one task.
_QUICK: Final = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.stats.collect": "true",
}


class Templates:
    """Base tables and a migrated metastore, made once a run and copied for each world.

    Args:
        spark: The Spark of the run.
        folder: Where they are kept.
    """

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.metastore = folder / "metastore.db"
        self.drawn = Drawn(spark)
        migrate.upgrade(f"sqlite:///{self.metastore}")

    def tables(self, layout: Layout) -> Path:
        """The folder with a layout's tables."""
        kept = self.folder / layout.name
        if not kept.exists():
            schema, made = f"made_{layout.name}_{next(_numbers)}", self.folder / "making"
            session = quick_session(self.spark)
            session.sql(f"CREATE SCHEMA {schema} LOCATION '{made}'")
            session.sql(f"USE {schema}")
            for text in statements(layout):
                session.sql(text)
            shutil.copytree(made, kept)
            session.sql(f"DROP SCHEMA {schema} CASCADE")
            shutil.rmtree(made, ignore_errors=True)
        return kept


def quick_session(spark: Any) -> Any:
    """A new session for small tables."""
    session = spark.newSession()
    for key, value in _QUICK.items():
        session.conf.set(key, value)
    return session
