"""Which grouping sets of a cube are computed from the base, and which from a smaller set above
them. Pure.

Spark's GROUPING SETS copies every joined row once for each set. A set whose keys are contained in
another set's keys can be aggregated from that set's rows instead, as long as every measure rolls up
exactly (`rolls_up`). An ancestor need not be a stored set: the union of two sets' keys, when it has
few groups, serves as a helper that is computed and thrown away.

The plan costs rows: a set from the base costs the base's rows, one from an ancestor the ancestor's
rows. Ancestors are chosen greedily by what each saves beside those that are there (Harinarayan,
Rajaraman and Ullman, "Implementing data cubes efficiently", SIGMOD 1996), and a set comes from the
smallest that has its keys. All of them are computed in one pass of their own over the base, kept
while the commit is written, and must together save more than that pass.

>>> sets = [(0, 1), (0,), (1,), ()]
>>> lattice = plan_lattice(sets, {frozenset(s): 10.0 for s in sets}, base_rows=1000.0)
>>> [(f.keys, f.children) for f in lattice.families], lattice.base
([((0, 1), ((0,), (1,), ()))], ())
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from matcher.model.ir import CachePlan, Measure

Keys = tuple[int, ...]

# An ancestor larger than this share of the base is not worth the memory that it takes.
MAX_ANCESTOR_SHARE = 0.5
# An ancestor is written to memory, and read back.
KEEP_COST = 2.0
# One more pass over the join, counted in sets' worth of aggregation: reading and joining cost
# several times what one more small set costs in a pass that is made anyway.
PASS_COST = 4.0
# Less than this share of all the row aggregations is not worth the planning.
MIN_GAIN = 0.2
# What one ancestor more takes to plan and to run, as a share of what another pass takes.
EACH_OF_LEAST = 0.05
MAX_HELPERS = 16


@dataclass(frozen=True, slots=True)
class Family:
    """An ancestor and the sets aggregated from it. `stored` is False for a helper that is thrown
    away.
    """

    keys: Keys
    stored: bool
    children: tuple[Keys, ...]


@dataclass(frozen=True, slots=True)
class Lattice:
    """`base` sets come straight from the base; `reason` says why there are no families, or what
    they save.
    """

    base: tuple[Keys, ...]
    families: tuple[Family, ...]
    reason: str

    def source_of(self, keys: Keys) -> str:
        """Where a set's rows come from, in words."""
        for family in self.families:
            names = ", ".join(map(str, family.keys))
            if keys == family.keys and family.stored:
                return "base pass, kept as ancestor"
            if keys in family.children:
                return f"ancestor of keys ({names})" + ("" if family.stored else ", a helper")
        return "base pass"


def why_not_rolled_up(plan: CachePlan) -> str | None:
    """The first measure that cannot be aggregated again without a chance of another result; None
    if all can.
    """
    for measure in plan.measures:
        problem = _roll_up_problem(measure)
        if problem:
            return f"{measure.name}: {problem}"
    return None


def _roll_up_problem(measure: Measure) -> str | None:
    agg = measure.agg
    if agg.distinct:
        return "DISTINCT does not roll up"
    # with a FILTER too: what a finer set kept is what a coarser one keeps
    if agg.func in ("count", "min", "max", "bit_and", "bit_or", "bit_xor"):
        return None
    if agg.func != "sum":
        return f"{agg.func} does not roll up"
    argument = agg.args[0].type
    if argument in ("tinyint", "smallint", "int", "bigint"):
        return None
    decimal = re.fullmatch(r"decimal\((\d+),\s*-?\d+\)", argument)
    if decimal and int(decimal.group(1)) <= 28:
        # Up to 28 digits the sum has 10 to spare, so no partial sum of fewer than 10^10 rows
        # overflows to NULL, which a second SUM would take for "no value" and drop.
        return None
    return f"a sum of {argument} may differ when added in another order"


