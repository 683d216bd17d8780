"""One service for the whole module: as a process, on PostgreSQL, with a few caches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cachemgr.metastore import open_metastore
from tests.harness.load.population import populate
from tests.processes import Service, postgres_server, rest_service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("service")
    with postgres_server() as url:
        with open_metastore(url) as store:
            populate(store, folder, 20)
        with rest_service(url, folder) as made:
            yield made
