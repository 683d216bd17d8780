"""What is known of a session's time zone without a time zone database.

TIMESTAMP values are instants, and their calendar day is the session zone's. Two facts decide which
calendar functions follow from which:

- *fixed*: the offset never changes, so every local hour, day and month starts at an instant that
  can be computed here;
- *keeps days*: no local date was ever skipped whole, and the start of an instant's hour is on its
  day. Then the day of `CAST(d AS TIMESTAMP)` is d. Not so in Asia/Manila, which had no 1844-12-31:
  Spark reads that midnight as 1845-01-01, another year.

A name that is not listed has neither. A test holds the list against the JVM's own database.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_OFFSET: Final = re.compile(r"(?:utc|gmt|ut)?([+-])(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\Z")
_UTC: Final = frozenset("utc gmt ut z zulu etc/utc etc/gmt etc/uct etc/zulu".split())
_REGIONS: Final = ("africa/", "america/", "asia/", "atlantic/", "australia/", "europe/", "indian/")
_CROSSED_THE_DATE_LINE: Final = frozenset({"asia/manila"})
_OTHERS: Final = frozenset({"pacific/auckland", "pacific/honolulu"})


@lru_cache(maxsize=256)
def fixed_offset(zone: str) -> int | None:
    """Seconds east of UTC if the zone's offset never changes, else None.

    >>> fixed_offset("+05:30"), fixed_offset("Asia/Kolkata")
    (19800, None)
    """
    lower = zone.strip().lower()
    if lower in _UTC:
        return 0
    found = _OFFSET.match(lower)
    if found is None:
        return None
    hours, minutes, seconds = (int(found[i] or 0) for i in (2, 3, 4))
    if hours > 18 or minutes > 59 or seconds > 59:
        return None
    total = hours * 3600 + minutes * 60 + seconds
    return -total if found[1] == "-" else total


@lru_cache(maxsize=256)
def keeps_days(zone: str) -> bool:
    """True if each local date occurs in the zone, and each instant's hour starts on its own day.

    >>> keeps_days("Europe/Berlin"), keeps_days("Asia/Manila"), keeps_days("")
    (True, False, False)
    """
    lower = zone.strip().lower()
    if fixed_offset(zone) is not None or lower in _OTHERS:
        return True
    return lower.startswith(_REGIONS) and lower not in _CROSSED_THE_DATE_LINE
