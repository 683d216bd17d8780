"""The clauses that several statements share: REFRESH, freshness, properties, column lists.

It refuses cron expressions and time zones that nothing could be scheduled by.
"""

from __future__ import annotations

import difflib
import re
import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime

from cachemgr.cache_spec import Freshness, RefreshPolicy
from cachemgr.ddl.cursor import Cursor, unit_seconds
from cachemgr.ddl.statements import Properties
from cachemgr.ddl.text import Kind, Tok
from cachemgr.vocabulary import FreshnessKind, RefreshMode
from scheduler.triggers import (
    Cron,
    Every,
    OnCommit,
    OnDemand,
    TargetLag,
    Trigger,
    is_cron_field,
    next_fire,
)

_CRON_FIELDS = (
    ("minute", "0-59, as in */15"),
    ("hour", "0-23, as in 6 or 8-18"),
    ("day of month", "1-31, as in 1 or 1,15"),
    ("month", "1-12 or jan-dec"),
    ("day of week", "0-7 (0 and 7 are Sunday) or sun-sat, as in mon-fri"),
)
_CRON_EXAMPLE = "'0 6 * * mon-fri' (minute, hour, day of month, month, day of week)"
_ANY_MOMENT = datetime(2024, 1, 1, tzinfo=UTC)
_INTERVAL = "INTERVAL 15 MINUTES"
_QUOTED_INTERVAL = re.compile(r"\s*(\S+)(?:\s+([A-Za-z]+))?\s*")


def refresh_policy(cur: Cursor) -> RefreshPolicy:
    """Read what follows REFRESH: a trigger and, maybe, a mode.

    Args:
        cur: After REFRESH.

    Returns:
        The policy; its mode is AUTO if none is given.

    Raises:
        StatementError: The trigger is missing or wrong.
    """
    trigger = _trigger(cur)
    return RefreshPolicy(trigger, refresh_mode(cur) or RefreshMode.AUTO)


def refresh_mode(cur: Cursor) -> RefreshMode | None:
    """Read a refresh mode if there is one.

    Args:
        cur: Where it may stand.

    Returns:
        The mode, or None.
    """
    if cur.accept("AUTO"):
        return RefreshMode.AUTO
    if cur.accept("FULL"):
        return RefreshMode.FULL
    if cur.accept("INCREMENTAL"):
        return RefreshMode.INCREMENTAL_ONLY if cur.accept("ONLY") else RefreshMode.INCREMENTAL
    return None


def max_staleness(cur: Cursor) -> Freshness:
    """Read what follows MAX: `STALENESS UNLIMITED` or `STALENESS INTERVAL n unit`.

    Args:
        cur: After MAX.

    Returns:
        The freshness.

    Raises:
        StatementError: It is neither.
    """
    cur.expect("STALENESS")
    if cur.accept("UNLIMITED"):
        return Freshness(FreshnessKind.UNLIMITED)
    if cur.accept("INTERVAL", label=_INTERVAL) is None:
        raise cur.fail()
    tok = cur.peek()
    if tok.kind is not Kind.STRING:
        return Freshness(FreshnessKind.MAX_STALENESS, cur.duration("15 MINUTES"))
    # INTERVAL '5' MINUTES and INTERVAL '5 minutes' are Spark's own spellings.
    match = _QUOTED_INTERVAL.fullmatch(tok.text)
    if match is None:
        raise cur.fail("an interval is one number and one unit", (_INTERVAL,))
    factor = unit_seconds(match[2]) if match[2] else None
    if match[2] and factor is None:
        raise cur.fail(f"unknown unit {match[2]}", ("SECONDS", "MINUTES", "HOURS", "DAYS"))
    number = cur.whole_number(match[1], _INTERVAL)
    seconds = cur.bounded(number * factor, tok) if factor else cur.seconds(number, tok)
    return Freshness(FreshnessKind.MAX_STALENESS, seconds)


def properties(cur: Cursor) -> Properties:
    """Read what follows TBLPROPERTIES: `('key' = 'value', …)`.

    Args:
        cur: After TBLPROPERTIES.

    Returns:
        Keys and values in the order given, all as strings.

    Raises:
        StatementError: The list is empty or malformed, or a key stands in it twice.
    """
    found: dict[str, str] = {}

    def one() -> None:
        tok = cur.peek()
        if tok.kind is Kind.STRING:
            key = cur.string("'key'")
        else:
            key = ".".join(cur.dotted(16, "property key"))
        if key in found:
            raise cur.fail(f"the property {key} is given twice", (), tok)
        cur.accept("=", label="=")
        found[key] = _property_value(cur)

    _bracketed(cur, one)
    return tuple(found.items())


