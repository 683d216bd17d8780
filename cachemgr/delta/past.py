"""What a table's log says of a version that the table is past."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Past:
    """A version that a table is past, as the table's history has it now.

    No `TableAt`: of a version whose commit is gone nothing is known, and half of it is about the
    commit after and the table now.

    Args:
        commit: The identity of its commit; empty if the file is gone from the log.
        committed_ms: When that commit was made, in milliseconds since 1970; None likewise.
        next_ms: When the first commit after it was made, in milliseconds since 1970; 0 if that file
            is gone, so that a lag computed from it is never too small.
        columns: The table's schema now (`schemaString`).
        columns_then: The schema at that version, if that was asked for and is still known.
    """

    commit: str
    committed_ms: int | None
    next_ms: int
    columns: str
    columns_then: str | None = None


UNKNOWN_PAST: Final = Past("", None, 0, '{"fields":[]}')
"""What is said where nobody can look now; never remembered."""
