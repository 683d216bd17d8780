"""Values of the settings that may change rows, as Spark reads them: spelling, old names, defaults.

`spark_defaults.json` holds for each of them how Spark reads it and its default in the version that
we are built for; `python -m tests.config.spark_registry` writes it anew, and a test compares it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

_READ: Final[Mapping[str, Mapping[str, str | None]]] = json.loads(
    (files(__package__) / "spark_defaults.json").read_text(encoding="utf-8")
)
_HADOOP: Final = {"parquet.strings.signed-min-max.enabled": "false"}
_DEFAULTS: Final[Mapping[str, str | None]] = _HADOOP | {
    key: default for group in _READ.values() for key, default in group.items()
}
_BOOLEANS: Final = frozenset({*_READ["booleans"], *_HADOOP})
_NUMBERS: Final = frozenset(_READ["numbers"])
_WORDS: Final = frozenset(_READ["words"])  # read without regard to case
# Names under which Spark still reads a setting that has another one now.
OLD_NAMES: Final[Mapping[str, str]] = {
    "spark.sql.legacy.parquet.datetimeRebaseModeInRead": (
        "spark.sql.parquet.datetimeRebaseModeInRead"
    ),
}
_FALLS_BACK: Final = re.compile(r"<value of (.+)>")
_WHOLE: Final = re.compile(r"[+-]?\d+")


def default_in_spark(key: str) -> str | None:
    """The default of a setting that may change rows, in the Spark that we are built for.

    Args:
        key: The setting.

    Returns:
        The default; None for a setting without one, and for one that is not known.

    >>> default_in_spark("spark.sql.mapKeyDedupPolicy")
    'EXCEPTION'
    """
    return _DEFAULTS.get(key)


def is_of_spark(key: str) -> bool:
    """Whether the newest Spark that is served has such a setting, and it may change rows.

    Args:
        key: The setting.
    """
    return key in _DEFAULTS


def falls_back_to(default: str | None) -> str | None:
    """The setting whose value stands for one that is not set, if Spark's default says so.

    >>> falls_back_to("<value of spark.sql.parquet.filterPushdown.date>")
    'spark.sql.parquet.filterPushdown.date'
    """
    found = None if default is None else _FALLS_BACK.fullmatch(default)
    return None if found is None else found[1]


@lru_cache(maxsize=4096)
def as_read(key: str, value: str) -> str:
    """A value in the one spelling for all that Spark reads alike.

    Args:
        key: The setting.
        value: Its value as it was set.

    Returns:
        The spelling. Of a setting that is not known only TRUE and FALSE are taken for words that
        are read without regard to case.

    >>> as_read("spark.sql.ansi.enabled", " TRUE")
    'true'
    >>> as_read("spark.sql.timestampType", "timestamp_ntz")
    'TIMESTAMP_NTZ'
    """
    if key in _WORDS:
        return value.upper()
    bare = value.strip()
    if key in _NUMBERS:
        return str(int(bare)) if _WHOLE.fullmatch(bare) else bare
    if key in _BOOLEANS or key not in _DEFAULTS:
        return bare.lower() if bare.lower() in ("true", "false") else value
    return value
