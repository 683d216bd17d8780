"""Rows of the queue: the one request of a cache that waits, and what becomes of a run that nobody
carries out any more."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cachemgr.metastore.leases import touch_lease
from cachemgr.metastore.models import RefreshRequestRow, RefreshRunRow, ScheduleRow
from cachemgr.metastore.records import ASKED, new_id
from cachemgr.vocabulary import RefreshMode, RunState

# so many workers may be lost with a refresh before it waits like one just asked for
_KEEPS_ITS_PLACE: Final = 3
# among the facts of a run that was given up through no fault of its own
_STOPPED: Final = "stopped"


def give_up(
    session: Session, refresh_id: str, why: str, moment: datetime, *, stopped: bool = False
) -> bool:
    """End a run that nobody carries out any more, take its lease from it, and ask again.

    The lease's token stays: the run that follows has the next one, and may adopt what this one
    committed.

    Args:
        session: The transaction.
        refresh_id: The run.
        why: Why it is given up, for the record.
        moment: This moment.
        stopped: Whether its worker was told to stop, which says nothing about the refresh.

    Returns:
        True if it was asked for again; False if it was over already, or cancelled.
    """
    found = session.get(RefreshRunRow, refresh_id)
    if found is None:
        return False
    held = touch_lease(session, found.cache_id, found.fencing_token, holder=None, expires_at=None)
    # read again under the lease's lock
    session.refresh(found)
    if not held or found.state != RunState.RUNNING.value:
        return False
    found.finished_at = moment
    found.error = why
    if found.cancel_requested:
        found.state = RunState.CANCELLED.value
        return False
    found.state = RunState.SUPERSEDED.value
    if stopped:
        found.facts = {**found.facts, _STOPPED: True}
    session.flush()
    _ask_again(session, found, why, moment)
    return True


def ask(
    session: Session,
    cache_id: str,
    moment: datetime,
    origin: str,
    why: str,
    mode: str | None,
    requested_by: str | None,
) -> RefreshRequestRow:
    """The request that waits for a cache; a new one if none does.

    Args:
        session: The transaction, which holds the lock of the cache's schedule (`move_epoch`).
        cache_id: The cache's id.
        moment: When it is asked for.
        origin: Who asks.
        why: The reason, for the run's record.
        mode: The way; None takes the cache's own.
        requested_by: The principal who asks.
    """
    waiting = session.scalar(
        select(RefreshRequestRow).where(RefreshRequestRow.cache_id == cache_id)
    )
    if waiting is None:
        waiting = RefreshRequestRow(
            id=new_id(),
            cache_id=cache_id,
            mode=mode,
            origin=origin,
            why=why,
            requested_by=requested_by,
            requested_at=moment,
        )
        session.add(waiting)
        session.flush()
    elif mode is not None and mode != waiting.mode:
        # FULL does what any other asks for; of two others the later says what is wanted
        waiting.mode = waiting.mode if waiting.mode == RefreshMode.FULL else mode
        session.flush()
    return waiting


def _ask_again(session: Session, run: RefreshRunRow, why: str, moment: datetime) -> None:
    # whoever asks for the same cache at this moment has to wait for the other's request
    move_epoch(session, run.cache_id, None)
    since = _place_in_queue(session, run) or moment
    asked = run.facts.get(ASKED)
    waiting = ask(session, run.cache_id, since, run.origin, why, asked, run.requested_by)
    if waiting.requested_at > since:
        _move_up(session, waiting.id, since)


def _move_up(session: Session, request_id: str, since: datetime) -> None:
    """Let a request that waits take the place of one that was given up. Whoever has it locked takes
    or cancels it at this moment: it needs no place any more, and waiting for them would deadlock.
    """
    waiting = session.scalar(
        select(RefreshRequestRow)
        .where(RefreshRequestRow.id == request_id)
        .with_for_update(skip_locked=True)
    )
    if waiting is not None:
        waiting.requested_at = since


def _place_in_queue(session: Session, run: RefreshRunRow) -> datetime | None:
    """When the refresh was first asked for, which is its place among those that wait; None if its
    workers have died so often that it may be what kills them: others go first then."""
    if run.requested_at is None:
        return None
    given_up = select(RefreshRunRow.facts).where(
        RefreshRunRow.cache_id == run.cache_id,
        RefreshRunRow.requested_at == run.requested_at,
        RefreshRunRow.state == RunState.SUPERSEDED.value,
    )
    lost = sum(not facts.get(_STOPPED) for facts in session.scalars(given_up))
    return run.requested_at if lost < _KEEPS_ITS_PLACE else None


def move_epoch(session: Session, cache_id: str, expected: int | None) -> bool:
    """Say that a refresh is asked for, and hold up others who ask for the same cache's.

    Args:
        session: The transaction.
        cache_id: The cache's id.
        expected: The epoch that the asking is based on; None does not compare.

    Returns:
        False if the epoch has moved on.
    """
    statement = (
        update(ScheduleRow)
        .where(ScheduleRow.cache_id == cache_id)
        .values(epoch=ScheduleRow.epoch + 1)
        .returning(ScheduleRow.epoch)
        .execution_options(synchronize_session=False)
    )
    if expected is not None:
        statement = statement.where(ScheduleRow.epoch == expected)
    return session.scalar(statement) is not None
