"""The minors of Spark that are served."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# Those that Delta `DELTA` has a jar for.
MINORS: Final = ("4.0", "4.1", "4.2")
DELTA: Final = "4.4.0"
# Releases before this one worked with it alone, and wrote down none.
BEFORE: Final = "4.2"
SPARK: Final = "spark"
"""Of a cache's context: the minor that has analysed its definition."""
SPARKS: Final = "sparks"
"""Among the facts of a run: the minors that the rows which it published were computed by, with what
`on_java` adds, those of the rows that it added to among them."""

_LATER: Final = " on Java 19 or later"
_ANY: Final = " on any Java"


def minor_of(version: str) -> str:
    """The minor of a version of Spark.

    Args:
        version: As Spark tells it; vendors add to it. What `on_java` and `on_any_java` give is one.

    >>> minor_of("4.2.0-amzn-1"), minor_of("4.2 on Java 19 or later")
    ('4.2', '4.2')
    """
    return ".".join(version.partition(" ")[0].partition("-")[0].split(".")[:2])


def on_java(version: str, java: str) -> str:
    """What is written down of the Spark that computes rows: its minor, and whether its Java is one
    that writes a DOUBLE as text in another way (JDK-4511638).

    Args:
        version: Spark's, as it tells it.
        java: Java's specification.

    >>> on_java("4.2.0", "17"), on_java("4.2.0", "25")
    ('4.2', '4.2 on Java 19 or later')
    """
    first = java.partition(".")[0]
    return minor_of(version) + (_LATER if first.isdecimal() and int(first) >= 19 else "")


def on_any_java(minor: str) -> str:
    """A Spark of which nobody says by which Java it is run.

    Args:
        minor: Its minor.
    """
    return minor + _ANY


def have_one_java(sparks: Iterable[str]) -> bool:
    """Whether some Sparks write a DOUBLE as text alike.

    Args:
        sparks: As `on_java` and `on_any_java` give them.

    >>> have_one_java(["4.1", "4.2"]), have_one_java(["4.2", "4.2 on any Java"])
    (True, False)
    """
    found = {spark.removeprefix(minor_of(spark)) for spark in sparks}
    return len(found) < 2 and _ANY not in found
