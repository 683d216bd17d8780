"""What is computed over held rows is what Spark computes: each class of expressions on the list,
over values at the edges of their types, and random queries."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cachemgr.delta.tables import run_select
from tests.harness.local.grammar import COLUMNS
from tests.harness.local.judge import Judge, Judged
from tests.harness.local.run import fuzz

pytestmark = pytest.mark.spark

_LIST: Final = Path(__file__).parents[3] / "cachemgr" / "jvm" / "java" / "local" / "Allowed.java"
_NUMBERS: Final = ("t", "h", "i", "l", "p", "q", "f")
_DATES: Final = ("d", "CAST(z AS DATE)", "CAST(n AS DATE)")
_ALL: Final = tuple(COLUMNS)
_TOGETHER: Final = 12


def _each(template: str, columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(template.format(column) for column in columns)


def _pairs(operator: str) -> tuple[str, ...]:
    return tuple(f"{a} {operator} {b}" for a in _NUMBERS for b in ("t", "i", "p", "f"))


def _compared(operator: str) -> tuple[str, ...]:
    literals = ((name, edge) for name, (_, edges) in COLUMNS.items() for edge in edges)
    return tuple(f"{name} {operator} {edge}" for name, edge in literals)


_CASTS: Final = tuple(
    f"CAST({name} AS {to})"
    for name, to in [
        *((n, to) for n in _NUMBERS for to in ("INT", "TINYINT", "DECIMAL(9,1)", "STRING")),
        *((n, to) for n in "dzn" for to in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "STRING")),
        *(("s", to) for to in ("INT", "DATE", "TIMESTAMP", "DOUBLE", "BOOLEAN", "DECIMAL(9,1)")),
        ("b", "INT"),
        ("b", "STRING"),
        ("z", "BIGINT"),
    ]
)  # fmt: skip

# By the class: outputs over the table's columns in which Spark's plan has it.
EXPRESSIONS: Final[dict[str, tuple[str, ...]]] = {
    "Literal": ("i + 12", "coalesce(s, 'x')"),
    "AttributeReference": _ALL,
    "Alias": ("upper(s)",),
    "Cast": _CASTS,
    "And": ("b AND i > 0", "i > 0 AND s > 'a'"),
    "Or": ("b OR i > 0", "i > 0 OR s > 'a'"),
    "Not": ("NOT b", "s <> 'a'"),
    "EqualTo": _compared("="),
    "EqualNullSafe": (*_compared("<=>"), "s <=> upper(s)"),
    "LessThan": _compared("<"),
    "LessThanOrEqual": _compared("<="),
    "GreaterThan": _compared(">"),
    "GreaterThanOrEqual": _compared(">="),
    "In": ("i IN (1, 12, NULL)", "s IN ('a', 'A')", "d IN (DATE'2024-02-29', d)", "p IN (1.5, 0)"),
    "InSet": (f"i IN ({', '.join(map(str, range(14)))})",
              f"s IN ({', '.join(repr(chr(97 + n)) for n in range(14))})"),
    "IsNull": _each("{} IS NULL", _ALL),
    "IsNotNull": _each("{} IS NOT NULL", _ALL),
    "If": ("if(b, i, h)", "if(s > 'a', s, NULL)"),
    "CaseWhen": ("CASE WHEN b THEN i WHEN s = 'a' THEN t END", "CASE s WHEN 'a' THEN 1 END"),
    "Coalesce": ("coalesce(s, upper(s))", "coalesce(i, h, 0)", "coalesce(z, n)"),
    "Greatest": ("greatest(i, h, t)", "greatest(s, 'a')", "greatest(p, 1.5)", "greatest(d, z)"),
    "Least": ("least(i, h, t)", "least(s, 'a')", "least(f, 0.0D)"),
    "Add": _pairs("+"),
    "Subtract": _pairs("-"),
    "Multiply": _pairs("*"),
    "Divide": (*_each("{} / 7", _NUMBERS), *_pairs("/")),
    "IntegralDivide": ("i div 7", "q div 0.3", "l div i", "p div q"),
    "Remainder": (*_each("{} % 7", _NUMBERS), *_pairs("%")),
    "Pmod": (*_each("pmod({}, 7)", _NUMBERS), "pmod(l, i)", "pmod(t, h)"),
    "UnaryMinus": _each("-{}", _NUMBERS),
    "Abs": _each("abs({})", _NUMBERS),
    "Round": _each("round({}, 1)", _NUMBERS) + _each("round({}, -1)", ("i", "l", "p")),
    "BRound": _each("bround({}, 1)", _NUMBERS),
    "Ceil": ("ceil(f)", "ceil(p)"),
    "Floor": ("floor(f)", "floor(p)"),
    "RoundCeil": ("ceil(p, 1)",),
    "RoundFloor": ("floor(p, 1)",),
    "Year": _each("year({})", _DATES),
    "Quarter": _each("quarter({})", _DATES),
    "Month": _each("month({})", _DATES),
    "DayOfMonth": _each("day({})", _DATES),
    "DayOfWeek": _each("dayofweek({})", _DATES),
    "WeekDay": _each("weekday({})", _DATES),
    "DayOfYear": _each("dayofyear({})", _DATES),
    "WeekOfYear": _each("weekofyear({})", _DATES),
    "Hour": ("hour(z)", "hour(n)"),
    "Minute": ("minute(z)", "minute(n)"),
    "Second": ("second(z)", "second(n)"),
    "DateAdd": ("date_add(d, t)", "date_add(d, 400)"),
    "DateSub": ("date_sub(d, t)", "date_sub(d, 1)"),
    "DateDiff": ("datediff(d, DATE'2024-02-29')", "datediff(CAST(z AS DATE), d)"),
    "AddMonths": ("add_months(d, 1)", "add_months(d, t)"),
    "LastDay": ("last_day(d)",),
    "TruncDate": _each("trunc(d, '{}')", ("YEAR", "QUARTER", "MM", "WEEK")),
    "TruncTimestamp": _each("date_trunc('{}', z)", ("YEAR", "MM", "WEEK", "DAY", "HOUR", "SECOND")),
    "Upper": ("upper(s)",),
    "Lower": ("lower(s)",),
    "Substring": ("substring(s, 2, 2)", "substring(s, -1)", "substring(s, t, i)"),
    "Concat": ("concat(s, s, '!')",),
    "Length": ("length(s)",),
    "StringTrim": ("trim(s)", "trim(BOTH 'a' FROM s)"),
    "StringTrimLeft": ("ltrim(s)",),
    "StringTrimRight": ("rtrim(s)",),
    "StartsWith": ("startswith(s, 'a')", "s LIKE 'a%'"),
    "EndsWith": ("endswith(s, ' ')", "s LIKE '%b'"),
    "Contains": ("contains(s, '1')", "s LIKE '%a%'"),
}  # fmt: skip
# What stands in no query's plan, but in the steps of aggregates, in Spark's own copies of plans, or
# where `show()` puts it.
ELSEWHERE: Final = {
    "BoundReference", "KnownNotNull", "KnownNullable", "ToPrettyString", "CheckOverflow",
    "CheckOverflowInSum", "DecimalDivideWithOverflowCheck", "DecimalAddNoOverflowCheck",
    "MakeDecimal", "UnscaledValue", "UnaryPositive",
}  # fmt: skip
AGGREGATES: Final[dict[str, tuple[str, ...]]] = {
    "Sum": _each("SUM({})", ("t", "h", "i", "p", "q", "f")),
    "Count": ("COUNT(*)", "COUNT(s)", "COUNT(i, s)", "COUNT(*) FILTER (WHERE i > 0)"),
    "Min": _each("MIN({})", tuple("bthilpqdzns")),
    "Max": _each("MAX({})", tuple("bthilpqdzns")),
    "Average": _each("AVG({})", ("t", "h", "i", "l", "p", "q", "f")),
}  # fmt: skip


@pytest.fixture(scope="module")
def judge(spark) -> Iterator[Judge]:
    found = Judge(spark.newSession(), 46)
    yield found
    found.close()


def listed(name: str) -> set[str]:
    """The names of a list in the Java source."""
    source = _LIST.read_text()
    start = source.index(f"{name} = Set.of(")
    return set(re.findall(r'"(\w+)"', source[start : source.index(";", start)]))


def classes(judge: Judge, text: str) -> set[str]:
    """The classes of the expressions in Spark's plan of a query."""
    frame = run_select(judge._spark, text, {"t0": judge._pin})
    plan = json.loads(frame._jdf.queryExecution().optimizedPlan().toJSON())
    found = re.findall(
        r'"class": ?"org\.apache\.spark\.sql\.catalyst\.expressions\.([\w.]+)"', json.dumps(plan)
    )
    return {name.removeprefix("aggregate.") for name in found}


