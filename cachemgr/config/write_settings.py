"""Which settings of Spark a statement may bring with it because they say what a write replaces:
they change no row of a query, and so are none of `cachemgr.config.result_settings`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_OVERWRITE: Final = "spark.sql.sources.partitionOverwriteMode"
_VALUES: Final[Mapping[str, frozenset[str]]] = {_OVERWRITE: frozenset({"STATIC", "DYNAMIC"})}


def write_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Those among some settings that say what a write replaces, where Spark knows their value.

    Args:
        settings: What a statement brings with it.

    >>> write_settings({"spark.sql.sources.partitionOverwriteMode": "dynamic", "a": "b"})
    {'spark.sql.sources.partitionOverwriteMode': 'dynamic'}
    """
    return {
        key: value
        for key, value in settings.items()
        if value.upper() in _VALUES.get(key, frozenset())
    }
