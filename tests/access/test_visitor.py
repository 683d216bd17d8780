"""What a user of a server may change and see there: each value of `spark.cachemgr.ddl`."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from cachemgr.access.asker import OWN_USER, Asker
from cachemgr.access.visitor import CLAIMED, visitor_of
from cachemgr.config.session_settings import Settings
from cachemgr.config.setting import Ddl
from cachemgr.config.setting_table import FIXED
from cachemgr.ddl import parse
from cachemgr.errors import ConfigurationError
from cachemgr.metastore.records import CacheRecord

CHANGES = (
    "CREATE RELATIONAL CACHE c AS SELECT a FROM t",
    "CREATE OR REPLACE RELATIONAL CACHE c AS SELECT a FROM t",
    "ALTER RELATIONAL CACHE c PAUSE",
    "ALTER RELATIONAL CACHE c RENAME TO d",
    "ALTER RELATIONAL CACHE c SET TBLPROPERTIES ('a' = 'b')",
    "REFRESH RELATIONAL CACHE c",
    "DROP RELATIONAL CACHE IF EXISTS c",
    "CREATE RECORD PRESERVING JOIN j AS a INNER JOIN b ON a.k = b.k PRESERVES a",
    "VALIDATE RECORD PRESERVING JOIN j",
    "DROP RECORD PRESERVING JOIN j",
)
READS = (
    "SHOW RELATIONAL CACHES",
    "DESCRIBE RELATIONAL CACHE c",
    "EXPLAIN REWRITE SELECT a FROM t",
    "SHOW RECORD PRESERVING JOINS",
    "SHOW SELECT GRANTS",
)
ANN, EVE, ROOT = Asker("ann"), Asker("eve", vouched=False), Asker("root")
CLAIMED_ROOT, NOBODY = Asker("root", vouched=False), Asker("", vouched=False)


@pytest.mark.parametrize(
    ("ddl", "asker", "refused"),
    [
        ("owners", EVE, False),
        ("owners", ANN, False),
        ("all", EVE, False),
        ("authenticated", EVE, True),
        ("authenticated", NOBODY, True),
        ("authenticated", ANN, False),
        ("authenticated", ROOT, False),
        ("admins", EVE, True),
        ("admins", ANN, True),
        ("admins", CLAIMED_ROOT, True),
        ("admins", ROOT, False),
    ],
)
def test_who_may_change_caches_at_all(ddl: str, asker: Asker, refused: bool) -> None:
    visitor = visitor_of(asker, settings(ddl))
    assert visitor is not None
    for text in CHANGES:
        with pytest.raises(ConfigurationError, match="FORBIDDEN") if refused else nullcontext():
            visitor.refuse(parse(text))
    for text in READS:
        visitor.refuse(parse(text))


def test_the_servers_own_user_is_no_visitor() -> None:
    assert visitor_of(OWN_USER, settings("admins")) is None


@pytest.mark.parametrize(
    ("ddl", "asker", "cache", "may_use", "refused"),
    [
        # by default a claimed name changes what was made under that name when it was claimed too
        ("owners", EVE, {"owner": "eve", CLAIMED: True}, True, False),
        ("owners", EVE, {"owner": "ann", CLAIMED: True}, True, True),
        ("owners", EVE, {"owner": "eve"}, True, True),  # an authenticated eve made it
        ("owners", EVE, {"owner": None}, True, True),
        ("owners", NOBODY, {"owner": "", CLAIMED: True}, True, False),
        ("owners", NOBODY, {"owner": ""}, True, True),
        ("owners", NOBODY, {"owner": "ann", CLAIMED: True}, True, True),
        # and nothing that was granted to somebody, or that reads a restricted table
        ("owners", EVE, {"owner": "eve", CLAIMED: True}, False, True),
        ("owners", CLAIMED_ROOT, {"owner": "ann"}, True, True),
        ("owners", ROOT, {"owner": "ann"}, True, False),
        ("owners", ANN, {"owner": "bob"}, True, False),
        ("owners", ANN, {"owner": "bob"}, False, False),
        ("all", EVE, {"owner": "ann"}, False, False),
        ("authenticated", ANN, {"owner": "bob"}, True, False),
        ("admins", ROOT, {"owner": "bob"}, True, False),
    ],
)
def test_who_may_change_a_cache_of_whom(ddl, asker, cache, may_use, refused) -> None:
    visitor = visitor_of(asker, settings(ddl))
    with pytest.raises(ConfigurationError, match="FORBIDDEN") if refused else nullcontext():
        visitor.refuse_change(record(cache), may_use=may_use)
    dropped = asker.vouched or ddl == "all"
    with nullcontext() if dropped else pytest.raises(ConfigurationError, match="FORBIDDEN"):
        visitor.refuse_join_drop("j")


def test_a_refusal_does_not_name_the_owner() -> None:
    """His name is all that an unauthenticated client would need."""
    with pytest.raises(ConfigurationError) as refused:
        visitor_of(EVE, settings("owners")).refuse_change(record({"owner": "ann"}), may_use=True)
    assert "ann" not in str(refused.value) and "spark.cachemgr.ddl=all" in str(refused.value)


@pytest.mark.parametrize(
    ("asker", "owner", "may_use", "sees"),
    [
        (EVE, "ann", True, True),
        (EVE, "ann", False, False),
        (EVE, "eve", False, False),  # he only says that he is
        (ANN, "bob", False, False),
        (ANN, "ann", False, True),
        (ROOT, "bob", False, True),
        (CLAIMED_ROOT, "bob", False, False),
        (NOBODY, "", False, False),
    ],
)
def test_who_sees_a_definition(asker, owner, may_use, sees) -> None:
    visitor = visitor_of(asker, settings("owners"))
    assert visitor.sees(record({"owner": owner}), may_use=may_use) is sees


@pytest.mark.parametrize(
    ("asker", "sees"),
    [
        (ANN, {"ann"}),
        (ROOT, {"ann", "eve", "root", ""}),
        (EVE, set()),  # he only says that he is
        (CLAIMED_ROOT, set()),
        (NOBODY, set()),
    ],
)
def test_whose_grants_of_select_he_is_shown(asker: Asker, sees: set[str]) -> None:
    visitor = visitor_of(asker, settings("owners"))
    assert visitor is not None
    assert {name for name in ("ann", "eve", "root", "") if visitor.sees_grant(name)} == sees


def test_names_that_something_before_the_server_authenticates_count() -> None:
    trusting = settings("authenticated", trust_user_names=True)
    for text in CHANGES:
        visitor_of(EVE, trusting).refuse(parse(text))
    assert visitor_of(CLAIMED_ROOT, trusting).is_admin
    assert not visitor_of(NOBODY, trusting).authenticated


def test_the_setting_is_read_as_it_is_written_and_is_the_servers() -> None:
    read = Settings.from_mapping
    assert read({"spark.cachemgr.ddl": " Admins "}).ddl is Ddl.ADMINS
    assert read({}).ddl is Ddl.OWNERS
    with pytest.raises(ConfigurationError, match=r"owners \| all \| authenticated \| admins"):
        read({"spark.cachemgr.ddl": "everybody"})
    assert "spark.cachemgr.ddl" in FIXED


def settings(ddl: str, **more: object) -> Settings:
    return Settings(ddl=Ddl(ddl), admins="root", **more)


def record(cache: dict[str, object]) -> CacheRecord:
    context = {CLAIMED: True} if cache.get(CLAIMED) else {}
    return CacheRecord("s", "c", "SELECT 1", "h", "file:/c", owner=cache["owner"], context=context)
