"""Moments as clients write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator

_MOMENT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def _in_range(moment: datetime) -> datetime:
    try:
        moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a moment lies in the years 1 to 9999 of UTC") from error
    return moment


def _with_zone(value: object) -> object:
    """Refuses numbers, which pydantic takes for seconds or for milliseconds, and moments without a
    zone, which are none."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a moment needs its zone")
        return value
    if not isinstance(value, str) or _MOMENT.fullmatch(value) is None:
        raise ValueError("a moment is written as 2026-01-31T12:00:00Z or with +01:00 (RFC 3339)")
    return value


Moment = Annotated[datetime, BeforeValidator(_with_zone), AfterValidator(_in_range)]
