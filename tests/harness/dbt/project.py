"""A dbt project without dbt: its models as views, its dashboards as queries.

`{{ ref('m') }}` is the view `m` and `{{ source('shop', 't') }}` the table `shop.t`, as dbt renders
them with one target schema. Anything else in braces is refused, so that no text is read that dbt
would have made into another.
"""

from __future__ import annotations

import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

from cachemgr.text import offline

FOLDER: Final = Path(__file__).parent / "project"
# The models that are kept as caches, chosen by what dashboards read.
CACHED: Final = (
    "fct_orders",
    "fct_order_items",
    "fct_daily_sales",
    "fct_monthly_revenue",
    "fct_product_performance",
    "dim_customers",
    "int_sessions_daily",
    "fct_channel_funnel",
    "fct_marketing_daily",
    "int_shipment_delays",
    "fct_refunds",
    "fct_payment_mix",
    "fct_support",
)
LAYERS: Final = ("staging", "intermediate", "marts")
# The settings that a project's sessions state: times in text are those of UTC.
CONF: Final = {"spark.sql.session.timeZone": "UTC"}

_REF: Final = re.compile(r"\{\{\s*ref\(\s*'(\w+)'\s*\)\s*\}\}")
_SOURCE: Final = re.compile(r"\{\{\s*source\(\s*'(\w+)'\s*,\s*'(\w+)'\s*\)\s*\}\}")


@cache
def written() -> dict[str, str]:
    """Each model's text as it is in its file, by name."""
    files = [f for layer in LAYERS for f in sorted((FOLDER / "models" / layer).glob("*.sql"))]
    return {f.stem: f.read_text() for f in files}


def resolved(text: str) -> str:
    """A model's text with names for its refs and sources, ready to be run.

    Raises:
        ValueError: it holds other Jinja.

    >>> resolved("select * from {{ ref('stg_orders') }} join {{ source('shop', 'x') }}")
    'select * from stg_orders join shop.x'
    """
    plain = _SOURCE.sub(r"\1.\2", _REF.sub(r"\1", text))
    if "{{" in plain or "{%" in plain:
        raise ValueError("only ref and source are read of Jinja")
    return plain.strip()


def _in_order(texts: dict[str, str]) -> list[str]:
    below = {name: sorted(set(_REF.findall(text))) for name, text in texts.items()}
    unknown = {r for refs in below.values() for r in refs} - set(texts)
    if unknown:
        raise ValueError(f"no such models: {sorted(unknown)}")
    return list(TopologicalSorter(below).static_order())


@cache
def models() -> dict[str, str]:
    """Each model's SQL by name, those below before those that read them.

    Raises:
        ValueError: a ref names no model, or a text holds other Jinja.
        CycleError: models read each other in a circle.
    """
    return {name: resolved(written()[name]) for name in _in_order(written())}


@cache
def dashboards() -> dict[str, str]:
    """Each dashboard query by name."""
    files = sorted((FOLDER / "dashboards").glob("*.sql"))
    return {f.stem: f.read_text().strip().rstrip(";") for f in files}


@cache
def sources_text() -> str:
    """The CREATE TABLE statements of the sources."""
    return (FOLDER / "schema.sql").read_text()


@cache
def schema_text() -> str:
    """The sources, and a view of each model in an order in which they can be created."""
    views = [f"CREATE VIEW {name} AS\n{sql};" for name, sql in models().items()]
    return "\n".join([sources_text(), *views])


def as_cache(model: str) -> str:
    """The statement that would make a cache of a model's own SQL."""
    return f"CREATE RELATIONAL CACHE cache_of_{model} AS\n{models()[model]};"


@cache
def caches_text() -> str:
    """The caches that the project declares: each is a model's own SQL over the views below it."""
    return "\n".join(as_cache(name) for name in CACHED)


@cache
def workspace() -> offline.Workspace:
    """The project with its caches, read once."""
    return offline.prepare(schema_text(), caches_text(), CONF)
