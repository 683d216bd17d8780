"""Fixtures that every test may use: both metastores, and one Spark session a process."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import processes

_database_numbers = itertools.count(1)


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
    import psycopg
    from sqlalchemy import make_url

    name = f"cachemgr_test_{os.getpid()}_{next(_database_numbers)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    try:
        yield make_url(postgres_server).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def metastore_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a fresh and empty metastore: each test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'metastore.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """The one Spark session of this process, with Delta; started by the first test to ask."""
    with spark_session() as session:
        yield session


@pytest.fixture(scope="module")
def case_tables(spark: object) -> Iterator[Any]:
    """The tables of the matcher's text cases, as each case wants them."""
    from tests.matcher.spark_cases import Tables

    made = Tables(spark)
    try:
        yield made
    finally:
        made.drop()


@contextlib.contextmanager
def spark_session() -> Iterator[Any]:
    """A Spark session with Delta and small numbers, stopped at the end."""
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    folder = Path(tempfile.mkdtemp(prefix="cachemgr-spark-"))
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("cachemgr-tests")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog",
            "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        )
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        # tables of a dozen rows: to compile a query costs more than to run it
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config(
            "spark.driver.extraJavaOptions",
            f"{processes.SMALL_JVM} -Dderby.system.home={folder / 'derby'}",
        )
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        # Without it Delta 4.4.0 fails every spark.sql(text, args=…) on Spark 4.2.0.
        .config("spark.sql.legacy.parameterSubstitution.constantsOnly", "true")
    )
    session = configure_spark_with_delta_pip(builder).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)
