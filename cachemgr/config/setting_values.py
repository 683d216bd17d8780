"""Values of settings as they are written: durations, sizes, numbers and words read into types.

What is not understood is a `ValueError` that says what is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from cachemgr.sparks import MINORS, minor_of

_DURATION_UNITS = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "seconds": 1,
    "m": 60,
    "min": 60,
    "minute": 60,
    "minutes": 60,
    "h": 3600,
    "hour": 3600,
    "hours": 3600,
    "d": 86400,
    "day": 86400,
    "days": 86400,
}
# No moment of ours is further away: a calendar has no days for much more.
MAX_DAYS: Final = 36500
_SIZE_UNITS = {"b": 0, "k": 1, "kb": 1, "m": 2, "mb": 2, "g": 3, "gb": 3, "t": 4, "tb": 4}
_AMOUNT = re.compile(r"\s*([0-9]{1,18})\s*([a-z]*)\s*", re.IGNORECASE)


def parse_duration(text: str) -> int:
    """Read a duration such as `24h`, `30s`, `10 min`, `2d`; a bare number is seconds.

    Args:
        text: The text of the setting.

    Returns:
        Seconds.

    Raises:
        ValueError: If the text is not a duration, or one of more than `MAX_DAYS`.
    """
    match = _AMOUNT.fullmatch(text)
    unit = match.group(2).lower() if match else ""
    if match is None or (unit and unit not in _DURATION_UNITS):
        raise ValueError("a duration such as 30s, 10min, 24h or 2d")
    seconds = int(match.group(1)) * _DURATION_UNITS.get(unit, 1)
    if seconds > MAX_DAYS * _DURATION_UNITS["d"]:
        raise ValueError(f"a duration of at most {MAX_DAYS}d")
    return seconds


def parse_bytes(text: str) -> int:
    """Read a size such as `256m`, `1g`, `512kb`; a bare number is bytes.

    Args:
        text: The text of the setting.

    Returns:
        Bytes, with powers of 1024 as in Spark.

    Raises:
        ValueError: If the text is not a size.
    """
    match = _AMOUNT.fullmatch(text)
    unit = match.group(2).lower() if match else ""
    if match is None or (unit and unit not in _SIZE_UNITS):
        raise ValueError("a size such as 512k, 256m or 1g")
    return int(match.group(1)) * int(1024 ** _SIZE_UNITS.get(unit, 0))


def parse_bool(text: str) -> bool:
    """Read true or false, in any case."""
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("true or false")
    return word == "true"


def parse_int(text: str) -> int:
    """Read a whole number of 0 or more."""
    if not re.fullmatch(r"\s*[0-9]{1,18}\s*", text):
        raise ValueError("a whole number of 0 or more")
    return int(text)


def parse_factor(text: str) -> float:
    """Read a factor of at least 1, as 1.5."""
    if not re.fullmatch(r"\s*[0-9]{1,6}(\.[0-9]{1,6})?\s*", text) or not 1 <= float(text) <= 1000:
        raise ValueError("a factor from 1 to 1000, as 1.5")
    return float(text)


def parse_text(text: str) -> str:
    """Read a text that is not empty, without the blanks around it."""
    if not text.strip():
        raise ValueError("a text that is not empty")
    return text.strip()


def parse_optional(text: str) -> str:
    """Read a text that may be empty, without the blanks around it."""
    return text.strip()


def parse_spark_version(text: str) -> str:
    """Read a version of a Spark that is served, or its minor; it may be empty."""
    version = text.strip()
    if version and minor_of(version) not in MINORS:
        raise ValueError(f"a version of Spark {', '.join(MINORS)}")
    return version


def one_of(choices: type[StrEnum]) -> Callable[[str], StrEnum]:
    """How one of these words is read, in any case."""

    def parse(text: str) -> StrEnum:
        for choice in choices:
            if choice.value.lower() == text.strip().lower():
                return choice
        raise ValueError(" | ".join(choice.value for choice in choices))

    return parse
