"""What a conjunction of predicates says: column equivalence classes, a domain for each operand,
residual predicates.

After J. Goldstein and P.-Å. Larson, "Optimizing Queries Using Materialized Views" (SIGMOD 2001),
section 3.1:

1. equijoin subsumption: `a = b` of columns whose equal values are identical puts them in one class;
2. range subsumption: comparisons of an operand with constants are intersected to a `Domain` (any
    deterministic expression may
   be an operand, not only a column);
3. residual subsumption: what is left is compared by structure, after canonical spelling and with
    classes' representatives.

Worked example: `lo_orderdate = d_datekey AND d_year > 1992 AND d_year <= 1997` has the class
{lo_orderdate, d_datekey} and the domain
[1993, 1997] of d_year, and so implies `d_year IN (1993, …, 1997)` and `d_datekey IS NOT NULL`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from matcher.domains import EVERYTHING, NOT_NULL, Domain, domain_of
from matcher.expr import FALSE, TRUE, Agg, Call, Col, Expr, Lit, conjuncts, disjuncts, rebuild
from matcher.types import INTEGRAL, has_exact_equality

_FLIP: Final = {
    "lt": "gt",
    "gt": "lt",
    "le": "ge",
    "ge": "le",
    "eq": "eq",
    "ne": "ne",
    "nseq": "nseq",
}
_NEGATE: Final = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt",
                  "isnull": "isnotnull", "isnotnull": "isnull"}  # fmt: skip
_MEMO_CAPACITY: Final = 4096
_COMMUTES: Final = frozenset({"and", "or", "eq", "ne", "nseq", "add", "mul"})
# NULL in, NULL out: where the result passes a filter, no argument was NULL.
NULL_IN_NULL_OUT: Final = frozenset(
    "eq ne lt le gt ge add sub mul neg like startswith endswith contains not cast "
    "year month day quarter upper lower substring abs".split()
)


class PredicateContext:
    """The meaning of a conjunction. Built once for a block or a cache, then only read (so that
    threads may share it)."""

    __slots__ = ("_canonical", "_nonnull", "_parent", "conjuncts", "domains", "residuals")

    def __init__(
        self, predicates: Iterable[Expr], equalities: Iterable[tuple[Col, Col]] = ()
    ) -> None:
        self._parent: dict[Col, Col] = {}
        self._canonical: dict[Expr, Expr] = {}
        self._nonnull: set[Expr] = set()
        self.domains: dict[Expr, Domain] = {}
        self.residuals: set[Expr] = set()
        parts = [part for p in predicates for part in conjuncts(p)]
        self.conjuncts: tuple[Expr, ...] = tuple(parts)
        rest = [part for part in parts if not self._take_equality(part)]
        for left, right in equalities:
            self._union(left, right)
        for part in rest:
            self._take(self.canonical(part))

    # -- building -----------------------------------------------------------------------------

    def _take_equality(self, predicate: Expr) -> bool:
        pair = column_equality(predicate)
        if pair is None:
            return False
        self._union(*pair)
        return True

    def _union(self, a: Col, b: Col) -> None:
        ra, rb = self.find(a), self.find(b)
        if ra == rb:
            self._parent.setdefault(ra, ra)
            return
        low, high = (ra, rb) if (ra.rel, ra.name) < (rb.rel, rb.name) else (rb, ra)
        self._parent.setdefault(low, low)
        self._parent[high] = low

    def _take(self, predicate: Expr) -> None:
        for part in conjuncts(predicate):
            if part == TRUE:
                continue
            known = domain_of(part)
            if known is None:
                self.residuals.add(part)
                self._reject_nulls(part)
                continue
            operand, allowed = known
            self.domains[operand] = self.domains.get(operand, EVERYTHING).intersect(allowed)
            if not allowed.null:
                self._reject_nulls(operand)

    def _reject_nulls(self, expr: Expr) -> None:
        """`expr` is not NULL in any row that passes; neither are the arguments of strict operators
        in it."""
        self._nonnull.add(expr)
        if isinstance(expr, Call) and expr.op in NULL_IN_NULL_OUT:
            for arg in expr.args:
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
        found: dict[Col, list[Col]] = {}
        for member in self._parent:
            found.setdefault(self.find(member), []).append(member)
        return found

    def members(self, column: Col) -> list[Col]:
        """The columns known to be equal to `column`, itself first."""
        top = self.find(column)
        return [column, *(m for m in self._parent if m != column and self.find(m) == top)]

    def canonical(self, expr: Expr) -> Expr:
        """`expr` with representatives for columns and one spelling for equal predicates."""
        known = self._canonical.get(expr)
        if known is None:
            known = self._canonicalise(expr)
            if len(self._canonical) >= _MEMO_CAPACITY:  # a cache's context outlives many queries
                self._canonical = {}
            self._canonical[expr] = known
        return known

    def _canonicalise(self, expr: Expr) -> Expr:
        if isinstance(expr, Col):
            return self.find(expr)
        if not expr.children:
            return expr
        done = rebuild(expr, tuple(self.canonical(child) for child in expr.children))
        if isinstance(done, Agg):
            return _spell_agg(done)
        return _spell(done) if isinstance(done, Call) else done

    def domain(self, operand: Expr) -> Domain:
        """The values that `operand` (canonical) may have in rows that pass."""
        found = self.domains.get(operand, EVERYTHING)
        return found.intersect(NOT_NULL) if found.null and self.never_null(operand) else found

    def never_null(self, operand: Expr) -> bool:
        """True if no row that passes has NULL in `operand` (canonical)."""
        if not operand.nullable or operand in self._nonnull or operand in self._parent:
            return True
        return not self.domains.get(operand, EVERYTHING).null

    def rejected(self) -> frozenset[int]:
        """The relations of which some column is not NULL in any row that passes."""
        known = (*self._nonnull, *self._parent)
        return frozenset(
            m.rel for found in known if isinstance(found, Col) for m in self.members(found)
        )

    def constant(self, operand: Expr) -> Lit | None:
        """The one value that `operand` (canonical) has in all rows that pass, where equality means
        identity."""
        found = self.domains.get(operand)
        if found is None or not has_exact_equality(operand.type):
            return None
        value = found.single
        if value is None:
            return None
        return Lit(bool(value) if operand.type == "boolean" else value, operand.type)

    def implies(self, predicate: Expr) -> bool:
        """True if every row that passes this conjunction satisfies `predicate` (never a wrong
        True)."""
        pair = column_equality(predicate)
        if pair is not None and self.find(pair[0]) == self.find(pair[1]):
            return self.never_null(self.find(pair[0]))
        return self._implies(self.canonical(predicate))

    def _implies(self, predicate: Expr) -> bool:
        if predicate == TRUE or predicate in self.residuals:
            return True
        known = domain_of(predicate)
        if known is not None and known[1].contains(self.domain(known[0])):
            return True
        if not isinstance(predicate, Call):
            return False
        if predicate.op == "eq" and predicate.args[0] == predicate.args[1]:
            return self.never_null(predicate.args[0])
        if predicate.op == "and":
            return all(self._implies(arg) for arg in predicate.args)
        if predicate.op == "or" and any(self._implies(arg) for arg in predicate.args):
            return True
        return self._implied_by_cases(predicate)

    def _implied_by_cases(self, predicate: Expr) -> bool:
        """Some OR of ours holds; if each of its branches implies the predicate, so do we."""
        for residual in self.residuals:
            branches = disjuncts(residual)
            if len(branches) > 1 and all(
                PredicateContext(conjuncts(branch))._implies(predicate) for branch in branches
            ):
                return True
        return False


def column_equality(predicate: Expr) -> tuple[Col, Col] | None:
    """The two sides of `a = b` between columns whose equal values are identical, else None."""
    if not isinstance(predicate, Call) or predicate.op != "eq":
        return None
    left, right = predicate.args
    if isinstance(left, Col) and isinstance(right, Col) and left.type == right.type:
        return (left, right) if has_exact_equality(left.type) else None
    return None


def _spell(call: Call) -> Expr:
    """One spelling for predicates that Spark evaluates alike; arguments are canonical already."""
    op, args = call.op, call.args
    if op in _FLIP and isinstance(args[0], Lit) and not isinstance(args[1], Lit):
        return _spell(_with(call, _FLIP[op], (args[1], args[0])))
    if op in ("gt", "ge") and not isinstance(args[1], Lit):
        return _with(call, _FLIP[op], (args[1], args[0]))
    if op == "nseq" and isinstance(args[1], Lit) and args[1].value is None:
        return Call("isnull", args[:1], call.type, nullable=False)
    if op == "eq" and args[1] == TRUE:  # NULL = TRUE is NULL, as the operand itself is
        return args[0]
    if op == "eq" and args[1] == FALSE:
        return _spell_not(_with(call, "not", (args[0],)))
    if op == "not":
        return _spell_not(call)
    if op in ("and", "or"):
        flat = [p for a in args for p in (a.args if isinstance(a, Call) and a.op == op else (a,))]
        return _with(call, op, tuple(sorted(dict.fromkeys(flat), key=repr)))
    if op in _COMMUTES and not isinstance(args[1], Lit):
        return _with(call, op, tuple(sorted(args, key=repr)))
    if op == "in" and all(isinstance(a, Lit) for a in args[1:]):
        values = tuple(sorted(dict.fromkeys(args[1:]), key=repr))
        if len(values) == 1:
            return _with(call, "eq", (args[0], values[0]))
        return _with(call, "in", (args[0], *values))
    return call


def _spell_not(call: Call) -> Expr:
    inner = call.args[0]
    if not isinstance(inner, Call):
        return call
    if inner.op == "not":
        return inner.args[0]
    if inner.op in _NEGATE:
        return _spell(_with(inner, _NEGATE[inner.op], inner.args))
    if inner.op in ("and", "or"):  # De Morgan holds in three-valued logic
        parts = tuple(_spell_not(_with(call, "not", (arg,))) for arg in inner.args)
        return _spell(_with(inner, "or" if inner.op == "and" else "and", parts))
    return call


def _spell_agg(agg: Agg) -> Agg:
    """SUM and AVG widen whole numbers themselves, so a widening cast below them changes nothing."""
    arg = agg.args[0] if agg.func in ("sum", "try_sum", "avg") and len(agg.args) == 1 else None
    if not isinstance(arg, Call) or arg.op != "cast":
        return agg
    inner = arg.args[0]
    if INTEGRAL.get(inner.type, 99) > INTEGRAL.get(arg.type, 0):
        return agg
    args = (inner,)
    return Agg(agg.func, args, agg.type, agg.nullable, agg.distinct, agg.filter, agg.params)


def _with(call: Call, op: str, args: tuple[Expr, ...]) -> Call:
    return Call(op, args, call.type, call.nullable, call.params)
