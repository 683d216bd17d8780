"""A refresh runs under the cache's settings, whatever the application was started with."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cachemgr.delta.own_session import own_session

ANSI = "spark.sql.ansi.enabled"


@pytest.mark.spark
def test_a_setting_of_the_application_does_not_leak_into_a_refresh(spark: SparkSession) -> None:
    """SparkConf's values are in every new session; the cache was created under the default."""
    context_conf = spark._jsc.sc().conf()
    context_conf.set(ANSI, "false")
    try:
        assert spark.newSession().conf.get(ANSI) == "false"
        assert own_session(spark, {"spark.sql.session.timeZone": "UTC"}).conf.get(ANSI) == "true"
        stored = {ANSI: "false", "spark.sql.session.timeZone": "UTC"}
        assert own_session(spark, stored).conf.get(ANSI) == "false"
    finally:
        context_conf.set(ANSI, "true")
    assert spark.newSession().conf.get(ANSI) == "true"
