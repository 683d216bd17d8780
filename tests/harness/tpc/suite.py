"""The TPC-H and TPC-DS query shapes with their declared caches, and what the text door makes of
them.

The queries are plain SQL after the public specifications, with their default parameters. Outputs
that the specification leaves unnamed have names here, because only Spark knows what it would call
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cachemgr.text import offline
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

FOLDER = Path(__file__).parent
SUITES = ("h", "ds")
TITLES = {"h": "TPC-H", "ds": "TPC-DS"}
COUNTS = {"h": 22, "ds": 99}
WANTED = {"h": 22, "ds": 78}
# The tables of which a cache is to spare a query at least one; of a suite without any it is enough
# that a cache answers a part.
FACTS = {
    "h": frozenset[str](),
    "ds": frozenset(
        {"store_sales", "store_returns", "catalog_sales", "catalog_returns", "web_sales"}
        | {"web_returns", "inventory"}
    ),
}
MOST_CACHES = 15


@dataclass(frozen=True)
class Served:
    """What became of one query: the caches that serve some block of it, or why none does."""

    name: str
    caches: tuple[str, ...]
    reasons: tuple[str, ...]


def schema_text(suite: str) -> str:
    """The suite's tables."""
    return (FOLDER / f"schema_{suite}.sql").read_text()


def caches_text(suite: str) -> str:
    """The suite's declared caches."""
    return (FOLDER / f"caches_{suite}.sql").read_text()


@cache
def queries(suite: str) -> dict[str, str]:
    """The suite's query texts by name (`h01`, `ds99`)."""
    files = sorted((FOLDER / "queries").glob(f"{suite}[0-9][0-9].sql"))
    return {f.stem: f.read_text() for f in files}


@cache
def workspace(suite: str) -> offline.Workspace:
    """The suite's schema and caches, read once."""
    return offline.prepare(schema_text(suite), caches_text(suite))


def unreadable(suite: str) -> Iterator[str]:
    """Queries of which the text door makes no block tree, and why."""
    schema = Schema.parse(schema_text(suite))
    for name, text in queries(suite).items():
        parsed = parse_query(text, schema)
        if not parsed.roots or parsed.reasons:
            yield f"{name}: {parsed.reasons}"


@cache
def served(suite: str) -> tuple[Served, ...]:
    """What the text door makes of each query."""
    found = []
    for name, text in queries(suite).items():
        answer = offline.answer(workspace(suite), text)
        used = dict.fromkeys(r.cache for r in answer.rewrites)
        # what only shows through from a part below says nothing new
        reasons = dict.fromkeys(
            f"{r.code.value}: {r.detail}" for r in (*answer.refused, *answer.reasons)
        )
        found.append(Served(name, tuple(used), tuple(reasons)))
    return tuple(found)
