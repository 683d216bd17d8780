"""Who may change caches at Spark's servers, and what of them is shown to whom: asked by beeline, by
a DBAPI client and by Connect clients, which call themselves what they like."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from cachemgr.metastore import open_metastore
from tests import spark_start
from tests.doors.spark_server import CLASS_PATH, Server, server, server_conf, spark_home
from tests.javac import compiled, compiler, write_jar

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_TABLES = (
    "CREATE TABLE sales USING delta AS SELECT id, id % 7 AS shop, id * 2 AS amount FROM range(700)",
    "CREATE TABLE pay USING delta AS SELECT id, id % 3 AS dept, id AS wage FROM range(471)",
)
# ann's, of whom the server only knows what the client says
_OPEN = "CREATE RELATIONAL CACHE open AS SELECT shop, SUM(amount) AS a FROM sales GROUP BY shop"
# granted to bob, over a restricted table; its definition and counts are nobody else's business
_SECRET = (
    "CREATE RELATIONAL CACHE secret COMMENT 'pay talks' AS "
    "SELECT dept, COUNT(*) AS heads FROM pay WHERE wage <> 4711 GROUP BY dept"
)
# by another's name too, and whatever is set
_CHANGES = (
    "DROP RELATIONAL CACHE {0}",
    "DROP RELATIONAL CACHE IF EXISTS {0}",
    "ALTER RELATIONAL CACHE {0} DISABLE REWRITE",
    "ALTER RELATIONAL CACHE {0} RENAME TO mine",
    "ALTER RELATIONAL CACHE {0} SET TBLPROPERTIES ('a' = 'b')",
    "CREATE OR REPLACE RELATIONAL CACHE {0} AS SELECT shop FROM sales GROUP BY shop",
)
_HIDDEN = ("4711", "pay talks", "heads", "/caches/", "bob")


@pytest.fixture(scope="module")
def unauthenticated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Thrift and a Connect server without authentication, settings as they come."""
    folder = tmp_path_factory.mktemp("open")
    conf = server_conf(folder, admins="root", pin_enabled="false")
    with server(folder, conf, [*_TABLES, _OPEN, _SECRET]) as made:
        made.sql("REFRESH RELATIONAL CACHE secret", "REFRESH RELATIONAL CACHE open")
        _restrict(made)
        yield made


