"""GROUPING SETS, CUBE and ROLLUP in Catalyst: an Aggregate over an Expand that repeats each row
once per set.

The Expand puts NULL in place of the keys that a set leaves out, adds the grouping id, and, where a
set is written twice, a running number (`_gen_grouping_pos`) that keeps the two apart. All is
checked against the ids that Spark will compute, so that a plan of another shape is refused and not
misread.
"""

from __future__ import annotations

from typing import Any

from matcher.catalyst.expr import Env, Settings, decode
from matcher.model.errors import NotSupported
from matcher.model.expr import OPAQUE_PREFIX, Call, Expr, Lit, transform
from matcher.model.reasons import ReasonCode

_GROUPING_ID = "spark_grouping_id"
_POSITION = "_gen_grouping_pos"


def expand_below(aggregate: dict[str, Any]) -> dict[str, Any] | None:
    """The Expand under an Aggregate, filters on what it puts out passed over."""
    node: dict[str, Any] = aggregate["c"][0]
    while node["n"] == "Filter" and not node.get("cache"):
        node = node["c"][0]
    return node if node["n"] == "Expand" and not node.get("cache") else None


def conditions_on_sets(aggregate: dict[str, Any]) -> list[Any]:
    """The conditions between Aggregate and Expand: HAVING on keys, which Spark has pushed down.

    Raises:
        NotSupported: one is not about the keys, so it is none of HAVING's.
    """
    allowed = {key[1] for key in aggregate["g"]}
    found = []
    node = aggregate["c"][0]
    while node["n"] == "Filter":
        if not _attributes(node["p"][0]) <= allowed:
            raise _other("are filtered by what is no grouping key")
        found.append(node["p"][0])
        node = node["c"][0]
    return found


def set_keys(aggregate: dict[str, Any], expand: dict[str, Any]) -> list[Any]:
    """The grouping attributes that stand for keys: all but the id and the running number."""
    added = {a[1] for a in expand["o"] if a[2] in (_GROUPING_ID, _POSITION)}
    return [key for key in aggregate["g"] if key[1] not in added]


def decode_expand(
    aggregate: dict[str, Any], expand: dict[str, Any], below: Env, settings: Settings
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
    if any(key[0] != "a" for key in aggregate["g"]):
        raise _other("groups by an expression over an Expand")
    keys = [key[1] for key in set_keys(aggregate, expand)]
    if not _aggregated(aggregate["p"]).isdisjoint(keys):
        # the rows' own value and the NULL of a set that leaves it out are one expression to us
        raise _other("aggregates a grouped column")
    env: dict[int, Expr | NotSupported] = {}
    left_out: dict[int, list[bool]] = {}
    ids: list[int] | None = None
    for position, attribute in enumerate(expand["o"]):
        number = attribute[1]
        column = [row[position] for row in expand["e"]]
        if attribute[2] == _GROUPING_ID:
            ids = [_integer(item) for item in column]
            env[number] = Call("grouping_id", (), attribute[3], nullable=False)
        elif attribute[2] == _POSITION:
            env[number] = _other("uses the number of a repeated grouping set")
        elif number in keys:
            env[number], left_out[number] = _key(column, below, settings)
        else:
            env[number] = _passed(column, below, settings)
    if ids is None or set(left_out) != set(keys):
        raise _other("has no grouping id")
    sets = tuple(
        tuple(i for i, key in enumerate(keys) if not left_out[key][row])
        for row in range(len(expand["e"]))
    )
    for number, members in zip(ids, sets, strict=True):
        if number != sum(1 << (len(keys) - 1 - i) for i in range(len(keys)) if i not in members):
            raise _other("numbers its grouping sets in another order than its keys")
    return env, sets


def _attributes(items: Any) -> set[int]:
    """The numbers of all attributes in an expression, or in a list of them."""
    if not isinstance(items, list):
        return set()
    if len(items) > 1 and items[0] == "a" and isinstance(items[1], int):
        return {items[1]}
    return {number for item in items for number in _attributes(item)}


def _aggregated(items: Any) -> set[int]:
    """The attributes inside of aggregate calls."""
    if not isinstance(items, list):
        return set()
    if items and items[0] == "g":
        return _attributes(items)
    return {number for item in items for number in _aggregated(item)}


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


def _key(column: list[Any], below: Env, settings: Settings) -> tuple[Expr, list[bool]]:
    gone = [item[0] == "l" and item[1] is None for item in column]
    held = {repr(item): item for item, out in zip(column, gone, strict=True) if not out}
    if len(held) > 1 and all(_is_window(item) for item in held.values()):
        raise _other("is that of a sliding window, which puts a row into several buckets")
    if len(held) != 1:
        raise _other("has a key that is in no set, or that differs between sets")
    return decode(next(iter(held.values())), below, settings), gone


def _is_window(item: list[Any]) -> bool:
    return item[:2] == ["f", "CreateNamedStruct"] and str(item[4]).startswith("struct<start:time")


def _passed(column: list[Any], below: Env, settings: Settings) -> Expr | NotSupported:
    if any(item != column[0] for item in column):
        return _other("computes a column anew for each set")
    try:
        return decode(column[0], below, settings)
    except NotSupported as error:
        return error


def _integer(item: Any) -> int:
    if item[0] != "l" or not isinstance(item[1], int):
        raise _other("has a grouping id that is no constant")
    return item[1]


def _other(what: str) -> NotSupported:
    return NotSupported(
        ReasonCode.UNSUPPORTED_OPERATOR.value, f"the block holds an expansion of rows that {what}"
    )
