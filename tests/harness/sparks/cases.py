# ruff: noqa: E501 - tables of SQL read better unbroken
"""Expressions over edge values by the operator that they show, and the table that they read.

The rows of the table combine the values of each type with one another, the tame ones first: those
alone are asked for in ANSI mode, in which one value that overflows would end the query.
"""

from __future__ import annotations

from typing import Final

TAME: Final = 4
ROWS: Final = 97

# Columns of one table: type, and values of which row `id` takes the one at `id` modulo their
# number. No two numbers are equal, so that rows differ; the first four of each raise nothing.
_VALUES: Final = {
    "b": ("BOOLEAN", "true, false, NULL"),
    "t": ("TINYINT", "1, 2, NULL, -3, 127, -128, 0"),
    "sh": ("SMALLINT", "1, -2, 5, NULL, 32767, -32768, 0, 100"),
    "i": ("INT", "3, -7, 12, NULL, 2147483647, -2147483648, 0, 1, 1900, 100000, 46341"),
    "j": ("INT", "2, 4, 1, 3, NULL, -1, 31, 0, 64, 7, -5, 2147483647, 33"),
    "l": ("BIGINT", "5, -9, 100, NULL, 9223372036854775807, -9223372036854775808, 0, 4294967296, 9007199254740993, -1"),
    "f": ("FLOAT", "float('1.5'), float('-2.25'), float('0.1'), NULL, float('NaN'), float('Infinity'), float('-0.0'), float('0.0'), float('1e-40'), float('3.4028235e38'), float('16777217')"),
    "d": ("DOUBLE", "1.5D, -2.25D, 0.1D, NULL, double('NaN'), double('Infinity'), -0.0D, 0.0D, 5e-324D, 1.7976931348623157e308D, 2.5D, -3.5D, 9007199254740993D, 1e16D"),
    "n": ("DECIMAL(12,2)", "1.25, -7.50, 100.00, NULL, 9999999999.99, -9999999999.99, 0.00, 0.05, 2.675"),
    "w": ("DECIMAL(38,18)", "1.000000000000000001, -2.5, 3, NULL, 99999999999999999999.999999999999999999, 0, 0.5, -0.000000000000000001"),
    "s": ("STRING", "'abc', 'Straße', ' b c ', NULL, '', 'ABC', 'ÀÉÎ', 'a%b_c', 'ﬁn', 'İstanbul', 'a\\nb', '😀x', 'ǆ', 'it', 'σς', '12', 'ΣΑΣ'"),
    "u": ("STRING", "'a', 'b', 'c', '', NULL, 'A', 'ß', 'SS', '%', '_'"),
    "x": ("BINARY", "X'00FF', X'', X'616263', NULL, X'C3A9', X'FF'"),
    "day": ("DATE", "DATE'2024-02-29', DATE'2023-12-31', DATE'1970-01-01', NULL, DATE'1582-10-04', DATE'1582-10-15', DATE'0001-01-01', DATE'9999-12-31', DATE'2020-12-28', DATE'1900-03-01', DATE'2021-01-03'"),
    "ts": ("TIMESTAMP", "TIMESTAMP'2024-02-29 12:34:56.123456Z', TIMESTAMP'2020-03-29 01:30:00Z', TIMESTAMP'1970-01-01 00:00:00Z', NULL, TIMESTAMP'1969-12-31 23:59:59.999999Z', TIMESTAMP'2020-10-25 00:30:00Z', TIMESTAMP'1900-01-01 00:00:00Z', TIMESTAMP'2038-01-19 03:14:08Z', TIMESTAMP'1883-11-18 12:03:57Z'"),
    "ntz": ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ'2024-02-29 12:34:56.123456', TIMESTAMP_NTZ'2020-03-29 02:30:00', TIMESTAMP_NTZ'1970-01-01 00:00:00', NULL, TIMESTAMP_NTZ'1969-12-31 23:59:59.999999', TIMESTAMP_NTZ'0001-01-01 00:00:00', TIMESTAMP_NTZ'9999-12-31 23:59:59'"),
    "arr": ("ARRAY<INT>", "array(1, 2, NULL), array(5), array(3), NULL, array(), array(2, 1, 2), array(NULL)"),
    "st": ("STRUCT<a: INT, b: STRING>", "named_struct('a', 1, 'b', 'x'), named_struct('a', NULL, 'b', 'y'), NULL, named_struct('a', 2, 'b', NULL)"),
}  # fmt: skip


