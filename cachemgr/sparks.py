"""The minors of Spark that are served."""

from __future__ import annotations

from typing import Final

# Those that Delta `DELTA` has a jar for.
MINORS: Final = ("4.0", "4.1", "4.2")
DELTA: Final = "4.4.0"
# Releases before this one worked with it alone, and wrote down none.
BEFORE: Final = "4.2"
SPARK: Final = "spark"
"""Of a cache's context: the minor that has analysed its definition."""
SPARKS: Final = "sparks"
"""Among the facts of a run: the minors that the rows which it published were computed by, those of
the rows that it added to among them."""


def minor_of(version: str) -> str:
    """The minor of a version of Spark.

    Args:
        version: As Spark tells it; vendors add to it.

    >>> minor_of("4.2.0-amzn-1")
    '4.2'
    """
    return ".".join(version.partition("-")[0].split(".")[:2])
