"""Queries answered from a cache, in a line: for the examples in docstrings, and to try things out.

>>> answer("SELECT item, COUNT(*) AS n FROM sales GROUP BY item", "SELECT COUNT(*) AS n FROM sales")
SELECT COALESCE(SUM(`n`), 0L) AS `n` FROM c
"""

from __future__ import annotations

from functools import cache
from textwrap import fill
from typing import Final

from matcher.index.registry import Registry
from matcher.model.ir import Block, CachePlan, MatchOptions
from matcher.normalize.stored_plan import plan_definition
from matcher.render.select import render_rewrite
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

_WIDTH: Final = 88
SCHEMA: Final = """
CREATE TABLE sales (
  id INT NOT NULL PRIMARY KEY, item INT NOT NULL, day DATE, at TIMESTAMP, store INT, qty INT,
  price DECIMAL(9, 2), ratio DOUBLE, note STRING,
  CONSTRAINT sales_item FOREIGN KEY (item) REFERENCES items (item) RELY);
CREATE TABLE items (item INT NOT NULL PRIMARY KEY, name STRING NOT NULL, class STRING);
CREATE TABLE stores (store INT NOT NULL PRIMARY KEY, city STRING);
"""


def answer(definition: str, query: str) -> None:
    """Print the SELECT over a cache `c` that answers a query, or why there is none, in short lines.

    Args:
        definition: The SELECT that the cache stores, over the tables of `SCHEMA`.
        query: A query over these tables.

    Raises:
        MatcherError: One of the texts cannot be read, or not be stored.
    """
    registry = Registry()
    registry.put(plan_definition("c", _block(definition), _schema().joins()))
    found = registry.decide(
        _block(query), MatchOptions(time_zone="UTC", keys=_schema().joins()), explain=True
    )
    if found.rewrite is not None:
        print(fill(render_rewrite(found.rewrite, "c"), _WIDTH))
    for reason in found.reasons:
        print(fill(f"{reason.code.value}: {reason.detail}", _WIDTH))


def block_of(query: str) -> Block:
    """The block of a query.

    Args:
        query: A SELECT over the tables of `SCHEMA`.

    Raises:
        MatcherError: The text cannot be read.
    """
    return _block(query)


def plan_of(definition: str) -> CachePlan:
    """What a cache `c` stores.

    Args:
        definition: The SELECT that it stores, over the tables of `SCHEMA`.

    Raises:
        MatcherError: The text cannot be read, or not be stored.
    """
    return plan_definition("c", _block(definition))


@cache
def _schema() -> Schema:
    return Schema.parse(SCHEMA)


def _block(text: str) -> Block:
    (found,) = parse_query(text, _schema()).roots
    if found.block is None:
        raise ValueError("; ".join(reason.detail for reason in found.reasons))
    return found.block
