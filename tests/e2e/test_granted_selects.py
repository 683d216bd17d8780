"""Which tables statements may read for whom: granted, taken back and shown by DDL, and what a
principal's statement may then read."""

from __future__ import annotations

import httpx
import pytest

from cachemgr.access.asker import Asker
from cachemgr.api.app import create_app
from cachemgr.api.dependencies import ApiState
from cachemgr.ddl import parse
from cachemgr.errors import (
    CacheManagerError,
    ConfigurationError,
    DefinitionError,
    ErrorCode,
    NotFoundError,
)
from cachemgr.spark import api
from cachemgr.spark.results.rights import allowed_query
from cachemgr.spark.session_statements import execute_for
from tests.processes import free_port
from tests.servers import ServerThread

pytestmark = pytest.mark.spark


def reads(lab, text: str, principal: str = "ann") -> bool:
    """Whether a principal's statement may run; refused for want of a grant, if not."""
    with lab.metastore() as store:
        places = store.select_grants.of(principal)
    try:
        allowed_query(lab.plain, text, places, principal)
    except CacheManagerError as error:
        assert error.code == ErrorCode.SELECT_NOT_GRANTED, error
        return False
    return True


def shown(lab, of: str = "") -> list[tuple[str, str]]:
    """Principal and table of the grants that are shown."""
    return [(row.principal, row.table) for row in lab.sql(f"SHOW SELECT GRANTS {of}")]


def asked_by(lab, asker: Asker, text: str) -> list[tuple]:
    """The rows of a statement that comes to a server."""
    return list(execute_for(lab.spark, api._of(lab.spark).session, parse(text), asker).rows)


def test_a_grant_counts_for_the_next_statement_and_so_does_its_end(lab):
    assert not reads(lab, "SELECT * FROM cust")
    (granted,) = lab.sql("GRANT SELECT ON BASE TABLE cust TO ann")
    assert (granted.name, granted.result) == (f"{lab.schema}.cust", "granted to ann")
    assert granted.location == (lab.folder / "tables" / "cust").as_uri().replace("///", "/")
    assert reads(lab, "SELECT * FROM cust")
    assert not reads(lab, "SELECT * FROM cust", "bob")
    assert not reads(lab, "SELECT * FROM sales JOIN cust ON cust = cid")
    (revoked,) = lab.sql("REVOKE SELECT ON BASE TABLE cust FROM ann")
    assert (revoked.name, revoked.result) == (f"{lab.schema}.cust", "revoked from ann")
    assert not reads(lab, "SELECT * FROM cust")
    assert shown(lab) == []


def test_granted_twice_it_is_one_grant(lab):
    lab.sql("GRANT SELECT ON BASE TABLE cust TO ann")
    (again,) = lab.sql(f"GRANT SELECT ON BASE TABLE spark_catalog.{lab.schema}.CUST TO ' ann '")
    assert again.result == "was granted already"
    assert shown(lab) == [("ann", f"{lab.schema}.cust")]
    lab.sql("REVOKE SELECT ON BASE TABLE cust FROM ann")
    assert not reads(lab, "SELECT * FROM cust")
    with pytest.raises(NotFoundError, match="SHOW SELECT GRANTS lists what was granted") as failed:
        lab.sql("REVOKE SELECT ON BASE TABLE cust FROM ann")
    assert failed.value.code == ErrorCode.GRANT_NOT_FOUND


def test_places_with_dots_and_blanks_and_principals_of_other_characters(lab):
    folder = lab.folder / "odd.name 100%"
    lab.plain.sql(f"CREATE TABLE odd (a INT) USING delta LOCATION '{folder}'")
    lab.sql(f"GRANT SELECT ON BASE TABLE delta.`{folder}` TO `ann@example.com`")
    assert reads(lab, "SELECT a FROM odd", "ann@example.com")
    assert reads(lab, f"SELECT a FROM delta.`{folder}`", "ann@example.com")
    (grant,) = lab.sql("SHOW SELECT GRANTS TO 'ann@example.com'")
    assert grant.location.endswith("/odd.name%20100%25")
    assert lab.sql("SHOW SELECT GRANTS ON BASE TABLE odd") == [grant]
    lab.sql(f"REVOKE SELECT ON BASE TABLE `{grant.location}` FROM `ann@example.com`")
    assert not reads(lab, "SELECT a FROM odd", "ann@example.com")


