"""Reasons, and the views that were considered, in words for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachemgr.printable import plural
from cachemgr.secrets import masked, masked_sql
from matcher.model.message import literal
from matcher.model.reasons import Reason


@dataclass(frozen=True)
class CandidateRow:
    """A view that was considered; several grouping sets of one cache that are refused alike.

    Args:
        cache: The cache's name.
        sets: The grouping set with the most keys, and how many more; None for a cache without sets.
        outcome: `chosen`, `valid` or `refused`.
        cost: What it would cost, without decimals; None for one that is refused.
        reasons: Why it is refused, each in one line.
    """

    cache: str
    sets: str | None
    outcome: str
    cost: str | None
    reasons: tuple[str, ...]


def reason_text(reason: Mapping[str, Any]) -> str:
    """A reason in one line: code, detail and what would help.

    Args:
        reason: `code`, `detail` and `suggestion`, as everywhere.
    """
    cure = f" ({reason['suggestion']})" if reason["suggestion"] else ""
    return f"{reason['code']}: {reason['detail']}{cure}"


def masked_reasons(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Reasons without credentials: they quote constants of the query and of caches' definitions.

    Args:
        reasons: As the matcher gives them.
    """
    return tuple(map(_masked, reasons))


def _masked(reason: Reason) -> Reason:
    detail, suggestion = masked(reason.detail), masked_sql(reason.suggestion)
    if (detail, suggestion) == (reason.detail, reason.suggestion):
        return reason
    fault, cure = literal(detail), literal(suggestion)
    return Reason(reason.code, "{fault}", "{cure}", fault=fault, cure=cure)


def candidate_rows(
    candidates: Iterable[Mapping[str, Any]], told: Iterable[Mapping[str, Any]] = ()
) -> list[CandidateRow]:
    """The views that were considered, in their order. Sets of one cache that are refused by the
    same codes and would be helped by the same change are one row: a cube has dozens.

    Args:
        candidates: As EXPLAIN REWRITE FORMAT JSON gives them.
        told: The reasons that stand above the rows, and are not written out again.
    """
    above = frozenset(map(reason_text, told))
    alike: dict[object, list[Mapping[str, Any]]] = {}
    for number, one in enumerate(candidates):
        is_refused_set = _keys(one) is not None and one["outcome"] == "refused"
        asked = tuple((r["code"], r["suggestion"]) for r in one["reasons"])
        alike.setdefault((one["cache"], asked) if is_refused_set else number, []).append(one)
    return [_row(found, above) for found in alike.values()]


def _keys(candidate: Mapping[str, Any]) -> Sequence[str] | None:
    """The keys of a candidate's grouping set; 0.1.0 wrote them under another name."""
    name = "groupingSet" if "groupingSet" in candidate else "grouping_set"
    keys: Sequence[str] | None = candidate[name]
    return keys


def _row(found: list[Mapping[str, Any]], above: Collection[str]) -> CandidateRow:
    finest = max(found, key=lambda one: len(_keys(one) or ()))
    keys, cost = _keys(finest), finest["cost"]
    more = f" and {plural(len(found) - 1, 'other set')}" if len(found) > 1 else ""
    return CandidateRow(
        cache=finest["cache"],
        sets=None if keys is None else f"({', '.join(keys)}){more}",
        outcome=finest["outcome"],
        cost=None if cost is None else f"{cost:.0f}",
        reasons=tuple(
            f"{reason['code']}, as above" if text in above else text
            for reason in finest["reasons"]
            for text in (reason_text(reason),)
        ),
    )
