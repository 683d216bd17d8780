"""What is averaged above a block, followed down a plan by hand and without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from matcher.catalyst.reader import LocatedBlock, walk_blocks
from matcher.model.row_order import Shown
from tests.matcher.catalyst.test_plan_refusals import SUM, K, aggregate, document, relation

SUMS = aggregate(relation(), K, SUM, keys=(K,))
TOTAL = ["a", SUM[1], "s", "bigint", 1]


def averaging(below: dict[str, Any], *ids: int, kind: str = "Window", **more: Any) -> Any:
    return {"n": kind, "w": list(ids), "c": [below], **more}


def node(kind: str, below: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"n": kind, "c": [below], **more}


def blocks(plan: dict[str, Any]) -> list[LocatedBlock]:
    found: list[LocatedBlock] = []
    walk_blocks(document(plan), lambda located: found.append(located) or False)
    return [located for located in found if located.block is not None]


def above(plan: dict[str, Any]) -> tuple[Shown, tuple[int, ...]]:
    """What is said of the groups, the innermost aggregation."""
    groups = next(b for b in blocks(plan) if b.block is not None and b.block.group_keys)
    return groups.above, groups.averaged


RENAMED = {"p": [["as", 50, "t", TOTAL], K]}
UNKNOWN = (Shown.AVERAGES, ())


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (averaging(SUMS, SUM[1]), (Shown.NOTHING, (1,))),
        (averaging(SUMS, K[1], SUM[1]), (Shown.NOTHING, (0, 1))),
        (averaging(SUMS, SUM[1], f=["adds", "picks"]), (Shown.ADDS | Shown.PICKS, (1,))),
        (averaging(node("Project", SUMS, **RENAMED), 50), (Shown.NOTHING, (1,))),
        (averaging(node("Window", node("LocalLimit", SUMS, l=3)), SUM[1]), (Shown.NOTHING, (1,))),
        (averaging(SUMS, -1), UNKNOWN),
        (averaging(SUMS, -1, SUM[1]), (Shown.AVERAGES, (1,))),
        (averaging(SUMS, 77), UNKNOWN),
        (averaging(node("Project", SUMS, p=[["as", 50, "t", SUM[3]]]), 50), UNKNOWN),
        (averaging(node("Union", SUMS), SUM[1]), UNKNOWN),
        (averaging(node("Generate", SUMS), SUM[1]), UNKNOWN),
        (averaging(node("Window", SUMS, f=["picks"]), SUM[1]), (Shown.PICKS, (1,))),
        (node("Window", SUMS), (Shown.NOTHING, ())),
        (node("Subquery", SUMS), (Shown.NOTHING, ())),
        (node("Subquery", SUMS, b=1), (~Shown.PLACES, ())),
    ],
)  # fmt: skip
def test_what_is_averaged_above(plan: dict[str, Any], expected: tuple[Shown, Any]) -> None:
    assert above(plan) == expected


def test_the_aggregation_that_averages_is_asked_for_first() -> None:
    """Below it what is averaged is of its child, here the columns of the table."""
    average = ["as", 60, "m", ["g", "Average", "avg", [TOTAL], "double", 1, 0, None, []]]
    outer = averaging(SUMS, SUM[1], kind="Aggregate", g=[], p=[average])
    assert above(outer) == (Shown.NOTHING, (1,))
