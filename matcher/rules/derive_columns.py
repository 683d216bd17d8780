"""Output derivability: an expression of the query from the columns that the view stores.

A whole expression that is stored wins over its parts (`year(d)` stored as a key needs no `d`); a
column that the query pins to one
value is that value, but never inside the filter that pins it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from matcher.model.budget import spend
from matcher.model.expr import Call, Col, Expr, Lit, columns, rebuild
from matcher.model.ir import GROUPING_ID_COLUMN, Measure, StoredColumn
from matcher.model.message import CacheName, ColumnName, Message, Sql, Word, listed
from matcher.model.reasons import Reason, ReasonCode
from matcher.normalize.functional_dependencies import Determined, measure_of_equals
from matcher.normalize.outer_join_keys import OuterJoinKey
from matcher.predicates.captured_settings import differing
from matcher.predicates.context import PredicateContext, column_equality
from matcher.predicates.time_windows import holds_whole, over, read_window
from matcher.render.select import is_renderable
from matcher.rules.attempt import Filters, Refused, ViewAttempt, is_spellable, spell, stored
from matcher.rules.coarsen_time import coarsen_time
from matcher.rules.derive_null_tests import derive_null_test, filter_by_null_test
from matcher.rules.filter_by_image import filter_by_image, is_redundant
from matcher.rules.invert_columns import invert_column, invertible
from matcher.rules.join_tables import fetch
from matcher.rules.map_outer_joins import check_found, filter_found

# Spark groups -0.0 with 0.0 (and shows 0.0); these do not tell them apart either. A field of a
# struct is asked for itself, by what is made of it.
BLIND_TO_ZERO_SIGN: Final = frozenset(
    "eq ne lt le gt ge nseq in isnull isnotnull isnan size field".split()
)


def find_stored(attempt: ViewAttempt) -> ViewAttempt:
    """Find what is `available`, and the `stored_aggs`.

    Args:
        attempt: The query and the view, with what the rules before have found.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT UPPER(note) AS u, COUNT(*) AS n FROM sales GROUP BY UPPER(note)",
    ...     "SELECT COUNT(*) AS n FROM sales WHERE UPPER(note) = 'A'",
    ... )
    SELECT COALESCE(SUM(`n`), 0L) AS `n` FROM c WHERE (`u` = 'A')
    """
    context = attempt.context
    available: dict[Expr, StoredColumn] = {}
    for expr, column in attempt.view.stored(attempt.grouping_set):
        available.setdefault(context.canonical(expr), column)
    stored_aggs: dict[Expr, Measure] = {}
    for agg, measure in attempt.view.measures:
        stored_aggs.setdefault(context.canonical(agg), measure)
    return replace(attempt, available=available, stored_aggs=stored_aggs)


def derive_filters(attempt: ViewAttempt) -> ViewAttempt:
    """Find the `filters`.

    Args:
        attempt: The query and the view, with what the rules before have found.

    Raises:
        Refused: OUTER_JOIN_DIFFERS where no stored column tells the rows that an outer join found.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, store, COUNT(*) AS n FROM sales GROUP BY item, store",
    ...     "SELECT COUNT(*) AS n FROM sales WHERE store = 3 OR item > 7",
    ... )
    SELECT COALESCE(SUM(`n`), 0L) AS `n` FROM c WHERE ((`store` = 3) OR (`item` > 7))
    """
    own: list[Expr] = []
    if attempt.grouping_set is not None:
        number = Lit(attempt.grouping_set.grouping_id, "bigint")
        column_id = Col(0, GROUPING_ID_COLUMN, "bigint", nullable=False)
        own.append(Call("eq", (column_id, number), "boolean", nullable=False))
    found_by_joins, untold = filter_found(attempt)
    own += found_by_joins
    derived: dict[Expr, Expr] = {}
    for predicate in attempt.shared.pending:
        found = _derive_filter(attempt, predicate)
        known = (*own, *attempt.notes.key_filters, *derived.values())
        if found is not None and found not in known:
            derived[predicate] = found
    check_found(attempt, untold, derived.values())
    conditions = {
        rel: _condition(attempt, join, rel)
        for join in attempt.shared.extra_outer_joins
        for rel in join.right
    }
    return replace(attempt, filters=Filters(tuple(own), derived, conditions=conditions))


def _condition(attempt: ViewAttempt, join: OuterJoinKey, rel: int) -> tuple[Expr, ...]:
    """The condition of an outer, semi or anti join to a table that the cache does not have."""
    own = attempt.shared.extra.index(rel) + 1
    found: list[Expr] = []
    for part in join.written:
        derived = derive(attempt, part, "filter")
        if derived is None:
            continue
        if any(c.rel > own for c in columns(derived)):  # joined later: not there yet
            attempt.notes.missing.append((part, "filter"))
        found.append(derived)
    return tuple(found)


def _derive_filter(attempt: ViewAttempt, predicate: Expr) -> Expr | None:
    pair = column_equality(predicate)
    if pair is not None:
        return _derive_equality(attempt, predicate, pair)
    if is_redundant(attempt, predicate):
        return None
    if attempt.shared.may_join_tables:  # before a table is joined for it
        found = filter_by_image(attempt, predicate)
        if found is not None:
            return found
    noted = len(attempt.notes.missing)
    found = derive(attempt, predicate, "filter", may_invert=False)
    if found is None:
        # by the stored column itself where that can be: files are passed over by it
        found = filter_by_image(attempt, predicate) or filter_by_null_test(attempt, predicate)
        if found is not None or any(invertible(attempt)):
            del attempt.notes.missing[noted:]
            found = found or derive(attempt, predicate, "filter")
    return found


def _derive_equality(attempt: ViewAttempt, predicate: Expr, pair: tuple[Col, Col]) -> Expr | None:
    """An equality of columns that the rows of the cache may break.

    Only the cache's own classes may stand in here: by the query's, which this very filter makes
    true, both sides would be
    the same stored column, and the filter nothing.
    """
    guaranteed = attempt.shared.guaranteed
    columns = {guaranteed.canonical(e): c for e, c in attempt.view.stored(attempt.grouping_set)}
    sides = []
    for side in pair:
        column = columns.get(guaranteed.canonical(side))
        if column is not None:
            attempt.notes.used.add(column.name)
            sides.append(stored(column, side))
            continue
        fetched = fetch(attempt, side, (side,))
        if fetched is None:
            attempt.notes.missing.append((side, "filter"))
            return None
        sides.append(fetched)
    return rebuild(predicate, tuple(sides))


def derive(
    attempt: ViewAttempt,
    expr: Expr,
    purpose: str,
    *,
    constants: bool = False,
    may_invert: bool = True,
) -> Expr | None:
    """`expr` over the view's columns, or None after noting what lacks in `notes.missing`.

    Args:
        attempt: The query and the view.
        expr: What is asked for.
        purpose: What it is for.
        constants: Whether a pinned column may be its value.
        may_invert: Whether a column may come back from an expression that is stored.
    """
    spend()
    canonical = attempt.context.canonical(expr)
    column = attempt.available.get(canonical)
    if column is not None:
        attempt.notes.used.add(column.name)
        return stored(column, expr)
    pinned = attempt.context.constant(canonical) if constants else None
    found: Expr | None = None
    if isinstance(expr, Lit):
        found = expr if is_spellable(expr) else None
    elif pinned is not None and is_spellable(pinned):
        found = pinned
    elif isinstance(expr, Call):
        found = (
            coarsen_time(attempt, expr)
            or _wider_window(attempt, canonical)
            or derive_null_test(attempt, canonical)
        )
        if found is None and is_renderable(expr.op, len(expr.args)):
            return _from_parts(attempt, expr, purpose, constants, may_invert)
    elif isinstance(expr, Col):
        found = (
            _same_in_group(attempt, expr)
            or (invert_column(attempt, expr) if may_invert else None)
            or fetch(attempt, expr, attempt.context.members(expr))
        )
    if found is None:
        attempt.notes.missing.append((expr, purpose))
    return found


def _from_parts(
    attempt: ViewAttempt, call: Call, purpose: str, constants: bool, may_invert: bool
) -> Expr | None:
    """A call of what its arguments are derived to."""
    noted = len(attempt.notes.missing)
    parts = [
        derive(attempt, a, purpose, constants=constants, may_invert=may_invert) for a in call.args
    ]
    if any(map(attempt.is_blurred_key, parts)) and call.op not in BLIND_TO_ZERO_SIGN:
        attempt.notes.missing.append((call, purpose))
        return None
    if all(part is not None for part in parts):
        return rebuild(call, tuple(p for p in parts if p is not None))
    name_field(attempt, call, purpose, noted)
    return None


def name_field(attempt: ViewAttempt, expr: Expr, purpose: str, noted: int) -> None:
    """Say of a field that it lacks, and not its whole struct.

    Args:
        attempt: Notes what lacks.
        expr: What could not be derived; nothing happens if it is no field.
        purpose: What it is for.
        noted: How much was noted before its struct was.
    """
    if _is_field(expr):
        attempt.notes.missing[noted:] = [(expr, purpose)]


def _is_field(expr: Expr) -> bool:
    """True of a field of a column, or of a struct in one."""
    if not (isinstance(expr, Call) and expr.op == "field"):
        return False
    return isinstance(expr.args[0], Col) or _is_field(expr.args[0])


def _wider_window(attempt: ViewAttempt, canonical: Expr) -> Expr | None:
    """A `window` from stored ones of the same time that lie within it whole."""
    wanted = read_window(canonical)
    if wanted is None:
        return None
    for expr, column in attempt.available.items():
        fine = read_window(expr)
        if fine is not None and holds_whole(wanted, fine):
            attempt.notes.used.add(column.name)
            start = Call("field", (stored(column, expr),), "timestamp", True, ("start",))
            return over(canonical, start)
    return None


def determined(attempt: ViewAttempt, known: Iterable[Expr]) -> Determined:
    """What the values of canonical expressions determine in the rows that the cache was made of."""
    return _determined(attempt, attempt.context, known)


def _determined(
    attempt: ViewAttempt, context: PredicateContext, known: Iterable[Expr]
) -> Determined:
    view = attempt.view
    tables = list(zip(view.relations, (r.key for r in view.plan.relations), strict=True))
    trusted = attempt.options.trust_unvalidated
    joins = [j for j in view.joins if j.validated or trusted]
    return Determined(context, known, tables, joins, attempt.options.time_zone)


def _same_in_group(attempt: ViewAttempt, column: Col) -> Col | None:
    """A column that the view's keys determine, from a MIN, MAX or the like that is stored of it."""
    canonical = attempt.context.canonical(column)
    assert isinstance(canonical, Col)
    measure = measure_of_equals(attempt.stored_aggs, canonical)
    if measure is None or attempt.view.keys is None:
        return None
    # By what the cache itself guarantees: `WHERE x = 1` gives x one value in the rows that pass,
    # not in the groups, and this may be the very filter that is being derived.
    guaranteed = attempt.shared.guaranteed
    keys = [guaranteed.canonical(e) for e, _ in attempt.view.stored(attempt.grouping_set)]
    given = _determined(attempt, guaranteed, keys)
    if guaranteed.canonical(column) not in given:
        return None
    attempt.notes.used.add(measure.name)
    attempt.notes.joins_used += given.joins_used
    return Col(0, measure.name, column.type)


