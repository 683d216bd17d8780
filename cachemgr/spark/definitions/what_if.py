"""Which queries an unbuilt cache would answer, and why not the others: nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import SparkSession

from cachemgr.config.match_options import match_options
from cachemgr.config.result_settings import fingerprint
from cachemgr.ddl.statements import CreateRelationalCache
from cachemgr.jvm.session_conf import explicit_settings
from cachemgr.serving.decide import decide
from cachemgr.serving.eligibility import Checks, Eligibility, QueryState
from cachemgr.serving.explain import Explanation, explanation_of
from cachemgr.serving.plan_blocks import PlanBlocks
from cachemgr.serving.seen_tables import by_location
from cachemgr.serving.unbuilt import unbuilt
from cachemgr.spark.plans import capture_query
from cachemgr.spark.session import CacheSession
from cachemgr.spark.session_statements import plan_of
from cachemgr.spark.texts import substituted
from cachemgr.vocabulary import JoinState
from matcher.catalyst.templates import PlanDocument
from matcher.index.registry import Registry


def answers_if_built(
    spark: SparkSession,
    session: CacheSession,
    statement: CreateRelationalCache,
    queries: Iterable[str],
) -> tuple[Explanation, ...]:
    """Which queries a cache would answer by itself; see `api.would_answer`.

    Args:
        spark: An enabled session.
        session: What decides there.
        statement: The cache.
        queries: SELECTs.

    Raises:
        CacheManagerError: The cache's SELECT is not right.
    """
    plan = plan_of(spark, session, statement)
    explicit = explicit_settings(spark)
    settings = session.settings(explicit)
    counted = fingerprint(explicit)
    places = {relation.key for relation in plan.relations}
    joins = tuple(
        j.as_fact(validated=j.state is JoinState.VALID)
        for j in session.feed.joins()
        if j.state is not JoinState.BROKEN and {j.left.location, j.right.location} <= places
    )
    plan = replace(plan, joins=joins)
    registry = Registry()
    registry.put(plan)
    explanations = []
    for text in queries:
        captured = capture_query(spark, substituted(spark, text))
        seen = by_location(captured.tables)
        cache = unbuilt(plan, seen, counted)
        checks = Checks(
            {plan.name: cache}.get, session.comparer, session.histories, session.feed.restricted
        )
        query = QueryState(seen, counted, session.principal, 0, 0)
        found = decide(
            PlanBlocks(PlanDocument(captured.document)),
            registry,
            Eligibility(query, checks),
            match_options(explicit, settings),
            explain=True,
        )
        explanations.append(explanation_of(found))
    return tuple(explanations)