def plan_lattice(
    sets: Sequence[Keys],
    estimates: Mapping[frozenset[int], float],
    base_rows: float,
    least_saved: float = 0.0,
) -> Lattice:
    """Choose ancestors greedily by the rows they save.

    Args:
        sets: The stored sets, as indices of keys.
        estimates: Estimated groups of each stored set and helper (`helper_candidates`); others are
            not considered.
        base_rows: Rows of the joined base.
        least_saved: Fewer row aggregations than these are not worth the jobs of another pass.

    Returns:
        Every stored set exactly once: in `base`, as a stored family's ancestor, or as a child.
    """
    stored = {frozenset(s): tuple(s) for s in sets}
    costs = _Costs(stored, estimates, base_rows, least_saved * EACH_OF_LEAST)
    chosen = _without_idle(_chosen(costs), costs)
    families = tuple(
        Family(stored.get(k, tuple(sorted(k))), k in stored, tuple(stored[s] for s in children))
        for k, children in costs.children(chosen).items()
    )
    taken = {c for f in families for c in f.children} | {f.keys for f in families if f.stored}
    base = tuple(s for s in stored.values() if s not in taken)
    saved = len(stored) * base_rows - costs.total(chosen) - (PASS_COST * base_rows if base else 0.0)
    if not families or saved < max(MIN_GAIN * len(stored) * base_rows, least_saved):
        why = "no set has an ancestor small enough to save a pass"
        return Lattice(tuple(stored.values()), (), why)
    return Lattice(base, families, f"saves about {saved:.0f} row aggregations")


class _Costs:
    """What it costs, in row aggregations, to compute all sets by way of some ancestors.

    Args:
        stored: The sets to store.
        estimates: Groups of the sets that may be ancestors.
        base_rows: Rows of the joined base.
        each: What an ancestor costs besides its rows.
    """

    def __init__(
        self,
        stored: Iterable[frozenset[int]],
        estimates: Mapping[frozenset[int], float],
        base_rows: float,
        each: float,
    ) -> None:
        self._sets = list(stored)
        self._base_rows, self._each = base_rows, each
        limit = base_rows * MAX_ANCESTOR_SHARE
        self.rows = {k: rows for k, rows in estimates.items() if rows <= limit}
        self._below = {k: [s for s in self._sets if s < k] for k in self.rows}

    def from_base(self) -> dict[frozenset[int], float]:
        """Each stored set's cost without an ancestor."""
        return dict.fromkeys(self._sets, self._base_rows)

    def gain(self, ancestor: frozenset[int], now: Mapping[frozenset[int], float]) -> float:
        """What one ancestor more saves.

        Args:
            ancestor: It.
            now: What each stored set costs that is no ancestor.
        """
        rows = self.rows[ancestor]
        saved = sum(max(0.0, now.get(s, 0.0) - rows) for s in self._below[ancestor])
        own = self._base_rows - now.get(ancestor, 0.0)
        return saved - own - KEEP_COST * rows - self._each

    def beside(
        self, ancestor: frozenset[int], now: Mapping[frozenset[int], float]
    ) -> dict[frozenset[int], float]:
        """What each stored set costs then that is no ancestor; see `gain`."""
        rows = self.rows[ancestor]
        less = {s: min(now[s], rows) for s in self._below[ancestor] if s in now}
        return {s: cost for s, cost in {**now, **less}.items() if s != ancestor}

    def children(
        self, ancestors: Sequence[frozenset[int]]
    ) -> dict[frozenset[int], list[frozenset[int]]]:
        """The sets that come from each ancestor, the smallest that has their keys."""
        found: dict[frozenset[int], list[frozenset[int]]] = {a: [] for a in ancestors}
        given = set(ancestors)
        for ancestor in sorted(ancestors, key=lambda a: (self.rows[a], sorted(a))):
            mine = [s for s in self._below[ancestor] if s not in given]
            found[ancestor] += mine
            given.update(mine)
        return found

    def total(self, ancestors: Sequence[frozenset[int]]) -> float:
        """What all sets cost, the pass over the base for those without an ancestor left out."""
        children = self.children(ancestors)
        kept = sum(
            self._base_rows + self._each + self.rows[a] * (KEEP_COST + len(mine))
            for a, mine in children.items()
        )
        given = {s for mine in children.values() for s in mine} | set(ancestors)
        return kept + self._base_rows * sum(s not in given for s in self._sets)


