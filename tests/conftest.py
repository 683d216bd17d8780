"""Fixtures that every test may use: both metastores, and one Spark session a process."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest
from sqlalchemy import make_url

from cachemgr.metastore import migrate
from tests import processes, rotation
from tests.proofs.plugin import (  # noqa: F401
    is_proof,
    proofs,
    pytest_addoption,
    pytest_configure,
    pytest_deselected,
    pytest_sessionfinish,
    pytest_terminal_summary,
    pytest_testnodedown,
)
from tests.spark_session import spark_session

# The Python of Spark's workers is this one, which has pandas, whatever PATH says.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

# A machine with other work fails no test by its slowness.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")

_database_numbers = itertools.count(1)


# What these tests ask goes through the metastore, whose own tests run on both databases.
BY_TURNS = ("api", "cli", "config", "server", "serving", "statements")


# Seconds each, against milliseconds of the others. Proofs have turns of their own.
SPARK_SHARES = 12

# Whole worlds, services and walks over all guards, one by one.
HARNESS = Path(__file__).parent / "harness"

# Spark's servers, each a JVM of its own.
DOORS = Path(__file__).parent / "doors"


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """See `_on_databases_by_turns`, `_on_spark_by_turns` and `_large_pieces_first`."""
    for item in items:
        if _needs_spark(item):
            item.add_marker(pytest.mark.spark)
        if is_proof(item) and config.getoption("--execute-proofs"):
            item.add_marker(pytest.mark.long)
        if HARNESS in item.path.parents:
            item.add_marker(pytest.mark.slow)
    _on_databases_by_turns(items)
    _on_spark_by_turns(items)
    _large_pieces_first(items)


def _needs_spark(item: pytest.Item) -> bool:
    return is_proof(item) or "spark" in getattr(item, "fixturenames", ())


def _on_databases_by_turns(items: list[pytest.Item]) -> None:
    """Half of the tests of these folders run on SQLite and half on PostgreSQL, and each the other
    way round with the next commit; on the other database they run in `make test-long`.
    """
    for item in items:
        database = getattr(item, "callspec", None) and item.callspec.params.get("metastore_url")
        if database is not None and item.path.parent.name in BY_TURNS:
            due = rotation.is_due_by_name(item.nodeid.replace(database, ""), 2)
            chosen = "sqlite" if due else "postgres"
            item.add_marker(pytest.mark.turns if database == chosen else pytest.mark.long)


def _on_spark_by_turns(items: list[pytest.Item]) -> None:
    """Of the tests that start Spark a twelfth run, and others with the next commit."""
    rotation.by_turns((item for item in items if _starts_spark(item)), SPARK_SHARES)


def _starts_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None and not is_proof(item)


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
