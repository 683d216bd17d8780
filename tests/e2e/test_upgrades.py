"""What each earlier release left behind: brought up as documented it is in order, answers, is
refreshed, and can be rebuilt."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cachemgr
from cachemgr.cli import main
from cachemgr.errors import SchemaVersionError
from cachemgr.metastore import migrate, open_metastore
from cachemgr.metastore.models import VERSION_TABLE
from tests.worlds import upgraded

SHOPS = "SELECT shop, SUM(amount) AS s FROM sales GROUP BY shop"
TOWNS = (
    "SELECT town, COUNT(*) AS n, SUM(amount) AS s FROM sales JOIN shops ON sales.shop = shops.shop "
    "GROUP BY town"
)
WORLDS = (*upgraded.REVISIONS, *upgraded.RELEASES)
NEVER = "SELECT MAX(id) AS m FROM sales"


class World:
    """A world of an earlier release, by the commands of this one.

    Args:
        name: Its metastore's revision, or the commit that made it.
        root: Its folder.
        user: Who runs Spark.
    """

    def __init__(self, name: str, root: Path, user: str = "me") -> None:
        self.root = root
        self.url = upgraded.make(name, root, user)

    def db(self, command: str, *more: str, code: int = 0, url: str = "") -> str:
        words = ["db", command, "--metastore", url or self.url]
        if command not in ("upgrade", "current"):
            words += ["--location", str(self.root / "caches")]
        # as the service's own settings say it, wherever the tests run
        env = {"COLUMNS": "200", "CACHEMGR_LOCATION": str(self.root / "caches")}
        done = CliRunner(env=env).invoke(main, [*words, *more])
        assert done.exit_code == code, done.stdout + done.stderr
        return done.stdout + done.stderr


def rows_of(url: str) -> dict[str, int]:
    """How many rows each table of a metastore has, but for what this release added."""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as database:
        names = [
            n for (n,) in database.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        return {
            name: database.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0] for name in names
        }


@pytest.mark.parametrize("name", WORLDS)
def test_nothing_is_wrong_after_the_upgrade(name: str, tmp_path: Path) -> None:
    world = World(name, tmp_path)
    assert migrate.current(world.url) == upgraded.RELEASES.get(name, name)
    with pytest.raises(SchemaVersionError):
        open_metastore(world.url)
    before = rows_of(world.url)
    world.db("upgrade")
    after = rows_of(world.url)
    assert {name: after[name] for name in before} == before, "no row is lost on the way"
    assert before["snapshot_tables"] == 6 and before["refresh_runs"] == 4
    world.db("check")
    world.db("upgrade")
    world.db("check")
    found = json.loads(
        world.db("rebuild", "--dry-run", "-o", "json", url=f"sqlite:///{tmp_path / 'again.db'}")
        .partition("]")[0]
        .partition("[")[2]
        .join(("[", "]"))
    )
    assert {line["name"]: line["state"] for line in found} == {
        "world.by_shop": "PUBLISHED",
        "world.cube": "PUBLISHED",
        "world.never": "NOT_PUBLISHED",
    }


def test_no_row_is_lost_on_the_way_back(tmp_path: Path) -> None:
    before = rows_of(upgraded.make("0001", tmp_path, "me"))
    (tmp_path / "metastore.db").unlink()
    world = World("0012", tmp_path)
    migrate.downgrade(world.url, "0001")
    down = rows_of(world.url)
    migrate.upgrade(world.url)
    assert {name: down[name] for name in before} == {
        name: rows_of(world.url)[name] for name in before
    }
    assert down["snapshot_tables"] == before["snapshot_tables"] == 6


def test_each_revision_has_its_world() -> None:
    newest = int(migrate.expected())
    assert upgraded.REVISIONS == tuple(f"{number:04d}" for number in range(1, newest))


@pytest.fixture
def later(tmp_path: Path) -> str:
    """The metastore of a later release."""
    url = f"sqlite:///{tmp_path / 'metastore.db'}"
    migrate.upgrade(url)
    with sqlite3.connect(tmp_path / "metastore.db") as database:
        database.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    database.close()
    return url


LATER = (
    "has schema version 9999, this program needs {needed}; nothing was touched: it was written by "
    "another release: install that release or a newer one, and then run its `cachemgr db upgrade"
)


@pytest.mark.parametrize(
    "command",
    [
        "db upgrade", "db check", "db records", "cache list", "join list", "table list", "export",
        "token list", "token create ann --role viewer", "serve", "worker",
    ],
)  # fmt: skip
def test_no_command_opens_the_metastore_of_a_later_release(
    later: str, command: str, tmp_path: Path
) -> None:
    before = (tmp_path / "metastore.db").read_bytes()
    env = {"CACHEMGR_LOCATION": str(tmp_path / "caches")}
    done = CliRunner(env=env).invoke(main, [*command.split(), "--metastore", later])
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: [SCHEMA_VERSION] ")
    assert LATER.format(needed=migrate.expected()) in line
    assert (tmp_path / "metastore.db").read_bytes() == before


def test_no_session_opens_the_metastore_of_a_later_release(
    spark, later: str, tmp_path: Path
) -> None:
    before = (tmp_path / "metastore.db").read_bytes()
    session = spark.newSession()
    session.conf.set("spark.cachemgr.metastore.url", later)
    session.conf.set("spark.cachemgr.location", str(tmp_path / "caches"))
    with pytest.raises(SchemaVersionError) as caught:
        cachemgr.enable(session)
    assert LATER.format(needed=migrate.expected()) in str(caught.value)
    assert not cachemgr.is_enabled(session)
    assert session.sql("SELECT 1 AS n").collect()[0].n == 1, "it goes on without caches"
    assert (tmp_path / "metastore.db").read_bytes() == before


@pytest.fixture
def catalog(spark):
    """A schema named as it was then."""
    plain = spark.newSession()
    plain.sql("CREATE SCHEMA world")
    yield plain
    plain.sql("DROP SCHEMA world CASCADE")


class Session:
    """A session over a world, and the same without us."""

    def __init__(self, spark, plain, url: str, root: Path) -> None:
        self.spark, self.plain = spark.newSession(), plain
        self.spark.sql("USE world")
        self.spark.conf.set("spark.cachemgr.metastore.url", url)
        self.spark.conf.set("spark.cachemgr.location", str(root / "caches"))
        cachemgr.enable(self.spark)

    def hit(self, query: str) -> None:
        before = cachemgr.counters(self.spark).get("hits", 0)
        got = Counter(map(tuple, self.spark.sql(query).collect()))
        told = cachemgr.explain(self.spark, query).text()
        assert cachemgr.counters(self.spark).get("hits", 0) == before + 1, told
        assert got == Counter(map(tuple, self.plain.sql(query).collect()))


@pytest.mark.parametrize("name", WORLDS)
def test_it_hits_is_refreshed_checked_and_rebuilt(
    spark, catalog, name: str, tmp_path: Path
) -> None:
    world = World(name, tmp_path, spark.sparkContext.sparkUser())
    world.db("upgrade")
    catalog.sql("USE world")
    for table in ("sales", "shops"):
        catalog.sql(f"CREATE TABLE {table} USING delta LOCATION '{tmp_path / 'tables' / table}'")
    session = Session(spark, catalog, world.url, tmp_path)
    try:
        session.hit(SHOPS)
        session.hit(TOWNS)
        catalog.sql("INSERT INTO sales VALUES (6, 2, DATE'2024-01-04', 16.00)")
        for cache in ("by_shop", "cube", "never"):
            (run,) = session.spark.sql(f"REFRESH RELATIONAL CACHE {cache}").collect()
            assert run.result == "PUBLISHED"
        for query in (SHOPS, TOWNS, NEVER):
            session.hit(query)
    finally:
        cachemgr.disable(session.spark)
    world.db("check")

    again = f"sqlite:///{tmp_path / 'again.db'}"
    world.db("rebuild", "--take-over", url=again)
    world.db("check", url=again)
    session = Session(spark, catalog, again, tmp_path)
    try:
        for query in (SHOPS, TOWNS, NEVER):
            session.hit(query)
    finally:
        cachemgr.disable(session.spark)
