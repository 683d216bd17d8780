"""What a conjunction of predicates says: column equivalence classes, a domain for each operand,
residual predicates.

After J. Goldstein and P.-Å. Larson, "Optimizing Queries Using Materialized Views" (SIGMOD 2001),
section 3.1:

1. equijoin subsumption: `a = b` of columns whose equal values are identical puts them in one class;
2. range subsumption: comparisons of an operand with constants are intersected to a `Domain` (any
    deterministic expression may be an operand, not only a column; `matcher.predicates.truth` reads
    them);
3. residual subsumption: what is left is compared by structure, after canonical spelling and with
    classes' representatives (`matcher.predicates.implication` asks for all three).

Beyond the paper: what all branches of an OR or all matches of a LIKE share is a range as well.

Worked example: `lo_orderdate = d_datekey AND d_year > 1992 AND d_year <= 1997` has the class
{lo_orderdate, d_datekey} and the domain
[1993, 1997] of d_year, and so implies `d_year IN (1993, …, 1997)` and `d_datekey IS NOT NULL`.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import maxsize
from typing import Final

from matcher.model.budget import tick
from matcher.model.expr import (
    FALSE,
    TRUE,
    Agg,
    Call,
    Col,
    Expr,
    Lit,
    columns,
    conjuncts,
    disjuncts,
    rebuild,
)
from matcher.model.expr import transform as substitute
from matcher.model.operators import STRICT
from matcher.model.types import has_exact_equality
from matcher.predicates.aggregate_filters import as_filter
from matcher.predicates.canonical import holds, spell, spell_agg
from matcher.predicates.constant_folding import NULL, fold_all
from matcher.predicates.domains import (
    EVERYTHING,
    NOT_NULL,
    NULL_ONLY,
    Domain,
    literal_of,
    normal,
    prefix,
    union_all,
    universe,
)
from matcher.predicates.like_patterns import split_prefix
from matcher.predicates.monotone import image, monotone
from matcher.predicates.null_sources import null_for_null_only
from matcher.predicates.truth import ORDER, domain_of, innermost

# IN with a list of one, too
_SAME: Final = frozenset(("eq", "nseq", "in"))
_MEMO_OF_QUERY: Final = 4096
_MAX_SHARED: Final = 64


class PredicateContext:
    """The meaning of a conjunction. Built once for a block or a cache, then only read (so that
    threads may share it).

    Args:
        predicates: What holds.
        equalities: Columns that are equal besides.
        memo: So many expressions are remembered in their canonical form. A query's context meets
            those of many caches; a cache's outlives many queries, each with constants of its own,
            and there are thousands of it.
    """

    __slots__ = (
        "_branches",
        "_canonical",
        "_capacity",
        "_classes",
        "_fixed",
        "_groups",
        "_nonnull",
        "_parent",
        "_settled",
        "conjuncts",
        "domains",
        "residuals",
    )

    def __init__(
        self,
        predicates: Iterable[Expr],
        equalities: Iterable[tuple[Col, Col]] = (),
        memo: int = _MEMO_OF_QUERY,
    ) -> None:
        self._capacity = memo
        self._parent: dict[Col, Col] = {}
        self._classes: dict[Col, list[Col]] | None = None  # made when first asked for
        self._canonical: dict[Expr, Expr] = {}
        self._settled: dict[Expr, Expr] = {}
        self._nonnull: set[Expr] = set()
        self._branches: dict[Expr, tuple[PredicateContext, ...]] = {}
        self._fixed: dict[Expr, Lit] = {}
        self._groups: dict[Col, list[Expr]] | None = None  # made when first asked for
        self.domains: dict[Expr, Domain] = {}
        # in order, so that what is looked at first is the same in each process
        self.residuals: dict[Expr, None] = {}
        parts = [part for p in predicates for part in conjuncts(p)]
        self.conjuncts: tuple[Expr, ...] = tuple(parts)
        rest = [part for part in parts if not self._take_equality(part)]
        for left, right in equalities:
            self._union(left, right)
        rest = [self.canonical(part) for part in rest]
        for part in rest:
            self._take(part)
        self._share_equal_values()
        self._take_with_constants(rest)

    # -- building -----------------------------------------------------------------------------

    def _take_equality(self, predicate: Expr) -> bool:
        pair = column_equality(predicate)
        if pair is None:
            return False
        self._union(*pair)
        return True

    def _union(self, a: Col, b: Col) -> None:
        self._classes = None
        ra, rb = self.find(a), self.find(b)
        if ra == rb:
            self._parent.setdefault(ra, ra)
            return
        low, high = (ra, rb) if (ra.rel, ra.name) < (rb.rel, rb.name) else (rb, ra)
        self._parent.setdefault(low, low)
        self._parent[high] = low

    def _take(self, predicate: Expr) -> None:
        tick()
        for part in conjuncts(holds(predicate)):
            if part == TRUE:
                continue
            known = domain_of(part)
            if known is None or (known[0] == part and not isinstance(part, Col)):
                self.residuals[part] = None
                self._reject_nulls(part)
                self._take_necessary(part)
            if known is not None:
                self._restrict(*known)

    def _restrict(self, operand: Expr, allowed: Domain) -> None:
        known = self.domains.get(operand)
        self.domains[operand] = (known or universe(operand.type)).intersect(allowed)
        if not allowed.null:
            self._reject_nulls(operand)

    def _take_necessary(self, part: Expr) -> None:
        """The ranges that a residual predicate cannot leave: those that all branches of an OR
        share, and the common beginning of what is LIKE a pattern."""
        if not isinstance(part, Call):
            return
        if part.op == "or" and len(part.args) <= _MAX_SHARED:
            branches = [PredicateContext(conjuncts(arg)) for arg in part.args]
            for operand, allowed in _shared_domains(branches).items():
                self._restrict(operand, allowed)
            self._nonnull |= set.intersection(*(branch._nonnull for branch in branches))
        if part.op == "like" and isinstance(part.args[1], Lit):
            value, pattern = part.args[0], part.args[1].value  # LIKE NULL has no match at all
            start = split_prefix(str(pattern), part.params)
            if start is not None and start[0] and value.type == "string":
                self._restrict(value, normal([prefix(start[0])], False))

    def _share_equal_values(self) -> None:
        """The sides of an equality that makes no class (of expressions, of floats) have the same
        values all the same."""
        pairs = [
            operand.args
            for operand, allowed in self.domains.items()
            if isinstance(operand, Call) and operand.op == ORDER and allowed.single == 0
        ]
        for left, right in pairs * 2:
            both = self.domain(left).intersect(self.domain(right))
            for side in (left, right):
                if not isinstance(side, Lit) and not both.contains(self.domain(side)):
                    self._restrict(*innermost(side, both))

    def _take_with_constants(self, parts: list[Expr]) -> None:
        """What conditions say where a column of theirs is one constant: `a = 5 AND a < b` says
        b > 5. Spark puts the constant there itself (`ConstantPropagation`)."""
        known = {o for o in self.domains if isinstance(o, Col)}
        found = {column: self.constant(column) for column in known}
        self._fixed = {column: lit for column, lit in found.items() if lit is not None}
        for part in parts if self._fixed else ():
            if len(set(columns(part))) > 1:
                told = self.with_constants(part)
                if told != part:
                    self._take(self.canonical(told))

    def _reject_nulls(self, expr: Expr) -> None:
        """`expr` is not NULL in any row that passes; neither are the arguments of strict operators
        in it."""
        self._nonnull.add(expr)
        if isinstance(expr, Call):
            # of NULL IN (…) nothing is known, whatever is listed
            for arg in expr.args if expr.op in STRICT else expr.args[: expr.op == "in"]:
                self._reject_nulls(arg)

    # -- reading ------------------------------------------------------------------------------

    def find(self, column: Col) -> Col:
        """The representative of the column's equivalence class."""
        parent = self._parent
        while True:
            up = parent.get(column)
            if up is None or up == column:
                return column
            column = up

    def classes(self) -> dict[Col, list[Col]]:
        """Members of each class of two or more columns, by representative."""
        if self._classes is None:
            found: dict[Col, list[Col]] = {}
            for member in self._parent:
                found.setdefault(self.find(member), []).append(member)
            self._classes = found
        return self._classes

    def members(self, column: Col) -> list[Col]:
        """The columns known to be equal to `column`, itself first."""
        equal = self.classes().get(self.find(column), ())
        return [column, *(member for member in equal if member != column)]

    def with_equals(self, named: Iterable[Col]) -> set[Col]:
        """These columns and all that are known to be equal to one of them."""
        found = set(named)
        tops = {self.find(column) for column in found.intersection(self._parent)}
        if tops:
            found.update(member for member in self._parent if self.find(member) in tops)
        return found

    def canonical(self, expr: Expr) -> Expr:
        """`expr` with representatives for columns and one spelling for equal predicates."""
        known = self._canonical.get(expr)
        if known is None:
            known = self._canonicalise(expr)
            if len(self._canonical) - len(self._settled) >= self._capacity:
                self._canonical = dict(self._settled)
            self._canonical[expr] = known
        return known

    def settle_on(self, exprs: Iterable[Expr]) -> None:
        """Let these expressions be the ones that equal ones are spelled by.

        Expressions are equal whatever is known of NULL in them, and what is asked first is
        remembered: a column that a LEFT join of some cache makes NULL must not stand for the same
        column here, where it is never NULL, nor the other way round.
        """
        most, self._capacity = self._capacity, maxsize
        for expr in exprs:
            self.canonical(expr)
        self._capacity, self._settled = most, dict(self._canonical)

    def _canonicalise(self, expr: Expr) -> Expr:
        tick()
        if isinstance(expr, Col):
            return self.find(expr)
        if not expr.children:
            return expr
        if isinstance(expr, Agg):
            expr = as_filter(expr)
            if not expr.children:
                return expr
        done = rebuild(expr, tuple(self.canonical(child) for child in expr.children))
        if isinstance(done, Agg):
            return spell_agg(done)
        return spell(done) if isinstance(done, Call) else done

    def domain(self, operand: Expr) -> Domain:
        """The values that `operand` (canonical) may have in rows that pass."""
        found = self.domains.get(operand)
        if found is None:
            found = universe(operand.type)
        function = monotone(operand)
        if function is not None:
            found = found.intersect(image(function, self.domain(function.argument)))
        elif isinstance(operand, Call) and operand.op in STRICT:
            if any(self.domains.get(arg) == NULL_ONLY for arg in operand.args):
                found = found.intersect(NULL_ONLY)
        return found.intersect(NOT_NULL) if found.null and self.never_null(operand) else found

    def never_null(self, operand: Expr) -> bool:
        """True if no row that passes has NULL in `operand` (canonical)."""
        if not operand.nullable or operand in self._nonnull or operand in self._parent:
            return True
        if not self.domains.get(operand, EVERYTHING).null:
            return True
        return (
            isinstance(operand, Call)
            and null_for_null_only(operand)
            and all(self.never_null(arg) for arg in operand.args)
        )

    def rejected(self) -> frozenset[int]:
        """The relations of which some column is not NULL in any row that passes."""
        known = (*self._nonnull, *self._parent)
        found = {m.rel for c in known if isinstance(c, Col) for m in self.members(c)}
        for residual in self.residuals:
            branches = disjuncts(residual)
            if 1 < len(branches) <= _MAX_SHARED:  # each of them may reject by another column
                rejecting = (PredicateContext(conjuncts(b)).rejected() for b in branches)
                found |= frozenset.intersection(*rejecting)
        return frozenset(found)

    def constant(self, operand: Expr) -> Lit | None:
        """The one value that `operand` (canonical) has in all rows that pass, where equality means
        identity."""
        if not has_exact_equality(operand.type):
            return None
        if operand not in self.domains and monotone(operand) is None:
            return None
        return literal_of(self.domain(operand).single, operand.type)

    @property
    def weight(self) -> int:
        """How many facts there are to look through."""
        return len(self.residuals) + len(self.domains)

    @property
    def is_never_true(self) -> bool:
        """True if it is plain that no row passes."""
        return FALSE in self.residuals or NULL in self.residuals

    def with_constants(self, expr: Expr) -> Expr:
        """`expr` with the columns that have one value in all rows that pass replaced by it."""
        return fold_all(substitute(expr, self._fixed.get)) if self._fixed else expr

    def alternatives(self, predicate: Expr) -> list[Expr]:
        """The ORs that stay residual and have to do with a predicate: with its columns, or with
        columns that other facts connect with those. What each branch of any other says holds of
        other columns alone, and so of the predicate no more than is known without it.

        Args:
            predicate: Canonical.
        """
        if self._groups is None:
            self._groups = self._connected()
        groups = {id(g): g for c in columns(predicate) if (g := self._groups.get(c)) is not None}
        return [each for group in groups.values() for each in group]

    def _connected(self) -> dict[Col, list[Expr]]:
        """The ORs of each connected component of columns; a fact connects those it names."""
        ors = [residual for residual in self.residuals if len(disjuncts(residual)) > 1]
        if not ors:  # as of most queries: no fact is looked through
            return {}
        top: dict[Col, Col] = {}

        def find(column: Col) -> Col:
            while top[column] != column:
                top[column] = column = top[top[column]]
            return column

        named = {fact: tuple(columns(fact)) for fact in (*self.residuals, *self.domains)}
        for fact in named.values():
            for column in fact:
                top.setdefault(column, column)
                top[find(column)] = find(fact[0])
        groups: dict[Col, list[Expr]] = {}
        for residual in ors:
            if named[residual]:
                groups.setdefault(find(named[residual][0]), []).append(residual)
        return {column: groups[t] for column in top if (t := find(column)) in groups}

    def cases(self, residual: Expr) -> tuple[PredicateContext, ...]:
        """Each branch of an OR together with all else that we know."""
        found = self._branches.get(residual)
        if found is None:
            others = {r: None for r in self.residuals if r != residual}
            made = []
            for branch in disjuncts(residual):
                context = PredicateContext((branch,), memo=self._capacity)
                context.residuals |= others
                for operand, allowed in self.domains.items():
                    context._restrict(context.canonical(operand), allowed)
                context._nonnull |= self._nonnull
                ours = {c: k for c, k in self._fixed.items() if context.canonical(c) == c}
                context._fixed = {**ours, **context._fixed}
                made.append(context)
            found = self._branches[residual] = tuple(made)
        return found

    def limited(self, operand: Expr, allowed: Domain) -> PredicateContext:
        """What we know, with fewer values of one operand."""
        context = PredicateContext(())
        context._parent = self._parent
        context._classes = self._classes
        context._nonnull = set(self._nonnull)
        context.residuals = self.residuals
        context.domains = {**self.domains, operand: allowed}
        context._fixed = self._fixed
        return context


