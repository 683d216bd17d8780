# ruff: noqa: E501 - tables of SQL read better unbroken
"""Makes a world of `upgraded.py` by the code of an earlier commit, checked out somewhere:
`python -m tests.worlds.make_upgraded CHECKOUT NAME`, where NAME is that of a revision or of a commit.

What fills the world runs in a process that has the checkout's `cachemgr` and `tests`, so that it
uses nothing here but the standard library and what every release has promised.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

WORLDS: Final = Path(__file__).parent / "upgrades"
_USER: Final = "user-of-the-world"
_ALL_FORMS: Final = "9e095e5"  # as in upgraded.py, which is not this process's
# The same bytes for the same world.
_WHEN: Final = (2026, 1, 1, 0, 0, 0)

SALES: Final = (
    "CREATE TABLE sales (id BIGINT NOT NULL, shop INT NOT NULL, day DATE, amount DECIMAL(10,2)) USING delta",
    "INSERT INTO sales VALUES (1, 1, DATE'2024-01-01', 1.50), (2, 1, DATE'2024-01-01', 2.50), (3, 2, DATE'2024-01-02', 4.00), (4, 2, NULL, NULL)",
    "CREATE TABLE shops (shop INT NOT NULL, town STRING) USING delta",
    "INSERT INTO shops VALUES (1, 'Oslo'), (2, 'Rome')",
)
MORE_SALES: Final = "INSERT INTO sales VALUES (5, 1, DATE'2024-01-03', 8.00)"
SALES_SHOPS: Final = "CREATE RECORD PRESERVING JOIN sales_shops AS sales INNER JOIN shops ON sales.shop = shops.shop PRESERVES sales"
BY_SHOP: Final = "SELECT shop, SUM(amount) AS s, COUNT(*) AS n FROM sales GROUP BY shop"
CUBE: Final = "SELECT town, day, SUM(amount) AS s, COUNT(*) AS n FROM sales JOIN shops ON sales.shop = shops.shop GROUP BY CUBE (town, day)"


def small(world: World) -> None:
    """A cache, a cube over a record-preserving join, and one that was never refreshed."""
    for text in SALES:
        world.plain.sql(text)
    world.sql(SALES_SHOPS)
    world.sql(f"CREATE RELATIONAL CACHE by_shop AS {BY_SHOP}")
    world.sql(f"CREATE RELATIONAL CACHE cube COMMENT 'all' MAX STALENESS INTERVAL 1 HOUR AS {CUBE}")
    world.sql(
        "CREATE RELATIONAL CACHE never REFRESH EVERY 1 HOUR FULL AS SELECT MAX(id) AS m FROM sales"
    )
    world.refresh("by_shop", "cube")
    world.plain.sql(MORE_SALES)
    world.refresh("by_shop", "cube")
    world.sql("GRANT USE ON RELATIONAL CACHE by_shop TO ann")
    world.sql(f"GRANT USE ON RELATIONAL CACHE by_shop TO `{_USER}`")
    world.sql("SELECT shop, SUM(amount) AS s FROM sales GROUP BY shop")
    world.sql(
        "SELECT town, COUNT(*) AS n, SUM(amount) AS s FROM sales JOIN shops ON sales.shop = shops.shop GROUP BY town"
    )


def all_forms(world: World) -> None:
    """Each clause of a cache, each way of a refresh, joins of both kinds, a restricted table, runs
    that failed, decisions of each kind, a token, and the file of definitions."""
    from cachemgr.refresh.by_change import incremental

    for text in SALES:
        world.plain.sql(text)
    world.plain.sql("CREATE TABLE visits (id BIGINT NOT NULL, shop INT, ms BIGINT) USING delta")
    world.plain.sql("INSERT INTO visits VALUES (1, 1, 10), (2, 2, 20), (3, 9, 30), (4, NULL, 40)")
    world.plain.sql("CREATE TABLE pay (who STRING, amount DECIMAL(10,2)) USING delta")
    world.plain.sql("INSERT INTO pay VALUES ('ann', 100.00), ('bob', 23.00)")
    world.sql(SALES_SHOPS)
    world.sql(
        "CREATE RECORD PRESERVING JOIN visits_shops AS visits v LEFT JOIN shops s ON v.shop = s.shop PRESERVES v"
    )
    world.sql(
        "CREATE RECORD PRESERVING JOIN believed AS visits v INNER JOIN sales s ON v.id = s.id PRESERVES v NOT VALIDATED"
    )
    for text in (
        f"by_shop COMMENT 'of shops' TBLPROPERTIES ('team' = 'tills', 'cachemgr.freshHits' = 'false') STRICT AS {BY_SHOP}",
        f"cube MAX STALENESS INTERVAL 1 HOUR AS {CUBE}",
        "detail PARTITIONED BY (shop) REFRESH ON COMMIT AT MOST EVERY 5 MINUTES AS SELECT id, shop, day, amount FROM sales WHERE amount > 1",
        "days CLUSTER BY (day) REFRESH TARGET LAG 1 HOUR AS SELECT day, MIN(amount) AS lo, MAX(amount) AS hi, AVG(amount) AS mean, COUNT(DISTINCT shop) AS shops FROM sales GROUP BY day",
        "deep REFRESH ON DEMAND INCREMENTAL AS SELECT shop, day, SUM(amount) AS s, COUNT(amount) AS k, COUNT(*) AS n FROM sales GROUP BY shop, day",
        "towns MAX STALENESS UNLIMITED AS SELECT town, COUNT(*) AS n, SUM(ms) AS ms FROM visits LEFT JOIN shops ON visits.shop = shops.shop GROUP BY town",
        "totals REFRESH EVERY 1 DAY AS SELECT SUM(s) AS s, SUM(n) AS n FROM by_shop",
        f"elsewhere LOCATION '{world.root / 'other'}' AS SELECT day, COUNT(*) AS n FROM sales GROUP BY day",
        "wages AS SELECT COUNT(*) AS n, SUM(amount) AS s FROM pay",
        "slow REFRESH CRON '0 6 * * mon-fri' AT TIME ZONE 'Europe/Berlin' FULL DISABLE REWRITE AS SELECT MAX(ms) AS m FROM visits",
        "only REFRESH ON DEMAND INCREMENTAL ONLY AS SELECT shop, MAX(id) AS m FROM visits GROUP BY shop",
        "gone AS SELECT MIN(id) AS m FROM sales",
        "before AS SELECT shop, MIN(day) AS d FROM sales GROUP BY shop",
    ):
        world.sql(f"CREATE RELATIONAL CACHE {text}")
    world.session.conf.set("spark.sql.ansi.enabled", "false")
    world.sql(
        "CREATE RELATIONAL CACHE loose AS SELECT shop, SUM(id) AS s FROM sales WHERE amount < 100 GROUP BY shop"
    )
    world.session.conf.unset("spark.sql.ansi.enabled")
    names = "by_shop cube detail days deep towns totals elsewhere wages slow only gone before loose"
    world.refresh(*names.split())
    world.plain.sql(MORE_SALES)
    world.refresh("by_shop", mode="INCREMENTAL")
    world.refresh("cube", mode="INCREMENTAL")
    world.refresh("detail", mode="INCREMENTAL")
    incremental.FEW_ROWS, incremental.MOST_PARTIALS = -1, 1e9  # partial rows of few rows, too
    world.refresh("deep")
    world.refresh("totals", "towns", "days", "elsewhere", "loose")
    world.plain.sql("DELETE FROM visits WHERE id = 2")
    world.refresh("towns", mode="INCREMENTAL")
    try:
        world.refresh("only")
    except Exception as error:
        assert "[NOT_INCREMENTAL]" in str(error), error
    else:
        raise AssertionError("a MAX without its rows cannot be kept by the change alone")
    world.sql("RESTRICT BASE TABLE pay")
    for name, principal in (("wages", _USER), ("wages", "ann"), ("by_shop", _USER)):
        world.sql(f"GRANT USE ON RELATIONAL CACHE {name} TO `{principal}`")
    world.sql("GRANT USE ON RELATIONAL CACHE by_shop TO bob")
    world.sql("REVOKE USE ON RELATIONAL CACHE by_shop FROM bob")
    world.sql("DROP RELATIONAL CACHE gone")
    world.sql("ALTER RELATIONAL CACHE before RENAME TO after")
    world.sql("ALTER RELATIONAL CACHE slow PAUSE")
    for text in (
        "SELECT shop, SUM(amount) AS s FROM sales GROUP BY shop",
        "SELECT town, COUNT(*) AS n FROM sales JOIN shops ON sales.shop = shops.shop GROUP BY town",
        "SELECT SUM(amount) AS s FROM pay",
        "SELECT shop, day, SUM(id) AS s FROM sales WHERE amount > 0.25 GROUP BY shop, day",
        "SELECT MAX(amount) AS m FROM pay",
        "SELECT shop, MIN(day) AS d FROM sales GROUP BY shop",
        "SELECT who FROM pay WHERE amount > 50",
    ):
        world.sql(text)
    world.flush()
    world.keep("token", world.command("token", "create", "ann", "--role", "viewer").strip())
    for name in ("definitions.yaml", "definitions.json"):
        world.command("export", "-f", str(world.root / name))


class World:
    """The world while it is filled, by the code of the checkout.

    Args:
        root: Its folder.
        spark: Of the checkout's tests.
    """

    def __init__(self, root: Path, spark: Any) -> None:
        import cachemgr

        self.root, self.url = root, f"sqlite:///{root / 'metastore.db'}"
        self.plain, self.session = spark.newSession(), spark.newSession()
        self.plain.sql(f"CREATE SCHEMA world LOCATION '{root / 'tables'}'")
        for each in (self.plain, self.session):
            each.sql("USE world")
        self.session.conf.set("spark.cachemgr.metastore.url", self.url)
        self.session.conf.set("spark.cachemgr.location", str(root / "caches"))
        self.session.conf.set("spark.cachemgr.mode", "failFast")
        cachemgr.enable(self.session)

    def sql(self, text: str) -> list[Any]:
        """Run in the session with caches."""
        found: list[Any] = self.session.sql(text).collect()
        return found

    def refresh(self, *names: str, mode: str = "") -> None:
        """Refresh, and say how."""
        for name in names:
            for run in self.sql(f"REFRESH RELATIONAL CACHE {name} {mode}"):
                sys.stderr.write(f"{name}: {run}\n")

    def command(self, *words: str) -> str:
        """A command of the checkout's; what it prints."""
        from typer.testing import CliRunner

        from cachemgr.cli import main

        env = {"CACHEMGR_LOCATION": str(self.root / "caches"), "COLUMNS": "200"}
        done = CliRunner(env=env).invoke(main, [*words, "--metastore", self.url])
        assert done.exit_code == 0, (words, done.output, done.exception)
        return done.stdout

    def flush(self) -> None:
        """Have the decisions written."""
        import cachemgr

        cachemgr.disable(self.session)

    def keep(self, name: str, text: str) -> None:
        """A file of the world's."""
        (self.root / name).write_text(text)