def test_a_grant_is_of_the_place_whatever_the_name(lab):
    lab.plain.sql(f"CREATE TABLE pay (a INT) USING delta LOCATION '{lab.folder / 'pay'}'")
    lab.sql("GRANT SELECT ON BASE TABLE pay TO ann")
    lab.plain.sql("ALTER TABLE pay RENAME TO wages")
    assert reads(lab, "SELECT a FROM wages")
    assert shown(lab, "ON BASE TABLE wages") == [("ann", f"{lab.schema}.pay")]
    # another table that takes the name is another table
    lab.plain.sql("CREATE TABLE pay (a INT) USING delta")
    assert not reads(lab, "SELECT a FROM pay")
    lab.sql("REVOKE SELECT ON BASE TABLE wages FROM ann")
    assert not reads(lab, "SELECT a FROM wages")


def test_a_table_that_is_replaced_at_its_place_stays_granted(lab):
    lab.sql("GRANT SELECT ON BASE TABLE cust TO ann")
    lab.plain.sql("DROP TABLE cust")
    lab.plain.sql("CREATE TABLE cust (other INT) USING delta")
    assert reads(lab, "SELECT other FROM cust")


def test_a_rename_that_moves_the_files_leaves_the_grant_behind(lab):
    lab.plain.sql("CREATE TABLE pay (a INT) USING delta")
    lab.sql("GRANT SELECT ON BASE TABLE pay TO ann")
    lab.plain.sql("ALTER TABLE pay RENAME TO wages")
    assert not reads(lab, "SELECT a FROM wages")
    assert shown(lab, "ON BASE TABLE pay") == [("ann", f"{lab.schema}.pay")]


@pytest.mark.parametrize(
    "name", ["cust", "{schema}.CUST", "spark_catalog.{schema}.cust", "`{place}`"]
)
def test_a_grant_outlives_its_table_and_goes_by_name_or_place(lab, name):
    lab.sql("GRANT SELECT ON BASE TABLE cust TO ann")
    lab.sql("GRANT SELECT ON BASE TABLE cust TO bob")
    lab.sql("GRANT SELECT ON BASE TABLE sales TO ann")
    place = lab.sql("SHOW SELECT GRANTS TO bob")[0].location
    lab.plain.sql("DROP TABLE cust")
    name = name.format(schema=lab.schema, place=place)
    assert shown(lab, f"ON BASE TABLE {name}") == [
        ("ann", f"{lab.schema}.cust"),
        ("bob", f"{lab.schema}.cust"),
    ]
    lab.sql(f"REVOKE SELECT ON BASE TABLE {name} FROM ann")
    assert shown(lab) == [("bob", f"{lab.schema}.cust"), ("ann", f"{lab.schema}.sales")]


def test_taken_back_by_a_name_is_what_was_granted_under_it_and_what_lies_there_now(lab):
    """Too much rather than too little, after the name went to another table."""
    lab.plain.sql(f"CREATE TABLE pay (a INT) USING delta LOCATION '{lab.folder / 'pay'}'")
    lab.sql("GRANT SELECT ON BASE TABLE pay TO ann")
    lab.plain.sql("ALTER TABLE pay RENAME TO wages")
    lab.plain.sql("CREATE TABLE pay (a INT) USING delta")
    lab.sql("GRANT SELECT ON BASE TABLE pay TO ann")
    assert len(lab.sql("REVOKE SELECT ON BASE TABLE pay FROM ann")) == 2
    assert not reads(lab, "SELECT a FROM wages") and not reads(lab, "SELECT a FROM pay")


