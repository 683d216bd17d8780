"""Which grouping sets of a cube are computed from the base, and which from a smaller set above
them. Pure.

Spark's GROUPING SETS copies every joined row once for each set. A set whose keys are contained in
another set's keys can be aggregated from that set's rows instead, as long as every measure rolls up
exactly (`rolls_up`). An ancestor need not be a stored set: the union of two sets' keys, when it has
few groups, serves as a helper that is computed and thrown away.

The plan costs rows: a set from the base costs the base's rows, one from an ancestor the ancestor's
rows. All ancestors are computed in one pass of their own over the base, kept while the commit is
written, and must together save more than that pass.

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

# An ancestor larger than this share of the base is not worth keeping: reading it back costs what
# it saves.
MAX_ANCESTOR_SHARE = 0.25
# One more pass over the join, counted in sets' worth of aggregation: reading and joining cost
# several times what one more small set costs in a pass that is made anyway.
PASS_COST = 4.0
# Less than this share of all the row aggregations is not worth the planning.
MIN_GAIN = 0.2
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
    left = [tuple(s) for s in sets]
    stored = {frozenset(s): tuple(s) for s in left}
    limit = base_rows * MAX_ANCESTOR_SHARE
    usable = [k for k, rows in estimates.items() if rows <= limit]
    families: list[Family] = []
    saved = 0.0
    while True:
        best = max(
            (_family(keys, stored, left, estimates[keys], base_rows) for keys in usable),
            key=lambda f: (f[0], -len(f[1].keys), f[1].keys),
            default=(0.0, None),
        )
        gain, family = best
        if family is None or gain <= 0:
            break
        families.append(family)
        saved += gain
        taken = {*family.children, *((family.keys,) if family.stored else ())}
        left = [s for s in left if s not in taken]
    extra = PASS_COST * base_rows if left else 0.0
    least = max(MIN_GAIN * len(sets) * base_rows, least_saved)
    if not families or saved - extra < least:
        return Lattice(
            tuple(map(tuple, sets)), (), "no set has an ancestor small enough to save a pass"
        )
    return Lattice(
        tuple(left), tuple(families), f"saves about {saved - extra:.0f} row aggregations"
    )


def _family(
    keys: frozenset[int],
    stored: Mapping[frozenset[int], Keys],
    left: Sequence[Keys],
    rows: float,
    base_rows: float,
) -> tuple[float, Family]:
    own = stored.get(keys)
    is_stored = own is not None and own in left
    children = tuple(
        s for s in left if frozenset(s) < keys or (frozenset(s) == keys and not is_stored)
    )
    ancestor = own if own is not None and is_stored else tuple(sorted(keys))
    members = len(children) + is_stored
    gain = members * base_rows - base_rows - rows * (len(children) + 2)
    return gain, Family(ancestor, is_stored, children)


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
