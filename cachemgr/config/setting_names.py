"""Names of settings: the prefix of ours, and the name most likely meant by one that is misspelt."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

PREFIX: Final = "spark.cachemgr."


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was most likely meant.

    Args:
        name: One that does not exist.
        names: Those that do.

    Returns:
        The one that `name` is the beginning of, else the closest in spelling; None if none is
        close. Case does not count.

    >>> nearest("spark.cachemgr.metastore", ["spark.cachemgr.mode", "spark.cachemgr.metastore.url"])
    'spark.cachemgr.metastore.url'
    """
    names = tuple(names)
    # what all begin with would make any two alike
    prefix = PREFIX if all(known.startswith(PREFIX) for known in names) else ""
    spelled = {known.removeprefix(prefix).lower(): known for known in names}
    lower = name.removeprefix(prefix).lower()
    for known in sorted(spelled):
        if lower == known or known.startswith((f"{lower}.", f"{lower}_")):
            return spelled[known]
    close = difflib.get_close_matches(lower, spelled, n=1)
    return spelled[close[0]] if close else None