def column_equality(predicate: Expr) -> tuple[Col, Col] | None:
    """The two sides of `a = b` between columns whose equal values are identical, else None."""
    if not isinstance(predicate, Call) or predicate.op != "eq":
        return None
    left, right = predicate.args
    if left == right:  # says no more than that it is not NULL
        return None
    if isinstance(left, Col) and isinstance(right, Col) and left.type == right.type:
        return (left, right) if has_exact_equality(left.type) else None
    return None


def fixed_columns(predicates: Iterable[Expr]) -> dict[Col, Lit]:
    """The columns that conjuncts say are one constant; not of types in which values are equal and
    not the same."""
    found: dict[Col, Lit] = {}
    for part in predicates:
        if isinstance(part, Call) and part.op in _SAME and len(part.args) == 2:
            column, constant = sorted(part.args, key=lambda side: isinstance(side, Lit))
            if isinstance(column, Col) and isinstance(constant, Lit) and constant.value is not None:
                if column.type == constant.type and has_exact_equality(column.type):
                    found[column] = constant
    return found


def _shared_domains(branches: list[PredicateContext]) -> dict[Expr, Domain]:
    """For each operand that all branches restrict: what some branch allows."""
    shared: dict[Expr, Domain] = {}
    for operand in branches[0].domains:
        if all(operand in branch.domains for branch in branches):
            shared[operand] = union_all([branch.domain(operand) for branch in branches])
    return shared
