"""Rewrite → Spark SQL text, and a cache's definition → the SELECT that materialises it.

The text does not depend on the session's parse settings: identifiers are in backticks, literals
carry their type, no ordinals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from matcher.model.expr import (
    CHAR_PADDING,
    IGNORE_NULLS,
    OPAQUE_PREFIX,
    Agg,
    Call,
    Col,
    Expr,
    Lit,
    columns,
    date_text,
    is_constant,
    shown_name,
    transform,
)
from matcher.model.functions import is_known
from matcher.model.ir import GROUPING_ID_COLUMN, SET_KEY_PREFIX, CachePlan, Output, Rewrite, SortKey
from matcher.model.types import INTEGRAL, decimal_parts, split_types, struct_fields
from matcher.predicates.negative_zeros import finding_both
from matcher.predicates.time_windows import WINDOW
from matcher.render.from_clause import JOIN_WORDS, stored_from
from matcher.render.grouped import spelled_relations
from matcher.render.grouping_sets import by_sets, over_sets
from matcher.render.moments import MERGE_MOMENTS, merge_moments

ColumnSql = Callable[[Col], str]

_BINARY: Final = {
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "nseq": "<=>",
    "add": "+", "sub": "-", "mul": "*", "div": "/", "idiv": "DIV", "mod": "%", "rlike": "RLIKE",
}  # fmt: skip
_TRY: Final = {"try_add", "try_subtract", "try_multiply", "try_divide", "try_mod"}
_SPELLED_AS_CALL: Final = frozenset({"coalesce", *_TRY})
_INT_SUFFIX: Final = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_MIN_LONG: Final = -(1 << 63)
# What people are shown of an expression, in characters
_MOST_READ: Final = 1_000
_BEGINNING, _END = 800, 150


class NotRenderable(Exception):
    """The expression cannot be written as SQL; the message names the part at fault."""


def quote(name: str) -> str:
    """`name` as one quoted identifier.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def quote_path(dotted: str) -> str:
    """A dotted table name with each part quoted."""
    return ".".join(quote(part) for part in dotted.split("."))


def render_expr(expr: Expr, column: ColumnSql) -> str:
    """Spark SQL for `expr`, with `column` spelling the column references.

    Raises:
        NotRenderable: some part has no SQL spelling.
    """
    if isinstance(expr, Col):
        return column(expr)
    if isinstance(expr, Lit):
        return render_literal(expr)
    if isinstance(expr, Agg):
        return _render_agg(expr, column)
    if isinstance(expr, Call):
        return _render_call(expr, column)
    raise NotRenderable(repr(expr))


def readable(expr: Expr) -> str:
    """An expression for people: columns by their names alone, SQL where there is a spelling, and
    what only Spark knows by the name of its function; of a long one the beginning and the end.

    >>> readable(Call("spark:StaticInvoke", (Col(0, "c", "string"),), "string", True, ("X", "f")))
    'f(c)'
    """
    text = _spelled(expr)
    return text if len(text) <= _MOST_READ else f"{text[:_BEGINNING]} … {text[-_END:]}"


def _spelled(expr: Expr) -> str:
    try:
        return render_expr(expr, _bare)
    except NotRenderable:
        pass
    try:
        return render_expr(transform(expr, _named), _bare)
    except NotRenderable:
        return repr(expr)


def _bare(col: Col) -> str:
    return shown_name(col.name)


def _named(expr: Expr) -> Expr | None:
    """What only Spark knows, as a column of that name; None for all else."""
    if not isinstance(expr, Call) or not expr.op.startswith(OPAQUE_PREFIX):
        return None
    function, settings = expr.op.removeprefix(OPAQUE_PREFIX), expr.params
    if function in ("StaticInvoke", "Invoke") and len(expr.params) > 1:
        function, settings = expr.params[1], ()
    if function == CHAR_PADDING:
        text = f"{readable(expr.args[0])} (CHAR)"
    else:  # the settings under which it was resolved may be why it is not known
        args = "; ".join((", ".join(map(readable, expr.args)), *settings))
        text = f"{function.lower()}({args})"
    return Col(0, text, expr.type, expr.nullable)


