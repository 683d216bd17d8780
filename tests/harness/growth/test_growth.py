"""The work of a decision grows with no more than the square of a query, and is the same in every
process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from matcher.model.budget import DECISION_STEPS, OutOfSteps
from matcher.model.reasons import ReasonCode
from tests.harness.growth.doublings import DOUBLINGS
from tests.harness.growth.families import FAMILIES, decide, registry_of
from tests.harness.growth.random_families import random_caches, random_family
from tests.harness.growth.run import LINEAR, SIZES, measured, why_too_steep

ROOT = Path(__file__).parents[3]
_PRINT_STEPS = """
from tests.harness.growth.families import FAMILIES
from tests.harness.growth.random_families import random_family
from tests.harness.growth.run import measured
families = [*FAMILIES.values(), *map(random_family, range(20))]
print([measured(family, 6).steps for family in families])
"""


@pytest.mark.parametrize("name", FAMILIES)
def test_doubling_a_family_takes_four_times_the_steps_at_most(name: str) -> None:
    assert why_too_steep([measured(FAMILIES[name], n) for n in (4, 8, 16, 32, 64)]) is None


# the rest each grew more: caches times copies of a table times ORs that said nothing of either
@pytest.mark.parametrize("seed", [*range(40), 47, 155, 212, 327])
def test_doubling_a_random_query_takes_four_times_the_steps_at_most(seed: int) -> None:
    assert why_too_steep([measured(random_family(seed), n) for n in SIZES]) is None


@pytest.mark.parametrize("seed", [*range(40), 80, 485, 722])
def test_twice_the_caches_take_twice_the_steps_at_most(seed: int) -> None:
    assert why_too_steep([measured(random_caches(seed), n) for n in SIZES], LINEAR) is None


def test_steps_are_the_same_in_every_process() -> None:
    """Strings hash otherwise in each, and so sets have another order."""

    def steps(seed: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", _PRINT_STEPS],
            cwd=ROOT, env=env, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    assert steps("1") == steps("2") != ""


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_that_hurts_ends_by_its_steps(name: str) -> None:
    """Grown until it would hurt; what ends it is counted, and not timed."""
    grown = FAMILIES[name](150)
    registry = registry_of(grown.definitions)
    found = decide(registry, grown.query, steps=20_000)
    most = 20_000 + 10_000  # what one step that is charged at once may overshoot
    assert found.read.steps < most
    assert found.decided.steps < most
    for decision in found.decisions:
        if decision.rewrite is None:
            assert decision.reasons
            told = {reason.code for reason in decision.reasons}
            exhausted = found.decided.steps > 20_000
            assert not exhausted or ReasonCode.TOO_MANY_STEPS in told


@pytest.mark.parametrize("name", DOUBLINGS)
def test_a_text_that_doubles_with_each_level_is_refused_before_it_is_walked(name: str) -> None:
    registry = registry_of(("SELECT item, store, SUM(qty) AS q FROM fact GROUP BY item, store",))
    for levels in (14, 18, 30, 60):
        started = time.thread_time()
        try:
            found = decide(registry, DOUBLINGS[name](levels), steps=DECISION_STEPS)
        except OutOfSteps:
            found = None
        # what doubles with each level takes hours; a process of many tests is slow for a moment
        assert time.thread_time() - started < 10.0, f"{levels} levels"
        assert found is None or not any(d.rewrite for d in found.decisions)
