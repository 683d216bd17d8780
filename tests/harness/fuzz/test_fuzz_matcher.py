"""Generated pairs of cache and query: whatever the matcher accepts returns the original's rows.

The short version; `make fuzz N=…` runs any number (docs/fuzz.md). A failure prints the seed, both
texts, and the rows.
"""

from __future__ import annotations

import itertools
import re
from random import Random

import pytest

from tests.harness.fuzz.actions import SparkActions
from tests.harness.fuzz.caches import cache
from tests.harness.fuzz.capabilities import TAGS, tags
from tests.harness.fuzz.decide import Accepted, Refusal, decide, lifted, prepare_cache
from tests.harness.fuzz.doors import SparkDoors
from tests.harness.fuzz.doors_listed import differs_as_listed
from tests.harness.fuzz.duck_judge import DuckJudge, DuckTables
from tests.harness.fuzz.odd_names import Names, lost_by_names, names
from tests.harness.fuzz.oracle import could_hit
from tests.harness.fuzz.queries import query
from tests.harness.fuzz.roles import called_otherwise, roles
from tests.harness.fuzz.spark_judge import SparkJudge, Verdict
from tests.harness.fuzz.spec import Item, Piece, Spec, smaller
from tests.harness.fuzz.world import world
from tests.harness.fuzz.worlds import (
    Totals,
    compare_doors,
    generate,
    generated,
    over_groups,
    run_world,
    try_actions,
)

SEEDS = range(1_000_000, 1_000_006)  # none of a ledger's run
LEAST_SHARE = 0.15  # fewer hits would mean that the test proves little


def _run(judge, seeds, queries) -> Totals:
    totals = Totals()
    for seed in seeds:
        run_world(seed, judge, totals, caches=6, queries=queries)
    return totals


@pytest.mark.spark
def test_no_accepted_pair_changes_a_row_on_spark(spark) -> None:
    totals = _run(SparkJudge(spark), SEEDS, 5)
    assert totals.wrong == []
    assert totals.lost == []
    assert totals.numbers["accepted"] >= LEAST_SHARE * totals.numbers["generated"]


@pytest.mark.spark
def test_both_doors_agree_on_generated_queries(spark) -> None:
    totals, doors = Totals(), SparkDoors(spark)
    for seed in SEEDS[:3]:
        compare_doors(generated(seed, 4, 4), doors, totals, 2)
    assert totals.differs == []
    assert totals.numbers["doors"] >= 20


@pytest.mark.spark
def test_actions_through_the_hook_give_the_rows_without_us(spark) -> None:
    totals, actions = Totals(), SparkActions(spark, 4)
    for seed in SEEDS:  # some have no pair with one answer, or odd names that a cache refuses
        try_actions(generated(seed, 4, 4), actions, totals)
    assert totals.wrong == []
    assert totals.numbers["actions equal"] >= 2, (totals.numbers, totals.skipped)


def test_the_index_finds_what_a_full_search_finds() -> None:
    totals = _run(_Nothing(), [*SEEDS, 20111], 12)  # that one lost some
    assert totals.lost == []
    assert totals.numbers["accepted"] >= LEAST_SHARE * totals.numbers["generated"]


class _Nothing(DuckJudge):
    """Executes nothing: what is asked here is the decision."""

    def judge(self, world, accepted):
        return [Verdict("skipped") for _ in accepted]


def test_a_seed_gives_the_same_pairs_again() -> None:
    first, second = ([p.query for p in generate(world(7), 3, 5)] for _ in range(2))
    assert first == second
    assert len(set(first)) > 5


def test_fields_of_structs_are_hit() -> None:
    seed = next(s for s in itertools.count() if any(c.struct for c in world(s).columns(["f"])))
    hits = [p for p in generated(seed, 6, 12).accepted if "whole.struct_field" in p.tags]
    assert any("f.f_st." in p.query and "f.f_st." in p.cache.cache.statement for p in hits)
    fields = [c.ref for c in world(seed).columns(["f"]) if c.struct]
    assert any(DuckTables(world(seed)).rows(f"SELECT {', '.join(fields)} FROM f"))


def test_groups_below_are_hit_and_missed() -> None:
    found = [p for seed in range(6) for p in over_groups(world(seed), 9, 12)]
    hits = [p for p in found if isinstance(p, Accepted)]
    seen = frozenset().union(*(p.tags for p in hits))
    kinds = ("join.groups", "join.groups_outer", "whole.groups_of_groups", "whole.groups_filtered")
    assert seen >= tags(*kinds)
    assert len(hits) >= LEAST_SHARE * len(found)
    lacking = [r for p in found if isinstance(p, Refusal) for code, r in p.reasons]
    assert any("does not read (f" in reason for reason in lacking), "of other groups none is asked"


