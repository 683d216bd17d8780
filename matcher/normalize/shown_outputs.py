"""From the outputs of a definition with groups to what is stored for them, and how each is had of
that.

A group key and an aggregate are stored as they are. Of all else (`SUM(a) / SUM(b)`, `year + 1`, a
constant, a key that is selected a second time) the keys and aggregates beneath are stored, and the
output is computed of them, by Spark's own expression, wherever it is shown or asked for. So it is
rolled up and maintained as its parts are, and a ratio that divides by zero raises an error where it
is read, as it would without the cache, and not where the cache is refreshed.

What a column is named is the definition's matter, and what its table's column is named is ours:
a name that Delta does not take (`sum(x)`, blanks), or that another column has in whatever letter
case, stays what the output is shown as, and its column is called by its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from matcher.model.errors import DefinitionNotSupported, InputCode
from matcher.model.expr import Agg, Call, Col, Expr, Lit, transform
from matcher.model.ir import (
    GROUPING_ID_COLUMN,
    HIDDEN_PREFIX,
    CachePlan,
    GroupingSet,
    Measure,
    Output,
    StoredColumn,
)
from matcher.normalize.stored_block import stored_block

_FORBIDDEN_IN_NAMES: Final = frozenset(" ,;{}()\n\t=")


@dataclass(frozen=True, slots=True)
class GroupedColumns:
    """What is stored of a definition with groups.

    Args:
        keys: The group keys, in the order of the GROUP BY list.
        measures: The aggregates.
        shown: The outputs over these columns; see `CachePlan.shown`.
    """

    keys: tuple[StoredColumn, ...]
    measures: tuple[Measure, ...]
    shown: tuple[Output, ...]


def stored_names(outputs: Sequence[Output]) -> tuple[str, ...]:
    """A name for the stored column of each output: its own where a table may have it.

    Args:
        outputs: The outputs; of one without a name the name is empty.

    Raises:
        DefinitionNotSupported: A name begins as those of hidden columns do.

    >>> a = Col(0, "a", "int")
    >>> stored_names([Output("a", a), Output("A", a), Output("sum(x)", a)])
    ('a', '__col_1', '__col_2')
    """
    taken: set[str] = set()
    found = []
    for number, output in enumerate(outputs):
        name = output.name
        if name.startswith(HIDDEN_PREFIX):
            raise DefinitionNotSupported(
                InputCode.RESERVED_COLUMN,
                f"output column {name} starts with {HIDDEN_PREFIX}, which is kept for hidden "
                f"columns such as {GROUPING_ID_COLUMN}: choose another name",
            )
        fits = name and not _FORBIDDEN_IN_NAMES & set(name) and name.lower() not in taken
        taken.add(name.lower())
        found.append(name if fits else f"{HIDDEN_PREFIX}col_{number}")
    return tuple(found)


def grouped_columns(
    outputs: Sequence[Output],
    group_keys: Sequence[Expr],
    sets: Sequence[GroupingSet],
    having: Sequence[Expr] = (),
) -> GroupedColumns:
    """What to store of a definition with groups.

    Args:
        outputs: Its outputs, without the grouping id itself.
        group_keys: Its keys.
        sets: Its grouping sets, if it has any.
        having: Its conditions on groups, which queries say again: what they are about is stored.

    Raises:
        DefinitionNotSupported: An output holds a column that is no key, outside of aggregates.

    >>> x, k = Col(0, "x", "int"), Col(0, "k", "int")
    >>> total = Agg("sum", (x,), "bigint")
    >>> ratio = Call("div", (total, Agg("count", (), "bigint")), "double")
    >>> found = grouped_columns([Output("k", k), Output("mean", ratio)], [k], [])
    >>> [m.name for m in found.measures], found.shown[1].expr
    (['__agg_0', '__agg_1'], div($0.__agg_0, $0.__agg_1))
    """
    names = stored_names(outputs)
    shown_keys: dict[Expr, str] = {}
    measures: list[Measure] = []
    for name, output in zip(names, outputs, strict=True):
        if output.expr in group_keys:
            shown_keys.setdefault(output.expr, name)
        elif isinstance(output.expr, Agg):
            measures.append(Measure(name, output.expr))
    keys = tuple(
        StoredColumn(
            shown_keys.get(expr, f"{HIDDEN_PREFIX}key_{i}"), expr, hidden=expr not in shown_keys
        )
        for i, expr in enumerate(group_keys)
    )
    parts = _Parts(keys, sets, measures)
    shown = []
    for name, output in zip(names, outputs, strict=True):
        if isinstance(output.expr, Agg) and output.expr not in group_keys:
            column: Expr = _column(name, output.expr)
        else:
            column = parts.of(output)
        shown.append(Output(output.name, column))
    for part in having:
        parts.of(Output("of HAVING", part))
    return GroupedColumns(keys, tuple(parts.measures), tuple(shown))


@dataclass(slots=True)
class _Parts:
    """The stored columns, as they become known."""

    keys: tuple[StoredColumn, ...]
    sets: Sequence[GroupingSet]
    measures: list[Measure]
    _known: dict[Expr, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for measure in self.measures:
            self._known.setdefault(measure.agg, measure.name)

    def of(self, output: Output) -> Expr:
        """An output over stored columns."""
        if not self._covers(output.expr):
            raise DefinitionNotSupported(
                InputCode.OUTPUT_NOT_STORED,
                f"output column {output.name} is neither a GROUP BY key nor an aggregate, nor "
                "computed of these alone: group by the columns that it names",
            )
        return transform(output.expr, self._stored)

    def _covers(self, expr: Expr) -> bool:
        if isinstance(expr, Agg) or any(key.expr == expr for key in self.keys):
            return True
        if isinstance(expr, Col):
            return False
        return all(map(self._covers, expr.children))

    def _stored(self, node: Expr) -> Expr | None:
        for key in self.keys:
            if key.expr == node:
                return _column(key.name, node)
        if isinstance(node, Agg):
            name = self._known.get(node)
            if name is None:
                unnamed = sum(m.name.startswith(f"{HIDDEN_PREFIX}agg_") for m in self.measures)
                name = self._known[node] = f"{HIDDEN_PREFIX}agg_{unnamed}"
                self.measures.append(Measure(name, node))
            return _column(name, node)
        if isinstance(node, Call) and node.op in ("grouping_id", "grouping"):
            return self._of_set(node)
        return None

    def _of_set(self, call: Call) -> Expr:
        """GROUPING_ID() and GROUPING(k) by the number of the set that a stored row is of."""
        number = Col(0, GROUPING_ID_COLUMN, "bigint", nullable=False)
        if call.op == "grouping_id":
            return number
        key = int(call.params[0])
        ids = [Lit(s.grouping_id, "bigint") for s in self.sets if key not in s.keys]
        one, zero = Lit(1, "tinyint"), Lit(0, "tinyint")
        if not ids:
            return zero
        test = Call("in", (number, *ids), "boolean", nullable=False)
        return Call("case", (test, one, zero), "tinyint", nullable=False)


def _column(name: str, expr: Expr) -> Col:
    return Col(0, name, expr.type, expr.nullable)


def only_if_other(shown: Iterable[Output]) -> tuple[Output, ...]:
    """The outputs, empty where each is a stored column of its own under its own name.

    Args:
        shown: The outputs over stored columns.
    """
    found = tuple(shown)
    alike = all(isinstance(o.expr, Col) and o.expr.name == o.name for o in found)
    return () if alike else found


def shown_of_base(plan: CachePlan) -> tuple[Output, ...]:
    """What a cache shows, over its tables; and the keys that it stores and does not show.

    Args:
        plan: The cache.
    """
    stored = {column.name: column.expr for column in stored_block(plan).outputs}

    def held(node: Expr) -> Expr | None:
        return stored[node.name] if isinstance(node, Col) else None

    found = tuple(Output(o.name, transform(o.expr, held)) for o in plan.as_shown())
    names = {output.name for output in found}
    hidden = (key for key in plan.keys or () if key.name not in names)
    return (*found, *(Output(key.name, key.expr) for key in hidden))
