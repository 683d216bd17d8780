"""GROUPING SETS, CUBE and ROLLUP in Catalyst: an Aggregate over an Expand that repeats each row
once per set.

The Expand puts NULL in place of the keys that a set leaves out, adds the grouping id, and, where a
set is written twice, a running number (`_gen_grouping_pos`) that keeps the two apart. All is
checked against the ids that Spark will compute, so that a plan of another shape is refused and not
misread.
"""

from __future__ import annotations

from typing import Any

from matcher.catalyst import document as doc
from matcher.catalyst.document import Entry, Node, Settings
from matcher.catalyst.expr import Env, decode
from matcher.model.errors import NotSupported
from matcher.model.expr import OPAQUE_PREFIX, Call, Expr, Lit, transform
from matcher.model.message import Word
from matcher.model.reasons import ReasonCode

_GROUPING_ID = "spark_grouping_id"
_POSITION = "_gen_grouping_pos"


def expand_below(aggregate: Node) -> Node | None:
    """The Expand under an Aggregate, filters on what it puts out passed over."""
    node = doc.child(aggregate)
    while doc.operator(node) == "Filter" and not doc.is_answered(node):
        node = doc.child(node)
    return node if doc.operator(node) == "Expand" and not doc.is_answered(node) else None


def conditions_on_sets(aggregate: Node) -> list[Entry]:
    """The conditions between Aggregate and Expand: HAVING on keys, which Spark has pushed down.

    Raises:
        NotSupported: one is not about the keys, so it is none of HAVING's.
    """
    allowed = {doc.id_of(key) for key in doc.keys_of(aggregate)}
    found = []
    node = doc.child(aggregate)
    while doc.operator(node) == "Filter":
        if not doc.attribute_ids(doc.condition(node)) <= allowed:
            raise _other("are filtered by what is no grouping key")
        found.append(doc.condition(node))
        node = doc.child(node)
    return found


def set_keys(aggregate: Node, expand: Node) -> list[Entry]:
    """The grouping attributes that stand for keys: all but the id and the running number."""
    added = {
        doc.id_of(a) for a in doc.columns(expand) if doc.name_of(a) in (_GROUPING_ID, _POSITION)
    }
    return [key for key in doc.keys_of(aggregate) if doc.id_of(key) not in added]


def decode_expand(
    aggregate: Node, expand: Node, below: Env, settings: Settings
) -> tuple[Env, tuple[tuple[int, ...], ...]]:
    """What the Expand's attributes mean, and the grouping sets as written.

    Args:
        aggregate: The node above.
        expand: The Expand.
        below: What the attributes below the Expand mean.
        settings: The session's.

    Returns:
        The meaning of each attribute by id, and for each set the indices of its keys.

    Raises:
        NotSupported: Not an Expand as GROUPING SETS makes it.
    """
    if any(doc.tag(key) != doc.ATTRIBUTE for key in doc.keys_of(aggregate)):
        raise _other("groups by an expression over an Expand")
    keys = [doc.id_of(key) for key in set_keys(aggregate, expand)]
    if not doc.aggregated_ids(doc.expressions(aggregate)).isdisjoint(keys):
        # the rows' own value and the NULL of a set that leaves it out are one expression to us
        raise _other("aggregates a grouped column")
    env: dict[int, Expr | NotSupported] = {}
    left_out: dict[int, list[bool]] = {}
    ids: list[int] | None = None
    for position, attribute in enumerate(doc.columns(expand)):
        number, name = doc.id_of(attribute), doc.name_of(attribute)
        column = [row[position] for row in doc.expanded(expand)]
        if name == _GROUPING_ID:
            ids = [_integer(item) for item in column]
            env[number] = Call("grouping_id", (), doc.attribute_type(attribute), nullable=False)
        elif name == _POSITION:
            env[number] = _other("uses the number of a repeated grouping set")
        elif number in keys:
            env[number], left_out[number] = _key(column, below, settings)
        else:
            env[number] = _passed(column, below, settings)
    if ids is None or set(left_out) != set(keys):
        raise _other("has no grouping id")
    sets = tuple(
        tuple(i for i, key in enumerate(keys) if not left_out[key][row])
        for row in range(len(doc.expanded(expand)))
    )
    for number, members in zip(ids, sets, strict=True):
        if number != sum(1 << (len(keys) - 1 - i) for i in range(len(keys)) if i not in members):
            raise _other("numbers its grouping sets in another order than its keys")
    return env, sets


def spell_grouping(expr: Expr, keys: int) -> Expr:
    """`grouping(key)` where Catalyst takes its bit out of the grouping id.

    Args:
        expr: an output or a condition above the sets.
        keys: how many keys there are; the first one's bit is the highest.
    """

    def visit(node: Expr) -> Expr | None:
        bit = _bit_of_id(node)
        if bit is None or not 0 <= bit < keys:
            return None
        return Call("grouping", (), "tinyint", False, (str(keys - 1 - bit),))

    return transform(expr, visit)


def _bit_of_id(expr: Expr) -> int | None:
    """n for CAST((grouping_id >> n) & 1 AS TINYINT)."""
    if not isinstance(expr, Call) or expr.op != "cast" or expr.type != "tinyint":
        return None
    masked = expr.args[0]
    if not isinstance(masked, Call) or masked.op != f"{OPAQUE_PREFIX}BitwiseAnd":
        return None
    shifted, one = masked.args
    if not isinstance(shifted, Call) or shifted.op != f"{OPAQUE_PREFIX}ShiftRight":
        return None
    number, places = shifted.args
    if not isinstance(number, Call) or number.op != "grouping_id" or not isinstance(places, Lit):
        return None
    known = isinstance(one, Lit) and one.value == 1 and isinstance(places.value, int)
    return int(places.value) if known and isinstance(places.value, int) else None


def _key(column: list[Entry], below: Env, settings: Settings) -> tuple[Expr, list[bool]]:
    gone = [_constant(item) == (None,) for item in column]
    held = {repr(item): item for item, out in zip(column, gone, strict=True) if not out}
    if len(held) > 1 and all(_is_window(item) for item in held.values()):
        raise _other("is that of a sliding window, which puts a row into several buckets")
    if len(held) != 1:
        raise _other("has a key that is in no set, or that differs between sets")
    return decode(next(iter(held.values())), below, settings), gone


def _is_window(item: Entry) -> bool:
    return doc.is_call(item, "CreateNamedStruct") and str(doc.type_of(item)).startswith(
        "struct<start:time"
    )


def _constant(item: Entry) -> tuple[Any] | None:
    """The value of a literal, None for anything else."""
    return (doc.literal(item)[0],) if doc.tag(item) == doc.LITERAL else None


def _passed(column: list[Entry], below: Env, settings: Settings) -> Expr | NotSupported:
    if any(item != column[0] for item in column):
        return _other("computes a column anew for each set")
    try:
        return decode(column[0], below, settings)
    except NotSupported as error:
        return error


def _integer(item: Entry) -> int:
    found = _constant(item)
    if found is None or not isinstance(found[0], int):
        raise _other("has a grouping id that is no constant")
    return found[0]


def _other(what: str) -> NotSupported:
    return NotSupported(
        ReasonCode.UNSUPPORTED_OPERATOR,
        "the block holds an expansion of rows that {what}",
        what=Word(what),
    )