def _column(name: str, kind: str, values: str) -> str:
    listed = f"CAST(array({values}) AS ARRAY<{kind}>)"
    return f"element_at({listed}, CAST(id % size({listed}) AS INT) + 1) AS {name}"


EDGES: Final = (
    "CREATE OR REPLACE TEMPORARY VIEW edges AS SELECT CAST(id AS INT) AS id, "
    + ", ".join(_column(name, *each) for name, each in _VALUES.items())
    + f" FROM range(0, {ROWS}, 1, 2)"
)

# What an operator is in SQL, `{}` standing for each of the columns named.
_NUMBERS: Final = "t sh i l f d n w"
_EXACT: Final = "t sh i l n w"
_ALL: Final = "b t sh i l f d n w s x day ts ntz"
_ORDERED: Final = {
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "nseq": "<=>",
}
_PAIRS: Final = (("i", "j"), ("t", "sh"), ("l", "i"), ("d", "f"), ("n", "w"), ("i", "n"), ("d", "n"), ("s", "u"), ("day", "ts"), ("ts", "ntz"), ("s", "i"), ("b", "b"), ("x", "x"), ("f", "i"))  # fmt: skip
_ARITHMETIC: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
_DATE_PARTS: Final = "year quarter month day dayofweek weekday dayofyear weekofyear"
_TIME_PARTS: Final = "hour minute second"


def _of(sql: str, columns: str) -> tuple[str, ...]:
    return tuple(sql.format(column) for column in columns.split())


