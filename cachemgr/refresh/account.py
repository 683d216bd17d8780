"""What a refresh notes down of its way and its cost; see `RunAccount`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cachemgr.delta.changes import ChangeKind, Changes
from cachemgr.delta.commits import Commit
from cachemgr.metastore.accounts import RunAccount, account_of
from cachemgr.refresh.by_change.past_runs import Expected
from cachemgr.refresh.by_change.why_full import CURES, WhyFull
from cachemgr.refresh.planning.plan import ADOPT, DELTA_WAYS, RefreshPlan


def planned(plan: RefreshPlan, changes: Iterable[Changes]) -> RunAccount:
    """What is known once the way is chosen.

    Args:
        plan: The way.
        changes: What happened to the base tables that moved.
    """
    rows, size = _changed(changes)
    taken, other = plan.estimate or (None, None)
    change, full = (taken, other) if plan.mode in DELTA_WAYS else (other, taken)
    weighed = plan.weighed
    return RunAccount(
        way=plan.mode,
        code=None if plan.code is None else plan.code.value,
        detail=plan.detail,
        cure="" if plan.code is None else CURES[plan.code],
        change_estimate=None if change is None else round(change),
        full_estimate=None if full is None else round(full),
        changed_rows=rows,
        changed_bytes=size,
        change_seconds=None if weighed is None else _seconds(weighed.change),
        full_seconds=None if weighed is None else _seconds(weighed.full),
    )


def _seconds(found: Expected | None) -> float | None:
    return None if found is None or found.seconds is None else round(found.seconds, 2)


def refused(why: WhyFull) -> RunAccount:
    """What is known of a run that would have computed everything and was not to.

    Args:
        why: Why the change alone was not enough.
    """
    return RunAccount(code=why.code.value, detail=why.detail, cure=why.cure)


def published(facts: Mapping[str, Any], commit: Commit | None) -> RunAccount:
    """What is known once it publishes.

    Args:
        facts: The run's so far.
        commit: What it wrote; None if nothing.
    """
    account = account_of(facts)
    if commit is None or account.way == ADOPT:  # an earlier run wrote it
        return account
    return replace(account, rows_written=commit.rows, bytes_written=commit.bytes)


def _changed(changes: Iterable[Changes]) -> tuple[int | None, int | None]:
    """Rows that were appended, None where others went as well; and the bytes of the files that came
    and went, None where the log does not tell."""
    moved = [found for found in changes if found.kind is not ChangeKind.SAME]
    if any(found.kind is ChangeKind.UNKNOWN for found in moved):
        return None, None
    size = sum(found.bytes_added + found.bytes_removed for found in moved)
    if any(found.kind is ChangeKind.SIGNED for found in moved):
        return None, size
    rows = [found.rows_added for found in moved]
    known = [count for count in rows if count is not None]
    return (sum(known) if len(known) == len(rows) else None), size
