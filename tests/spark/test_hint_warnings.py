"""Spark does not know our hints, and has no need to say so."""

from __future__ import annotations

import pytest

from cachemgr.jvm.classes import class_on_path
from cachemgr.spark.hints import expect_own_hints

pytestmark = pytest.mark.spark
LOG4J = "org.apache.logging.log4j"
WARNS = "org.apache.spark.sql.catalyst.analysis.HintErrorLogger"


def test_spark_warns_of_the_hints_of_others_alone(spark) -> None:
    for _ in range(2):
        expect_own_hints(spark)
    jvm = spark._jvm
    context = class_on_path(jvm, f"{LOG4J}.LogManager").getContext(False)
    logger = context.getConfiguration().getLoggerConfig(WARNS)
    root = context.getConfiguration().getRootLogger()
    assert logger.getName() == WARNS and logger.getLevel().equals(root.getLevel())
    event = class_on_path(jvm, f"{LOG4J}.core.impl.Log4jLogEvent")
    message = class_on_path(jvm, f"{LOG4J}.message.SimpleMessage")

    def is_kept_back(text: str) -> bool:
        warned = event.newBuilder().setLoggerName(WARNS).setMessage(message(text)).build()
        return bool(logger.isFiltered(warned))

    for ours in ("RELATIONAL_CACHE(a, b)", "no_relational_cache", "RELATIONAL_CACHE_STEPS(5)"):
        assert is_kept_back(f"Unrecognized hint: {ours}")
    for other in ("RELATIONAL_CACHES(a)", "BROADCASTT(t)", "MY(RELATIONAL_CACHE)"):
        assert not is_kept_back(f"Unrecognized hint: {other}")
    assert not is_kept_back("Count not find relation 'RELATIONAL_CACHE' specified in hint")
