"""The items of the matcher's capabilities that a generated pair can exercise: the one list of tags.

A tag is `group.item`. The groups are those of docs/fuzz.md: predicates, roll-ups, group keys,
joins, whole queries. The ledger counts accepted pairs for each of them.
"""

from __future__ import annotations

from typing import Final

_ITEMS: Final = {
    "predicate": """range_number range_decimal range_float range_string range_date range_timestamp
        literal_spelling in_list between or_one_column or_columns like_prefix is_null is_not_null
        null_safe_equal not case boolean_column equal_columns transitive constant_folded
        stored_expression on_group_key having_on_measure having_as_filter guard raising
        and_of_ors deep_case""",
    "rollup": """sum count count_star min max avg stddev variance covariance correlation bool_and_or
        bit_and_or_xor any_value collect_set count_distinct hll percentile approx_count_distinct
        filter_clause case_inside arithmetic sum_plus_minus sum_literal aggregate_of_key
        distinct_on_keys same_groups""",
    "key": """coarser key_subset date_trunc date_part to_date date_format extract
        functional_dependency expression_of_key grouping_sets_from_cube grouping_sets_from_plain
        grouping_id cube_view""",
    "join": """any_order chain extra_table compensating dimension_again self_join left right full
        semi anti inner_from_outer cross non_equi role_playing groups groups_outer""",
    "whole": """cte from_subquery in_subquery exists scalar_subquery union_all union intersect
        except window view nested_cache plain_cache constraint declared_join top_k order_by limit
         offset distinct having struct_field computed_output having_cache groups_of_groups
         groups_filtered""",
}  # fmt: skip
TAGS: Final = tuple(f"{group}.{item}" for group, text in _ITEMS.items() for item in text.split())
_KNOWN: Final = frozenset(TAGS)


def tags(*names: str) -> frozenset[str]:
    """These tags; a misspelt one fails at once, before a run counts it as something of its own."""
    unknown = set(names) - _KNOWN
    if unknown:
        raise ValueError(f"unknown capability tags: {sorted(unknown)}")
    return frozenset(names)
