"""A join by a column that is gone is broken; it stops no refresh of a cache that does without."""

from __future__ import annotations

import pytest

from cachemgr.errors import JoinValidationError
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.refresh import validate_snapshot_joins
from cachemgr.refresh.validate_snapshot_joins import JoinChecks

JOIN = JoinRecord(
    "o_c", "ddl", JoinSide("orders", "/o", "i"), JoinSide("cust", "/c", "j"), (("k", "id"),)
)


def checked(monkeypatch, code: str):
    def fails(*given, told, names, finds_each):
        assert names == ("orders", "cust") and finds_each
        raise JoinValidationError(code, f"record-preserving join {told}: no column id")

    monkeypatch.setattr(validate_snapshot_joins, "validate_join", fails)
    checks = JoinChecks(None, None, {}, None)
    return validate_snapshot_joins._checked(checks, JOIN, {"/o": 1, "/c": 1})


def test_a_lost_key_breaks_the_join(monkeypatch):
    check, message = checked(monkeypatch, "JOIN_COLUMN_LOST")
    assert not check.ok and message == "record-preserving join o_c: no column id"


def test_another_failure_stops_the_refresh(monkeypatch):
    with pytest.raises(JoinValidationError, match="JOIN_NOT_CHECKABLE"):
        checked(monkeypatch, "JOIN_NOT_CHECKABLE")
