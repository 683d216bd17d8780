"""What is said of a query for which the index proposes no cache: what the nearest ones lack."""

from __future__ import annotations

import pytest

from cachemgr.serving.decision import BlockOutcome, Decision
from cachemgr.text import offline
from matcher.model.ir import Block
from matcher.model.reasons import Reason, ReasonCode
from tests.harness.tpc import suite

SCHEMA = "CREATE TABLE t (k INT, a INT, b INT, v BIGINT); CREATE TABLE u (k INT)"


def missed(workspace: offline.Workspace, query: str) -> tuple[Block, tuple[Reason, ...]]:
    """The outermost block of a query that the index proposes nothing for, and what is said then."""
    parsed = offline.answer(workspace, query, explain=False).parsed
    block = next(b.block for b in parsed.walk() if b.block is not None and b.block.is_aggregate)
    return block, workspace.registry.decide(block, workspace.conf.options).reasons


def why(workspace: offline.Workspace, query: str) -> tuple[Reason, ...]:
    block, reasons = missed(workspace, query)
    assert [r.code for r in reasons] == [ReasonCode.NO_CACHE_FOR_TABLES]
    return workspace.registry.why(block, workspace.conf.options, reasons)


@pytest.mark.parametrize(
    ("name", "code", "lacking", "change"),
    [
        ("ds40", "PREDICATE_COLUMN_MISSING", "lacks cs_warehouse_sk, cs_order_number", "GROUP BY"),
        ("ds85", "AGG_NOT_DERIVABLE", "AVG(ws_quantity)", "add AVG(ws_quantity) to the SELECT"),
        ("ds93", "COLUMN_NOT_IN_CACHE", "lacks ss_ticket_number, ss_customer_sk", "GROUP BY"),
    ],
)
def test_what_tpc_ds_lacks_without_caches_of_joined_facts_is_named(
    name: str, code: str, lacking: str, change: str
) -> None:
    caches = [c for c in suite.caches_text("ds").split(";") if "sold_and_returned" not in c]
    workspace = offline.prepare(suite.schema_text("ds"), ";".join(caches))
    first = why(workspace, suite.queries("ds")[name])[0]
    assert first.code.value == code
    assert lacking in first.detail
    assert change in first.suggestion


def caches(number: int, keys: str = "a") -> str:
    return "".join(
        f"CREATE RELATIONAL CACHE c{i} AS SELECT {keys}, SUM(v) AS s FROM t GROUP BY {keys};"
        for i in range(number)
    )


def test_the_nearest_cache_comes_first_and_few_are_asked() -> None:
    near = "CREATE RELATIONAL CACHE near AS SELECT a, b, SUM(v) AS s FROM t GROUP BY a, b;"
    workspace = offline.prepare(SCHEMA, caches(20) + near)
    found = why(workspace, "SELECT a, b, k, SUM(v) AS s FROM t GROUP BY a, b, k")
    assert found[0].detail == "cache near lacks k (needed for group by and output)"
    assert found[0].suggestion == "add k to the GROUP BY list of near"
    assert len(found) == 3


def test_a_change_of_the_registry_is_told_anew() -> None:
    workspace = offline.prepare(SCHEMA, caches(1) + "-- told anew")
    query = "SELECT b, SUM(v) AS s FROM t GROUP BY b"
    assert "c0 lacks b" in why(workspace, query)[0].detail
    workspace.registry.drop("c0")
    block, reasons = missed(workspace, query)
    (told,) = workspace.registry.why(block, workspace.conf.options, reasons)
    assert (told.code, told.detail) == (ReasonCode.NO_CACHE_FOR_TABLES, "no cache reads t")


def test_other_reasons_stay_as_they_are() -> None:
    workspace = offline.prepare(SCHEMA, caches(1))
    block, _ = missed(workspace, "SELECT a, MAX(v) AS s FROM t GROUP BY a")
    said = (Reason(ReasonCode.STALE, "it is stale", "refresh"),)
    assert workspace.registry.why(block, workspace.conf.options, said) is said


def test_the_log_of_a_session_is_told_what_lacks() -> None:
    workspace = offline.prepare(SCHEMA, caches(1))
    block, reasons = missed(workspace, "SELECT b, SUM(v) AS s FROM t GROUP BY b")
    outcome = BlockOutcome((), block, None, (), reasons)
    options = workspace.conf.options
    found = Decision((outcome,), why=lambda b, r: workspace.registry.why(b, options, r))
    assert found.reasons == reasons
    assert "c0 lacks b" in found.with_full_reasons().reasons[0].detail
