"""`make users`: sixteen threads of four users ask for MINUTES, each in a session of his own, while
their tables are written to, restored and put back from a copy, their caches are refreshed, dropped
and created again, and their rights and settings come and go.

An answer is right if the table had it at some moment while the query ran; and who was not allowed
to be answered from a cache five seconds before a query began must not hit. What is found makes the
run fail.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, Final

import cachemgr
from cachemgr.jvm.classes import class_on_path
from cachemgr.metastore import open_metastore
from cachemgr.roles import Role
from cachemgr.spark import hook
from tests.harness.users.allowed import Allowed
from tests.harness.users.tables import (
    KEYS,
    ZONES,
    Row,
    Table,
    drawn_query,
    drawn_rows,
    quoted,
)
from tests.processes import Replica, postgres_server, replica_settings, replicas, until
from tests.spark_session import spark_session

USERS: Final = ("ann", "bob", "cid", "dan")
_THREADS: Final = 16
_MOST_ROWS: Final = 1500
_CACHES: Final = {
    "by_region": "SELECT region, k, SUM(v) AS s, COUNT(*) AS n, MIN(v) AS least, MAX(v) AS most "
    "FROM facts GROUP BY GROUPING SETS ((region, k), (region), ())",
    "by_day": "SELECT CAST(ts AS DATE) AS d, region, SUM(v) AS s, COUNT(*) AS n FROM facts "
    "GROUP BY CAST(ts AS DATE), region",
    "of_restored": "SELECT region, SUM(v) AS s, COUNT(*) AS n FROM restored GROUP BY region",
}
# that change no row, or are judged by what they change
_SETTINGS: Final = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.shuffle.partitions": ("1", "3"),
    "spark.cachemgr.prepared.enabled": ("true", "true", "false"),
    "spark.cachemgr.local.enabled": ("true", "true", "false"),
    "spark.cachemgr.local.maxConcurrent": ("0", "1"),
    "spark.cachemgr.enabled": ("true", "true", "true", "false"),
}
_SCHEMA: Final = "k int, region string, second long, v bigint"


class Users:
    """The users, what is done meanwhile, and what was found.

    Args:
        spark: A session of the application of all users.
        admin: A service whose client is an admin's.
        folder: Of tables and caches.
        tokens: A token of each user.
        seed: Of all that is drawn.
    """

    def __init__(
        self, spark: Any, admin: Replica, folder: Path, tokens: dict[str, str], seed: int
    ) -> None:
        self.found: list[str] = []
        self.told: Counter[str] = Counter()
        self._spark, self._admin, self._folder = spark, admin, folder
        self._tokens, self._seed = tokens, seed
        self._plain = spark.newSession()
        self._tables = {name: Table(name) for name in ("facts", "restored")}
        self._allowed = Allowed(USERS)
        self._over = threading.Event()
        # nobody reads files while they are put back, and nobody begins to while that is waited for
        self._reading = threading.BoundedSemaphore(_THREADS)
        self._may_begin = threading.Event()
        self._may_begin.set()

    def fill(self) -> None:
        """Fill the tables."""
        rng = Random(self._seed)
        for table in self._tables.values():
            rows = drawn_rows(rng, 400)
            with table.becomes(rows, lambda: 0):
                frame = self._plain.createDataFrame(
                    rows, "k int, region string, second long, v bigint"
                )
                frame = frame.selectExpr("k", "region", "timestamp_seconds(second) AS ts", "v")
                frame.coalesce(1).write.format("delta").save(str(self._place(table)))
            self._plain.sql(
                f"CREATE TABLE {table.name} USING delta LOCATION '{self._place(table)}'"
            )

    def prepare(self) -> None:
        """Have the caches made and granted to everybody, and to nobody else."""
        until(self._admin.ready, 120, "the service answers")
        for name in _CACHES:
            self._create(name)
        for name in self._tables:
            self._sent("POST", "tables/restricted", json={"table": name})
        until(lambda: all(map(self._is_refreshed, _CACHES)), 240, "all caches are refreshed", 1)

    def run(self, seconds: float) -> None:
        """Let them ask for so long."""
        rng = Random(self._seed)
        asking = [
            threading.Thread(target=self._ask, args=(USERS[n % len(USERS)], rng.random()))
            for n in range(_THREADS)
        ]
        changing = threading.Thread(target=self._change, args=(rng.random(),))
        for thread in (*asking, changing):
            thread.start()
        time.sleep(seconds)
        self._over.set()
        for thread in (*asking, changing):
            thread.join(120)
            assert not thread.is_alive(), "a query does not end"
        self._count_of_the_hook()

    def _ask(self, user: str, seed: float) -> None:
        rng = Random(seed)
        session = self._spark.newSession()
        session.conf.set("spark.cachemgr.url", str(self._admin.client.base_url))
        session.conf.set("spark.cachemgr.token", self._tokens[user])
        cachemgr.enable(session)
        try:
            zone = "UTC"
            while not self._over.is_set():
                if rng.random() < 0.05:
                    zone = rng.choice(ZONES)
                    session.conf.set("spark.sql.session.timeZone", zone)
                if rng.random() < 0.05:
                    key = rng.choice(list(_SETTINGS))
                    session.conf.set(key, rng.choice(_SETTINGS[key]))
                self._may_begin.wait()
                with self._reading:
                    self._asked(session, user, rng, zone)
        except Exception as error:
            self.found.append(f"{user}: {type(error).__name__}: {str(error)[:600]}")
        finally:
            cachemgr.disable(session)

    def _asked(self, session: Any, user: str, rng: Random, zone: str) -> None:
        query = drawn_query(rng, zone)
        table = self._tables[query.table]
        before = cachemgr.counters(session).get("hits", 0)
        since = time.monotonic()
        got = Counter(tuple(row) for row in session.sql(query.text).collect())
        ended = time.monotonic()
        is_hit = cachemgr.counters(session).get("hits", 0) > before
        self.told["hits" if is_hit else "misses"] += 1
        if not any(query.over(rows) == got for rows in table.seen(since, ended)):
            self.found.append(f"{user}, hit {is_hit}, {zone}: {query.text}\n  {got}")
        if is_hit and not self._allowed.may_hit(user, since):
            self.found.append(f"{user} hits without a right: {query.text}")

    def _change(self, seed: float) -> None:
        rng = Random(seed)
        changes: tuple[Callable[[Random], None], ...] = (
            *(self._written,) * 6,
            *(self._granted,) * 3,
            *(self._altered,) * 3,
            self._dropped,
            self._restored,
            self._put_back,
        )
        try:
            # decisions are kept where nothing changes for some seconds
            while not self._over.wait(rng.choice((0.1, 1, 3, 8))):
                change = rng.choice(changes)
                change(rng)
                self.told[change.__name__.strip("_")] += 1
        except Exception as error:
            self.found.append(f"while changing: {type(error).__name__}: {str(error)[:600]}")
            self._over.set()

    def _written(self, rng: Random) -> None:
        table = rng.choice(list(self._tables.values()))
        rows, k = table.newest.rows, rng.randrange(KEYS)
        few = len(rows) < _MOST_ROWS
        way = rng.randrange(3) if few else 0
        if way == 0:
            left = tuple(row for row in rows if (row[0] != k if few else row[0] < k))
            which = "=" if few else ">="
            self._commit(table, left, f"DELETE FROM {table.name} WHERE k {which} {k}")
        elif way == 1:
            by = rng.randrange(1, 9)
            changed = tuple((*row[:3], row[3] + by) if row[0] == k else row for row in rows)
            self._commit(table, changed, f"UPDATE {table.name} SET v = v + {by} WHERE k = {k}")
        else:
            self._insert(table, drawn_rows(rng, rng.randrange(1, 60)))

    def _restored(self, rng: Random) -> None:
        table = self._tables["facts"]
        old, version = rng.choice(list(zip(table.states, table.versions, strict=True))[-8:])
        self._commit(table, old.rows, f"RESTORE TABLE facts TO VERSION AS OF {version}")

    def _put_back(self, rng: Random) -> None:
        """The table's folder as it was some commits ago, and other commits of the same numbers."""
        table = self._tables["restored"]
        place, copy = self._place(table), self._folder / "copy"
        copied, version = table.newest, table.versions[-1]
        shutil.copytree(place, copy)
        for _ in range(rng.randrange(1, 3)):
            self._insert(table, drawn_rows(rng, 3))
        with self._alone(), table.becomes(copied.rows, lambda: version):
            shutil.rmtree(place)
            shutil.copytree(copy, place)
            java = self._spark._jvm
            class_on_path(java, "org.apache.spark.sql.delta.DeltaLog").invalidateCache(
                self._spark._jsparkSession,
                class_on_path(java, "org.apache.hadoop.fs.Path")(str(place)),
            )
        shutil.rmtree(copy)

    def _insert(self, table: Table, new: tuple[Row, ...]) -> None:
        values = ", ".join(
            f"({k}, {quoted(region)}, timestamp_seconds({second}), {v})"
            for k, region, second, v in new
        )
        rows = (*table.newest.rows, *new)
        self._commit(table, rows, f"INSERT INTO {table.name} VALUES {values}")

    def _commit(self, table: Table, rows: tuple[Row, ...], text: str) -> None:
        with table.becomes(rows, lambda: self._version(table)):
            self._plain.sql(text).collect()

    def _version(self, table: Table) -> int:
        history = self._plain.sql(f"DESCRIBE HISTORY {table.name} LIMIT 1").collect()
        return int(history[0].version)

    def _granted(self, rng: Random) -> None:
        user = rng.choice(USERS)
        if self._allowed.is_allowed(user):
            for name in _CACHES:
                self._sent("DELETE", f"caches/{name}/grants/{user}")
            self._allowed.revoked(user)
        else:
            self._allowed.granted(user)
            for name in _CACHES:
                self._sent("PUT", f"caches/{name}/grants/{user}")

    def _altered(self, rng: Random) -> None:
        name = rng.choice(list(_CACHES))
        way = rng.choice(("enable", "disable", "enable", "refreshes"))
        self._sent("POST", f"caches/{name}/{way}", json={} if way == "refreshes" else None)
        if way == "disable" and not self._over.wait(1 + rng.random()):
            self._sent("POST", f"caches/{name}/enable")

    def _dropped(self, rng: Random) -> None:
        name = rng.choice(list(_CACHES))
        self._sent("DELETE", f"caches/{name}")
        self._create(name)

    def _create(self, name: str) -> None:
        ddl = f"CREATE RELATIONAL CACHE {name} REFRESH ON COMMIT AS {_CACHES[name]}"
        self._sent("POST", "caches", json={"ddl": ddl})
        for user in USERS:
            if self._allowed.is_allowed(user):
                self._sent("PUT", f"caches/{name}/grants/{user}")

    def _is_refreshed(self, name: str) -> bool:
        runs = self._admin.client.get(f"/api/v1/caches/{name}/refreshes").json()["refreshes"]
        return any(run["state"] in ("PUBLISHED", "UNCHANGED") for run in runs)

    def _sent(self, method: str, path: str, **more: Any) -> None:
        answer = self._admin.client.request(method, f"/api/v1/{path}", **more)
        # a refresh is asked for already
        assert answer.status_code < 300 or answer.status_code == 409, (path, answer.text)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        self._may_begin.clear()
        for _ in range(_THREADS):
            self._reading.acquire()
        try:
            yield
        finally:
            self._reading.release(_THREADS)
            self._may_begin.set()

    def _place(self, table: Table) -> Path:
        return self._folder / table.name

    def _count_of_the_hook(self) -> None:
        counters = hook.counters(self._spark)
        self.told.update(
            {f"hook {name}": counters[name] for name in ("prepared", "local", "failed")}
        )