def test_declared_facts_hold_in_the_rows() -> None:
    for seed in range(60):
        made = world(seed)
        for link in made.links:
            left, right = made.tables[link.left], made.tables[link.right]
            place = [c.name for c in left.columns].index(link.column)
            found = [row[place] for row in left.rows]
            ids = [row[0] for row in right.rows]
            assert len(ids) == len(set(ids))
            if link.declared in ("fk", "join"):
                assert not left.column(link.column).nullable
                assert set(found) <= set(ids)
        for table in made.tables.values():
            for place, column in enumerate(table.columns):
                assert column.nullable or all(row[place] is not None for row in table.rows)


def test_a_cache_over_a_cache_answers_a_hit_of_the_first() -> None:
    found = [p for seed in range(6, 9) for p in generated(seed, 5, 15).accepted if p.nested]
    assert found
    for pair in found:
        base, over = pair.caches
        assert over.base == base.cache.name
        assert over.cache.name in pair.rewritten
        assert "whole.nested_cache" in pair.tags


def test_names_that_must_be_quoted_cost_no_hit_at_the_text_door() -> None:
    tried = 0
    for seed in range(12):
        made = world(seed)
        odd = names(made, share=1.0)
        for pair in generated(seed, 2, 4).accepted:
            if not pair.nested:
                assert lost_by_names(made, pair, odd) == ""
                tried += odd.text(pair.query) != pair.query
    assert tried > 20


def test_texts_are_renamed_outside_of_constants() -> None:
    odd = Names({"f": "`order`", "f_v": "`a``b`"})
    assert odd.text("SELECT f.f_v FROM f WHERE f.f_v = 'f.f_v' AND f2.x > 1") == (
        "SELECT `order`.`a``b` FROM `order` WHERE `order`.`a``b` = 'f.f_v' AND f2.x > 1"
    )


def test_occurrences_of_a_table_are_called_otherwise_and_stay_apart() -> None:
    made = world(3)
    joins, columns = roles(Random(1), made)
    one = Spec(joins=joins, items=(Item(Piece(columns[-1].ref, column=columns[-1].ref), "o0"),))
    others = {called_otherwise(Random(n), one).sql() for n in range(20)}
    assert len(joins) > 1 and len(others) > 1
    assert len({re.sub(r"r\d", "r", text) for text in others}) == 1


def test_listed_differences_are_told_by_query_plan_and_text() -> None:
    merged = ["only Catalyst takes the whole query; the text says []"]
    assert differs_as_listed("SELECT 1", [], "LocalRelation") == ""
    assert "merged" in differs_as_listed("SELECT * FROM (…)", merged, "")
    assert differs_as_listed("SELECT * FROM (…)", [*merged, "the text chose c"], "") == ""
    assert "no row" in differs_as_listed("SELECT 1", ["x"], '{"n":"LocalRelation"}')


def test_a_wrong_rewrite_is_told_and_made_small() -> None:
    """A judge that calls every pair with a filter wrong: the report keeps little else."""

    class Suspicious(DuckJudge):
        def judge(self, world, accepted):
            verdicts = super().judge(world, accepted)
            return [
                Verdict("wrong", "told") if a.spec.where else v
                for a, v in zip(accepted, verdicts, strict=True)
            ]

    totals = Totals()
    seed = next(s for s in itertools.count(3) if generated(s, 2, 3).accepted)
    run_world(seed, Suspicious(), totals, caches=2, queries=3)
    assert totals.wrong
    assert f"seed {seed}" in totals.wrong[0]


def test_the_shrinker_drops_one_part_at_a_time() -> None:
    rng, made = Random(5), world(5)
    specs = [query(rng, made, cache(rng, made, "c0")) for _ in range(50)]
    for spec in specs:
        for less in smaller(spec):
            assert less != spec
            assert less.sql()


def test_the_oracle_finds_a_hit_that_is_refused() -> None:
    """A refusal whose pair the matcher does take is one that could have hit."""
    from tests.harness.fuzz.decide import Refusal

    found = 0
    for seed in range(60):
        made, rng = world(seed), Random(seed)
        pair = prepare_cache(rng, made, "c0")
        for _ in range(6):
            taken = decide(pair, query(rng, made, pair.cache))
            if isinstance(taken, Accepted):
                as_refused = Refusal(pair, taken.spec, taken.query, [("X", "x")])
                found += could_hit(made, as_refused) is not None
    assert found >= 10


def test_literals_do_not_make_pairs_distinct() -> None:
    one = lifted("SELECT a FROM f WHERE b IN (1, 2) AND c = 'its' AND d < DATE '2020-01-01'")
    two = lifted("SELECT a FROM f WHERE b IN (3) AND c = '' AND d < DATE '0001-01-01'")
    assert one == two


def test_tags_are_spelt_right() -> None:
    assert len(set(TAGS)) == len(TAGS)
    with pytest.raises(ValueError, match="unknown capability"):
        tags("join.sidewards")
