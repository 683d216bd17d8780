"""Which types of a base column hold every value that another one held: those that Delta itself
widens a column to, and a struct that got more fields.

A cache whose columns only became wider, or whose tables only got more columns, can be refreshed by
itself: no query over the table that ran before means something else now. With any other type that
is for a person to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

# the whole numbers in order, with the digits that a DECIMAL needs to hold them
_WHOLE: Final = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(-?\d+)\)")
_VARCHAR: Final = re.compile(r"varchar\((\d+)\)", re.IGNORECASE)
_SQL: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_JSON: Final = {sql: json for json, sql in _SQL.items()}
_OTHERS: Final = {
    ("byte", "double"),
    ("short", "double"),
    ("integer", "double"),
    ("float", "double"),
    ("date", "timestamp_ntz"),
}


def holds_all_of(then: Any, now: Any) -> bool:
    """Whether a type is the same as another one, or wider.

    Args:
        then: A type as `cachemgr.delta.base_columns` keeps it: a name of the Delta protocol, or a
            mapping with the types inside, the fields of a struct as lists that begin with a name
            and a type.
        now: Another one.

    >>> holds_all_of("integer", "long"), holds_all_of("long", "integer")
    (True, False)
    >>> holds_all_of("decimal(10,2)", "decimal(12,3)"), holds_all_of("long", "decimal(20,2)")
    (True, False)
    """
    if isinstance(then, str) and isinstance(now, str):
        return then == now or _is_wider(then, now)
    if not isinstance(then, Mapping) or not isinstance(now, Mapping) or then["type"] != now["type"]:
        return False
    if then["type"] == "struct":
        fields = {str(field[0]).lower(): field for field in now["fields"]}
        return all(
            (found := fields.get(str(field[0]).lower())) is not None
            and holds_all_of(field[1], found[1])
            and has_same_meaning(field, found)
            for field in then["fields"]
        )
    return all(holds_all_of(then[k], now.get(k)) for k in then if k.endswith("Type"))


def has_same_meaning(then: Sequence[Any], now: Sequence[Any]) -> bool:
    """Whether texts of a column are compared as before, and none is cut or padded that was not.

    Args:
        then: A field as `cachemgr.delta.base_columns` keeps it; its last two items are its
            collation, and what a CHAR or VARCHAR was declared as.
        now: The same field now.
    """
    if then[-2] != now[-2]:
        return False
    old, new = then[-1], now[-1]
    if old == new:
        return True
    was = None if old is None else _VARCHAR.fullmatch(str(old))
    if was is None:
        return False  # a CHAR is padded, and a STRING has no length
    longer = None if new is None else _VARCHAR.fullmatch(str(new))
    return new is None or (longer is not None and int(longer[1]) >= int(was[1]))


def sql_type(kind: Any) -> str:
    """A type as SQL spells it.

    Args:
        kind: As for `holds_all_of`.

    >>> sql_type("long"), sql_type({"type": "array", "elementType": "integer"})
    ('bigint', 'array<int>')
    """
    if not isinstance(kind, Mapping):
        return _SQL.get(str(kind), str(kind))
    if kind["type"] == "struct":
        fields = (f"{field[0]}:{sql_type(field[1])}" for field in kind["fields"])
        return f"struct<{','.join(fields)}>"
    inner = (sql_type(v) for k, v in kind.items() if k.endswith("Type"))
    return f"{kind['type']}<{','.join(inner)}>"


def from_sql(text: str) -> str:
    """A type without others inside as the Delta protocol names it.

    Args:
        text: As SQL spells it.

    >>> from_sql("bigint"), from_sql("decimal(10,2)")
    ('long', 'decimal(10,2)')
    """
    return _JSON.get(text, text)


def _is_wider(then: str, now: str) -> bool:
    if then in _WHOLE and now in _WHOLE:
        return list(_WHOLE).index(then) < list(_WHOLE).index(now)
    wide = _DECIMAL.fullmatch(now)
    if wide is None:
        return (then, now) in _OTHERS
    digits, scale = int(wide[1]), int(wide[2])
    if then in _WHOLE:
        return digits - scale >= _WHOLE[then]
    narrow = _DECIMAL.fullmatch(then)
    if narrow is None:
        return False
    return scale >= int(narrow[2]) and digits - scale >= int(narrow[1]) - int(narrow[2])
