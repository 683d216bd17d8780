"""What the ways of a cache's last refreshes come to, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cachemgr.printable import plural

# Full for these, a refresh is as it must be: there was nothing to add to, or somebody wanted it.
NOTHING_TO_ADD_TO: Final = ("ASKED_FOR", "NEVER_REFRESHED", "DEFINITION_CHANGED", "OTHER_TABLES")
_ALONE: Final = ("APPEND", "PARTIALS", "REPLACE")


def why_full_lines(
    runs: Sequence[Mapping[str, Any]], hoped: Sequence[Mapping[str, Any]]
) -> list[str]:
    """What is said below the list of full refreshes.

    Args:
        runs: The refreshes that were looked at, newest first, as REST gives them; they are over.
        hoped: Those among them that computed everything, or were not to, though the change alone
            might have done.
    """
    if not runs:
        return ["it was never refreshed"]
    last = "its last refresh" if len(runs) == 1 else f"its last {len(runs)} refreshes"
    told = [f"{last}: {_ways(runs)}"]
    if not hoped:
        return [f"{told[0]}; none computed everything where the change alone might have done"]
    newest = next((r for r in runs if r["code"] is not None or r["way"] in _ALONE), None)
    if newest is not None and newest["way"] in _ALONE:
        told.append("the last one that computed anything took the change alone")
    return [*told, _cure(hoped)]


def _ways(runs: Sequence[Mapping[str, Any]]) -> str:
    if len(runs) == 1:
        return _way(runs[0])
    counts = Counter(_way(run) for run in runs)
    return ", ".join(f"{count} {way}" for way, count in counts.most_common())


def _way(run: Mapping[str, Any]) -> str:
    if run["state"] not in ("PUBLISHED", "UNCHANGED"):
        return str(run["state"])
    return str(run["way"] or run["mode"])


def _cure(hoped: Sequence[Mapping[str, Any]]) -> str:
    (code, count), *_ = Counter(run["code"] for run in hoped).most_common(1)
    cure = next((r["cure"] for r in hoped if r["code"] == code and r["cure"]), None)
    if cure is None:
        cure = "nothing is to be done, the next refresh can be incremental"
    return f"most often {code} ({plural(count, 'time')}): {cure}"