def refuse_missing(attempt: ViewAttempt) -> ViewAttempt:
    """Turn what was noted as missing into one reason that names all of it, and the smallest change.

    Args:
        attempt: The query and the view, with what the rules before have found.

    Raises:
        Refused: if anything is missing.

    >>> from matcher.examples import answer
    >>> answer(
    ...     "SELECT item, COUNT(*) AS n FROM sales GROUP BY item",
    ...     "SELECT COUNT(*) AS n FROM sales WHERE store = 3",
    ... )
    PREDICATE_COLUMN_MISSING: cache c lacks store (needed for filter)
    """
    if not attempt.notes.missing:
        return attempt
    names = list(dict.fromkeys(spell(expr) for expr, _ in attempt.notes.missing))
    options = attempt.options
    for expr, _ in attempt.notes.missing:
        captured = differing(expr, ansi=options.ansi, time_zone=options.time_zone)
        if captured is not None:
            raise Refused(captured, lacking=len(names))
    for_filter = all(purpose == "filter" for _, purpose in attempt.notes.missing)
    if attempt.grouping_set is not None:
        code = ReasonCode.COLUMN_NOT_IN_GROUPING_SET
    else:
        code = ReasonCode.PREDICATE_COLUMN_MISSING if for_filter else ReasonCode.COLUMN_NOT_IN_CACHE
    purposes = sorted({purpose for _, purpose in attempt.notes.missing})
    raise Refused(
        Reason(
            code,
            "{view} lacks {missing} (needed for {purposes})",
            "{cure}",
            view=attempt.view_name(),
            missing=listed(Sql, names),
            purposes=listed(Word, purposes, " and "),
            cure=where_to_add(attempt, [expr for expr, _ in attempt.notes.missing]),
        ),
        lacking=len(names),
    )


