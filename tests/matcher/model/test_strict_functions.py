"""What the matcher takes for NULL where an argument is NULL, asked of Spark."""

from __future__ import annotations

import pytest

from matcher.model.functions import FUNCTIONS, STRICT

_D, _T, _S = "DATE'2024-02-03'", "TIMESTAMP'2024-02-03 04:05:06'", "'abc'"
SAMPLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        "year quarter month day dayofweek weekday dayofyear weekofyear last_day unix_date".split(),
        (_D,),
    ),
    **dict.fromkeys(["hour", "minute", "second"], (_T,)),
    **dict.fromkeys(
        "upper lower trim ltrim rtrim length reverse initcap md5 crc32 ascii".split(), (_S,)
    ),
    **dict.fromkeys("abs sign sqrt exp ceil floor ln log10 log2".split(), ("2.5D",)),
    "round": ("2.5D", "1"), "bround": ("2.5D", "1"), "power": ("2.5D", "2D"), "pmod": ("7", "3"),
    "substring": (_S, "1", "2"), "concat": (_S, _S), "replace": (_S, "'a'", "'b'"),
    "left": (_S, "1"), "right": (_S, "1"), "lpad": (_S, "5", "'x'"), "rpad": (_S, "5", "'x'"),
    "instr": (_S, "'b'"), "translate": (_S, "'a'", "'b'"), "repeat": (_S, "2"),
    "substring_index": (_S, "'b'", "1"), "next_day": (_D, "'MON'"), "date_add": (_D, "1"),
    "date_sub": (_D, "1"), "add_months": (_D, "1"), "datediff": (_D, _D),
    "months_between": (_D, _D), "trunc": (_D, "'MM'"), "date_trunc": ("'HOUR'", _T),
    "date_format": (_T, "'yyyy'"), "to_timestamp_ltz": (_S, "'yyyy'"),
    "to_timestamp_ntz": (_S, "'yyyy'"), "from_unixtime": ("5L", "'yyyy'"),
    "unix_timestamp": (_T, "'yyyy'"), "to_unix_timestamp": (_T, "'yyyy'"), "like": (_S, "'a%'"),
    "startswith": (_S, "'a'"), "endswith": (_S, "'a'"), "contains": (_S, "'a'"),
}  # fmt: skip


def test_each_has_a_sample() -> None:
    assert STRICT & FUNCTIONS.keys() <= SAMPLES.keys()


@pytest.mark.spark
def test_null_for_any_argument_that_is_null(spark) -> None:
    places = [
        (name, args, place)
        for name, args in SAMPLES.items()
        if name in STRICT and name in FUNCTIONS
        for place in range(len(args))
    ]
    found = {}
    for name, args, place in places:
        call = f"{name}({', '.join((*args[:place], 'v', *args[place + 1 :]))})"
        null = f"(SELECT IF(id > 9, {args[place]}, NULL) AS v FROM range(1))"
        try:
            (row,) = spark.sql(f"SELECT {call} AS r FROM {null}").collect()
        except Exception as error:  # an argument that must be a constant cannot be NULL
            assert "NON_FOLDABLE" in str(error), f"{call}: {error}"
            continue
        found[call] = row.r
    assert {call for call, value in found.items() if value is not None} == set()
    assert len(found) > 60