def is_renderable(op: str, arity: int) -> bool:
    """True if a `Call` of that name and number of arguments has a SQL spelling."""
    return (
        op in _BINARY
        or op in _STRUCTURAL
        or op in _SPELLED_AS_CALL
        or op in ("and", "or", "grouping_id")
        or is_known(op, arity)
    )


def _render_agg(agg: Agg, column: ColumnSql) -> str:
    args = ", ".join(render_expr(a, column) for a in agg.args)
    if agg.func == "count" and not agg.args:
        args = "*"
    flt = ""
    if agg.filter is not None:
        flt = f" FILTER (WHERE {render_expr(agg.filter, column)})"
    if agg.func == MERGE_MOMENTS:
        return merge_moments(agg.params[0], [render_expr(a, column) for a in agg.args], flt)
    if agg.params == (IGNORE_NULLS,):
        args += ", TRUE"
    elif agg.params and agg.func == "approx_count_distinct":
        args += f", {float(agg.params[0])!r}D"
    elif agg.params:
        raise NotRenderable(f"aggregate {agg!r}")
    return f"{agg.func.upper()}({'DISTINCT ' if agg.distinct else ''}{args}){flt}"


def _render_call(call: Call, column: ColumnSql) -> str:
    args = [render_expr(a, column) for a in call.args]
    if call.op in _BINARY:
        return f"({args[0]} {_BINARY[call.op]} {args[1]})"
    if call.op in ("and", "or"):
        return "(" + f" {call.op.upper()} ".join(args) + ")"
    if call.op in _STRUCTURAL:
        return _STRUCTURAL[call.op](call, args)
    if call.op == "grouping_id":
        return "GROUPING_ID()"
    if call.op in _SPELLED_AS_CALL or (is_known(call.op, len(args)) and not call.params):
        return f"{call.op.upper()}({', '.join(args)})"
    raise NotRenderable(f"{call.op} with {len(args)} argument(s)")


def _render_in(call: Call, args: list[str]) -> str:
    return f"({args[0]} IN ({', '.join(args[1:])}))"


def _render_case(call: Call, args: list[str]) -> str:
    pairs = len(args) // 2
    whens = " ".join(f"WHEN {args[2 * i]} THEN {args[2 * i + 1]}" for i in range(pairs))
    tail = f" ELSE {args[-1]}" if len(args) % 2 else ""
    return f"CASE {whens}{tail} END"


def _render_like(call: Call, args: list[str]) -> str:
    escape = f" ESCAPE {render_literal(Lit(call.params[0], 'string'))}" if call.params else ""
    return f"({args[0]} LIKE {args[1]}{escape})"


def _render_window(call: Call, args: list[str]) -> str:
    """By hand: Spark lets `window` stand in few places. Both fields may be NULL to Spark's types,
    as those of its own are."""
    width, origin = (_integer(int(param), "L") for param in call.params)
    micros = f"UNIX_MICROS({args[0]})"
    start = f"{micros} - PMOD({micros} - {origin}, {width})"
    fields = [
        f"'{name}', CASE WHEN {args[0]} IS NOT NULL THEN TIMESTAMP_MICROS({moment}) END"
        for name, moment in (("start", start), ("end", f"{start} + {width}"))
    ]
    return f"NAMED_STRUCT({', '.join(fields)})"