def _fill(root: Path, name: str) -> None:
    from tests.spark_session import spark_session

    recipe: Callable[[World], None] = all_forms if name == _ALL_FORMS else small
    with spark_session() as spark:
        world = World(root, spark)
        recipe(world)
        world.flush()


def _pack(root: Path) -> Iterator[tuple[str, bytes, int]]:
    """Names, contents and times of what a world consists of."""
    texts = {
        str(root): "@ROOT@",
        _USER: "@USER@",
        f"{socket.gethostname()}:": "host:",
        f"'{getpass.getuser()}'": "'@USER@'",
    }

    def plain(text: str) -> bytes:
        for word, stands in texts.items():
            text = text.replace(word, stands)
        return re.sub(r"host:\d+", "host:1", text).encode()

    yield "root", str(root).encode(), 0
    with contextlib.closing(sqlite3.connect(root / "metastore.db")) as database:
        yield "metastore.sql", plain("\n".join(database.iterdump()) + "\n"), 0
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_dir() or name.startswith("metastore.db") or path.suffix == ".crc":
            continue
        content = path.read_bytes()
        if path.suffix == ".parquet":
            if not name.startswith("tables") and path.name not in _living(path):
                continue
        else:
            content = plain(content.decode())
        yield f"files/{name}", content, path.stat().st_mtime_ns


