"""The lease of a cache inside a transaction: taken, kept and locked in single statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import or_, select, tuple_, update
from sqlalchemy.orm import Session

from cachemgr.metastore.models import LeaseRow, RefreshRunRow
from cachemgr.metastore.records import RefreshRunRecord, as_utc
from cachemgr.metastore.transactions import database_moment
from cachemgr.vocabulary import RunState


def take_lease(
    session: Session, cache_id: str, holder: str, moment: datetime, lease_seconds: float
) -> int | None:
    """Take the lease of a cache if it is free or past its time, in one statement.

    The run that held it becomes SUPERSEDED.

    Args:
        session: The transaction.
        cache_id: The cache's id.
        holder: Who takes it, for messages.
        moment: This moment.
        lease_seconds: How long it lasts unless renewed.

    Returns:
        The new fencing token; None if somebody holds it.
    """
    token = session.scalar(
        update(LeaseRow)
        .where(
            LeaseRow.cache_id == cache_id,
            or_(LeaseRow.holder.is_(None), LeaseRow.expires_at <= moment),
        )
        .values(
            holder=holder,
            token=LeaseRow.token + 1,
            expires_at=moment + timedelta(seconds=lease_seconds),
        )
        .returning(LeaseRow.token)
        .execution_options(synchronize_session=False)
    )
    if token is not None:
        _supersede(session, cache_id, moment, holder)
    return token


def touch_lease(session: Session, cache_id: str, token: int, **values: Any) -> bool:
    """Lock a lease for the rest of the transaction if a token holds it, and change it.

    Args:
        session: The transaction.
        cache_id: The cache's id.
        token: The fencing token.
        values: What to change.

    Returns:
        False if the token does not hold it any more.
    """
    done = session.scalar(
        update(LeaseRow)
        .where(LeaseRow.cache_id == cache_id, LeaseRow.token == token, LeaseRow.holder.is_not(None))
        .values(token=token, **values)
        .returning(LeaseRow.token)
        .execution_options(synchronize_session=False)
    )
    return done is not None


def with_losses(session: Session, runs: Sequence[RefreshRunRecord]) -> tuple[RefreshRunRecord, ...]:
    """Runs as they were read; those that run no more, though nobody has noted it, are told as lost.

    Args:
        session: The transaction that read them.
        runs: The runs.
    """
    held = [(r.cache_id, r.fencing_token) for r in runs if r.state is RunState.RUNNING]
    if not held:
        return tuple(runs)
    ended = select(LeaseRow.cache_id, LeaseRow.token, LeaseRow.expires_at).where(
        tuple_(LeaseRow.cache_id, LeaseRow.token).in_(held),
        LeaseRow.expires_at <= database_moment(session),
    )
    ends = {(cache_id, token): at for cache_id, token, at in session.execute(ended)}
    return tuple(
        run
        if run.state is not RunState.RUNNING
        else _lost(run, ends.get((run.cache_id, run.fencing_token)))
        for run in runs
    )


def _lost(run: RefreshRunRecord, ended: datetime | None) -> RefreshRunRecord:
    if ended is None:
        return run
    since = as_utc(ended)
    why = (
        f"{run.holder} has not renewed its lease, which ended at {since:%Y-%m-%d %H:%M:%S} UTC: "
        "its process was killed or has lost the metastore. The next refresh takes over"
    )
    return replace(run, is_lost=True, error=why)


def _supersede(session: Session, cache_id: str, moment: datetime, holder: str) -> None:
    session.execute(
        update(RefreshRunRow)
        .where(RefreshRunRow.cache_id == cache_id, RefreshRunRow.state == RunState.RUNNING.value)
        .values(
            state=RunState.SUPERSEDED.value,
            finished_at=moment,
            error=f"its lease ended and {holder} took over",
        )
        .execution_options(synchronize_session=False)
    )
