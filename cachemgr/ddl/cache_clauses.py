"""The clauses of CREATE RELATIONAL CACHE: how each is read, written and told, one entry a clause.

A clause that is added here, with its field in `CacheSpec`, is known to the parser, to SHOW CREATE,
to DESCRIBE EXTENDED and to the definitions file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cachemgr.cache_spec import CacheSpec, Freshness
from cachemgr.ddl import clauses
from cachemgr.ddl.cursor import Cursor
from cachemgr.ddl.render_parts import (
    quote,
    render_columns,
    render_freshness,
    render_properties,
    render_refresh,
)
from cachemgr.vocabulary import FreshnessKind

Read = Callable[[Cursor], Any]


@dataclass(frozen=True)
class Clause:
    """One clause.

    Args:
        field: Of `CacheSpec`.
        readers: How it may begin, and what reads the rest.
        write: Its canonical text; empty where it is left out.
        kind: Of those of one kind a statement has one at most; the field if empty.
        item: What DESCRIBE EXTENDED calls it among the clauses; empty where it shows it elsewhere.
        tell: Its value in DESCRIBE EXTENDED.
    """

    field: str
    readers: Mapping[str, Read]
    write: Callable[[Any], str]
    kind: str = ""
    item: str = ""
    tell: Callable[[Any], str] = str

    @property
    def excludes(self) -> str:
        """The kind of which a statement has one at most."""
        return self.kind or self.field


def _unless_empty(write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "" if value is None or value == () or value == {} else write(value)


# In the order in which SHOW CREATE writes them.
CLAUSES: Final = (
    Clause(
        "comment",
        {"COMMENT": lambda cur: cur.string("'text'")},
        _unless_empty(lambda text: f"COMMENT {quote(text)}"),
    ),
    Clause(
        "partitioned_by",
        {"PARTITIONED BY": clauses.column_list},
        _unless_empty(lambda columns: f"PARTITIONED BY ({render_columns(columns)})"),
        kind="layout",
        item="partitioned by",
        tell=", ".join,
    ),
    Clause(
        "cluster_by",
        {"CLUSTER BY": clauses.column_list},
        _unless_empty(lambda columns: f"CLUSTER BY ({render_columns(columns)})"),
        kind="layout",
        item="clustered by",
        tell=", ".join,
    ),
    Clause(
        "location",
        {"LOCATION": clauses.location},
        _unless_empty(lambda place: f"LOCATION {quote(place)}"),
    ),
    Clause(
        "properties",
        {"TBLPROPERTIES": lambda cur: dict(clauses.properties(cur))},
        _unless_empty(lambda found: render_properties(tuple(found.items()))),
        item="properties",
        tell=lambda found: ", ".join(f"{k}={v}" for k, v in found.items()),
    ),
    Clause("refresh", {"REFRESH": clauses.refresh_policy}, render_refresh),
    Clause(
        "freshness",
        {
            "STRICT": lambda cur: Freshness(FreshnessKind.STRICT),
            "MAX STALENESS": clauses.max_staleness,
        },
        render_freshness,
    ),
    Clause(
        "rewrite_enabled",
        {"ENABLE REWRITE": lambda cur: True, "DISABLE REWRITE": lambda cur: False},
        lambda enabled: "ENABLE REWRITE" if enabled else "DISABLE REWRITE",
    ),
)


def render_clauses(spec: CacheSpec) -> list[str]:
    """The clauses of a cache as canonical text, one a line.

    Args:
        spec: What was declared.

    >>> render_clauses(CacheSpec(comment="by day"))
    ["COMMENT 'by day'", 'REFRESH ON DEMAND AUTO', 'STRICT', 'ENABLE REWRITE']
    """
    lines = [clause.write(getattr(spec, clause.field)) for clause in CLAUSES]
    return [line for line in lines if line]


def clause_items(spec: CacheSpec) -> list[tuple[str, str]]:
    """The items of DESCRIBE EXTENDED that are clauses and nothing else.

    Args:
        spec: What was declared.
    """
    return [(c.item, c.tell(getattr(spec, c.field))) for c in CLAUSES if c.item]
