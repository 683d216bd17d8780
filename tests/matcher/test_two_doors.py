"""Every text case through both doors: Catalyst's plan and the SQL text give the same blocks and the
same choice.

The tables are real (empty) Delta tables, made from the declared schema with its NOT NULLs; plans
are taken at the stage of the optimiser at which the hook sees them. What Spark said of a case is
kept (docs/testing.md); what both doors make of it is compared in every run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from cachemgr.sparks import minor_of
from matcher.model.errors import MatcherError
from tests.matcher import captures
from tests.matcher.captures import DeltaTables
from tests.matcher.fixture_cases import Case, load_all
from tests.matcher.two_doors import capture_inputs, compare_case, lasts
from tests.proofs.plugin import Executed

_NO_ROW = "Catalyst sees that no row can pass and reads no table"
_CORRELATED = "Spark has made a LEFT JOIN with groups of it; to the text it is an expression"
_COLLATION = "in Spark's plan a collation is a type; texts with one are refused"
# Cases in which the doors differ, each with the reason why that is right.
EXCEPTIONS: dict[str, str] = {
    "grouping_sets_in_query: Noop - a set alone without keys, which Spark 4.1 takes for groups": ""
    "Spark's plan shows whether it groups; the text is refused",
    "grouping_sets_in_query: Noop - ORDER BY what a union does not show": "Catalyst sorts above "
    "the block, which shows the sort keys as columns of its own",
    "contain_grouping: Noop - an aggregation of which nothing is shown": "Catalyst keeps HAVING "
    "above the block, so the block shows the aggregate that HAVING reads",
    "having: a false HAVING takes the one row of a global aggregate away": _NO_ROW,
    "having: a false WHERE leaves the one row of a global aggregate": _NO_ROW,
    "null_folding: of no row everything else holds too, whatever columns it is of": _NO_ROW,
    "predicates_folding: Noop - letters outside of ASCII are left to Spark": "Catalyst has folded "
    "them",
    "predicates_nulls: a comparison with NULL is never true": _NO_ROW,
    "predicates_or_in: NOT IN with a NULL is never true": _NO_ROW,
    "predicates_ranges: Noop - without a stated time zone a day's start is not known": "the "
    "session's time zone is known to Spark alone",
    "predicates_ranges: a false condition over the one row of a global cache": _NO_ROW,
    "predicates_or_in: Noop - a list that is compared as DOUBLE tells fewer numbers apart": ""
    "Catalyst has folded a cast that loses digits; the text leaves it to Spark",
    "predicates_or_in: Noop - a list with strings without ANSI mode": "Spark has made strings of "
    "the numbers; the text does not know how they are written",
    "text_blocks: one branch of a union in parentheses": "Catalyst casts the branch to the common "
    "type inside the block; the text leaves that to Spark",
    "text_blocks: Noop - today depends on the session": "Catalyst has put the day in place of the "
    "function; to the text it is a function of the moment",
    "text_formats: Noop - seconds since 1970 now": "Catalyst has put the moment in place of the "
    "function",
    "text_blocks: Noop - a function that is not Spark's": "Spark does not analyse the query",
    "text_expressions: NOT IN with NULL among the values keeps nothing": "Catalyst sees that no "
    "row can pass and reads no table",
    "text_expressions: timestamps without a stated time zone stay Spark's to read": "the session's "
    "time zone is known to Spark alone",
    "text_expressions: Noop - an escape that the two parsers may read differently": "Spark has "
    "read the string; the text is refused rather than guessed",
    "text_expressions: Noop - strings and other types in one column are strings without ANSI": ""
    "Spark has made strings of the numbers; the text does not know how they are written",
    "joins_outer: Noop - RIGHT JOIN after a comma": "Spark has bound the comma and the join; the "
    "parsed text does not tell a comma from CROSS JOIN",
    "joins_full: Noop - FULL JOIN after a comma": "Spark has bound the comma and the join; the "
    "parsed text does not tell a comma from CROSS JOIN",
    "whole_subqueries: Noop - a correlated scalar subquery": _CORRELATED,
    "whole_limits: LIMIT over the preserved side of an outer join": "Spark cuts the groups below "
    "the join; to the text they are a relation of it",
    "whole_subqueries: Noop - a correlated subquery in WHERE is no filter": _CORRELATED,
    "whole_subqueries: sorted by a sum that is not shown": "Catalyst has a HAVING of the block; to "
    "the text it is a filter above the groups below",
    "groups_left_join: Noop - a LEFT join from a SEMI one": "Spark leaves out what is joined to "
    "groups by their key and of which nothing is read",
    "text_joins: both sides of a USING column can be named": "Spark marks the hidden side as a "
    "metadata column, which the plan's writer refuses",
    "predicates_ranges: both zeros of a FLOAT as DOUBLE": "Catalyst compares the column itself in "
    "place of its cast",
    "text_blocks: a scalar subquery": "Spark's own expression stays above the block; in a text it "
    "is a part of the block",
    "whole_subqueries: a scalar subquery in the SELECT list": "Spark's own expression stays above "
    "the block; in a text it is a part of the block",
    "text_expressions: Noop - the least under a collation": _COLLATION,
    "text_expressions: Noop - a key with a collation": _COLLATION,
    "text_expressions: Noop - a column with a collation as a key": "no table can be made of the "
    "declared schema, to which a column with a collation is of no known type",
    "text_expressions: Noop - a condition under a collation": _COLLATION,
    "text_joins: Noop - NATURAL JOIN": "Spark has resolved the common columns; the text refuses",
}
EXCEPTIONS |= {
    f"text_expressions: Noop - {title}": "Spark has read the string; the text is refused, since "
    "Spark 4.0 reads another one"
    for title in (
        "a doubled quote, and nobody says which Spark reads it",
        "a view with a doubled quote, and Spark 4.0 reads it",
    )
}
EXCEPTIONS |= {
    f"grouping_sets_in_query: Noop - {title}": "the text is refused as it is read, "
    "Catalyst's block as it is matched"
    for title in (
        "a column under two names is two keys to Spark",
        "so is what is the column for all rows",
    )
}
EXCEPTIONS |= {
    "whole_limits: LIMIT 0": "Catalyst sees that no row is asked for and reads no table",
    "whole_setops: INTERSECT ALL": "Catalyst counts the branches' rows in one union, and adds to "
    "each branch which one it is",
    "whole_setops: EXCEPT": "Catalyst makes one filter of EXCEPT over the same rows",
    "whole_setops: EXCEPT ALL": "Catalyst counts the branches' rows in one union, and adds to each "
    "branch whether it counts up or down",
    "whole_subqueries: a correlated subquery stays, the block beside it is served": "Catalyst "
    "drops the sum, and what is left are the rows that a semi join keeps",
}
EXCEPTIONS |= {
    f"predicates_folding: Noop - {title}": "Spark has worked the constant out; the text leaves it"
    for title in (
        "a decimal between two FLOATs, whose DOUBLE is in the middle of them",
        "the minus of a decimal of more digits than Spark keeps of one",
    )
}
# What an older Spark has no function or syntax for: it refuses the case.
LACKING = {"4.0": ("kll_", "recursive")}
HERE = minor_of(version("pyspark"))


def _is_of_this_spark(case: Case) -> bool:
    """Whether a case is read by the Spark that is installed, if it says by which."""
    told = case.conf.get("spark.cachemgr.sparkVersion")
    return told is None or minor_of(told) == HERE


CASES = [case for case in load_all() if _is_of_this_spark(case)]


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaTables]:
    folder: Path = tmp_path_factory.mktemp("doors")
    made = DeltaTables(spark, folder)
    try:
        yield made
    finally:
        made.drop()


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_both_doors_agree(case: Case, proofs: Executed) -> None:
    try:
        inputs = capture_inputs(case)
        text = proofs.text(captures.plans, inputs, "tables", lasts=lasts(inputs))
        plans = json.loads(text)
        found = compare_case(case, plans)
    except MatcherError as error:  # one door takes what the other refuses
        found = [str(error)]
    if any(word in str(inputs).lower() for word in LACKING.get(HERE, ())):
        assert "refused" in plans
    elif case.id in EXCEPTIONS:
        assert found, f"{case.id} agrees: it is no exception any more"
    else:
        assert not found, "\n".join(found)


def test_exceptions_are_cases() -> None:
    assert set(EXCEPTIONS) <= {case.id for case in load_all()}
