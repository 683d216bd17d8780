"""Names, literals and clauses as canonical text; `render` puts statements together from them."""

from __future__ import annotations

import re

from cachemgr.cache_spec import Freshness, RefreshPolicy, UnreadableTrigger
from cachemgr.ddl.statements import Properties, QualifiedName
from cachemgr.vocabulary import FreshnessKind
from matcher.render.select import quote as quote_name
from scheduler.triggers import Cron, Every, OnCommit, OnDemand, TargetLag, Trigger

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words with a meaning somewhere near a name: quoted, a reader never has to wonder either.
_KEYWORDS = frozenset(
    """ALL AND ANTI AS AT AUTO BY CLUSTER COMMENT CREATE CROSS DISABLE DISTINCT DROP ENABLE EXISTS
    EXTENDED FALSE FOR FORMAT FROM FULL FUNCTION GROUP IF IN INCREMENTAL INNER IS JOIN LEFT LIKE
    LOCATION MAX NATURAL NOT NULL ON OR ORDER OUTER PARTITIONED PAUSE PRESERVES REFRESH RELATIONAL
    RENAME RESUME RIGHT SELECT SEMI SET STRICT TABLE TBLPROPERTIES TO TRUE UNION USING VALUES WHERE
    WITH""".split()
)
_UNITS = ((86400, "DAY"), (3600, "HOUR"), (60, "MINUTE"), (1, "SECOND"))


def render_name(name: QualifiedName) -> str:
    """Write a name, quoted where it must be.

    Args:
        name: The name.

    Returns:
        Its text.
    """
    return dotted(name.parts)


def quote(text: str) -> str:
    """Write a string literal.

    Args:
        text: The string.

    Returns:
        The literal in single quotes.

    >>> quote("it's")
    "'it\\\\'s'"
    """
    # A backslash before % or _ belongs to a LIKE pattern and is kept by Spark as it stands.
    escaped = re.sub(r"\\(?![%_])", r"\\\\", text).replace("'", "\\'")
    return f"'{escaped}'"


def render_refresh(policy: RefreshPolicy) -> str:
    """Write a REFRESH clause, its mode included.

    Args:
        policy: When and how.

    Returns:
        The clause.

    >>> render_refresh(RefreshPolicy(Every(3600)))
    'REFRESH EVERY 1 HOUR AUTO'
    """
    return f"REFRESH {_trigger(policy.trigger)} {policy.mode.words}"


def render_freshness(freshness: Freshness) -> str:
    """Write a freshness clause.

    Args:
        freshness: The promise.

    Returns:
        The clause.
    """
    if freshness.kind is FreshnessKind.STRICT:
        return "STRICT"
    if freshness.max_staleness_seconds is None:
        return "MAX STALENESS UNLIMITED"
    return f"MAX STALENESS INTERVAL {_duration(freshness.max_staleness_seconds)}"


def render_properties(found: Properties) -> str:
    pairs = ", ".join(f"{quote(key)} = {quote(value)}" for key, value in found)
    return f"TBLPROPERTIES ({pairs})"


def render_columns(columns: tuple[str, ...]) -> str:
    return ", ".join(map(part, columns))


def dotted(parts: tuple[str, ...]) -> str:
    return ".".join(map(part, parts))


def part(part: str) -> str:
    if _PLAIN.fullmatch(part) and part.upper() not in _KEYWORDS:
        return part
    return quote_name(part)


def _trigger(trigger: Trigger | UnreadableTrigger) -> str:
    match trigger:
        case OnDemand():
            return "ON DEMAND"
        case OnCommit(None):
            return "ON COMMIT"
        case OnCommit(seconds) if seconds is not None:
            return f"ON COMMIT AT MOST EVERY {_duration(seconds)}"
        case TargetLag(seconds):
            return f"TARGET LAG {_duration(seconds)}"
        case Every(seconds):
            return f"EVERY {_duration(seconds)}"
        case Cron(expression, zone):
            suffix = "" if zone is None else f" AT TIME ZONE {quote(zone)}"
            return f"CRON {quote(expression)}{suffix}"
        case UnreadableTrigger(why=why):
            raise ValueError(why)
        case _:
            raise TypeError(f"not a trigger: {trigger!r}")


def _duration(seconds: int) -> str:
    size, unit = next(each for each in _UNITS if seconds % each[0] == 0)
    number = seconds // size
    return f"{number} {unit}{'' if number == 1 else 'S'}"