@pytest.fixture(scope="module")
def authenticated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Thrift server that asks for passwords, and a Connect server, which asks for nothing."""
    if compiler() is None:
        pytest.skip("no Java compiler")
    folder = tmp_path_factory.mktemp("closed")
    jar = folder / "passwords.jar"
    source = Path(__file__).parent / "java" / "Passwords.java"
    write_jar(jar, compiled([source], spark_start.class_path()))
    conf = server_conf(folder, admins="root", ddl="authenticated", pin_enabled="false")
    site = folder / "conf"
    site.mkdir()
    # Hive's provider reads the class from there alone
    (site / "hive-site.xml").write_text(
        "<configuration><property><name>hive.server2.custom.authentication.class</name>"
        "<value>authenticating.Passwords</value></property></configuration>"
    )
    conf[CLASS_PATH] = f"{conf[CLASS_PATH]}:{jar}:{site}"
    conf["spark.hadoop.hive.server2.authentication"] = "CUSTOM"
    with server(folder, conf) as made:
        _by_password(made, "ann", *_TABLES, _OPEN, _SECRET, "REFRESH RELATIONAL CACHE secret")
        _restrict(made)
        yield made


def _restrict(made: Server) -> None:
    """As an admin does by the command line; returns when the server knows."""
    with open_metastore(f"sqlite:///{made.folder}/metastore.db") as metastore:
        secret = metastore.caches.named("default", "secret")
        assert secret is not None and secret.plan is not None
        metastore.grants.add(secret.id, "bob")
        ((place, _),) = secret.plan["relations"]
        metastore.tables.restrict("spark_catalog.default.pay", place, None, by="root")


@pytest.mark.parametrize("user", ["nobody", "eve", "root", "bob", ""])
@pytest.mark.parametrize("cache", ["open", "secret"])
def test_nobody_who_is_not_authenticated_changes_anothers_cache(
    unauthenticated: Server, user: str, cache: str
) -> None:
    before = _state(unauthenticated)
    with _connect(unauthenticated, user) as spark:
        spark.sql("SET spark.cachemgr.ddl=all").collect()
        spark.sql("SET spark.cachemgr.admins=nobody,eve,root,bob").collect()
        spark.sql("SET spark.cachemgr.trustUserNames=true").collect()
        for change in _CHANGES:
            with pytest.raises(PySparkException, match="FORBIDDEN") as refused:
                spark.sql(change.format(cache)).collect()
            assert not re.search(r"\bann\b", str(refused.value).splitlines()[0])
    assert _state(unauthenticated) == before


@pytest.mark.parametrize("user", ["ann", "bob", "eve"])
def test_a_claimed_name_does_not_change_what_authenticated_users_alone_may_use(
    unauthenticated: Server, user: str
) -> None:
    """ann made it by that name; now it is granted, and anybody can say that he is ann."""
    before = _state(unauthenticated)
    done = unauthenticated.beeline(_CHANGES[0].format("secret"), user=user)
    assert done.returncode != 0 and "FORBIDDEN" in done.stderr
    assert _state(unauthenticated) == before


def test_whom_nobody_authenticates_still_has_his_own(unauthenticated: Server) -> None:
    select = "SELECT shop, MAX(amount) AS most FROM sales GROUP BY shop"
    made = unauthenticated.beeline(
        f"CREATE RELATIONAL CACHE mine AS {select}",
        "REFRESH RELATIONAL CACHE mine",
        "ALTER RELATIONAL CACHE mine PAUSE",
        f"CREATE OR REPLACE RELATIONAL CACHE mine AS {select}",
        "ALTER RELATIONAL CACHE mine RENAME TO still_mine",
        "SHOW CREATE RELATIONAL CACHE still_mine",
        "DROP RELATIONAL CACHE still_mine",
        user="carl",
    )
    assert made.returncode == 0, made.stderr
    assert "default.still_mine,dropped" in made.stdout


def test_joins_are_declared_and_dropped_by_no_claimed_name(unauthenticated: Server) -> None:
    join = "CREATE RECORD PRESERVING JOIN shops AS sales a LEFT JOIN sales b ON a.id = b.id"
    with _connect(unauthenticated, "carl") as spark:
        spark.sql(f"{join} PRESERVES a").collect()
        assert "VALID" in str(spark.sql("VALIDATE RECORD PRESERVING JOIN shops").collect())
        with pytest.raises(PySparkException, match="FORBIDDEN"):
            spark.sql("DROP RECORD PRESERVING JOIN shops").collect()


@pytest.mark.parametrize("user", ["eve", "bob", "ann", "root"])
def test_what_a_claimed_name_may_not_be_answered_from_it_is_not_shown(
    unauthenticated: Server, user: str
) -> None:
    shown = _shown(unauthenticated, user)
    assert "secret" in shown and "sum" in shown.lower()  # that it is there, and all of the other
    hidden_texts = _HIDDEN if user != "bob" else _HIDDEN[:-1]
    for hidden in (*hidden_texts, _bytes(unauthenticated)):
        assert hidden not in shown.replace("GRANT USE", ""), hidden


def test_a_server_that_authenticates_lets_its_users_change_and_the_door_beside_it_nobody(
    authenticated: Server,
) -> None:
    """The same server's Connect door takes any name."""
    before = _state(authenticated)
    for user in ("nobody", "ann", "root"):
        with _connect(authenticated, user) as spark:
            spark.sql("SET spark.cachemgr.ddl=all").collect()
            for change in (*_CHANGES, "REFRESH RELATIONAL CACHE {0}"):
                with pytest.raises(PySparkException, match="FORBIDDEN"):
                    spark.sql(change.format("open")).collect()
            with pytest.raises(PySparkException, match="FORBIDDEN"):
                spark.sql(_OPEN.replace(" open ", " another ")).collect()
    assert _state(authenticated) == before
    wrong = _beeline(authenticated, "ann", "guess", "SHOW RELATIONAL CACHES")
    assert wrong.returncode != 0
    done = _beeline(
        authenticated,
        "carl",
        "lrac",
        "CREATE RELATIONAL CACHE once AS SELECT shop FROM sales GROUP BY shop",
        "ALTER RELATIONAL CACHE once PAUSE",
        "DROP RELATIONAL CACHE once",
    )
    assert done.returncode == 0, done.stderr


