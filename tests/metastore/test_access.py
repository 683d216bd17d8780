"""Tokens and idempotency keys, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from cachemgr.errors import ConfigurationError, NotFoundError
from cachemgr.metastore import open_metastore
from cachemgr.metastore.idempotency import KEY_ABANDONED_SECONDS
from cachemgr.metastore.records import Repeated
from cachemgr.roles import Role


def test_a_token_says_who_and_what(store):
    assert not store.tokens.has_any()
    record, token = store.tokens.create(" ann ", Role.OPERATOR)
    assert (record.principal, record.role, record.expires_at) == ("ann", Role.OPERATOR, None)
    assert store.tokens.bearer(token) == record
    assert store.tokens.all() == (record,) and store.tokens.has_any()


def test_only_a_digest_is_stored(store):
    _, token = store.tokens.create("ann", Role.VIEWER)
    secret = token.split("_")[2]
    with store.engine.connect() as connection:
        rows = repr(connection.execute(text("SELECT * FROM tokens")).all())
    assert secret not in rows and len(secret) == 48


@pytest.mark.parametrize("change", ["secret", "id", "prefix", "none", "more"])
def test_what_is_no_token(store, change):
    record, token = store.tokens.create("ann", Role.ADMIN)
    prefix, _, secret = token.split("_")
    wrong = {
        "secret": f"{prefix}_{record.id}_{'0' * 48}",
        "id": f"{prefix}_{'0' * 32}_{secret}",
        "prefix": f"x_{record.id}_{secret}",
        "none": "",
        "more": token + "_1",
    }[change]
    assert store.tokens.bearer(wrong) is None


def test_an_expired_token(store):
    _, token = store.tokens.create("ann", Role.ADMIN, expires_in=timedelta(hours=1))
    assert store.tokens.bearer(token) is not None
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE tokens SET expires_at = created_at"))
    assert store.tokens.bearer(token) is None and not store.tokens.has_any()


def test_a_revoked_token(store):
    record, token = store.tokens.create("ann", Role.ADMIN)
    revoked = store.tokens.revoke(record.id)
    assert revoked.revoked_at is not None
    assert store.tokens.bearer(token) is None and not store.tokens.has_any()
    assert store.tokens.revoke(record.id) == revoked
    with pytest.raises(NotFoundError):
        store.tokens.revoke("nothing")


def test_tokens_that_make_no_sense(store):
    with pytest.raises(ConfigurationError):
        store.tokens.create("  ", Role.ADMIN)
    with pytest.raises(ConfigurationError):
        store.tokens.create("ann", Role.ADMIN, expires_in=timedelta(0))


def test_roles_cover_those_below():
    assert Role.ADMIN.covers(Role.VIEWER) and Role.OPERATOR.covers(Role.OPERATOR)
    assert not Role.VIEWER.covers(Role.OPERATOR)


def test_a_repeated_request_is_answered_as_before(store, metastore_url):
    assert store.idempotency.begin("ann", "k", "r1") == Repeated(True)
    with open_metastore(metastore_url) as other:
        assert other.idempotency.begin("ann", "k", "r1") == Repeated(False, True)
    store.idempotency.end("ann", "k", 201, {"id": "x"})
    assert store.idempotency.begin("ann", "k", "r1") == Repeated(False, True, 201, {"id": "x"})
    assert not store.idempotency.begin("ann", "k", "r2").same
    assert store.idempotency.begin("bob", "k", "r1").is_new, "keys are a principal's own"
    store.idempotency.end("ann", "k", None, None)
    assert store.idempotency.begin("ann", "k", "r1").is_new


def test_a_request_that_was_cut_off_may_be_carried_out_again(store):
    store.idempotency.begin("ann", "k", "r1")
    old = text("UPDATE idempotency_keys SET created_at = :at")

    def age(seconds: float) -> None:
        with store.engine.begin() as connection:
            moment = store.clock.now() - timedelta(seconds=seconds)
            connection.execute(old, {"at": moment.strftime("%Y-%m-%d %H:%M:%S.%f")})

    age(KEY_ABANDONED_SECONDS - 5)
    assert store.idempotency.begin("ann", "k", "r1") == Repeated(False)
    age(KEY_ABANDONED_SECONDS + 5)
    store.idempotency.keep("ann", "k")
    assert store.idempotency.begin("ann", "k", "r1") == Repeated(False), "somebody works on it"
    age(KEY_ABANDONED_SECONDS + 5)
    assert not store.idempotency.begin("ann", "k", "r2").same
    assert store.idempotency.begin("ann", "k", "r1") == Repeated(True, again=True)
    assert store.idempotency.begin("ann", "k", "r1") == Repeated(False), "one takes it over"
    store.idempotency.end("ann", "k", 201, None)
    age(KEY_ABANDONED_SECONDS + 5)
    assert store.idempotency.begin("ann", "k", "r1").status == 201, "an answer is not abandoned"


def test_keys_are_forgotten_after_a_day(store):
    store.idempotency.begin("ann", "k", "r1")
    with store.engine.begin() as connection:
        old = text("UPDATE idempotency_keys SET created_at = '2020-01-01 00:00:00'")
        connection.execute(old)
    assert store.idempotency.begin("ann", "k", "r2").is_new


def test_restricted_tables_are_kept_by_place_and_move_the_revision(store):
    before = store.registry.revision()
    mark = store.tables.restrict("hr.pay", "file:/pay", "id-1", by="root")
    assert store.tables.restricted() == (mark,)
    assert store.registry.state(before).restricted == (mark,)
    assert store.registry.revision() == before + 1
    again = store.tables.restrict("hr.salaries", "file:/pay", "id-2", by="ann")
    assert (again.name, again.table_id, again.restricted_by) == ("hr.salaries", "id-2", "ann")
    assert store.tables.restricted() == (mark, again), "another table at that place"
    renamed = store.tables.restrict("hr.wages", "file:/pay", "id-1", by="ann")
    assert (renamed.id, renamed.name, renamed.restricted_by) == (mark.id, "hr.wages", "root")
    for one in (renamed, again):
        assert store.tables.unrestrict(one.id) == one
    assert store.tables.restricted() == () and store.registry.revision() == before + 5
    with pytest.raises(NotFoundError, match="SHOW RESTRICTED BASE TABLES"):
        store.tables.unrestrict(mark.id)
