"""The steps of a walk, as plain data: what they print as is what runs them again.

Table names in queries stand in braces (`{sales}`), so that the same text can be asked of a table at
another version. A statement that begins with `!` is a gesture on the table's folder (`folders`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

NONE, MIXED = "none", "several kinds"


@dataclass(frozen=True)
class Change:
    """Something that happens to a base table. It may turn out not to apply: then it is skipped.

    Args:
        kind: What the ledger counts it as.
        table: The base table.
        statements: SQL, or gestures.
        enabled: Whether they are given to the session with caches; else to the one without.
    """

    kind: str
    table: str
    statements: tuple[str, ...]
    enabled: bool = False


@dataclass(frozen=True)
class Settings:
    """A statement about a cache: ALTER, or CREATE OR REPLACE of it as it was defined.

    Args:
        cache: The cache's name.
        words: What follows `ALTER RELATIONAL CACHE name`; empty to replace it.
    """

    cache: str
    words: str


@dataclass(frozen=True)
class Declare:
    """Record-preserving joins are dropped, declared as others, or validated again.

    Args:
        statements: What is said, to the session with caches.
    """

    statements: tuple[str, ...]


@dataclass(frozen=True)
class Refresh:
    """REFRESH, after which the cache's rows must be those of its definition.

    Args:
        cache: The cache's name.
        mode: `AUTO`, `FULL`, `INCREMENTAL`, `INCREMENTAL ONLY`, or empty.
    """

    cache: str
    mode: str = ""


@dataclass(frozen=True)
class Query:
    """A query that must give what Spark gives without us.

    Args:
        text: The SELECT, table names in braces.
        ordered: Its ORDER BY is total, so the order of its rows is judged too.
        action: How its rows are asked for: `collect`, `count` or `show`.
        shape: The cache's shape that it was drawn from.
        settings: What the session has for its time: settings that change no row, and defaults of
            others in another spelling.
    """

    text: str
    ordered: bool = False
    action: str = "collect"
    shape: str = ""
    settings: tuple[tuple[str, str], ...] = ()


Step: TypeAlias = Change | Settings | Declare | Refresh | Query


@dataclass(frozen=True)
class CacheSpec:
    """A cache of a world.

    Args:
        shape: Its shape (`shapes.SHAPES`), which is its name as well.
        freshness: The clause of CREATE; empty for STRICT.
    """

    shape: str
    freshness: str = ""


class Manner(StrEnum):
    """How the steps of a walk are drawn.

    `WILD`: whatever may happen to tables and caches. `APART`: after each change of rows every cache
    is refreshed. `GROWING`: the tables are appended to, and queries come before a refresh.
    `JOINED`: rows that break the declared joins come and go, and joins are declared by other keys,
    each followed by refreshes, and by queries that only the joins let a cache answer.
    """

    WILD = "wild"
    APART = "apart"
    GROWING = "growing"
    JOINED = "joined"


@dataclass(frozen=True)
class Walk:
    """A world and what happens in it.

    Args:
        layout: The base tables (`layouts.LAYOUTS`).
        caches: The caches over them, each created and refreshed before the first step.
        steps: The steps, in order.
        pins: Whether hot sets are pinned in memory.
        tails: Whether appended rows that a hit has read are held in memory: such a query is asked
            once more when they are.
        few_rows: Sets of so many rows are written anew by an incremental refresh, the others are
            appended to; None for the product's own number, which no set here exceeds.
        manner: How its steps were drawn.
    """

    layout: str
    caches: tuple[CacheSpec, ...]
    steps: tuple[Step, ...] = ()
    pins: bool = False
    tails: bool = False
    few_rows: int | None = None
    manner: Manner = Manner.WILD


def script(walk: Walk) -> str:
    """A walk as a program for a person to paste into the shell, in the root of the repository."""
    lines = "\n".join(f"    {step!r}," for step in walk.steps)
    caches = ", ".join(map(repr, walk.caches))
    return (
        ".venv/bin/python - <<'END'\n"
        "from tests.harness.fuzz_refresh.replay import replay\n"
        "from tests.harness.fuzz_refresh.steps import *\n"
        f"replay(Walk({walk.layout!r}, ({caches},), (\n{lines}\n), pins={walk.pins}, "
        f"tails={walk.tails}, few_rows={walk.few_rows}))\n"
        "END\n"
    )