def _known(name: str, folder: Path) -> str:
    return f"CREATE TABLE {name} USING delta LOCATION '{folder / name}'"


def main() -> None:
    """Exit status 1 where something was found."""
    parser = argparse.ArgumentParser(prog="users", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    users = ask(asked.minutes * 60, asked.seed)
    print(dict(users.told))
    for each in users.found[:20]:
        print(each)
    print(f"{len(users.found)} found")
    sys.exit(bool(users.found))


def ask(seconds: float, seed: int, spark: Any = None) -> Users:
    """A whole run.

    Args:
        seconds: How long the users ask.
        seed: Of all that is drawn.
        spark: The session to use; one is made without it.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cachemgr-users-")))
        folder.chmod(0o755)
        spark = spark or stack.enter_context(spark_session())
        url = stack.enter_context(postgres_server())
        with open_metastore(url) as store:
            tokens = {user: store.tokens.create(user, Role.VIEWER)[1] for user in USERS}
            _, admin = store.tokens.create("boss", Role.ADMIN)
        init = [_known(name, folder) for name in ("facts", "restored")]
        service = Replica("serve", folder, replica_settings(url, folder, init), admin)
        users = Users(spark, service, folder, tokens, seed)
        users.fill()
        stack.enter_context(replicas(service))
        users.prepare()
        users.run(seconds)
        return users


if __name__ == "__main__":
    main()
