"""Fixtures that every test may use: both metastores, and one Spark session a process."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest
from sqlalchemy import make_url

from cachemgr.metastore import migrate
from tests import processes
from tests.gate import plugin as gate
from tests.older_sparks import why_off
from tests.proofs import plugin as proofs_plugin
from tests.proofs.plugin import is_proof, proofs  # noqa: F401
from tests.spark_session import spark_session

# The Python of Spark's workers is this one, which has pandas, whatever PATH says.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

# A machine with other work fails no test by its slowness.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")

_database_numbers = itertools.count(1)


# Whole worlds, services and walks over all guards, one by one.
HARNESS = Path(__file__).parent / "harness"

# Spark's servers, each a JVM of its own.
DOORS = Path(__file__).parent / "doors"


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A command that serves, run in this process, sends all logs to an output that is gone when it
    has ended."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    if root.handlers is not handlers:
        root.handlers = handlers
        root.setLevel(level)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of proofs, and of which tests run."""
    proofs_plugin.add_options(parser)
    gate.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Which tests run is found out before processes are started."""
    gate.configure(config)
    proofs_plugin.configure(config, gate.shards_due(config))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Give tests their marks, before any are left out by them, and choose of what is kept."""
    for item in items:
        if _needs_spark(item):
            item.add_marker(pytest.mark.spark)
        if HARNESS in item.path.parents:
            item.add_marker(pytest.mark.slow)
        off = why_off(item.nodeid, version("pyspark"))
        if off is not None:
            item.add_marker(pytest.mark.skip(reason=off))
    _large_pieces_first(items)
    yield
    gate.choose_items(config, items, _dealt_by(items))


def _dealt_by(items: list[pytest.Item]) -> Callable[[str], str]:
    """What tests are dealt out to the shards by: their file, so that what its tests share is made
    once; one by one, where it says that they are `SPREAD`, being too many or too long.
    """
    spread = {
        item.nodeid for item in items if getattr(getattr(item, "module", None), "SPREAD", False)
    }
    return lambda nodeid: nodeid if nodeid in spread else nodeid.partition("::")[0]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test, unless it need not be and the time is up."""
    return gate.is_out_of_time(item, nextitem) or None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Who hands out tests, where they are chosen."""
    return gate.scopes(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that started this one what it did not run."""
    gate.send(session.config)


def _needs_spark(item: pytest.Item) -> bool:
    return is_proof(item) or "spark" in getattr(item, "fixturenames", ())


def _large_pieces_first(items: list[pytest.Item]) -> None:
    """Modules that start servers first, whose every test takes long, then those with Spark, then
    those with the most tests first: the processes then share what is left at the end in small
    pieces, and none waits for another's long module.
    """
    sizes = Counter(item.path for item in items)
    spark = {item.path for item in items if _needs_spark(item)}

    def order(item: pytest.Item) -> tuple[bool, bool, int, Path]:
        path = item.path
        return DOORS not in path.parents, path not in spark, -sizes[path], path

    items.sort(key=order)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A real PostgreSQL for this test run; yields the URL of its maintenance database.

    `CACHEMGR_TEST_DATABASE_URL` names a running server instead of starting one.
    """
    given = os.environ.get("CACHEMGR_TEST_DATABASE_URL")
    if given:
        yield given
        return
    with processes.postgres_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of a fresh and empty PostgreSQL database."""
    with _database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty_metastore_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a fresh and empty database: each test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'metastore.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def metastore_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a metastore without anything in it: each test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        made: Path = request.getfixturevalue("sqlite_metastore")
        shutil.copyfile(made, tmp_path / "metastore.db")
        return f"sqlite:///{tmp_path / 'metastore.db'}"
    url: str = request.getfixturevalue("postgres_metastore_url")
    return url


@pytest.fixture(scope="session")
def sqlite_metastore(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite metastore to copy: migrating takes longer than most tests do."""
    path = tmp_path_factory.mktemp("migrated") / "metastore.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def postgres_metastore(postgres_server: str) -> Iterator[str]:
    """The name of a migrated PostgreSQL database to copy."""
    with _database(postgres_server) as url:
        migrate.upgrade(url)
        yield str(make_url(url).database)


@pytest.fixture
def postgres_metastore_url(postgres_server: str, postgres_metastore: str) -> Iterator[str]:
    """The URL of a PostgreSQL metastore without anything in it."""
    with _database(postgres_server, f'TEMPLATE "{postgres_metastore}"') as url:
        yield url


@contextlib.contextmanager
def _database(server: str, how: str = "") -> Iterator[str]:
    name = f"cachemgr_test_{os.getpid()}_{next(_database_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" {how}')
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The one Spark session of this process, with Delta; started by the first test to ask."""
    with spark_session() as session:
        yield session


@pytest.fixture(scope="module")
def case_tables(spark: Any) -> Iterator[Any]:
    """The tables of the matcher's text cases, as each case wants them."""
    from tests.matcher.spark_cases import Tables

    made = Tables(spark)
    try:
        yield made
    finally:
        made.drop()