def _living(path: Path) -> set[str]:
    """The names of the files that the table of a file has now."""
    folder = next(p for p in path.parents if (p / "_delta_log").is_dir())
    found: set[str] = set()
    for log in sorted((folder / "_delta_log").glob("*.json")):
        for action in map(json.loads, log.read_text().splitlines()):
            if "add" in action:
                found.add(Path(action["add"]["path"]).name)
            elif "remove" in action:
                found.discard(Path(action["remove"]["path"]).name)
    return found


def write(name: str, entries: Iterator[tuple[str, bytes, int]]) -> None:
    """Write a world down.

    Args:
        name: Its name.
        entries: Names, contents and times of what it consists of.
    """
    times = {}
    with zipfile.ZipFile(WORLDS / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for entry, content, when in entries:
            times[entry] = when
            out.writestr(zipfile.ZipInfo(entry, _WHEN), content, zipfile.ZIP_DEFLATED, 9)
        told = json.dumps(times, sort_keys=True)
        out.writestr(zipfile.ZipInfo("times.json", _WHEN), told, zipfile.ZIP_DEFLATED, 9)


def main(checkout: str, name: str) -> None:
    """Make a world.

    Args:
        checkout: The folder of the earlier commit.
        name: Of the world.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "world"
        root.mkdir()
        subprocess.run(
            [sys.executable, "-P", __file__, "--fill", str(root), name],
            env={**os.environ, "PYTHONPATH": checkout, "HADOOP_USER_NAME": _USER},
            cwd=checkout,
            check=True,
        )
        write(name, _pack(root))


if __name__ == "__main__":
    if sys.argv[1] == "--fill":
        _fill(Path(sys.argv[2]), sys.argv[3])
    else:
        main(*sys.argv[1:])
