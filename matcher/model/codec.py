"""Expressions, blocks and cache plans as plain JSON data, for the metastore. `PLAN_VERSION` names
the format and its meaning.

A stored plan of another version is not read: the definition is normalised again at the next
refresh.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from matcher.model.expr import Agg, Call, Col, Expr, Lit, Scalar
from matcher.model.hash_consing import Sharing
from matcher.model.ir import (
    CachePlan,
    GroupingSet,
    Groups,
    Measure,
    OuterJoin,
    Output,
    RecordPreservingJoin,
    Relation,
    Side,
    SortKey,
    StoredColumn,
    reads_groups,
)

PLAN_VERSION = "2"
# Of plans with partial rows alone: a program that does not know of these must not read them.
PARTIALS_VERSION = "3"
# Of plans with HAVING, or with groups among their relations: likewise.
BLOCKS_VERSION = "4"
_VERSIONS = (PLAN_VERSION, PARTIALS_VERSION, BLOCKS_VERSION)


def encode_expr(expr: Expr) -> list[Any]:
    """A nested list that `json.dumps` takes; the first item is the node kind."""
    if isinstance(expr, Col):
        return ["c", expr.rel, expr.name, expr.type, int(expr.nullable)]
    if isinstance(expr, Lit):
        return ["l", _encode_value(expr.value), expr.type]
    if isinstance(expr, Call):
        args = [encode_expr(a) for a in expr.args]
        return ["f", expr.op, args, expr.type, int(expr.nullable), list(expr.params)]
    if isinstance(expr, Agg):
        args = [encode_expr(a) for a in expr.args]
        flt = None if expr.filter is None else encode_expr(expr.filter)
        return [
            "a",
            expr.func,
            args,
            expr.type,
            int(expr.nullable),
            int(expr.distinct),
            flt,
            list(expr.params),
        ]
    raise TypeError(f"cannot encode {type(expr).__name__}")


def decode_expr(data: list[Any], share: Sharing | None = None) -> Expr:
    """The inverse of `encode_expr`.

    Args:
        data: What `encode_expr` gave.
        share: Where nodes are held once for many plans.

    Raises:
        ValueError: An unknown node kind.
    """
    kind = data[0]
    found: Expr
    if kind == "c":
        found = Col(data[1], data[2], data[3], bool(data[4]))
    elif kind == "l":
        found = Lit(decode_value(data[1]), data[2])
    elif kind == "f":
        args = tuple(decode_expr(arg, share) for arg in data[2])
        found = Call(data[1], args, data[3], bool(data[4]), tuple(data[5]))
    elif kind == "a":
        flt = None if data[6] is None else decode_expr(data[6], share)
        args = tuple(decode_expr(arg, share) for arg in data[2])
        found = Agg(data[1], args, data[3], bool(data[4]), bool(data[5]), flt, tuple(data[7]))
    else:
        raise ValueError(f"unknown expression kind {kind!r}")
    return found if share is None else share(found)


def _encode_value(value: Scalar) -> Any:
    if isinstance(value, Decimal):
        return {"d": str(value)}
    if isinstance(value, bytes):
        return {"b": value.hex()}
    if isinstance(value, float):
        return {"f": repr(value)}
    return value


def decode_value(value: Any) -> Scalar:
    """A constant, as stored plans and the plan document have it."""
    if isinstance(value, dict):
        if "d" in value:
            return Decimal(value["d"])
        if "b" in value:
            return bytes.fromhex(value["b"])
        return float(value["f"])
    return value  # type: ignore[no-any-return]


def encode_plan(plan: CachePlan) -> dict[str, Any]:
    """A cache plan as JSON data; sizes, facts and joins included."""
    return {
        "version": _version(plan),
        "name": plan.name,
        "relations": [[r.key, r.name] for r in plan.tables],
        "predicates": [encode_expr(p) for p in plan.predicates],
        "keys": None if plan.keys is None else [_encode_column(c) for c in plan.keys],
        "measures": [[m.name, encode_expr(m.agg), int(m.hidden)] for m in plan.measures],
        "columns": [_encode_column(c) for c in plan.columns],
        "sets": [[s.grouping_id, list(s.keys), s.rows, s.bytes] for s in plan.grouping_sets],
        "rows": plan.rows,
        "bytes": plan.bytes,
        "visible": list(plan.visible),
        "exact_sums": sorted(plan.exact_sums),
        "non_null": sorted(plan.non_null),
        "joins": [
            [
                *(j.name, j.left, j.right, [list(k) for k in j.keys], int(j.validated)),
                *(() if j.finds_each else (0,)),  # plans that were stored before have none of these
            ]
            for j in plan.joins
        ],
        "outer": [_encode_join(j) for j in plan.outer],
        "order_by": [
            [encode_expr(k.expr), int(k.ascending), int(k.nulls_first)] for k in plan.order_by
        ],
        "limit": plan.limit,
        **({"shown": [[o.name, encode_expr(o.expr)] for o in plan.shown]} if plan.shown else {}),
        **({"having": _encode_all(plan.having)} if plan.having else {}),
        **({"cluster_by": list(plan.cluster_by)} if plan.cluster_by else {}),
        **({"partials": sorted(plan.partials)} if plan.partials else {}),
        # `relations` are always base tables, for whoever asks of a stored plan what it reads
        **({"over": [_encode_relation(r) for r in plan.relations]} if reads_groups(plan) else {}),
    }


def decode_plan(data: dict[str, Any], share: Sharing | None = None) -> CachePlan:
    """The inverse of `encode_plan`.

    Args:
        data: What `encode_plan` gave.
        share: Where expressions are held once for many plans.

    Raises:
        ValueError: The data is of another version.
    """
    if data.get("version") not in _VERSIONS:
        raise ValueError(
            f"stored plan has version {data.get('version')!r}, this code reads {PLAN_VERSION!r}"
        )
    return CachePlan(
        name=data["name"],
        relations=tuple(_decode_relation(*r) for r in data.get("over", data["relations"])),
        predicates=tuple(decode_expr(p, share) for p in data["predicates"]),
        keys=None if data["keys"] is None else _decode_columns(data["keys"], share),
        measures=tuple(
            Measure(n, _as_agg(decode_expr(e, share)), bool(h)) for n, e, h in data["measures"]
        ),
        columns=_decode_columns(data["columns"], share),
        grouping_sets=tuple(GroupingSet(i, tuple(k), r, b) for i, k, r, b in data["sets"]),
        rows=data["rows"],
        bytes=data["bytes"],
        visible=tuple(data["visible"]),
        # of a definition whose outputs are stored under their own names there are none
        shown=tuple(Output(n, decode_expr(e, share)) for n, e in data.get("shown", ())),
        exact_sums=frozenset(data["exact_sums"]),
        non_null=frozenset(data["non_null"]),
        joins=tuple(
            RecordPreservingJoin(n, left, right, tuple((a, b) for a, b in keys), *map(bool, said))
            for n, left, right, keys, *said in data["joins"]
        ),
        # plans stored before there were outer joins have none
        outer=tuple(_decode_join(*parts) for parts in data.get("outer", ())),
        order_by=tuple(
            SortKey(decode_expr(e, share), bool(a), bool(n)) for e, a, n in data["order_by"]
        ),
        limit=data["limit"],
        having=tuple(decode_expr(e, share) for e in data.get("having", ())),
        cluster_by=tuple(data.get("cluster_by", ())),
        partials=frozenset(data.get("partials", ())),
    )


def _version(plan: CachePlan) -> str:
    if plan.having or reads_groups(plan):
        return BLOCKS_VERSION
    return PARTIALS_VERSION if plan.partials else PLAN_VERSION


def _encode_relation(relation: Relation) -> list[Any]:
    found: list[Any] = [relation.key, relation.name]
    groups = relation.groups
    if groups is not None:
        found.append(
            {
                "relations": [_encode_relation(r) for r in groups.relations],
                "predicates": _encode_all(groups.predicates),
                "keys": [[o.name, encode_expr(o.expr)] for o in groups.keys],
                "aggregates": [[o.name, encode_expr(o.expr)] for o in groups.aggregates],
                "outer": [_encode_join(j) for j in groups.outer],
            }
        )
    return found


def _decode_relation(key: str, name: str, groups: dict[str, Any] | None = None) -> Relation:
    """`groups` is there for groups alone."""
    if groups is None:
        return Relation(key, name)
    return Relation(
        key,
        name,
        Groups(
            tuple(_decode_relation(*parts) for parts in groups["relations"]),
            tuple(map(decode_expr, groups["predicates"])),
            tuple(Output(n, decode_expr(e)) for n, e in groups["keys"]),
            tuple(Output(n, decode_expr(e)) for n, e in groups["aggregates"]),
            tuple(_decode_join(*parts) for parts in groups["outer"]),
        ),
    )


def _encode_column(column: StoredColumn) -> list[Any]:
    return [column.name, encode_expr(column.expr), int(column.hidden)]


def _decode_columns(data: list[Any], share: Sharing | None) -> tuple[StoredColumn, ...]:
    return tuple(StoredColumn(name, decode_expr(e, share), bool(h)) for name, e, h in data)


def _encode_join(join: OuterJoin) -> list[Any]:
    parts = [join.kind, list(join.right), *(_encode_all(es) for es in (join.on, join.declared))]
    if join.sides:
        parts.append([[list(side.rels), _encode_all(side.where)] for side in join.sides])
    return parts


def _encode_all(exprs: tuple[Expr, ...]) -> list[Any]:
    return [encode_expr(e) for e in exprs]


def _decode_join(
    kind: str, right: list[int], on: list[Any], declared: list[Any], sides: list[Any] | None = None
) -> OuterJoin:
    """`sides` is there for FULL joins alone."""
    return OuterJoin(
        kind,
        tuple(right),
        tuple(map(decode_expr, on)),
        tuple(map(_decode_col, declared)),
        tuple(Side(tuple(rels), tuple(map(decode_expr, where))) for rels, where in sides or ()),
    )


def _decode_col(data: list[Any]) -> Col:
    found = decode_expr(data)
    if not isinstance(found, Col):
        raise ValueError("a declared column is an expression")
    return found


def _as_agg(expr: Expr) -> Agg:
    if not isinstance(expr, Agg):
        raise ValueError("a stored measure is not an aggregate")
    return expr
