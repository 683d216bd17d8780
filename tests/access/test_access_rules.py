"""Who may be answered from which cache, on plain data."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime

import pytest

from cachemgr.access.asker import OWN_USER, Asker
from cachemgr.access.grants import (
    keys_of,
    may_use,
    reads_of,
    restricted_keys,
    shown_to,
)
from cachemgr.access.visitor import visitor_of
from cachemgr.config.session_settings import Settings
from cachemgr.ddl import parse
from cachemgr.errors import ConfigurationError
from cachemgr.metastore.records import (
    CacheRecord,
    RefreshRunRecord,
    RestrictedTable,
    SnapshotRecord,
    SnapshotTableRecord,
)
from cachemgr.metastore.registry_records import RegistryEntry
from cachemgr.vocabulary import RunState
from matcher.model.reasons import ReasonCode

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAY = RestrictedTable("m", "hr.pay", "file:/pay", "id-pay", "root", NOW)
A, B, C = "a" * 32, "b" * 32, "c" * 32


def code(principals, reads, marks=(PAY,), principal="ann"):
    restricted = restricted_keys(marks, [])
    reason = may_use(principal, "c", principals, reads, restricted)
    return None if reason is None else reason.code


@pytest.mark.parametrize(
    ("principals", "reads", "wanted"),
    [
        (None, ["file:/sales"], None),
        (None, ["file:/sales", "file:/pay"], ReasonCode.TABLE_RESTRICTED),
        (None, ["file:/moved", "id-pay"], ReasonCode.TABLE_RESTRICTED),
        (frozenset(), ["file:/pay"], ReasonCode.TABLE_RESTRICTED),
        (frozenset({"bob"}), ["file:/pay"], ReasonCode.TABLE_RESTRICTED),
        (frozenset({"ann"}), ["file:/pay"], None),
        (frozenset({"Ann"}), ["file:/pay"], ReasonCode.TABLE_RESTRICTED),
        (frozenset({"ann"}), ["file:/sales"], None),
        (frozenset({"bob"}), ["file:/sales"], ReasonCode.NOT_GRANTED),
        (frozenset(), ["file:/sales"], ReasonCode.NOT_GRANTED),
    ],
)
def test_who_may_use_a_cache(principals, reads, wanted):
    assert code(principals, reads) is wanted


def test_nothing_is_restricted_without_marks():
    assert code(None, ["file:/pay"], marks=()) is None
    assert restricted_keys([], [(A, frozenset({"file:/pay"}))]) == {}


def test_the_reason_says_how_to_mend_it_with_any_principal():
    reason = may_use("a`b", "s.c", None, ["id-pay"], restricted_keys([PAY], []))
    assert "hr.pay is restricted" in reason.detail
    assert reason.suggestion == "GRANT USE ON RELATIONAL CACHE s.c TO `a``b`"


def test_a_cache_over_a_cache_over_a_restricted_table_is_restricted():
    nested = f"s3a://bucket/caches/{B}"
    caches = [
        (C, frozenset(keys_of(nested))),  # over b, before b is known to be restricted
        (B, frozenset(keys_of(f"file:/caches/{A}"))),
        (A, frozenset({"file:/pay", "file:/sales"})),
        ("d" * 32, frozenset({"file:/sales"})),
    ]
    found = restricted_keys([PAY], caches)
    assert {A, B, C} <= found.keys() and "d" * 32 not in found
    assert found[C] == "hr.pay"
    # whoever reads the files of b by their place reads rows of the table
    assert may_use("ann", "x", None, keys_of(nested), found) is not None


def entry(plan=None, run_plan=None, tables=(), grants=()):
    cache = CacheRecord("default", "c", "SELECT 1", "h", "file:/caches/c", plan=plan, narrowed=True)
    run = RefreshRunRecord("r", "c", RunState.PUBLISHED, "FULL", "", "", 1, NOW, plan=run_plan)
    return RegistryEntry(cache, (), SnapshotRecord(run, tables), frozenset(grants))


def test_what_a_cache_reads_is_its_plans_and_its_snapshot_together():
    found = reads_of(
        entry(
            {"relations": [["file:/view_then", "v"]]},
            {"relations": [["file:/view_now", "v"]]},
            (SnapshotTableRecord("t", "file:/t", "id-t", 3),),
        )
    )
    places = {"file:/view_then", "file:/view_now", "file:/t"}
    assert found == places | {"id-t", "table v", "table t"}


def test_a_principal_is_not_told_of_the_others():
    assert shown_to("ann", entry(grants=("ann", "bob"))).grants == {"ann"}
    assert shown_to("eve", entry(grants=("ann", "bob"))).grants == frozenset()


def test_a_name_that_nobody_authenticated_has_no_grant():
    def code(principals, reads):
        restricted = restricted_keys((PAY,), [])
        reason = may_use("ann", "c", principals, reads, restricted, vouched=False)
        return None if reason is None else reason.code

    assert code(frozenset({"ann"}), ["file:/sales"]) is ReasonCode.NOT_AUTHENTICATED
    assert code(frozenset({"ann"}), ["file:/pay"]) is ReasonCode.NOT_AUTHENTICATED
    assert code(frozenset({"bob"}), ["file:/sales"]) is ReasonCode.NOT_GRANTED
    assert code(None, ["file:/pay"]) is ReasonCode.TABLE_RESTRICTED
    assert code(None, ["file:/sales"]) is None  # open to everybody


def test_whom_grants_are_looked_up_for():
    assert OWN_USER.principal("etl") == "etl"
    assert Asker("ann", vouched=False).principal("etl") == "ann"
    assert Asker("", vouched=False).principal("etl") == ""
    assert Asker("ann", vouched=False).believed(True).vouched
    assert not Asker("ann", vouched=False).believed(False).vouched
    assert not Asker("", vouched=False).believed(True).vouched  # nobody is no name to believe


@pytest.mark.parametrize(
    ("asker", "settings", "refused"),
    [
        (OWN_USER, {}, False),
        (Asker("ann", vouched=True), {}, True),
        (Asker("root", vouched=True), {"admins": "bob, root"}, False),
        (Asker("root", vouched=False), {"admins": "root"}, True),
        (Asker("root", vouched=False), {"admins": "root", "trust_user_names": True}, False),
        (Asker("", vouched=True), {"admins": ","}, True),
        (Asker("", vouched=False), {"admins": "", "trust_user_names": True}, True),
    ],
)
def test_who_may_grant_at_a_server(asker, settings, refused):
    for text in (
        "GRANT USE ON RELATIONAL CACHE c TO ann",
        "REVOKE USE ON RELATIONAL CACHE c FROM ann",
        "RESTRICT BASE TABLE t",
        "UNRESTRICT BASE TABLE t",
        "GRANT SELECT ON BASE TABLE t TO ann",
        "REVOKE SELECT ON BASE TABLE t FROM ann",
        "CREATE RELATIONAL CACHE c LOCATION '/x' AS SELECT a FROM t",
    ):
        with pytest.raises(ConfigurationError) if refused else nullcontext():
            visitor = visitor_of(asker, Settings(**settings))
            if visitor is not None:
                visitor.refuse(parse(text))
