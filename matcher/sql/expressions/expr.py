"""Parsed expressions to canonical ones: names resolved, Spark's casts put in, constants folded
(forms as in `matcher.model.expr`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from matcher.model.errors import NotSupported
from matcher.model.expr import FALSE, TRUE, Call, Expr, Lit
from matcher.model.message import Sql, Word
from matcher.model.numbers import whole_number
from matcher.model.reasons import ReasonCode
from matcher.model.types import FLOATS, INTEGRAL
from matcher.model.values import cast
from matcher.predicates.constant_folding import shift_days
from matcher.predicates.tuples import in_tuples
from matcher.sql.expressions.aggregates import aggregate, is_aggregate
from matcher.sql.expressions.coerce import (
    align,
    arithmetic,
    cast_to,
    compare,
    minus,
    number_literal,
    refuse_char,
    refuse_mixed_strings,
)
from matcher.sql.expressions.functions import (
    SESSION_WORDS,
    add_days,
    call_function,
    case,
    concat,
    refuse_non_deterministic,
)
from matcher.sql.expressions.like import like
from matcher.sql.expressions.logic import as_boolean, logic, negate
from matcher.sql.expressions.precedence import refuse_other_precedence
from matcher.sql.expressions.scope import Scope, field_of, unsupported
from matcher.sql.expressions.types import UNKNOWN, TextSettings, type_of

_COMPARISONS: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
    exp.NullSafeEQ: "nseq",
}  # fmt: skip
_ARITHMETIC: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "add", exp.Sub: "sub", exp.Mul: "mul", exp.Div: "div", exp.IntDiv: "idiv",
    exp.Mod: "mod",
}  # fmt: skip
_LITERAL_SUFFIX_TYPES: Final = frozenset({"bigint", "smallint", "tinyint", "double", "float"})
_UNITS: Final = {"YEAR": 12, "YEARS": 12, "MONTH": 1, "MONTHS": 1}
_DAYS: Final = frozenset({"DAY", "DAYS"})
_MOST_OF_A_UNIT: Final = (1 << 31) - 1

Names = Callable[[exp.Column, bool], "Expr | None"]


@dataclass(slots=True)
class ExprBuilder:
    """Builds the expressions of one SELECT.

    `alias` is asked first for a column name (with True inside an aggregate call); it serves ORDER
    BY, HAVING and GROUP BY. `aggregates` says whether an aggregate call may stand here.
    """

    scope: Scope
    settings: TextSettings
    aggregates: bool = False
    alias: Names | None = None
    _inside: list[str] = field(default_factory=list)

    def build(self, node: exp.Expr) -> Expr:
        """The canonical expression.

        Raises:
            NotSupported: some part is not taken by the text door.
            SqlInputError: a column that is in no table of the query.
        """
        refuse_other_precedence(node)
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        if type(node) in _COMPARISONS:
            op = _COMPARISONS[type(node)]
            return compare(op, *self._pair(node), self.settings)
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        if is_aggregate(node):
            return self._aggregate(node, None)
        if isinstance(node, exp.Func):
            return call_function(node, self.build, self.settings)
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{sql} is not supported",
            sql=Sql(node.sql("spark")[:80]),
        )

    def predicate(self, node: exp.Expr) -> Expr:
        """`build` for a place where Spark wants a BOOLEAN."""
        return as_boolean(self.build(node), self.settings)

    def all_of(self, nodes: Sequence[exp.Expr]) -> Expr:
        """The conjuncts `nodes` of a condition as one predicate; TRUE where there are none."""
        return logic("and", [self.build(node) for node in nodes], self.settings)

    def _pair(self, node: exp.Expr) -> tuple[Expr, Expr]:
        for side in (node.this, node.args["expression"]):
            _refuse_quantified(side)
        return self.build(node.this), self.build(node.args["expression"])

    # -- leaves -----------------------------------------------------------------------------------

    def _column(self, node: exp.Expr) -> Expr:
        assert isinstance(node, exp.Column)
        if isinstance(node.this, exp.Star):
            raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "* inside an expression")
        if self.alias is not None:
            found = self.alias(node, bool(self._inside))
            if found is not None:
                return found
        if len(node.parts) == 1 and node.name.lower() in SESSION_WORDS:
            if not self.scope.has(node.name):
                raise unsupported(
                    ReasonCode.NON_DETERMINISTIC,
                    "{name} depends on the session",
                    name=Word(node.name),
                )
        return self.scope.resolve(node)

    def _element(self, node: exp.Expr) -> Expr:
        """`struct['field']`; elements of arrays and maps are not read."""
        if len(node.expressions) == 1:
            name = node.expressions[0]
            if isinstance(name, exp.Literal) and name.is_string:
                found = field_of(self.build(node.this), [name.name])
                if found is not None:
                    return found
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{sql} is not supported",
            sql=Sql(node.sql("spark")[:80]),
        )

    def _literal(self, node: exp.Expr) -> Expr:
        return Lit(node.name, "string") if node.args["is_string"] else number_literal(node.name)

    def _binary_literal(self, node: exp.Expr) -> Expr:
        digits = node.name
        try:
            value = bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
        except ValueError as error:
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "X'{digits}' is not hexadecimal",
                digits=Sql(digits[:40]),
            ) from error
        return Lit(value, "binary")

    def _negative(self, node: exp.Expr) -> Expr:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return number_literal("-" + inner.name)  # so that the smallest INT and BIGINT are read
        smallest = self._with_suffix(inner) if isinstance(inner, exp.Cast) else None
        return smallest or minus(self.build(inner), self.settings)

    def _with_suffix(self, node: exp.Cast) -> Lit | None:
        """The constant -128Y of `128Y`, which is a cast to the parser and would overflow; None of
        a cast that is written as one, by the literal's place in the text."""
        number, kind = node.this, type_of(node.args["to"])
        value = whole_number(number.name) if isinstance(number, exp.Literal) else None
        if value is None or kind not in INTEGRAL or not _has_suffix(number):
            return None
        return cast(Lit(-value, "bigint"), kind)

    # -- logic and tests --------------------------------------------------------------------------

    def _logic(self, node: exp.Expr) -> Expr:
        op = "and" if isinstance(node, exp.And) else "or"
        parts = [self.build(n) for n in _flatten(node, type(node))]
        return logic(op, parts, self.settings)

    def _not(self, node: exp.Expr) -> Expr:
        return negate(self.build(node.this), self.settings)

    def _not_distinct_not(self, node: exp.Expr) -> Expr:
        return negate(compare("nseq", *self._pair(node), self.settings), self.settings)

    def _is(self, node: exp.Expr) -> Expr:
        value, right = self.build(node.this), node.args["expression"]
        if isinstance(right, exp.Null):
            if isinstance(value, Lit):
                return TRUE if value.value is None else FALSE
            return Call("isnull", (value,), "boolean", False)
        if isinstance(right, exp.Boolean):
            return compare("nseq", value, self.build(right), self.settings)
        raise _no_expression(node)

    def _between(self, node: exp.Expr) -> Expr:
        if node.args.get("symmetric"):
            raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "BETWEEN SYMMETRIC")
        value = self.build(node.this)
        low = compare("ge", value, self.build(node.args["low"]), self.settings)
        high = compare("le", value, self.build(node.args["high"]), self.settings)
        return logic("and", [low, high], self.settings)

    def _in(self, node: exp.Expr) -> Expr:
        if node.args.get("query") is not None or node.args.get("unnest") is not None:
            raise unsupported(ReasonCode.UNSUPPORTED_OPERATOR, "IN (subquery)")
        if isinstance(node.this, exp.Tuple):
            return self._in_tuples(node)
        items = [self.build(node.this), *(self.build(n) for n in node.expressions)]
        refuse_mixed_strings(items, "IN", self.settings)
        aligned = align(items, self.settings, "IN", listed=True)
        return Call("in", tuple(aligned), "boolean", any(i.nullable for i in aligned))

    def _in_tuples(self, node: exp.Expr) -> Expr:
        tuples = [node.this, *node.expressions]
        if all(isinstance(t, exp.Tuple) for t in tuples):
            rows = [[self.build(n) for n in t.expressions] for t in tuples]
            for field_ in rows[0]:
                refuse_char(field_)
            kinds = {tuple(field_.type for field_ in row) for row in rows}
            if len(kinds) == 1 and UNKNOWN not in next(iter(kinds)):
                return in_tuples(rows[0], rows[1:])
        # Spark takes neither other types here nor NULL for a tuple
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "IN of tuples of unequal types")

    def _like(self, node: exp.Expr) -> Expr:
        escape = ""
        if isinstance(node, exp.Escape):
            escape = node.args["expression"].name
            node = node.this
        if not isinstance(node, exp.Like):
            raise _no_expression(node)
        _refuse_quantified(node.args["expression"])
        value, pattern = self.build(node.this), self.build(node.args["expression"])
        refuse_char(value)
        args = (cast_to(value, "string", self.settings), cast_to(pattern, "string", self.settings))
        result = like(args[0], args[1], escape)
        return negate(result, self.settings) if node.args.get("negate") else result

    # -- operators --------------------------------------------------------------------------------

    def _arithmetic(self, node: exp.Expr) -> Expr:
        op = _ARITHMETIC[type(node)]
        left, right = node.this, node.args["expression"]
        if op in ("add", "sub"):
            if op == "add" and isinstance(left, exp.Interval):
                left, right = right, left
            if isinstance(right, exp.Interval):
                return self._shift(left, right, 1 if op == "add" else -1)
            a, b = self.build(left), self.build(right)
            if a.type == "date" and b.type in ("int", "smallint", "tinyint"):
                return add_days(a, b, "date_add" if op == "add" else "date_sub", self.settings)
            return arithmetic(op, a, b, self.settings)
        return arithmetic(op, self.build(left), self.build(right), self.settings)

    def _shift(self, left: exp.Expr, interval: exp.Interval, sign: int) -> Expr:
        day = self.build(left)
        unit = str(interval.args.get("unit") or "").upper()
        amount = interval.this
        count = whole_number(amount.name) if isinstance(amount, exp.Literal) else None
        if count is not None and abs(count) <= _MOST_OF_A_UNIT:
            found = self._shifted(day, unit, sign * count)
            if found is not None:
                return found
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "interval arithmetic on {type}",
            type=Word(day.type),
        )

    def _shifted(self, day: Expr, unit: str, count: int) -> Expr | None:
        if isinstance(day, Lit) and day.type == "date" and isinstance(day.value, int):
            if unit in _UNITS or unit in _DAYS:
                months = count * _UNITS[unit] if unit in _UNITS else 0
                moved = shift_days(day.value, months, count if unit in _DAYS else 0)
                return None if moved is None else Lit(moved, "date")
        if day.type == "date" and not isinstance(day, Lit) and unit in _DAYS:
            return add_days(day, Lit(count, "int"), "date_add", self.settings)
        return None

    def _cast(self, node: exp.Expr) -> Expr:
        kind = type_of(node.args["to"])
        inner = node.this
        if node.args.get("format") is not None or kind.startswith(
            ("struct", "array", "map", "interval")
        ):
            raise _no_expression(node)
        if isinstance(inner, exp.Literal) and not inner.is_string and kind in _LITERAL_SUFFIX_TYPES:
            if kind == "double":  # 1.5D and CAST(1.5 AS DOUBLE) are one thing to the parser
                return Lit(float(inner.name), kind)
            number = whole_number(inner.name) if kind in INTEGRAL else None
            if number is not None:
                folded = cast(Lit(number, "bigint"), kind)
                if folded is not None:
                    return folded
        signed = _signed_number(inner) if kind in FLOATS else None
        if signed is not None and _has_suffix(signed):
            # -0.0D is -0.0, and CAST(-0.0 AS DOUBLE) is 0.0: of a decimal, which has no -0
            constant = cast(Lit(f"-{signed.name}", "string"), kind)
            if constant is not None:
                return constant
        value_expr = self.build(inner)
        refuse_char(value_expr)
        if value_expr.type == UNKNOWN:
            raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "CAST of a column not known")
        op = "try_cast" if isinstance(node, exp.TryCast) and node.args.get("safe") else "cast"
        return cast_to(value_expr, kind, self.settings, op)

    def _case(self, node: exp.Expr) -> Expr:
        operand = self.build(node.this) if node.this is not None else None
        conditions: list[Expr] = []
        values: list[Expr] = []
        for branch in node.args["ifs"]:
            test = self.build(branch.this)
            if operand is not None:
                test = compare("eq", operand, test, self.settings)
            conditions.append(as_boolean(test, self.settings))
            values.append(self.build(branch.args["true"]))
        default = node.args.get("default")
        values.append(self.build(default) if default is not None else Lit(None, "void"))
        return case(conditions, values, default is not None, self.settings)

    def _if(self, node: exp.Expr) -> Expr:
        default = node.args.get("false")
        last: Expr = self.build(default) if default is not None else Lit(None, "void")
        values = [self.build(node.args["true"]), last]
        return case([self.predicate(node.this)], values, default is not None, self.settings)

    # -- aggregates and refusals ------------------------------------------------------------------

    def _filter(self, node: exp.Expr) -> Expr:
        condition = node.args["expression"].this
        self._inside.append("FILTER")
        try:
            test = self.predicate(condition)
        finally:
            self._inside.pop()
        return self._aggregate(node.this, test)

    def _aggregate(self, node: exp.Expr, filter: Expr | None) -> Expr:
        if not is_aggregate(node):
            raise _no_expression(node)
        if not self.aggregates or self._inside:
            raise unsupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "aggregate {sql} where Spark allows none",
                sql=Sql(node.sql("spark")[:60]),
            )
        self._inside.append(node.key)
        try:
            return aggregate(node, self.build, self.settings, filter)
        finally:
            self._inside.pop()

    def _grouping_id(self, node: exp.Expr) -> Expr:
        if not self.aggregates:
            raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "GROUPING_ID() outside of SELECT")
        args = tuple(self.build(n) for n in node.expressions)
        return Call("grouping_id", args, "bigint", False)

    def _grouping(self, node: exp.Expr) -> Expr:
        if not self.aggregates or len(node.expressions) != 1:
            raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "GROUPING() outside of SELECT")
        return Call("grouping", (self.build(node.expressions[0]),), "tinyint", False)

    def _refuse(self, node: exp.Expr) -> Expr:
        refuse_non_deterministic(node)
        code, detail = _REFUSED[type(node)]
        raise unsupported(code, detail)