def test_each_class_on_the_list_has_its_cases() -> None:
    assert listed("EXPRESSIONS") == EXPRESSIONS.keys() | ELSEWHERE
    assert listed("AGGREGATES") == AGGREGATES.keys()


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("codegen", [True, False])
@pytest.mark.parametrize("name", [*EXPRESSIONS, *AGGREGATES])
def test_edge_values(judge: Judge, name: str, codegen: bool, ansi: str) -> None:
    judge.set(
        {
            "spark.sql.ansi.enabled": ansi,
            "spark.sql.codegen.wholeStage": str(codegen).lower(),
            "spark.sql.codegen.factoryMode": "FALLBACK" if codegen else "NO_CODEGEN",
            "spark.sql.session.timeZone": "Europe/Berlin",
        }
    )
    texts = (EXPRESSIONS | AGGREGATES)[name]
    computed, found = 0, set()
    for some in [texts[i : i + _TOGETHER] for i in range(0, len(texts), _TOGETHER)]:
        # those that raise an error in some row would hide what the others give
        asked = _judged(judge, some) or [
            j for text in some for j in _judged(judge, (text,)) or [None]
        ]
        computed += sum(one is not None for one in asked)
        found |= classes(judge, _queries(some)[0])
    assert computed > 0 and name in found


def _queries(texts: tuple[str, ...]) -> list[str]:
    outputs = ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts))
    rows = f"SELECT {outputs} FROM t0"
    aggregates = re.match(r"(SUM|COUNT|MIN|MAX|AVG)\(", texts[0])
    return [rows, f"SELECT b, {outputs} FROM t0 GROUP BY b"] if aggregates else [rows]


def _judged(judge: Judge, texts: tuple[str, ...]) -> list[Judged] | None:
    """How these outputs together were computed; None where Spark raises an error."""
    found = []
    for text in _queries(texts):
        judged = judge.judge(text)
        assert judged is not None and judged.wrong is None, f"{text}: {judged}"
        if judged.raised:
            return None
        assert judged.local, f"{text}: {judged}"
        found.append(judged)
    return found


def test_random_queries(spark) -> None:
    told: Counter[str] = Counter()
    assert fuzz(spark.newSession(), 4600, 120, told) == []
    assert told["local"] > 0.7 * told["asked"] > 50, told