def _chosen(costs: _Costs) -> list[frozenset[int]]:
    chosen: list[frozenset[int]] = []
    now = costs.from_base()
    while True:
        left = (k for k in costs.rows if k not in chosen)
        gains = ((costs.gain(k, now), -len(k), tuple(sorted(k))) for k in left)
        gain, _, keys = max(gains, default=(0.0, 0, ()))
        if gain <= 0:
            return chosen
        chosen.append(frozenset(keys))
        now = costs.beside(chosen[-1], now)


def _without_idle(chosen: list[frozenset[int]], costs: _Costs) -> list[frozenset[int]]:
    """Without ancestors from which those that were chosen later have taken too much."""
    for ancestor in list(chosen):
        others = [k for k in chosen if k != ancestor]
        if costs.total(others) <= costs.total(chosen):
            chosen = others
    return chosen


def helper_candidates(
    sets: Sequence[Keys], estimates: Mapping[frozenset[int], float], base_rows: float
) -> tuple[frozenset[int], ...]:
    """Unions of two stored sets worth estimating: both parts small, the union no stored set.
    Smallest first.
    """
    small = [
        frozenset(s) for s in sets if estimates[frozenset(s)] <= base_rows * MAX_ANCESTOR_SHARE
    ]
    most = len(small) - 1 - (PASS_COST if len(small) < len(sets) else 0.0)
    if most < MIN_GAIN * len(sets):
        return ()
    known = {frozenset(s) for s in sets}
    unions = {a | b for a, b in combinations(small, 2)} - known
    # The larger of the parts is a lower bound for the union's groups, the product an upper one.
    bound = {u: max(estimates[s] for s in small if s <= u) for u in unions}
    useful = [u for u in unions if sum(s <= u for s in small) >= 2]
    useful.sort(key=lambda u: (bound[u], len(u), sorted(u)))
    return tuple(useful[:MAX_HELPERS])


def estimate_groups(groups: float, singletons: float, share: float, base_rows: float) -> float:
    """Groups of the whole from a sample: `groups` seen, `singletons` of them once, `share` sampled.

    The larger of two estimates, since a set taken for smaller than it is makes a bad ancestor:
    how many equally frequent groups would show that many in a sample of that size, and the
    guaranteed-error estimate, where each group seen once stands for `1/sqrt(share)` groups.

    >>> round(estimate_groups(1000, 0, 0.01, 1e6))
    1000
    >>> round(estimate_groups(9500, 9000, 0.01, 1e6), -4)
    100000.0
    """
    if share >= 1 or groups == 0:
        return float(groups)
    low, high = float(groups), float(max(base_rows, groups))
    sampled = base_rows * share
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _expected(middle, sampled) < groups else (low, middle)
    guaranteed = groups - singletons + singletons / share**0.5
    return float(min(max(base_rows, groups), max(high, guaranteed)))


def _expected(groups: float, sampled: float) -> float:
    """How many of `groups` equally frequent groups a sample of `sampled` rows shows."""
    return -groups * math.expm1(-sampled / groups)


def grouping_id(keys: Iterable[int], n_keys: int) -> int:
    """Spark's GROUPING_ID over `n_keys` keys: the first key is the highest bit, set where it is
    *not* grouped by.

    >>> grouping_id((0, 2), 3)
    2
    """
    present = set(keys)
    return sum(1 << (n_keys - 1 - i) for i in range(n_keys) if i not in present)