SCALARS: Final[dict[str, tuple[str, ...]]] = {
    **{op: tuple(f"{a} {sign} {b}" for a, b in _PAIRS) for op, sign in _ORDERED.items()},
    **{
        op: tuple(f"{a} {sign} {b}" for a, b in (("i", "j"), ("t", "sh"), ("l", "i"), ("d", "f"), ("n", "w"), ("i", "n"), ("d", "n"), ("f", "i"), ("n", "n"), ("w", "w"), ("w", "n")))
        for op, sign in _ARITHMETIC.items()
    },
    "and": ("b AND i > 0", "i > 0 AND l < 5"), "or": ("b OR i > 0", "i > 0 OR l < 5"), "not": ("NOT b", "NOT (i > j)"),
    "isnull": _of("{} IS NULL", _ALL), "isnotnull": _of("{} IS NOT NULL", _ALL), "isnan": _of("isnan({})", "f d"),
    "in": ("i IN (3, 0, NULL)", "s IN ('abc', '')", "d IN (0.0D, 1.5D)", "day IN (DATE'2024-02-29')", "n IN (1.25, 0)", "i IN (j, 3)"),
    "neg": _of("-{}", _NUMBERS), "abs": _of("abs({})", _NUMBERS), "sign": _of("sign({})", "i d n"),
    "idiv": ("i DIV j", "l DIV i", "n DIV w", "t DIV sh"), "pmod": ("pmod(i, j)", "pmod(l, i)", "pmod(n, w)", "pmod(d, f)"),
    "case": ("CASE WHEN i > 0 THEN s WHEN b THEN u ELSE 'z' END", "CASE i WHEN 3 THEN n WHEN 0 THEN w END", "if(b, d, f)"),
    "coalesce": ("coalesce(i, j, 0)", "coalesce(n, w)", "coalesce(s, u)", "ifnull(day, DATE'2000-01-01')", "nvl2(i, j, l)"),
    "greatest": ("greatest(i, j)", "greatest(d, f)", "greatest(n, w)", "greatest(s, u)"), "least": ("least(i, j)", "least(d, f)", "least(s, u)"),
    "round": ("round(d, 1)", "round(n, 1)", "round(i, -1)", "round(f)", "round(w, 3)"), "bround": ("bround(d, 1)", "bround(n, 1)", "bround(i, -1)"),
    "ceil": _of("ceil({})", "d f n i w"), "floor": _of("floor({})", "d f n i w"), "sqrt": _of("sqrt({})", "i d n"), "exp": _of("exp({})", "t d"),
    "ln": _of("ln({})", "i d n"), "log10": _of("log10({})", "i d"), "log2": _of("log2({})", "i d"), "power": ("power(i, 2)", "power(d, f)"),
    "bitwiseand": ("i & j", "l & i"), "bitwiseor": ("i | j", "l | i"), "bitwisexor": ("i ^ j",), "bitwisenot": ("~i", "~l"),
    **{part: (f"{part}(day)", f"{part}(ts)", f"{part}(ntz)") for part in _DATE_PARTS.split()},
    **{part: (f"{part}(ts)", f"{part}(ntz)") for part in _TIME_PARTS.split()},
    "last_day": ("last_day(day)", "last_day(ts)"), "unix_date": ("unix_date(day)",), "datediff": ("datediff(day, ts)", "datediff(day, DATE'2000-01-01')"),
    "date_add": ("date_add(day, t)", "day + sh"), "date_sub": ("date_sub(day, t)",), "add_months": ("add_months(day, t)",),
    "months_between": ("months_between(ts, day)", "months_between(day, DATE'2000-01-31')"), "next_day": ("next_day(day, 'MON')",),
    "trunc": tuple(f"trunc(day, '{unit}')" for unit in ("YEAR", "QUARTER", "MONTH", "WEEK")),
    "date_trunc": tuple(f"date_trunc('{unit}', ts)" for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")),
    "upper": _of("upper({})", "s u"), "lower": _of("lower({})", "s u"), "trim": _of("trim({})", "s u"), "ltrim": ("ltrim(s)",), "rtrim": ("rtrim(s)",),
    "length": ("length(s)", "length(x)", "char_length(u)"), "reverse": ("reverse(s)", "reverse(arr)"), "concat": ("concat(s, u)", "s || '-' || u", "concat(x, x)"),
    "substring": ("substring(s, 2, 2)", "substr(s, -2)", "substring(s, j, i)", "substring(x, 1, 1)"), "left": ("left(s, 2)",), "right": ("right(s, 2)",),
    "replace": ("replace(s, 'b', 'zz')", "replace(s, u, '-')"), "lpad": ("lpad(s, 5, 'xy')",), "rpad": ("rpad(s, 5, 'xy')",), "repeat": ("repeat(s, 2)", "repeat(u, t)"),
    "instr": ("instr(s, u)",), "locate": ("locate(u, s)",), "translate": ("translate(s, 'abc', 'xy')",), "initcap": ("initcap(s)",), "ascii": ("ascii(s)",), "substring_index": ("substring_index(s, 'b', 1)",),
    "startswith": ("startswith(s, u)", "s LIKE 'a%'"), "endswith": ("endswith(s, u)", "s LIKE '%c'"), "contains": ("contains(s, u)", "s LIKE '%b%'"),
    "like": ("s LIKE 'a_c'", "s LIKE '%a%b%'", "s LIKE 'a\\\\%b%'"), "rlike": ("s RLIKE '^[a-z]+$'",), "md5": ("md5(s)", "md5(x)"), "crc32": ("crc32(s)",), "hash": ("hash(s, i)", "hash(d, n, day)"), "xxhash64": ("xxhash64(s, i)",),
    "cast": (
        *(f"CAST({c} AS {kind})" for c in "b t sh i l f d n w".split() for kind in ("INT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(10,1)", "BOOLEAN", "TINYINT")),
        *(f"CAST({c} AS STRING)" for c in "b t sh i l n w s day".split()), "CAST(day AS TIMESTAMP)", "CAST(ts AS DATE)", "CAST(ntz AS DATE)", "CAST(ts AS TIMESTAMP_NTZ)", "CAST(x AS STRING)", "CAST(s AS BINARY)",
    ),
    "try_cast": ("try_cast(s AS INT)", "try_cast(l AS INT)", "try_cast(s AS DATE)"),
    "getfield": ("st.a", "st.b"), "size": ("size(arr)",), "array_contains": ("array_contains(arr, 2)",), "element_at": ("arr[0]", "try_element_at(arr, 2)"), "named_struct": ("named_struct('q', i, 'r', s)",),
    "width_bucket": ("width_bucket(d, 0, 10, 5)",), "unix_timestamp": ("unix_timestamp(ts)",), "date_format": ("date_format(ts, 'yyyy-MM-dd EEEE a')", "date_format(day, 'MMM d, y')"),
    "from_unixtime": ("from_unixtime(i)",), "to_timestamp_ltz": ("to_timestamp('2020-01-02 03:04:05')",), "to_date": ("try_to_date(s)",), "try_add": ("try_add(i, j)", "try_add(n, w)"), "try_sub": ("try_subtract(l, i)",), "try_mul": ("try_multiply(l, i)",), "try_div": ("try_divide(n, w)", "try_divide(i, j)"),
}  # fmt: skip
AGGREGATES: Final[dict[str, tuple[str, ...]]] = {
    "count": ("COUNT(*)", *_of("COUNT({})", _ALL), *_of("COUNT(DISTINCT {})", _ALL), "COUNT(DISTINCT i, s)", "COUNT(*) FILTER (WHERE i > 0)"),
    "sum": (*_of("SUM({})", "t sh n w"), "SUM(CAST(i AS BIGINT))", "SUM(t / 4D)", "SUM(DISTINCT t)", "SUM(CAST(t / 4D AS FLOAT))"),
    "avg": (*_of("AVG({})", "t sh i n"), "AVG(t / 4D)"),
    "min": _of("MIN({})", _ALL), "max": _of("MAX({})", _ALL),
    "min_by": ("MIN_BY(s, id)", "MIN_BY(n, id)"), "max_by": ("MAX_BY(s, id)", "MAX_BY(d, id)"),
    "try_sum": ("TRY_SUM(l)", "TRY_SUM(i)"), "try_avg": ("TRY_AVG(i)",),
    "bit_and": _of("BIT_AND({})", "t sh i l"), "bit_or": _of("BIT_OR({})", "t sh i l"), "bit_xor": _of("BIT_XOR({})", "t sh i l"),
    "stddev_samp": _of("STDDEV_SAMP({})", "t sh"), "stddev_pop": _of("STDDEV_POP({})", "t sh"), "var_samp": _of("VAR_SAMP({})", "t sh"), "var_pop": _of("VAR_POP({})", "t sh"),
    "covar_samp": ("COVAR_SAMP(t, sh)",), "covar_pop": ("COVAR_POP(t, sh)",), "corr": ("CORR(t, sh)",), "skewness": ("SKEWNESS(t)",), "kurtosis": ("KURTOSIS(t)",),
    "collect_set": ("sort_array(COLLECT_SET(i))", "sort_array(COLLECT_SET(s))", "sort_array(COLLECT_SET(n))"),
    "percentile": ("PERCENTILE(t, 0.5)", "MEDIAN(i)"), "percentile_approx": ("PERCENTILE_APPROX(i, 0.3)",), "approx_count_distinct": _of("APPROX_COUNT_DISTINCT({})", "i s n day"),
    "hll_sketch_agg": ("hex(HLL_SKETCH_AGG(i))",), "first": ("FIRST(i)",), "last": ("LAST(i)",),
}  # fmt: skip