_STRUCTURAL: Final[dict[str, Callable[[Call, list[str]], str]]] = {
    "not": lambda call, args: f"(NOT {args[0]})",
    "isnull": lambda call, args: f"({args[0]} IS NULL)",
    "isnotnull": lambda call, args: f"({args[0]} IS NOT NULL)",
    "neg": lambda call, args: f"(- {args[0]})",
    "cast": lambda call, args: f"CAST({args[0]} AS {_type(call.type)})",
    "try_cast": lambda call, args: f"TRY_CAST({args[0]} AS {_type(call.type)})",
    "in": _render_in,
    "case": _render_case,
    "like": _render_like,
    # not by a point: the name before that would be a table's first of all
    "field": lambda call, args: f"{args[0]}[{render_literal(Lit(call.params[0], 'string'))}]",
    # Spark has no function of this name
    "yearofweek": lambda call, args: f"EXTRACT(YEAROFWEEK FROM {args[0]})",
    WINDOW: _render_window,
    "grouping": lambda call, args: f"GROUPING({quote(SET_KEY_PREFIX + call.params[0])})",
}


def render_literal(lit: Lit) -> str:
    """A constant with its exact type.

    >>> render_literal(Lit("it's", "string"))
    "'it\\\\'s'"

    Raises:
        NotRenderable: a type or value without a literal spelling.
    """
    value, kind = lit.value, lit.type
    if value is None:
        return "NULL" if kind in ("void", "null") else f"CAST(NULL AS {_type(kind)})"
    if kind == "boolean":
        return "TRUE" if value else "FALSE"
    if kind in INTEGRAL and isinstance(value, int):
        return _integer(value, _INT_SUFFIX[kind])
    if kind == "string" and isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if kind == "binary" and isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if kind in ("date", "timestamp", "timestamp_ntz") and isinstance(value, int):
        return _temporal(value, kind)
    if decimal_parts(kind) and isinstance(value, Decimal):
        return f"CAST({value:f} AS {kind.upper()})"
    if kind in ("double", "float") and isinstance(value, float):
        return f"CAST('{value!r}' AS {kind.upper()})"
    raise NotRenderable(f"literal of type {kind}")


def _type(kind: str) -> str:
    """A type as SQL has it; the names of fields stay as they are, quoted.

    >>> _type("decimal(3,1)"), _type("array<struct<aB:int,c d:map<string,date>>>")
    ('DECIMAL(3,1)', 'ARRAY<STRUCT<`aB`:INT,`c d`:MAP<STRING,DATE>>>')

    Raises:
        NotRenderable: where a field's name ends is not known.
    """
    fields = struct_fields(kind)
    if fields is not None:
        return f"STRUCT<{','.join(f'{quote(name)}:{_type(of)}' for name, of in fields)}>"
    outer, _, inner = kind.partition("<")
    if outer in ("array", "map") and inner.endswith(">"):
        return f"{outer.upper()}<{','.join(map(_type, split_types(inner[:-1])))}>"
    if ":" in kind:
        raise NotRenderable(f"the type {kind}")
    return kind.upper()


def _integer(value: int, suffix: str) -> str:
    if value == _MIN_LONG:  # its digits alone do not fit a BIGINT literal
        return "(-9223372036854775807L - 1L)"
    return f"{value}{suffix}" if value >= 0 else f"({value}{suffix})"


def _temporal(value: int, kind: str) -> str:
    if kind == "date":
        text = date_text(value)
        if text is None:
            raise NotRenderable("a date outside of the years 1 to 9999")
        return f"DATE'{text}'"
    if kind == "timestamp":  # an instant: no session time zone may shift it
        return f"TIMESTAMP_MICROS({_integer(value, 'L')})"
    try:
        stamp = datetime(1970, 1, 1) + timedelta(microseconds=value)
    except OverflowError as error:
        raise NotRenderable("a timestamp outside of the years 1 to 9999") from error
    return f"TIMESTAMP_NTZ'{stamp.isoformat(sep=' ')}'"


