"""GROUPING SETS, CUBE and ROLLUP in Catalyst: an Aggregate over an Expand that repeats each row
once per set.

The Expand puts NULL in place of the keys that a set leaves out, adds the grouping id, and, where a
set is written twice, a running number (`_gen_grouping_pos`) that keeps the two apart. All is
checked against the ids that Spark will compute, so that a plan of another shape is refused and not
misread.
"""

from __future__ import annotations

from typing import Any

from matcher.errors import NotSupported
from matcher.expr import Call, Expr
from matcher.from_spark_expr import Env, Settings, decode
from matcher.reasons import ReasonCode

_GROUPING_ID = "spark_grouping_id"
_POSITION = "_gen_grouping_pos"


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


def _key(column: list[Any], below: Env, settings: Settings) -> tuple[Expr, list[bool]]:
    gone = [item[0] == "l" and item[1] is None for item in column]
    held = {repr(item): item for item, out in zip(column, gone, strict=True) if not out}
    if len(held) != 1:
        raise _other("has a key that is in no set, or that differs between sets")
    return decode(next(iter(held.values())), below, settings), gone


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