def test_what_cannot_be_granted(lab):
    lab.plain.sql("CREATE VIEW people AS SELECT cid, city FROM cust")
    lab.plain.sql("CREATE VIEW clients AS SELECT * FROM cust")
    lab.plain.sql("CREATE TABLE plain (a INT) USING parquet")
    for name in ("people", "clients", "plain"):
        with pytest.raises(DefinitionError, match=r"is (a view or )?no Delta table"):
            lab.sql(f"GRANT SELECT ON BASE TABLE {name} TO ann")
    with pytest.raises(DefinitionError, match="name a Delta table that exists"):
        lab.sql("GRANT SELECT ON BASE TABLE nobody TO ann")
    with pytest.raises(ConfigurationError, match="1 to 256 printable characters"):
        lab.sql("GRANT SELECT ON BASE TABLE cust TO ' '")
    assert shown(lab) == []
    # a view shows what was granted behind it
    lab.sql("GRANT SELECT ON BASE TABLE cust TO ann")
    assert reads(lab, "SELECT * FROM people")


def test_it_makes_no_cache_answer_anybody(lab):
    select = "SELECT city, COUNT(*) AS n FROM cust GROUP BY city"
    lab.cache(f"by_city AS {select}")
    lab.sql("RESTRICT BASE TABLE cust")
    lab.sql(f"GRANT SELECT ON BASE TABLE cust TO `{lab.me}`")
    lab.miss(select, "TABLE_RESTRICTED")


def test_users_of_a_server_are_shown_their_own_and_grant_nothing(lab):
    for principal in ("ann", "bob"):
        lab.sql(f"GRANT SELECT ON BASE TABLE cust TO {principal}")

    def told(asker: Asker, of: str = "") -> list[str]:
        return [row[0] for row in asked_by(lab, asker, f"SHOW SELECT GRANTS {of}")]

    assert told(Asker()) == ["ann", "bob"]
    assert told(Asker("ann")) == told(Asker("ann"), "ON BASE TABLE cust") == ["ann"]
    assert told(Asker("ann"), "TO bob") == told(Asker("eve")) == []
    # he only says that he is ann
    assert told(Asker("ann", vouched=False)) == told(Asker("", vouched=False)) == []
    for asker in (Asker("ann"), Asker("ann", vouched=False)):
        for text in (
            "GRANT SELECT ON BASE TABLE sales TO ann",
            "REVOKE SELECT ON BASE TABLE cust FROM bob",
        ):
            with pytest.raises(ConfigurationError, match="may not do this here"):
                asked_by(lab, asker, text)
    assert told(Asker()) == ["ann", "bob"]


class OfTheService:
    """Carries statements out on the lab's Spark."""

    def __init__(self, lab) -> None:
        self._spark = lab.spark

    def execute(self, text, principal):
        return api.execute(self._spark, text, principal)


def test_by_rest_it_is_the_same(lab, metastore):
    state = ApiState(metastore, OfTheService(lab), lambda: True)
    server = ServerThread(create_app(state), port := free_port())
    url = f"http://127.0.0.1:{port}/api/v1/tables/select-grants"
    try:
        made = httpx.post(url, json={"table": "cust", "principal": "ann"}, timeout=60)
        assert made.status_code == 201, made.text
        assert reads(lab, "SELECT * FROM cust") and shown(lab) == [("ann", f"{lab.schema}.cust")]
        lab.plain.sql("CREATE VIEW people AS SELECT cid FROM cust")
        view = httpx.post(url, json={"table": "people", "principal": "ann"}, timeout=60)
        assert view.status_code == 400 and "the Delta tables themselves" in view.text
        grant = made.json()
        key = {"location": grant["location"], "principal": "ann"}
        assert httpx.delete(url, params=key, timeout=60).status_code == 204
        assert not reads(lab, "SELECT * FROM cust")
    finally:
        server.stop()