def column_list(cur: Cursor) -> tuple[str, ...]:
    """Read `(col, …)`.

    Args:
        cur: Before the bracket.

    Returns:
        The columns in order.

    Raises:
        StatementError: The list is empty or malformed, or a column stands in it twice.
    """
    found: dict[str, str] = {}

    def one() -> None:
        tok = cur.peek()
        column = cur.identifier("column")
        if cur.sees("."):
            raise cur.fail("a column of the select's output has no qualifier", (",", ")"))
        if column.lower() in found:
            raise cur.fail(f"the column {column} is given twice", (), tok)
        found[column.lower()] = column

    _bracketed(cur, one)
    return tuple(found.values())


def location(cur: Cursor) -> str:
    """Read what follows LOCATION.

    Args:
        cur: After LOCATION.

    Returns:
        The URI or path.

    Raises:
        StatementError: It is no string, or empty.
    """
    tok = cur.peek()
    uri = cur.string("'uri'")
    if not uri.strip():
        raise cur.fail("the location is empty", ("'uri' of a folder for this cache alone",), tok)
    return uri


def _bracketed(cur: Cursor, one: Callable[[], None]) -> None:
    cur.expect("(")
    one()
    while not cur.accept(")"):
        cur.expect(",")
        one()


def _property_value(cur: Cursor) -> str:
    tok = cur.peek()
    if tok.kind is Kind.STRING:
        return cur.string("'value'")
    if tok.kind is Kind.NUMBER:
        return cur.advance().text
    if cur.accept("-", label=""):
        if cur.peek().kind is not Kind.NUMBER:
            raise cur.fail(None, ("a number",))
        return "-" + cur.advance().text
    for word in ("TRUE", "FALSE"):
        if cur.accept(word, label=""):
            return word.lower()
    for label in ("'value'", "a number", "TRUE", "FALSE"):
        cur.tried(label)
    raise cur.fail()


def _trigger(cur: Cursor) -> Trigger:
    if cur.accept("ON", label="ON DEMAND"):
        if cur.accept("DEMAND"):
            return OnDemand()
        cur.expect("COMMIT")
        if cur.accept("AT", label="AT MOST EVERY"):
            cur.expect("MOST", "EVERY")
            return OnCommit(cur.duration("5 MINUTES"))
        return OnCommit()
    cur.tried("ON COMMIT")
    if cur.accept("TARGET", label="TARGET LAG"):
        cur.expect("LAG")
        return TargetLag(cur.duration("15 MINUTES"))
    if cur.accept("EVERY"):
        return Every(cur.duration("1 HOUR"))
    if cur.accept("CRON"):
        return _cron(cur)
    raise cur.fail()


def _cron(cur: Cursor) -> Cron:
    tok = cur.peek()
    expression = cur.string(_CRON_EXAMPLE)
    _check_cron(cur, tok, expression)
    if not cur.accept("AT", label="AT TIME ZONE"):
        return Cron(expression)
    cur.expect("TIME", "ZONE")
    tok = cur.peek()
    zone = cur.string("'Europe/Berlin'")
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        near = difflib.get_close_matches(zone, sorted(zoneinfo.available_timezones()), n=1)
        expected = near or ["'UTC' or a region such as 'Europe/Berlin'"]
        raise cur.fail(f"unknown time zone '{zone}'", expected, tok) from error
    return Cron(expression, zone)


def _check_cron(cur: Cursor, tok: Tok, expression: str) -> None:
    fields = expression.split()
    if len(fields) != len(_CRON_FIELDS):
        raise cur.fail(
            f"a cron expression has 5 fields, this has {len(fields)}", (_CRON_EXAMPLE,), tok
        )
    for index, (label, accepted) in enumerate(_CRON_FIELDS):
        value = fields[index]
        if not is_cron_field(index, value):
            raise cur.fail(
                f"the {label} field '{value[:40]}' of the cron expression is wrong",
                (f"{label} {accepted}", _CRON_EXAMPLE),
                tok,
            )
    if not _ever_fires(expression):
        raise cur.fail(
            f"the cron expression {expression!r} names no day that exists", (_CRON_EXAMPLE,), tok
        )


def _ever_fires(expression: str) -> bool:
    try:
        return next_fire(Cron(expression), _ANY_MOMENT) is not None
    except ValueError:
        return False