def where_to_add(attempt: ViewAttempt, missing: Sequence[Expr]) -> Message:
    """To which list of the definition to add what a query needs and the cache lacks.

    Args:
        attempt: The query and the cache, or one set of it.
        missing: What it lacks.
    """
    keys = {expr: column.name for expr, column in attempt.view.columns}
    names = list(dict.fromkeys(keys.get(expr) or spell(expr) for expr in missing))
    if attempt.grouping_set is not None:
        return _smallest_set(attempt, names)
    where = "GROUP BY" if attempt.view.keys is not None else "SELECT"
    return Message(
        "add {names} to the {clause} list of {cache}",
        names=listed(Sql, names),
        clause=Word(where),
        cache=CacheName(attempt.view.name),
    )


def _smallest_set(attempt: ViewAttempt, names: list[str]) -> Message:
    """Widen this set, or add the smallest one that serves the query, in the order of the cube's
    columns."""
    cube = [column.name for _, column in attempt.view.columns]
    new = [name for name in names if name not in cube]
    added = listed(Sql, names)
    if new:
        return Message(
            "add {new} to the GROUP BY list of {cache}, and {added} to a grouping set",
            new=listed(Sql, new),
            cache=CacheName(attempt.view.name),
            added=added,
        )
    needed = [name for name in cube if name in attempt.notes.used or name in names]
    return Message(
        "add {added} to grouping set ({present}), or add the set ({needed})",
        added=added,
        present=listed(ColumnName, attempt.set_columns()),
        needed=listed(ColumnName, needed),
    )