def render_rewrite(
    rewrite: Rewrite,
    table_sql: str,
    *,
    positional: bool = False,
    extra_sql: Sequence[str] | None = None,
) -> str:
    """The SELECT to run over the cache.

    Args:
        rewrite: a valid rewrite.
        table_sql: how the cache's table is spelled in FROM.
        positional: name the outputs c0, c1, … (the Catalyst door puts the original names back
            itself).
        extra_sql: how the tables joined to it are spelled; each by its own name if not given.

    Raises:
        NotRenderable: some expression has no SQL spelling.
    """
    if rewrite.branches:
        parts = [render_rewrite(b, table_sql, positional=True) for b in rewrite.branches]
        table_sql = "(\n" + "\nUNION ALL\n".join(parts) + "\n) AS __sets"
    tables = [table_sql, *(extra_sql or [quote_path(e.relation.name) for e in rewrite.extra])]
    if rewrite.grouping_sets is not None:
        tables = [f"({_grouped_by_sets(rewrite, tables)}) AS __sets"]
        rewrite = over_sets(rewrite)
    return _render_select(rewrite, tables, positional)


def _grouped_by_sets(rewrite: Rewrite, tables: Sequence[str]) -> str:
    """The SELECT with GROUPING SETS that the outputs are computed over."""
    column = _of_several if rewrite.extra else _of_one
    source, filters = _from(rewrite, tables)
    where = _conjunction(filters, column)
    text = " ".join(source) + (f" WHERE {where}" if where else "")
    return by_sets(rewrite, text, render_expr, column, quote)


def _render_select(rewrite: Rewrite, tables: Sequence[str], positional: bool) -> str:
    column = _of_several if rewrite.extra else _of_one
    source, filters = _from(rewrite, tables)
    names = [f"c{i}" if positional else o.name for i, o in enumerate(rewrite.outputs)]
    lines = ["SELECT " + ", ".join(_select_items(rewrite.outputs, names, column)), *source]
    if filters:
        lines.append("WHERE " + _conjunction(filters, column))
    if rewrite.group_keys:
        lines.append("GROUP BY " + ", ".join(_group_items(rewrite.group_keys, column)))
    # In HAVING and ORDER BY an output alias would win over a column of the same name, so columns
    # are qualified there.
    qualified = column if rewrite.extra else _qualifier(rewrite.outputs, names, tables[0])
    if rewrite.having:
        without_groups = "AND " if filters else "WHERE "
        clause = without_groups if rewrite.group_keys is None else "HAVING "
        lines.append(clause + _conjunction(rewrite.having, qualified))
    if rewrite.order_by:
        keys = (_sort_item(k, rewrite.outputs, names, qualified) for k in rewrite.order_by)
        lines.append("ORDER BY " + ", ".join(keys))
    if rewrite.limit is not None:
        lines.append(f"LIMIT {rewrite.limit}")
    if rewrite.offset:
        lines.append(f"OFFSET {rewrite.offset}")
    return "\n".join(lines)


def _of_one(col: Col) -> str:
    return quote(col.name)


def _of_several(col: Col) -> str:
    return f"t{col.rel}.{quote(col.name)}"


def _from(rewrite: Rewrite, tables: Sequence[str]) -> tuple[list[str], list[Expr]]:
    """The FROM clause, and the filters that are left for WHERE.

    A filter stands in the ON of the first join at which all its tables are there.
    """
    if not rewrite.extra:
        return [f"FROM {tables[0]}"], list(rewrite.filters)
    lines = [f"FROM {tables[0]} AS t0"]
    left = list(rewrite.filters)
    for number, join in enumerate(rewrite.extra, start=1):
        on = list(join.on)
        if join.kind == "inner":
            last = {id(f): max((c.rel for c in columns(f)), default=0) for f in left}
            on = [f for f in left if last[id(f)] == number]
            left = [f for f in left if last[id(f)] != number]
        word = JOIN_WORDS[join.kind] if on else JOIN_WORDS[join.kind].replace("INNER", "CROSS")
        condition = _conjunction(on, _of_several)
        lines.append(
            f"{word} {tables[number]} AS t{number}" + (f" ON {condition}" if condition else "")
        )
    return lines, left


def _conjunction(parts: Sequence[Expr], column: ColumnSql, word: str = " AND ") -> str:
    """Conditions that all hold, each so that files of rows are not passed over wrongly."""
    return word.join(render_expr(finding_both(p), column) for p in parts)