def _signed_number(node: exp.Expr) -> exp.Literal | None:
    """The number behind a minus sign, as the parser has that of -1.5D."""
    if isinstance(node, exp.Paren) and isinstance(node.this, exp.Neg):
        number = node.this.this
        if isinstance(number, exp.Literal) and not number.is_string:
            return number
    return None


def _has_suffix(number: exp.Expr) -> bool:
    """True of the 128 in `128Y`, by its place in the text: to the parser it is a cast as any.

    Raises:
        NotSupported: the place is not known.
    """
    if "start" not in number.meta:
        raise unsupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{number} of a type that is not certain",
            number=Sql(number.name[:40]),
        )
    return bool(number.meta["end"] - number.meta["start"] >= len(number.name))


def _no_expression(node: exp.Expr) -> NotSupported:
    sql = Sql(node.sql("spark")[:80])
    return unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "{sql}", sql=sql)


def written_conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition joined by AND, in order."""
    return _flatten(condition, exp.And)


def _flatten(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    while isinstance(node, exp.Paren):
        node = node.this
    if type(node) is not kind:
        return [node]
    return [*_flatten(node.this, kind), *_flatten(node.args["expression"], kind)]


def _refuse_quantified(node: exp.Expr) -> None:
    if isinstance(node, (exp.Any, exp.All)) or (
        isinstance(node, exp.Anonymous) and node.name.lower() in ("any", "all", "some")
    ):
        raise unsupported(ReasonCode.UNSUPPORTED_EXPRESSION, "ANY or ALL over a list")


_OPERATOR: Final = ReasonCode.UNSUPPORTED_OPERATOR
_EXPRESSION: Final = ReasonCode.UNSUPPORTED_EXPRESSION
_PARAMETER: Final = "a parameter without a value (put a literal in its place)"
_REFUSED: Final[dict[type[exp.Expr], tuple[ReasonCode, str]]] = {
    exp.Subquery: (_OPERATOR, "scalar subquery"),
    exp.Select: (_OPERATOR, "scalar subquery"),
    exp.Exists: (_OPERATOR, "EXISTS (subquery)"),
    exp.Window: (_OPERATOR, "window function"),
    exp.Explode: (_OPERATOR, "explode"),
    exp.Posexplode: (_OPERATOR, "posexplode"),
    exp.Inline: (_OPERATOR, "inline"),
    exp.Placeholder: (_EXPRESSION, _PARAMETER),
    exp.Parameter: (_EXPRESSION, _PARAMETER),
    exp.Collate: (_EXPRESSION, "COLLATE"),
    exp.Interval: (_EXPRESSION, "an interval other than added to a date"),
    exp.Lambda: (_EXPRESSION, "a lambda function"),
}

_Handler = Callable[[ExprBuilder, exp.Expr], Expr]
_HANDLERS: Final[dict[type[exp.Expr], _Handler]] = {
    exp.Column: ExprBuilder._column,
    exp.Bracket: ExprBuilder._element,
    exp.Literal: ExprBuilder._literal,
    exp.RawString: lambda self, node: Lit(node.name, "string"),
    exp.HexString: ExprBuilder._binary_literal,
    exp.Boolean: lambda self, node: TRUE if node.this else FALSE,
    exp.Null: lambda self, node: Lit(None, "void"),
    exp.Paren: lambda self, node: self.build(node.this),
    exp.Alias: lambda self, node: self.build(node.this),
    exp.Neg: ExprBuilder._negative,
    exp.And: ExprBuilder._logic,
    exp.Or: ExprBuilder._logic,
    exp.Not: ExprBuilder._not,
    exp.NullSafeNEQ: ExprBuilder._not_distinct_not,
    exp.Is: ExprBuilder._is,
    exp.Between: ExprBuilder._between,
    exp.In: ExprBuilder._in,
    exp.Like: ExprBuilder._like,
    exp.Escape: ExprBuilder._like,
    exp.Cast: ExprBuilder._cast,
    exp.TryCast: ExprBuilder._cast,
    exp.Case: ExprBuilder._case,
    exp.If: ExprBuilder._if,
    exp.DPipe: lambda self, node: concat(node, self.build, self.settings),
    exp.Filter: ExprBuilder._filter,
    exp.GroupingId: ExprBuilder._grouping_id,
    exp.Grouping: ExprBuilder._grouping,
    **{kind: ExprBuilder._refuse for kind in _REFUSED},
}
