"""Relational caches for Spark over Delta tables.

The public functions need the extra `spark`, which is imported when the first of them is used: the
offline explain and the command line work without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cachemgr.spark.api import (
        Explanation,
        configure_spark_with_cachemgr,
        counters,
        disable,
        enable,
        explain,
        files_opened,
        is_enabled,
        would_answer,
    )

__version__ = "0.2.0"

__all__ = [
    "Explanation",
    "configure_spark_with_cachemgr",
    "counters",
    "disable",
    "enable",
    "explain",
    "files_opened",
    "is_enabled",
    "would_answer",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from cachemgr.extras import require

        require(f"cachemgr.{name}", "spark")
        from cachemgr.spark import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