def _select_items(outputs: Sequence[Output], names: Sequence[str], column: ColumnSql) -> list[str]:
    items = []
    for output, name in zip(outputs, names, strict=True):
        text = render_expr(output.expr, column)
        items.append(text if text == quote(name) else f"{text} AS {quote(name)}")
    return items or [f"1 AS {quote('c0')}"]  # Catalyst asks for rows alone below a COUNT(*)


def _group_items(keys: Sequence[Expr], column: ColumnSql) -> list[str]:
    """Constants do not group; a bare one would be read as an ordinal, so the last one left is
    cast."""
    real = [k for k in keys if not is_constant(k)]
    if real:
        return list(dict.fromkeys(render_expr(k, column) for k in real))
    return [render_expr(Call("cast", (keys[0],), keys[0].type), column)]


def _qualifier(outputs: Sequence[Output], names: Sequence[str], table_sql: str) -> ColumnSql:
    clashing = {
        name.lower()
        for output, name in zip(outputs, names, strict=True)
        if not (isinstance(output.expr, Col) and output.expr.name == name)
    }
    last = table_sql.rsplit(".", 1)[-1].rsplit(" ", 1)[-1]
    return lambda col: (
        f"{last}.{quote(col.name)}" if col.name.lower() in clashing else quote(col.name)
    )


def _sort_item(
    key: SortKey, outputs: Sequence[Output], names: Sequence[str], column: ColumnSql
) -> str:
    text = None
    for output, name in zip(outputs, names, strict=True):
        if output.expr == key.expr and [n.lower() for n in names].count(name.lower()) == 1:
            text = quote(name)
            break
    text = text or render_expr(key.expr, column)
    return _sort_text(text, key)


def _sort_text(text: str, key: SortKey) -> str:
    direction = "ASC" if key.ascending else "DESC"
    return f"{text} {direction} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def render_stored(plan: CachePlan, table_sql: Sequence[str]) -> str:
    """The SELECT whose rows are the cache's table, hidden columns included.

    Args:
        plan: the cache.
        table_sql: how table i of `plan.tables` is spelled in FROM.

    Raises:
        NotRenderable: some expression has no SQL spelling.
    """
    column: ColumnSql = lambda col: f"t{col.rel}.{quote(col.name)}"  # noqa: E731
    items = []
    if plan.is_cube:
        items.append(f"GROUPING_ID() AS {quote(GROUPING_ID_COLUMN)}")
    stored = plan.columns if plan.keys is None else plan.keys
    items += [f"{render_expr(c.expr, column)} AS {quote(c.name)}" for c in stored]
    items += [f"{render_expr(m.agg, column)} AS {quote(m.name)}" for m in plan.measures]
    lines = ["SELECT " + ",\n  ".join(items)]
    named = spelled_relations(plan.relations, table_sql, render_expr, _conjunction, quote)
    tables = [f"{sql} AS t{i}" for i, sql in enumerate(named)]
    lines += stored_from(plan, tables, lambda expr: _conjunction([expr], column))
    if plan.predicates:
        lines.append("WHERE " + _conjunction(plan.predicates, column, "\n  AND "))
    if plan.keys:
        keys = [render_expr(k.expr, column) for k in plan.keys]
        lines.append(
            "GROUP BY "
            + ", ".join(
                _group_items([k.expr for k in plan.keys], column) if not plan.is_cube else keys
            )
        )
        if plan.is_cube:
            sets = ", ".join(
                "(" + ", ".join(keys[i] for i in s.keys) + ")" for s in plan.grouping_sets
            )
            lines.append(f"GROUPING SETS ({sets})")
    if plan.having:
        lines.append("HAVING " + _conjunction(plan.having, column, "\n  AND "))
    if plan.limit is not None:
        keys = [_sort_text(render_expr(k.expr, column), k) for k in plan.order_by]
        lines += ["ORDER BY " + ", ".join(keys), f"LIMIT {plan.limit}"]
    return "\n".join(lines)
