"""The tests that are off with an older Spark, since it has not what they are about: by the
beginning of their names, with the minor that has it first and what it is.

Nothing is off for being wrong there: what an older Spark does otherwise stands in docs/versions.md.
"""

from __future__ import annotations

from typing import Final

from cachemgr.sparks import MINORS, minor_of

_WRONG: Final = "tests/harness/mutants/test_wrong_rows.py::test_without_its_guard_rows_are_wrong"
_TYPES: Final = "tests/matcher/sql/test_sql_types.py::test_type"
_FIXTURES: Final = "tests/matcher/test_fixtures.py::test_rows_names_and_types"

SINCE: Final[dict[str, tuple[str, str]]] = {
    f"{_FIXTURES}[aggregates_sketches": ("4.1", "KLL sketches, which one of the caches stores"),
    f"{_FIXTURES}[text_expressions: a doubled quote": ("4.1", "two quotes in a string are one"),
    f"{_FIXTURES}[text_expressions: doubled quotes": ("4.1", "two quotes in a string are one"),
    f"{_FIXTURES}[grouping_sets_in_query: a set alone without keys": (
        "4.2",
        "GROUPING SETS (()) does not group",
    ),
    f"{_WRONG}[aggregates_sketches": ("4.1", "KLL sketches, which one of the caches stores"),
    f"{_WRONG}[guards_roll_up: Noop - a KLL sketch": ("4.1", "KLL sketches"),
    f"{_TYPES}[ansi-kll_sketch_agg_bigint(b)]": ("4.1", "KLL sketches"),
    f"{_TYPES}[no-ansi-kll_sketch_agg_bigint(b)]": ("4.1", "KLL sketches"),
    "tests/matcher/test_known_expressions.py::test_functions": ("4.1", "functions of KLL sketches"),
    "tests/matcher/test_known_expressions.py::test_aggregates": ("4.1", "KLL sketches"),
    "tests/matcher/test_known_expressions.py::test_constants_of_all_types": (
        "4.1",
        "two quotes in a string are one",
    ),
    "tests/config/test_spark_registry.py::test_each_judgement_is_of_a_setting": (
        "4.2",
        "some of the settings that are judged",
    ),
    "tests/config/test_spark_registry.py::test_what_is_known_of_values": (
        "4.2",
        "some of the settings whose values are known",
    ),
    "tests/refresh/full/test_one_shuffle.py": ("4.1", "DataFrame.repartitionById"),
    "tests/refresh/full/test_cube_build.py::test_a_refresh_that_ends_while_it_plans": (
        "4.1",
        "CacheManager.numCachedEntries, by which it counts",
    ),
    "tests/e2e/test_parser_settings.py": (
        "4.1",
        "spark.sql.legacy.consecutiveStringLiterals.enabled",
    ),
    "tests/e2e/test_newer_syntax.py::test_a_script": ("4.1", "SQL scripting without a setting"),
    "tests/e2e/test_newer_syntax.py::test_a_metric_view": ("4.2", "metric views"),
    "tests/e2e/test_newer_syntax.py::test_an_output_named_in_grouping_sets": (
        "4.2",
        "one key for an output's name in GROUPING SETS and its expression in GROUP BY",
    ),
    "tests/e2e/test_published_settings.py::test_a_setting_of_one_function_counts_where_that_is_called"
    "[spark.sql.legacy.truncateForEmptyRegexSplit": (
        "4.1",
        "spark.sql.legacy.truncateForEmptyRegexSplit",
    ),
    "tests/e2e/test_newer_syntax.py::test_qualify": ("4.2", "QUALIFY"),
    "tests/e2e/test_gestures.py::test_sql_text[zipWithIndex": ("4.2", "DataFrame.zipWithIndex"),
    "tests/e2e/test_gestures.py::test_dataframes[zipWithIndex": ("4.2", "DataFrame.zipWithIndex"),
    "tests/e2e/test_gestures.py::test_numbers_of_rows": ("4.2", "DataFrame.zipWithIndex"),
    "tests/e2e/test_roll_ups.py::test_through_the_optimiser": ("4.2", "MAX_BY of more than one"),
    "tests/e2e/test_roll_ups.py::test_a_set_with_null": ("4.2", "RESPECT NULLS of COLLECT_SET"),
    "tests/e2e/test_whole_queries.py::test_delta_takes_no": ("4.1", "PRIMARY KEY in CREATE TABLE"),
    "tests/results/test_writes.py::test_allowed[INSERT INTO w BY NAME REPLACE": (
        "4.2",
        "REPLACE WHERE with BY NAME",
    ),
    "tests/results/test_refused_writes.py::test_who_may_not_write_is_told_so"
    "[INSERT INTO w BY NAME REPLACE": ("4.2", "REPLACE WHERE with BY NAME"),
    "tests/results/test_refused_writes.py::test_refused[INSERT INTO seen SELECT a, b FROM STREAM": (
        "4.1",
        "STREAM before a table",
    ),
    "tests/results/test_refused_writes.py::test_refused[BEGIN": (
        "4.1",
        "SQL scripting without a setting",
    ),
    "tests/e2e/test_bad_input.py::test_a_definition_that_cannot_be_cached[join by floats": (
        "4.2",
        "its optimizer normalises floats before our rule: on an older one the join is stored as "
        "written, and floats are no equivalence class",
    ),
}


def why_off(test: str, spark: str) -> str | None:
    """Why a test is off with a Spark; None if it is not.

    Args:
        test: Its name.
        spark: The version of Spark.

    >>> why_off("tests/e2e/test_newer_syntax.py::test_qualify_is_answered[query1]", "4.1.4")
    'Spark 4.2 is the first that has: QUALIFY'
    """
    for beginning, (since, what) in SINCE.items():
        if test.startswith(beginning) and minor_of(spark) in MINORS[: MINORS.index(since)]:
            return f"Spark {since} is the first that has: {what}"
    return None
