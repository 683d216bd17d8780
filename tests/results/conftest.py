"""The world of statements that write; see `write_world`."""

from __future__ import annotations

import pytest

from tests.worlds.write_world import write_world


@pytest.fixture(scope="module")
def writes(spark, tmp_path_factory):
    """Tables and views of a schema of their own."""
    yield from write_world(spark, tmp_path_factory.mktemp("writes"))
