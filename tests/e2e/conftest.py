"""A lab for each test; see `lab_star`."""

from __future__ import annotations

import pytest

from cachemgr.metastore import open_metastore
from tests.worlds.lab_star import make_lab
from tests.worlds.statement_world import statement_world


@pytest.fixture
def lab(spark, tmp_path):
    """The star in a schema of its own, with an empty metastore."""
    yield from make_lab(spark, tmp_path, f"sqlite:///{tmp_path / 'metastore.db'}")


@pytest.fixture
def metastore(lab):
    """The lab's metastore, opened a second time."""
    with open_metastore(lab.url) as found:
        yield found


@pytest.fixture(scope="module")
def world(spark, tmp_path_factory):
    """A service and a process that runs statements, over a lab."""
    yield from statement_world(spark, tmp_path_factory.mktemp("statements"))
