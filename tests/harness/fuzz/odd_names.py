"""A world whose tables, columns and caches have names that must be quoted: its texts are written as
ever, and renamed before they are used."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Final

from cachemgr.errors import CacheManagerError
from cachemgr.text.offline import answer, prepare
from matcher.model.errors import MatcherError
from tests.harness.fuzz.decide import Accepted
from tests.harness.fuzz.world import World

_OUTSIDE: Final = re.compile(r"('(?:[^'\\]|\\.)*')")
_SHARE: Final = 0.4
# What stands before a name, or in place of one. Spark's own catalog takes letters of ASCII, digits
# and underscores for a table, and a cache stores no blank in a column's name.
_COLUMNS: Final = ("a.b", "a`b", "``", "it's", 'q"u', "Größe", "per%25cent", "a/b", "-", "1", "a:b",
    "$x", "*", "select", "from", "日本", "x\\y", "🦄", "null", "count")  # fmt: skip
_MAPPED: Final = ("x y", "a,b", "p=q", "(r)", "{k}")
_TABLES: Final = ("order", "select", "1a", "t_1", "group", "where", "T", "1", "_")
_CACHES: Final = ("x y", "Größe 日本", 'a`b\'s "c"', "100% a?b#c", "a,b)c", "**", "select", "🦄",
    "-", "order", "cache")  # fmt: skip
_REFUSED: Final = ("x/y", "x ", " x", "a.b", "", "a\tb", "y" * 256)


@dataclass(frozen=True)
class Names:
    """Other names for those of a world.

    Args:
        of: The other names, quoted.
        mapping: Whether its tables need column mapping.
    """

    of: dict[str, str]
    mapping: bool = False

    def text(self, sql: str) -> str:
        """SQL with the names in it replaced, those in constants left."""
        if not self.of:
            return sql
        names = "|".join(sorted(map(re.escape, self.of), key=len, reverse=True))
        word = re.compile(rf"(?<![\w`])(?:{names})(?![\w`])")
        parts = _OUTSIDE.split(sql)
        parts[::2] = [word.sub(lambda m: self.of[m[0]], part) for part in parts[::2]]
        return "".join(parts)


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def names(world: World, share: float = _SHARE) -> Names:
    """Odd names for some worlds, none for the others."""
    rng = Random(f"names {world.seed}")
    if rng.random() > share:
        return Names({})
    found, mapping = {}, rng.random() < 0.15
    for table in world.tables.values():
        if rng.random() < 0.5:
            found[table.name] = quoted(rng.choice(_TABLES) + rng.choice(("", f"_{table.name}")))
        for column in table.declared():
            if rng.random() < 0.4:
                odd = rng.choice(_MAPPED if mapping and rng.random() < 0.3 else _COLUMNS)
                found[column.name] = quoted(f"{odd}{column.name}" if rng.random() < 0.8 else odd)
    if len(set(map(str.lower, found.values()))) < len(found):  # two of one table may be the same
        found = {name: quoted(f"{odd[1:-1]}_{name}") for name, odd in found.items()}
    found["vf"] = quoted("view")
    for number in range(40):
        if rng.random() < 0.5:
            found[f"c{number}"] = quoted(f"{rng.choice(_CACHES)}{number}")
    return Names(found, mapping)


def refused_name(rng: Random) -> str:
    """A name that no cache may have, quoted."""
    return quoted(rng.choice(_REFUSED))


def lost_by_names(world: World, pair: Accepted, renamed: Names) -> str:
    """What the text door says of a hit once everything in it has other names; empty for a hit."""
    statement = pair.cache.cache.statement
    try:
        workspace = prepare(
            renamed.text(world.ddl), renamed.text(world.joins + statement), world.conf
        )
        found = answer(workspace, renamed.text(pair.query))
    except (CacheManagerError, MatcherError) as error:
        return f"{type(error).__name__}: {error}"
    if found.rewrites:
        return ""
    return "; ".join(f"{r.code}: {r.detail}" for c in found.candidates for r in c.reasons)[:500]
