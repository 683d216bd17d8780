"""What lies on top of the published version: a commit that a run left is adopted where it is
complete, and undone where it is not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cachemgr.delta.commits import Head
from cachemgr.refresh.by_change.adopt import Written
from cachemgr.refresh.by_change.incremental import Delta
from cachemgr.refresh.planning.plan import INCREMENTAL, RESTORE, Published, RefreshRequest
from cachemgr.refresh.planning.since_published import delta_since
from cachemgr.refresh.planning.steps import Adopt, RestorePublished, Stage
from cachemgr.refresh.write import read_versions
from cachemgr.vocabulary import RefreshMode
from matcher.model.message import NOTHING


def restores_published(head: Head, published: Published) -> bool:
    """True if `head` is a restore commit of ours that put the published state back."""
    stamp = head.stamp
    return stamp.get("kind") == RESTORE and stamp.get("restores") == published.cache_version


def head_is_published(request: RefreshRequest) -> bool:
    """Whether nothing lies on top of the published version."""
    if request.published is None or request.head is None:
        return True
    return request.head.version == request.published.cache_version


def restore_stage(request: RefreshRequest) -> tuple[Stage, ...]:
    """Puts the published state back where something else lies on top. What is damaged cannot be
    put back, and is written anew."""
    published, head = request.published, request.head
    if published is None or head is None or request.damage or head_is_published(request):
        return ()
    if restores_published(head, published):
        return ()
    return (RestorePublished(published.cache_version, head.version),)


def adoptable(request: RefreshRequest) -> Adopt | None:
    """The commit on top, if the run before left it complete; see `Adopt`."""
    head, refresh_id = request.head, request.adoptable
    if head is None or refresh_id is None or request.damage:
        return None
    stamp = head.stamp
    if (
        stamp.get("refresh_id") != refresh_id
        or stamp.get("parent_version") != head.version - 1
        or stamp.get("spec") != request.spec
    ):
        return None
    kind, written = stamp.get("kind"), request.written
    now = [t.identity for t in request.tables]
    if request.mode == RefreshMode.FULL and (kind != RefreshMode.FULL or stamp.get("source")):
        return None  # whoever asks for it may not trust what was stored before
    if kind == RefreshMode.FULL and _is_of(stamp.get("base_versions"), now):
        return Adopt(refresh_id, head.version, request.tables)
    if written is None or request.mode == RefreshMode.FULL:
        return None
    found = Adopt(refresh_id, head.version, written.tables, is_behind=written.is_behind)
    if kind == RefreshMode.FULL:
        return found
    delta = _written_delta(request, written, stamp) if kind == INCREMENTAL else None
    return None if delta is None else replace(found, delta=delta)


def _is_of(stamped: object, states: Iterable[Sequence[object]]) -> bool:
    """Whether a stamp names these states of base tables, in whatever order."""
    if not isinstance(stamped, list):
        return False
    return sorted(map(tuple, stamped), key=str) == sorted(map(tuple, states), key=str)


def _written_delta(
    request: RefreshRequest, written: Written, stamp: Mapping[str, Any]
) -> Delta | None:
    """What the commit on top added to the published version; None if that is not certain.

    Its rows are right only above the very rows and base versions that it was added to. One that
    failed after it was written is not tried again, and one above a restored version is not looked
    into: they are undone.
    """
    published, sets = request.published, stamp.get("sets")
    given_up = request.has_failed or request.refused is not None
    if published is None or given_up or not isinstance(sets, Mapping):
        return None
    if stamp.get("parent_version") != published.cache_version:
        return None
    if not _is_of(stamp.get("since"), read_versions(published.tables)):
        return None
    found = delta_since(
        replace(request, tables=written.tables, changes=written.changes, gone=written.gone), NOTHING
    )
    if not isinstance(found, Delta):
        return None
    return replace(found, replaced=tuple(sets["replaced"]), appended=tuple(sets["appended"]))
