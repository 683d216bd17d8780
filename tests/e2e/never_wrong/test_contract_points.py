# ruff: noqa: E501 - tables of SQL read better unbroken
"""Every point of docs/contract.md that needs the whole product, as a test by name.

`POINTS` maps each point to the test of this folder that holds it; points whose tests live elsewhere
name the file.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
POINTS = {
    "where the hook sits: df first, append, then collect, filter, view": "test_a_dataframe_made_before_an_append",
    "schema: names, types and order are the original's": "test_names_types_and_order_are_the_originals",
    "snapshots: an unpublished commit on top is never read": "test_a_commit_that_was_not_published_is_never_read",
    "the fence: the same commit number twice, a lost lease": "refresh/test_refresh_crash.py",
    "the user's own insert during a refresh": "refresh/test_full_refresh.py",
    "freshness: STRICT": "test_strict_shows_what_was_appended_or_misses",
    "freshness: MAX STALENESS": "test_max_staleness_hits_within_its_bound_only",
    "freshness: a re-created table with as many versions": "test_a_recreated_table_with_as_many_versions",
    "freshness: a view redefined after the refresh": "test_a_view_redefined_after_the_refresh",
    "freshness: tables without versions": "test_a_parquet_table_cannot_be_cached",
    "one moment a query: stale cache and today's dimension": "test_a_stale_cache_and_todays_dimension",
    "one moment a query: two caches of different snapshots": "test_two_caches_with_different_snapshots",
    "one moment a query: subqueries": "test_a_stale_cache_beside_a_subquery",
    "one moment a query: a commit while it is planned": "test_a_commit_between_the_decisions_on_a_query_and_its_subquery",
    "places: names shadowed by a temp view or a CTE": "test_a_temp_view_or_cte_that_shadows_a_base_table",
    "places: what reads other rows than the table's": "test_what_reads_other_rows_than_the_tables_is_a_miss",
    "places: runSQLOnFiles=false": "test_runsqlonfiles_false_breaks_nothing",
    "settings: each result-changing one": "test_each_result_changing_setting",
    "semantics: NULL keys are not 'not grouped'": "test_null_keys_are_not_not_grouped",
    "semantics: COUNT over nothing": "test_count_over_nothing_is_zero",
    "semantics: AVG": "test_avg_from_sum_and_count_only_where_exact",
    "semantics: SUM(a - b) with one NULL": "test_sum_of_a_difference_with_a_null",
    "semantics: overflow types": "test_decimal_and_integer_overflow_types",
    "semantics: floats": "test_floats_only_when_allowed",
    "semantics: DISTINCT": "test_count_distinct_only_from_the_keys",
    "semantics: LIMIT below a compensation": "test_limit_below_a_compensation",
    "semantics: non-deterministic": "e2e/test_bad_input.py",
    "Spark's traps: a cube over nothing": "test_a_global_aggregate_over_an_empty_table",
    "Spark's traps: GROUP BY prefers the input column": "test_group_by_prefers_the_input_column",
    "Spark's traps: NULL/0": "test_division_by_zero_is_the_originals",
    "duplicate grouping sets": "test_duplicate_grouping_sets_count_once",
    "joins: broken after it was declared": "test_a_join_broken_after_it_was_declared",
    "joins: NULL keys": "test_a_join_with_null_keys_is_refused",
    "joins: an extra table with a predicate": "test_an_extra_table_with_a_predicate",
    "joins: fan-out": "test_fan_out_by_a_join_that_is_not_record_preserving",
    "joins: NOT VALIDATED": "test_unvalidated_joins_serve_only_when_trusted",
    "after planning: DROP between planning and the end": "test_drop_between_planning_and_the_end_of_a_query",
    "after planning: disable reaches other sessions": "test_drop_reaches_another_session",
    "writes": "test_writes_take_strict_caches_only",
    "writes: into what they read": "test_a_write_that_reads_the_table_it_writes_is_left_to_delta",
    "writes: view and cache bodies": "test_views_and_cached_tables_hold_no_rewrite",
    "who may see it": "e2e/test_statements.py",
    "never in the way: an error inside the matcher": "test_an_error_inside_the_matcher_never_reaches_the_user",
}  # fmt: skip


def test_every_point_is_on_the_page_and_every_section_has_one():
    page = (ROOT.parent / "docs" / "contract.md").read_text()
    sections = {line[3:].lower() for line in page.splitlines() if line.startswith("## ")}
    named = {point.partition(":")[0].lower() for point in POINTS}
    assert named - sections == {"the user's own insert during a refresh"}
    elsewhere = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    for section in elsewhere:
        title, _, text = section.partition("\n")
        files = re.findall(r"`tests/([a-z0-9_/]+\.py)`", text)
        assert title.lower() in named or files, f"nothing holds {title}"
        assert all((ROOT / file).exists() for file in files), title


def test_every_point_names_a_test_that_exists():
    here = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for point, where in POINTS.items():
        if where.endswith(".py"):
            assert (ROOT / where).exists(), point
        else:
            assert f"def {where}(" in here, point
