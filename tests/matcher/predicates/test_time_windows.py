"""`window()` out of what Spark makes of it, by hand and without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from matcher.catalyst.document import Settings
from matcher.catalyst.expr import decode
from matcher.model.expr import Call, Col, Expr
from matcher.predicates.time_windows import Buckets, holds_whole, over, read_window
from matcher.render.select import render_expr
from matcher.sql.parse import parse_statements

SETTINGS = Settings(True, True, "UTC")
TS = Col(0, "ts", "timestamp", True)
MODE = ["NumericEvalContext(ANSI,true)"]
HOUR, FIVE = 3_600_000_000, 300_000_000


def lit(value: int) -> list[Any]:
    return ["l", value, "bigint"]


def op(cls: str, *args: Any, params: Any = MODE, kind: str = "bigint") -> list[Any]:
    return ["f", cls, cls.lower(), list(args), kind, 1, list(params)]


def start(width: int, origin: int, shift: int = 0, time: str = "timestamp") -> list[Any]:
    name = {"timestamp": "TimestampType"}.get(time, "TimestampNTZType")
    micros = op("PreciseTimestampConversion", ["a", 1, "ts", time, 1], params=[name])
    rest = op("Remainder", op("Subtract", micros, lit(origin)), lit(width))
    negative = op("LessThan", rest, lit(0), params=[], kind="boolean")
    last = op("CaseWhen", negative, op("Add", rest, lit(width)), rest, params=[])
    return op("Subtract", op("Subtract", micros, last), lit(shift))


def shown(micros: Any, time: str = "timestamp") -> list[Any]:
    found = op("PreciseTimestampConversion", micros, params=["LongType"], kind=time)
    return op("KnownNullable", found, params=[], kind=time)


def struct(first: Any, last: Any, time: str = "timestamp") -> list[Any]:
    args = [["l", "start", "string"], shown(first, time), ["l", "end", "string"], shown(last, time)]
    kind = f"struct<start:{time},end:{time}>"
    return ["f", "CreateNamedStruct", "named_struct", args, kind, 0, []]


def read(data: list[Any], time: str = "timestamp") -> Expr:
    return decode(data, {1: Col(0, "ts", time, True)}, SETTINGS)


def window(width: int, origin: int = 0, length: int | None = None, **more: Any) -> Expr:
    first = start(width, origin, **more)
    time = more.get("time", "timestamp")
    end = op("Add", first, lit(width if length is None else length))
    return read(struct(first, end, time), time)


def test_what_is_read_as_a_window() -> None:
    assert read_window(window(HOUR)) == Buckets(TS, HOUR, 0)
    assert read_window(window(HOUR, FIVE)) == Buckets(TS, HOUR, FIVE)
    assert read_window(window(HOUR, -FIVE)) == Buckets(TS, HOUR, HOUR - FIVE)
    assert repr(read(shown(start(HOUR, 0)))) == f"field(window($0.ts;{HOUR};0);start)"
    end = op("Add", start(HOUR, 0), lit(HOUR))
    assert repr(read(shown(end))) == f"field(window($0.ts;{HOUR};0);end)"


@pytest.mark.parametrize(
    "found",
    [
        window(HOUR, length=2 * HOUR),
        window(HOUR, shift=HOUR),
        window(HOUR, time="timestamp_ntz"),
        read(struct(start(HOUR, 0), op("Add", start(FIVE, 0), lit(FIVE)))),
        read(struct(op("Add", start(HOUR, 0), lit(HOUR)), start(HOUR, 0))),
        read(start(HOUR, 0)),
    ],
    ids=["overlapping", "shifted", "ntz", "two widths", "end first", "a number"],
)
def test_what_stays_as_it_is(found: Expr) -> None:
    assert read_window(found) is None


def test_which_buckets_lie_in_others() -> None:
    hour = Buckets(TS, HOUR, FIVE)
    assert holds_whole(hour, hour)
    assert holds_whole(hour, Buckets(TS, FIVE, 0))
    assert not holds_whole(hour, Buckets(TS, HOUR, 0))
    assert not holds_whole(hour, Buckets(TS, 2 * FIVE, 0))
    assert not holds_whole(hour, Buckets(TS, 7 * FIVE, 0))
    assert not holds_whole(Buckets(TS, FIVE, 0), hour)
    assert not holds_whole(hour, Buckets(Col(0, "other", "timestamp"), FIVE, 0))


def test_it_is_written_without_a_window() -> None:
    found = window(HOUR)
    assert isinstance(found, Call)
    text = render_expr(over(found, TS), lambda col: col.name)
    assert "TIMESTAMP_MICROS(UNIX_MICROS(ts) - PMOD(UNIX_MICROS(ts) - 0L, 3600000000L))" in text
    assert "WINDOW" not in text


def test_the_parser_takes_the_function_for_one() -> None:
    text = "SELECT v FROM ev GROUP BY window(ts, '1 hour'), v WINDOW w AS (PARTITION BY v)"
    (found,) = parse_statements(text)
    assert len(found.args["group"].expressions) == 2 and found.args["windows"]