def test_an_authenticated_user_is_shown_what_is_his(authenticated: Server) -> None:
    def create(user: str) -> str:
        return str(_by_password(authenticated, user, "SHOW CREATE RELATIONAL CACHE secret"))

    assert "4711" in create("bob")  # granted
    assert "4711" in create("ann")  # he wrote it
    assert "4711" in create("root")  # an admin
    with pytest.raises(Exception, match="FORBIDDEN"):
        create("eve")
    told = str(_by_password(authenticated, "ann", "DESCRIBE RELATIONAL CACHE EXTENDED secret"))
    size = _bytes(authenticated)
    assert size not in told and "4711" in told  # counts are for those granted alone
    assert size in str(_by_password(authenticated, "bob", "SHOW RELATIONAL CACHES"))
    granted = "GRANT USE ON RELATIONAL CACHE open TO carl"
    with pytest.raises(Exception, match="FORBIDDEN"):
        _by_password(authenticated, "ann", granted)
    _by_password(authenticated, "root", granted)


def _shown(made: Server, user: str) -> str:
    """All that somebody can ask of caches, by both doors, refusals included."""
    texts = [
        "SHOW RELATIONAL CACHES",
        "DESCRIBE RELATIONAL CACHE secret",
        "DESCRIBE RELATIONAL CACHE EXTENDED secret",
        "SHOW CREATE RELATIONAL CACHE secret",
        "SHOW CREATE RELATIONAL CACHE open",
        "EXPLAIN REFRESH secret",
        "EXPLAIN REFRESH secret FULL",
        "EXPLAIN REWRITE SELECT dept, MAX(wage) FROM pay GROUP BY dept",
        "EXPLAIN REWRITE FORMAT JSON SELECT dept, MAX(wage) FROM pay GROUP BY dept",
        "EXPLAIN REWRITE SELECT /*+ RELATIONAL_CACHE(secret) */ MAX(wage) FROM pay GROUP BY dept",
    ]
    found = []
    with _connect(made, user) as spark:
        for text in texts:
            try:
                found.append(str(spark.sql(text).collect()))
            except PySparkException as error:
                found.append(str(error))
    for text in texts:
        try:
            found.append(str(made.sql(text, user=user)))
        except Exception as error:
            found.append(str(error))
    return "\n".join(found)


def _state(made: Server) -> list[Any]:
    with open_metastore(f"sqlite:///{made.folder}/metastore.db") as metastore:
        return [(c.id, c.qualified_name, c.version) for c in metastore.caches.all()]


def _bytes(made: Server) -> str:
    """How large the secret cache is: a count that no other number is equal to."""
    with open_metastore(f"sqlite:///{made.folder}/metastore.db") as metastore:
        secret = metastore.caches.named("default", "secret")
        published = None if secret is None else metastore.snapshots.published(secret.id)
        assert published is not None
        return str(published.run.bytes)


def _by_password(made: Server, user: str, *texts: str) -> list[Any]:
    from pyhive import hive

    connection = hive.connect(
        "127.0.0.1", made.thrift, username=user, password=user[::-1], auth="CUSTOM"
    )
    try:
        with connection.cursor() as cursor:
            found = []
            for text in texts:
                cursor.execute(text)
                found.append(cursor.fetchall() if cursor.description else [])
            return found
    finally:
        connection.close()


def _beeline(
    made: Server, user: str, password: str, *texts: str
) -> subprocess.CompletedProcess[str]:
    script = made.folder / "password.sql"
    script.write_text("".join(f"{text};\n" for text in texts))
    command = [
        str(spark_home() / "bin" / "beeline"),
        "-u",
        f"jdbc:hive2://127.0.0.1:{made.thrift}/",
    ]
    command += ["-n", user, "-p", password, "--silent=true", "-f", str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=180)


@contextlib.contextmanager
def _connect(made: Server, user: str) -> Iterator[Any]:
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession

    channel = DefaultChannelBuilder(f"sc://127.0.0.1:{made.connect}")
    channel._params["user_id"] = user
    spark = SparkSession(connection=channel)
    try:
        yield spark
    finally:
        with contextlib.suppress(Exception):
            spark.stop()
