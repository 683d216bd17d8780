"""What a refresh run says of itself: the way it took, why, what was expected and what it cost.

One entry among the facts of the run, noted down when the way is chosen, so that a run which fails
has it too, and completed when the run publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from cachemgr.printable import plural
from matcher.model.message import NOTHING, Message, literal
from matcher.model.message_codec import message_data, message_of

ACCOUNT: Final = "account"
"""The name of the entry among a run's facts."""
_PARTS: Final = "detail_parts"


@dataclass(frozen=True, slots=True)
class RunAccount:
    """The way of one run, and its cost.

    Args:
        way: `FULL`, `APPEND`, `PARTIALS`, `REPLACE`, `UNCHANGED`, `RESTORE`, `JOINS` or `ADOPT`;
            None where none was chosen: it waits or failed before, or an earlier release made it.
        code: Why everything was computed, or why `INCREMENTAL ONLY` failed: a code of
            docs/refresh.md; None for the other ways.
        detail: The same for people, one line; an account that an earlier release wrote has it as a
            text alone.
        cure: What to do about it; empty if nothing is to be done.
        change_estimate: The bytes that adding the change was expected to cost; None where there was
            no choice.
        full_estimate: Those that a full refresh was expected to cost; None likewise.
        change_seconds: The seconds that adding the change was expected to take, by what past runs
            took; None where there was no choice, or no past run tells.
        full_seconds: Those that a full refresh was expected to take; None likewise.
        changed_rows: Rows that were appended to base tables since the last refresh; None where
            others went as well, or their writer did not count them.
        changed_bytes: The bytes of the files that came and went; None where that is not known.
        rows_written: Rows that it wrote; None where it wrote none, or nobody counted them.
        bytes_written: Bytes that it wrote; None where it wrote none.
    """

    way: str | None = None
    code: str | None = None
    detail: Message = NOTHING
    cure: str = ""
    change_estimate: int | None = None
    full_estimate: int | None = None
    changed_rows: int | None = None
    changed_bytes: int | None = None
    rows_written: int | None = None
    bytes_written: int | None = None
    change_seconds: float | None = None
    full_seconds: float | None = None

    def to_facts(self) -> dict[str, Any]:
        """The entry among a run's facts, without what is not known."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.detail:
            found |= {"detail": str(self.detail), _PARTS: message_data(self.detail)}
        known = {name: value for name, value in found.items() if value not in (None, "", NOTHING)}
        return {ACCOUNT: known}

    def without_counts(self, detail: Message) -> RunAccount:
        """The same for those who may not know how many rows there are.

        Args:
            detail: What they are told of its reason.
        """
        return RunAccount(self.way, self.code, detail, self.cure)

    def told(self) -> str:
        """The cost, for people; empty where nothing is known of it."""
        rows = "" if self.rows_written is None else f"{plural(self.rows_written, 'row')}, "
        parts = [] if self.bytes_written is None else [f"{rows}{self.bytes_written} bytes written"]
        if self.changed_rows is not None and self.way not in (None, "UNCHANGED"):
            appended = plural(self.changed_rows, "row")
            parts.append(f"{appended} appended since the refresh before")
        if self.change_estimate is not None and self.full_estimate:
            share = self.change_estimate / self.full_estimate
            parts.append(f"the change alone expected to cost {share:.0%} of a full refresh")
        ways = (("the change alone", self.change_seconds), ("a full refresh", self.full_seconds))
        known = [f"{seconds:.1f} s for {way}" for way, seconds in ways if seconds is not None]
        if known:
            parts.append(f"expected {' and '.join(known)}, by past runs")
        return "; ".join(parts)


def account_of(facts: Mapping[str, Any]) -> RunAccount:
    """What a run says of itself; without a way where it says nothing.

    Args:
        facts: The run's.
    """
    found = facts.get(ACCOUNT)
    if not isinstance(found, Mapping):
        return RunAccount()
    known = {field.name for field in fields(RunAccount)} - {"detail"}
    return replace(
        RunAccount(),
        detail=stored_message(found.get(_PARTS), found.get("detail", "")),
        **{name: v for name, v in found.items() if name in known},
    )


def stored_message(parts: Mapping[str, Any] | None, text: str) -> Message:
    """A text as it was stored: with its parts, or alone by an earlier release.

    Args:
        parts: From `message_data`; None where the text alone was stored.
        text: The text.
    """
    return literal(text) if parts is None else message_of(parts)
