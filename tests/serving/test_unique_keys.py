"""Which unique keys hold in the very state of a table that a query reads."""

from __future__ import annotations

import pytest

from cachemgr.base_state import BaseState
from cachemgr.config.result_settings import SettingsComparer, fingerprint
from cachemgr.metastore.records import JoinRecord, JoinSide
from cachemgr.serving.seen_tables import TableRef
from cachemgr.serving.unique_keys import (
    JoinsUnderSettings,
    keys_promised,
    keys_seen,
    lapsed_at,
    lapsed_in,
    validated_places,
)
from cachemgr.vocabulary import JoinState
from matcher.model.ir import LapsedJoin, RecordPreservingJoin

A, B = "file:/a", "file:/b"


def join(**fields):
    given = {
        "left": JoinSide("a", A, "ia"), "right": JoinSide("b", B, "ib"), "keys": (("x", "y"),),
        "state": JoinState.VALID,
        "validated_versions": {A: BaseState("ia", 1), B: BaseState("ib", 2)},
    }  # fmt: skip
    return JoinRecord(name="j", definition="", **{**given, **fields})


def at(table_id, version, commit=""):
    table = TableRef("b", B, table_id, version, "delta", False, commit=commit)
    return table.at(table.state)


FACT = RecordPreservingJoin("j", A, B, (("x", "y"),))
UNIQUE = RecordPreservingJoin("j", A, B, (("x", "y"),), finds_each=False)


def test_a_key_of_the_very_state_that_is_read():
    assert keys_seen([join()], {B: [at("ib", 2)]}) == (UNIQUE,)
    # what else was validated, and where the left table stands, does not matter to a key
    assert keys_seen(
        [join(validated_versions={B: BaseState("ib", 2)})], {B: [at("ib", 2), at("ib", 2)]}
    )


def test_that_rows_find_one_counts_for_the_rows_that_were_looked_at():
    right = {B: [at("ib", 2)]}
    assert keys_seen([join()], {A: [at("ia", 1)], **right}) == (FACT,)
    for left in ([at("ia", 2)], [at("other", 1)], [at("ia", 1), at("ia", 2)], []):
        assert keys_seen([join()], {A: left, **right}) == (UNIQUE,), left
    unknown = join(validated_versions={B: BaseState("ib", 2)})
    assert keys_seen([unknown], {A: [at("ia", 1)], **right}) == (UNIQUE,)
    loose = join(finds_each=False)
    assert keys_seen([loose], {A: [at("ia", 1)], **right}) == (UNIQUE,)


@pytest.mark.parametrize(
    "seen",
    [
        {}, {A: [at("ib", 2)]}, {B: [at("ib", 3)]}, {B: [at("other", 2)]}, {B: [at("ib", None)]},
        {B: [at("ib", 2), at("ib", 1)]}, {B: [at("ib", 2, "txn:other")]},
    ],
)  # fmt: skip
def test_noop_another_state_is_read(seen):
    assert keys_seen([join()], seen) == ()


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({"state": JoinState.BROKEN}, 2), ({"state": JoinState.NOT_VALIDATED}, 2),
        ({"validated_versions": {}}, 2), ({"validated_versions": {B: BaseState("ib", None)}}, None),
    ],
)  # fmt: skip
def test_noop_nobody_has_found_it_unique(fields, version):
    assert keys_seen([join(**fields)], {B: [at("ib", version)]}) == ()


def test_before_anybody_looked_the_keys_of_the_tables_that_are_read_are_promised():
    seen = {A: [at("ia", 1)], B: [at("ib", 2)]}
    assert keys_promised([join()], {A, B}) == keys_seen([join()], seen) == (FACT,)
    assert keys_promised([join()], {A}) == ()
    assert keys_promised([join(state=JoinState.BROKEN)], {B}) == ()
    assert keys_promised([join(validated_versions={B: BaseState("ib", None)})], {B}) == ()


def test_the_versions_of_such_tables_are_asked_for():
    assert validated_places([join()]) == {B}
    assert validated_places([join(state=JoinState.BROKEN)]) == frozenset()


def test_what_is_declared_and_not_proven_is_told():
    lapsed, broken = LapsedJoin(FACT, False), LapsedJoin(FACT, True)
    seen = {A: [at("ia", 1)], B: [at("ib", 2)]}
    assert lapsed_in([join()], seen) == ()
    assert lapsed_in([join()], {**seen, A: [at("ia", 2)]}) == (lapsed,)
    assert lapsed_in([join(state=JoinState.BROKEN)], seen) == (broken,)
    assert lapsed_in([join()], {A: [at("ia", 2)]}) == ()
    assert lapsed_in([join(finds_each=False)], {**seen, A: [at("ia", 2)]}) == ()
    assert lapsed_at([join()], {A, B}) == () == lapsed_at([join(state=JoinState.BROKEN)], {A})
    assert lapsed_at([join(state=JoinState.BROKEN)], {A, B}) == (broken,)
    assert lapsed_at([join(state=JoinState.NOT_VALIDATED)], {A, B}) == (lapsed,)


def test_a_join_validated_under_other_settings_is_as_if_nobody_had():
    zone = "spark.sql.session.timeZone"
    joins = JoinsUnderSettings(SettingsComparer({"spark.sql.ansi.enabled": "true"}.get))
    here = fingerprint({zone: "UTC"})
    states = {A: [at("ia", 1)], B: [at("ib", 2)]}

    def found(under, settings=here):
        declared = (join(validated_under=under),)
        usable = joins.of(declared, settings)
        assert joins.of(declared, settings) is usable
        assert bool(keys_promised(usable, {A, B})) == bool(keys_seen(usable, states))
        assert bool(lapsed_at(usable, {A, B})) != bool(keys_promised(usable, {A, B}))
        return bool(keys_seen(usable, states))

    assert found({zone: "UTC"})
    assert found({zone: "UTC", "spark.sql.ansi.enabled": "TRUE"}), "as by default"
    assert found({zone: "Europe/Oslo"}, fingerprint({zone: "Europe/Oslo"}))
    assert not found({zone: "Europe/Oslo"})
    assert not found({zone: "UTC", "spark.sql.ansi.enabled": "false"})
    assert not found(None), "an earlier release did not say"
