"""What refreshes fail with that passes by itself."""

from __future__ import annotations

import re
from typing import Final

from cachemgr.causes import tell_of_storage
from cachemgr.errors import ErrorCode, spellings

# The first is what says so; in the others earlier releases told the same.
_CODES: Final = (
    ErrorCode.STORAGE_UNAVAILABLE,
    ErrorCode.REFRESH_FAILED,
    ErrorCode.TABLE_UNREADABLE,
    ErrorCode.DEFINITION_BROKEN,
)
_OF_THESE: Final = re.compile(
    "|".join(re.escape(f"[{word}]") for code in _CODES for word in spellings(code))
)


def is_of_storage(told: str) -> bool:
    """Whether a refresh failed for no more than a storage that denied, did not answer or was full:
    no cache is paused for that, and one that an earlier release paused goes on by itself.

    Args:
        told: The error as text, with its code; or why a cache was paused, which holds that.
    """
    return _OF_THESE.search(told) is not None and tell_of_storage([told])
