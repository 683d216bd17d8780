# ruff: noqa: E501 - tables of SQL read better unbroken
"""Each operator, function, cast and aggregate that the matcher knows, as either door reads it, is
written back as SQL, run by Spark, and gives the value and the type of the original; or is refused.

What there is comes from the code's own tables: a new entry without a sample fails here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from pyspark.errors import PySparkException

from cachemgr.spark.plans import capture_query
from matcher.catalyst import aggregates as catalyst_aggregates
from matcher.catalyst.expr import ALIASES, OPERATORS
from matcher.catalyst.reader import walk_blocks
from matcher.model.errors import MatcherError
from matcher.model.expr import Agg, Call, Col, Expr, Lit, walk
from matcher.model.functions import FUNCTIONS
from matcher.render import select
from matcher.render.select import NotRenderable, quote, render_expr
from matcher.sql.expressions import aggregates as text_aggregates
from matcher.sql.expressions.functions import _EXTRACT
from matcher.sql.reader import TextSettings, parse_query
from matcher.sql.schema import Schema

pytestmark = pytest.mark.spark

COLUMNS = (
    "a INT, b BIGINT, h SMALLINT, y TINYINT, f FLOAT, w DOUBLE, p DECIMAL(10,2), s STRING, t STRING, "
    "d DATE, e DATE, at TIMESTAMP, wall TIMESTAMP_NTZ, o BOOLEAN, raw BINARY, xs ARRAY<INT>, "
    "xss ARRAY<ARRAY<INT>>, r STRUCT<x: INT, y: STRING>"
)
ROWS = """VALUES
 (7, 3BL, 2S, 1Y, 1.5F, 2.5D, 12.34BD, ' Abc-abc ', 'abc', DATE'2021-01-02', DATE'2020-12-30', TIMESTAMP'2024-02-29 23:59:58.123456', TIMESTAMP_NTZ'2024-02-29 01:02:03', true, X'6162', array(3, 1, NULL, 3), array(array(1), array(2, 3)), named_struct('x', 1, 'y', 'q')),
 (-2, 5BL, -3S, 4Y, -0.0F, 0.25D, -0.50BD, 'x,y;z', 'y', DATE'1969-12-31', DATE'2024-02-29', TIMESTAMP'1969-12-31 12:30:00', TIMESTAMP_NTZ'1500-07-09 00:00:00', false, X'', array(), array(array()), named_struct('x', NULL, 'y', 'Q')),
 (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""".replace(
    "BL,", "L,"
)

FUNCTION_SAMPLES: dict[str, tuple[str, ...]] = {
    **{n: (f"{n}(d)", f"{n}(at)") for n in "year quarter month day dayofmonth dayofweek weekday dayofyear weekofyear last_day unix_date".split() if n != "unix_date"},
    "unix_date": ("unix_date(d)",),
    "yearofweek": ("extract(YEAROFWEEK FROM d)", "date_part('YEAROFWEEK', at)"),
    **{n: (f"{n}(at)", f"{n}(wall)") for n in ("hour", "minute", "second")},
    "trunc": ("trunc(d, 'MM')", "trunc(d, 'week')"), "date_trunc": ("date_trunc('HOUR', at)", "date_trunc('week', d)"),
    "date_add": ("date_add(d, 3)", "date_add(d, h)"), "date_sub": ("date_sub(d, 3)",), "datediff": ("datediff(d, e)",),
    "add_months": ("add_months(d, 1)",), "next_day": ("next_day(d, 'MON')",), "months_between": ("months_between(d, e, true)", "months_between(at, d, false)"),
    "date_format": ("date_format(at, 'yyyy-MM')",), "make_date": ("make_date(2000, y, y)",),
    "to_timestamp_ltz": ("to_timestamp(date_format(at, 'yyyy-MM-dd'), 'yyyy-MM-dd')",), "to_timestamp_ntz": ("to_timestamp_ntz(date_format(at, 'yyyy-MM-dd'), 'yyyy-MM-dd')",),
    "from_unixtime": ("from_unixtime(b, 'yyyy-MM-dd HH:mm')",), "unix_timestamp": ("unix_timestamp(at, 'yyyy')",), "to_unix_timestamp": ("to_unix_timestamp(at, 'yyyy')",),
    **{n: (f"{n}(s)",) for n in "upper lower trim ltrim rtrim length char_length reverse initcap ascii md5 crc32".split() if n not in ("md5", "crc32")},
    "md5": ("md5(raw)",), "crc32": ("crc32(raw)",),
    "substring": ("substring(s, 2, 3)", "substring(s, 2)", "substr(s, -3)"), "concat": ("concat(s, t)", "concat(s, 'a', t)", "s || t"), "concat_ws": ("concat_ws('-', s, t)",),
    "replace": ("replace(s, 'a', 'b')",), "lpad": ("lpad(s, 12, 'xy')",), "rpad": ("rpad(s, 2, 'x')",), "instr": ("instr(s, t)",), "locate": ("locate('b', s)", "locate('b', s, 4)", "position('b' IN s)"),
    "repeat": ("repeat(t, 2)",), "translate": ("translate(s, 'ab', 'xy')",), "split": ("split(s, ',')", "split(s, ',', 2)"),
    "regexp_replace": ("regexp_replace(s, 'b.', '\\\\\\\\')", "regexp_replace(s, 'b', 'z', 4)"), "regexp_extract": ("regexp_extract(s, '(b)(c)', 2)", "regexp_extract(s, '(b)')"),
    "left": ("left(s, 3)",), "right": ("right(s, 3)",), "substring_index": ("substring_index(s, '-', 1)",),
    "startswith": ("startswith(s, 'x')", "s LIKE 'x%'"), "endswith": ("endswith(s, t)", "s LIKE '%z'"), "contains": ("contains(s, t)", "s LIKE '%b%'"),
    "abs": ("abs(a)", "abs(p)", "abs(w)"), "ceil": ("ceil(w)", "ceil(p)", "ceiling(w)"), "floor": ("floor(w)", "floor(p)"),
    "round": ("round(w)", "round(p, 1)", "round(a, -1)"), "bround": ("bround(w)", "bround(p, 1)"), "sqrt": ("sqrt(b)",), "power": ("power(w, 2)", "pow(a, 2)"),
    "exp": ("exp(w)",), "ln": ("ln(b)",), "log10": ("log10(b)",), "log2": ("log2(b)",), "sign": ("sign(w)", "signum(p)"), "signum": ("signum(a)",),
    "greatest": ("greatest(a, b)", "greatest(d, e)", "greatest(w, f, a)"), "least": ("least(a, b)", "least(s, t)"),
    "hll_sketch_estimate": ("hll_sketch_estimate(hll_sketch_agg(a))",),
    "kll_sketch_get_n_bigint": ("kll_sketch_get_n_bigint(kll_sketch_agg_bigint(b))",), "kll_sketch_get_n_double": ("kll_sketch_get_n_double(kll_sketch_agg_double(w))",),
    "kll_sketch_get_quantile_bigint": ("kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(b), 0.5D)",), "kll_sketch_get_quantile_double": ("kll_sketch_get_quantile_double(kll_sketch_agg_double(w), 0.5D)",),
    "size": ("size(xs)", "cardinality(xss)"), "sort_array": ("sort_array(xs)", "sort_array(xs, false)"), "array_distinct": ("array_distinct(xs)",), "flatten": ("flatten(xss)",),
    "pmod": ("pmod(a, b)",), "nullif": ("nullif(a, 7)", "nullif(s, t)"), "hash": ("hash(a, s, d)",), "xxhash64": ("xxhash64(a, s)",), "isnan": ("isnan(w)",), "nanvl": ("nanvl(w, f)",),
}  # fmt: skip
OPERATOR_SAMPLES: dict[str, tuple[str, ...]] = {
    "eq": ("a = b", "s = t"), "nseq": ("a <=> b", "s <=> NULL"), "ne": ("a <> b",), "lt": ("a < b", "d < at"), "le": ("a <= p",), "gt": ("s > t",), "ge": ("w >= f",),
    "and": ("a > 1 AND o",), "or": ("a > 1 OR o OR b = 2",), "not": ("NOT o", "NOT (a IN (1, 2))"), "isnull": ("s IS NULL",), "isnotnull": ("s IS NOT NULL",),
    "in": ("a IN (7, 8)", "s NOT IN ('a', 'it''s')", "d IN (DATE'2021-01-02', NULL)"), "rlike": ("s RLIKE '^x'", "t RLIKE s"),
    "startswith": ("s LIKE 'x%'",), "endswith": ("s LIKE '%z'",), "contains": ("s LIKE '%b%'",), "like": ("s LIKE 'x_y%'", "s LIKE 'x!_%' ESCAPE '!'"),
    "case": ("CASE WHEN a > 1 THEN s WHEN o THEN t ELSE 'z' END", "CASE a WHEN 7 THEN 1 END", "IF(o, a, b)"), "coalesce": ("coalesce(a, b, 0)", "nvl(s, t)", "ifnull(a, 1)"),
    "add": ("a + b", "p + 1.5", "w + f"), "sub": ("a - b", "p - a"), "mul": ("a * h", "p * p"), "div": ("a / b", "p / 3", "w / 2"), "idiv": ("a DIV b",), "mod": ("a % b", "p % 0.3"), "neg": ("-a", "-p"),
    "try_add": ("try_add(a, b)",), "try_subtract": ("try_subtract(a, b)",), "try_multiply": ("try_multiply(a, b)",), "try_divide": ("try_divide(a, b)", "try_divide(p, a)"), "try_mod": ("try_mod(a, b)",),
    "cast": ("CAST(a AS STRING)",), "try_cast": ("TRY_CAST(s AS INT)",), "field": ("r.x", "r.y"), "window": ("window(at, '10 minutes')", "window(at, '1 day').start"),
    "grouping": (), "grouping_id": (),  # GROUPING SETS alone hold them: tests/matcher/fixtures/grouping_sets_queries.sql
}  # fmt: skip
AGGREGATE_SAMPLES: dict[str, tuple[str, ...]] = {
    "sum": ("sum(a)", "sum(p)", "sum(w)", "sum(DISTINCT a)", "sum(a) FILTER (WHERE o)"), "avg": ("avg(a)", "avg(p)", "avg(DISTINCT b)"), "try_sum": ("try_sum(a)",), "try_avg": ("try_avg(p)",),
    "count": ("count(*)", "count(a)", "count(a, b)", "count(DISTINCT a, s)", "count_if(o)"), "min": ("min(s)", "bool_and(o)", "every(o)"), "max": ("max(d)", "bool_or(o)", "some(o)", "any(o)"),
    "bit_and": ("bit_and(a)",), "bit_or": ("bit_or(b)",), "bit_xor": ("bit_xor(h)",), "max_by": ("max_by(s, a)",), "min_by": ("min_by(s, b)",),
    "first": ("first(1)", "first(a, true)", "any_value(a) IGNORE NULLS"), "last": ("last(1)", "last(a, true)"),
    "stddev_samp": ("stddev(a)", "std(w)"), "stddev_pop": ("stddev_pop(a)",), "var_samp": ("variance(a)",), "var_pop": ("var_pop(a)",),
    "covar_pop": ("covar_pop(a, b)",), "covar_samp": ("covar_samp(a, b)",), "corr": ("corr(a, b)",), "skewness": ("skewness(a)",), "kurtosis": ("kurtosis(a)",),
    "collect_set": ("sort_array(collect_set(a))",), "approx_count_distinct": ("approx_count_distinct(a)", "approx_count_distinct(a, 0.1)"),
    "hll_sketch_agg": ("hll_sketch_agg(a)",), "hll_union_agg": ("hll_union_agg(CAST(NULL AS BINARY))",), "percentile": ("percentile(a, 0.5)", "median(b)"),
    **{f"kll_sketch_agg_{kind}": (f"kll_sketch_get_n_{kind}(kll_sketch_agg_{kind}({column}))",) for kind, column in (("bigint", "b"), ("double", "w"))}, "kll_sketch_agg_float": ("kll_sketch_agg_float(f)",),
    **{f"kll_merge_agg_{kind}": (f"kll_merge_agg_{kind}(CAST(NULL AS BINARY))",) for kind in ("bigint", "float", "double")},
}  # fmt: skip
# Spark puts something else in their place before the hook sees it, so only texts hold them.
ONLY_IN_TEXTS = {"left", "right", "nullif", "char_length", "locate", "signum", "dayofmonth"}
# Both doors have another name for them, or an operator.
OTHER_NAMES = {
    "char_length": "length", "dayofmonth": "day", "signum": "sign", "nullif": "case", "left": "substring",
}  # fmt: skip
TYPES = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(3,0)", "string", "date", "timestamp", "timestamp_ntz", "boolean", "binary")  # fmt: skip


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory) -> Iterator[Any]:
    """A session in which `known` has a column of each type."""
    session = spark.newSession()
    place = tmp_path_factory.mktemp("known") / "t"
    session.sql(f"CREATE TABLE known ({COLUMNS}) USING delta LOCATION '{place}'")
    session.sql(f"INSERT INTO known {ROWS}")
    yield session
    session.sql("DROP TABLE known")


def by_catalyst(session: Any, text: str) -> list[Expr]:
    """The expressions of the SELECT's block as the hook reads them; empty where there is none."""
    found: list[Any] = []
    try:
        document = capture_query(session, text).document
    except PySparkException:  # aggregates and rows in one SELECT, two windows
        return []

    def visit(located: Any) -> bool:
        found.append(located)
        return True

    walk_blocks(document, visit)
    if not found or found[0].block is None:
        return []
    return [output.expr for output in found[0].block.outputs]


def by_text(text: str) -> list[Expr]:
    """The same of the text door; empty where it refuses."""
    try:
        (root,) = parse_query(
            text, Schema.parse(f"CREATE TABLE known ({COLUMNS})"), TextSettings()
        ).roots
    except MatcherError:
        return []
    return [] if root.block is None else [output.expr for output in root.block.outputs]


def names(exprs: Iterable[Expr]) -> set[str]:
    """The names of all calls and aggregates."""
    parts = [part for expr in exprs for part in walk(expr)]
    return {p.op for p in parts if isinstance(p, Call)} | {
        p.func for p in parts if isinstance(p, Agg)
    }


def written(expr: Expr) -> str | None:
    """The expression as SQL, None where that is refused."""
    try:
        return render_expr(expr, lambda column: quote(column.name))
    except NotRenderable:
        return None


def check(session: Any, samples: Sequence[str]) -> dict[str, set[str]]:
    """Hold each sample to what the doors make of it; gives the names that were run, by door."""
    seen: dict[str, set[str]] = {"plan": set(), "text": set()}
    pairs: dict[tuple[str, str], None] = {}
    for door, read in (("plan", lambda text: by_catalyst(session, text)), ("text", by_text)):
        for sample, expr in decoded(samples, read):
            sql = written(expr)
            if sql is not None:
                pairs[sample, sql] = None
                seen[door] |= names([expr])
    assert differences(session, list(pairs)) == []
    return seen


def decoded(
    samples: Sequence[str], read: Callable[[str], list[Expr]]
) -> Iterator[tuple[str, Expr]]:
    """What a door makes of the samples, those that it refuses left out."""
    if samples:
        found = read(f"SELECT {outputs(samples)} FROM known")
        if len(found) == len(samples):
            yield from zip(samples, found, strict=True)
        elif len(samples) > 1:  # one of them spoils the others' block
            middle = len(samples) // 2
            yield from decoded(samples[:middle], read)
            yield from decoded(samples[middle:], read)


def outputs(texts: Iterable[str], letter: str = "v") -> str:
    return ", ".join(f"{text} AS {letter}{number}" for number, text in enumerate(texts))


def differences(session: Any, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """How SQL differs from its sample, in value or type."""
    if not pairs:
        return []
    both = f"{outputs([s for s, _ in pairs])}, {outputs([sql for _, sql in pairs], 'r')}"
    try:
        frame = session.sql(f"SELECT {both} FROM known")
        rows = frame.collect()
    except PySparkException as error:  # some are aggregates and some are not, or one is wrong
        if len(pairs) == 1:
            return [f"{pairs[0]}: {str(error)[:200]}"]
        middle = len(pairs) // 2
        return differences(session, pairs[:middle]) + differences(session, pairs[middle:])
    types = dict(frame.dtypes)
    wrong = []
    for number, pair in enumerate(pairs):
        v, r = f"v{number}", f"r{number}"
        values = [(row[v], row[r]) for row in rows if repr(row[v]) != repr(row[r])]
        if values or types[v] != types[r]:
            wrong.append(f"{pair}: {types[r]} instead of {types[v]}, {values}")
    return wrong


def flat(samples: dict[str, tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(text for texts in samples.values() for text in texts))


def test_each_known_function_has_a_sample_for_each_number_of_arguments() -> None:
    assert FUNCTION_SAMPLES.keys() == FUNCTIONS.keys()
    known = {
        *OPERATORS.values(),
        "ne",
        *select._BINARY,
        *select._STRUCTURAL,
        *select._SPELLED_AS_CALL,
    }
    assert known - FUNCTIONS.keys() <= OPERATOR_SAMPLES.keys()
    aggregates = {
        *catalyst_aggregates._NAMES.values(),
        *text_aggregates._BY_CLASS.values(),
        *text_aggregates._BY_NAME.values(),
    }
    assert aggregates - {"count_if"} == AGGREGATE_SAMPLES.keys()


def test_functions(rows) -> None:
    seen = check(rows, flat(FUNCTION_SAMPLES))
    run = seen["plan"] | seen["text"]
    assert {OTHER_NAMES.get(name, name) for name in FUNCTIONS} - run == set()
    in_plans = {ALIASES.get(name, name) for name in FUNCTIONS.keys() - ONLY_IN_TEXTS}
    assert in_plans - seen["plan"] == set()


def test_operators(rows) -> None:
    seen = check(rows, flat(OPERATOR_SAMPLES))
    wanted = {name for name, samples in OPERATOR_SAMPLES.items() if samples}
    assert wanted - (seen["plan"] | seen["text"]) == set()


def test_aggregates(rows) -> None:
    seen = check(rows, flat(AGGREGATE_SAMPLES))
    assert AGGREGATE_SAMPLES.keys() - (seen["plan"] | seen["text"]) == set()


@pytest.mark.parametrize(
    "field", sorted({*_EXTRACT, "SECOND", "DAYOFWEEK_ISO", "MONTHS", "D", "YR"})
)
def test_fields_of_extract(rows, field: str) -> None:
    check(rows, [f"extract({field} FROM {column})" for column in ("d", "at", "wall")])


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_casts_between_all_types(rows, ansi: str) -> None:
    """`CAST` where it raises nothing, `TRY_CAST` under ANSI; what Spark refuses is no case."""
    session = rows.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    word = "TRY_CAST" if ansi == "true" else "CAST"
    columns = [entry.split()[0] for entry in COLUMNS.split(", ")][:15]
    samples = []
    for sample in (f"{word}({c} AS {t})" for c in columns for t in TYPES):
        try:
            assert session.sql(f"SELECT {sample} FROM known").schema
        except PySparkException:
            continue
        samples.append(sample)
    assert len(samples) > 100
    found = dict(decoded(samples, lambda text: by_catalyst(session, text)))
    pairs = [(sample, written(expr)) for sample, expr in found.items()]
    assert len(pairs) == len(samples) and None not in [sql for _, sql in pairs]
    assert differences(session, pairs) == []


def test_constants_of_all_types(rows) -> None:
    texts = ["1Y", "-2S", "3", "-9223372036854775808", "1.50", "1.5D", "CAST('NaN' AS FLOAT)", "-0.0D", "'it''s \\\\ \\n'", "X'00FF'", "true", "DATE'0001-01-01'", "TIMESTAMP'2024-02-29 01:02:03.000001'", "TIMESTAMP_NTZ'9999-12-31 23:59:59'", "CAST(NULL AS DECIMAL(7,3))", "NULL"]  # fmt: skip
    check(rows, [f"coalesce({text}, {text})" if text != "NULL" else "NULL" for text in texts])


@pytest.mark.parametrize(
    "expr",
    [
        Call("spark:Sequence", (Col(0, "a", "int"),), "array<int>"),
        Call("year", (Col(0, "d", "date"), Col(0, "d", "date")), "int"),
        Call("nosuch", (Col(0, "a", "int"),), "int"),
        Agg("sum", (Col(0, "a", "int"),), "bigint", params=("LEGACY",)),
        Lit((1, 2), "array<int>"),  # type: ignore[arg-type]
    ],
    ids=lambda expr: expr.type,
)  # fmt: skip
def test_what_has_no_spelling_is_refused(expr: Expr) -> None:
    with pytest.raises(NotRenderable):
        render_expr(expr, lambda column: quote(column.name))
