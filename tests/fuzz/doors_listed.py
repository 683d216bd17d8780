"""Where the doors may differ for a generated query, each with the reason why that is right.

The same reasons as in tests/matcher/test_two_doors.py, told here from the text of the query and of
the differences.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

# What the query's text shows, what every difference says, and why.
_LISTED: Final[tuple[tuple[str, str, str], ...]] = (
    (
        r"\bEXCEPT\b|\bINTERSECT ALL\b",
        "",
        "Catalyst makes one filter or one union of set operations",
    ),
)


def differs_as_listed(query: str, differences: Sequence[str]) -> str:
    """The reason why the doors may differ so; an empty text if none is listed."""
    if not differences:
        return ""
    for shown, told, why in _LISTED:
        if re.search(shown, query) and all(re.search(told, d) for d in differences):
            return why
    return ""
