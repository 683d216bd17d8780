"""A dbt project of the common kind: which of its models may be caches, and which dashboards hit.

Its dashboards were written before its caches were chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from cachemgr.errors import CacheManagerError
from cachemgr.text import offline
from matcher.sql.reader import TextSettings, parse_query
from tests.harness.dbt import project
from tests.harness.dbt.judge import Shop

MOST_CACHES = 15
WANTED_MODELS = 15

# The models that may not be caches: the code, and a part of what is said.
REFUSED = {
    # row_number and lag over each customer's orders
    "int_customer_order_sequence": ("UNSUPPORTED_OPERATOR", "has window functions"),
    # UNION ALL of orders, refunds and tickets
    "int_customer_timeline": ("UNSUPPORTED_OPERATOR", "several SELECTs"),
    # joins the model with the windows
    "fct_new_vs_returning": ("UNSUPPORTED_OPERATOR", "has window functions"),
}

# The dashboards that hit, and the caches that they read.
HITS = {
    "ad_efficiency": ["cache_of_fct_marketing_daily"],
    "buyers_by_category": ["cache_of_fct_order_items"],
    # not from a cache of fct_category_sales, whose ratio might raise in a group that HAVING drops
    "category_margins": ["cache_of_fct_order_items"],
    "conversion_by_device": ["cache_of_int_sessions_daily"],
    "customers_by_tier": ["cache_of_dim_customers"],
    "daily_units_by_channel": ["cache_of_fct_daily_sales"],
    "discount_share_by_country": ["cache_of_fct_daily_sales"],
    "funnel_by_month": ["cache_of_fct_channel_funnel"],
    # not from a cache of fct_delivery_performance: it has a DOUBLE, and a text does not tell
    # whether that is what is added above
    "late_deliveries": ["cache_of_int_shipment_delays"],
    "monthly_kpis_emea": ["cache_of_fct_monthly_revenue"],
    "orders_last_30_days": ["cache_of_fct_orders"],
    "payment_mix": ["cache_of_fct_payment_mix"],
    "refund_reasons": ["cache_of_fct_refunds"],
    "revenue_by_month": ["cache_of_fct_orders"],
    "revenue_by_region": ["cache_of_fct_monthly_revenue"],
    "signups_by_week": ["cache_of_dim_customers"],
    "support_satisfaction": ["cache_of_fct_support"],
    "top_customers": ["cache_of_dim_customers"],
    "top_products": ["cache_of_fct_product_performance"],
}
WANTED_HITS = 16

# Those that do not, and a code that says why.
MISSES = {
    # each model has a cache, and a text does not tell whether their whole numbers are averaged
    "tier_revenue_by_quarter": "AVG_NOT_EXACT",
}


def _all_that_may() -> offline.Workspace:
    """Each model that may be a cache as one, read once for all."""
    stated = [project.as_cache(name) for name in project.models() if name not in REFUSED]
    return offline.prepare(project.schema_text(), "\n".join(stated), project.CONF)


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    made = Shop(project.workspace().stored)
    yield made
    made.db.close()


def test_the_project_is_of_the_common_size() -> None:
    assert len(project.models()) >= 26
    assert len(project.dashboards()) == 20
    assert len(project.workspace().plans) <= MOST_CACHES


@pytest.mark.parametrize("name", [*project.models(), *project.dashboards()])
def test_every_text_parses_to_blocks(name: str) -> None:
    text = (project.models() | project.dashboards())[name]
    parsed = parse_query(text, project.workspace().schema, TextSettings(utc=True))
    assert parsed.roots and not parsed.reasons


@pytest.mark.parametrize("name", list(project.models()))
def test_which_models_may_be_caches(name: str) -> None:
    if name not in REFUSED:
        assert f"cache_of_{name}" in _all_that_may().stored
        return
    code, says = REFUSED[name]
    with pytest.raises(CacheManagerError, match=says) as caught:
        offline.prepare(project.schema_text(), project.as_cache(name), project.CONF)
    assert caught.value.code == code


def test_enough_models_may_be_caches() -> None:
    assert len(project.models().keys() - REFUSED) >= WANTED_MODELS


def test_no_cache_is_the_text_of_a_dashboard() -> None:
    texts = {project.models()[name] for name in project.CACHED}
    assert texts.isdisjoint(project.dashboards().values())


def test_each_dashboard_is_expected_to_hit_or_to_miss() -> None:
    assert sorted([*HITS, *MISSES]) == sorted(project.dashboards())
    assert len(HITS) >= WANTED_HITS


def test_each_cache_answers_some_dashboard() -> None:
    used = {cache for caches in HITS.values() for cache in caches}
    assert used == set(project.workspace().plans)


@pytest.mark.parametrize("name", list(HITS))
def test_a_hit_has_the_rows_of_the_dashboard(name: str, shop: Shop) -> None:
    text = project.dashboards()[name]
    shown = offline.explain_query(project.workspace(), text)
    assert shown["hit"] and shown["caches"] == HITS[name]
    types = shop.types(text)
    wanted = shop.rows(text, types)
    assert wanted, "a hit without rows shows nothing"
    assert Counter(shop.rows(shown["rewrittenSql"], types)) == Counter(wanted)


@pytest.mark.parametrize("name", list(MISSES))
def test_a_miss_says_why(name: str) -> None:
    shown = offline.explain_query(project.workspace(), project.dashboards()[name])
    assert not shown["hit"]
    assert MISSES[name] in {reason["code"] for reason in shown["reasons"]}
