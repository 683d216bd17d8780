"""As what the rows of a result are sent."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ResultFormat(StrEnum):
    """As what the rows of a result are sent."""

    ARROW = "arrow"
    PARQUET = "parquet"

    @property
    def media_type(self) -> str:
        """Its name in HTTP."""
        return f"application/vnd.apache.{_MEDIA[self]}"


_MEDIA: Final = {ResultFormat.ARROW: "arrow.stream", ResultFormat.PARQUET: "parquet"}
