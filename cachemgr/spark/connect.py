"""Spark Connect: a session whose plans are made on the server, where relational caches are
configured."""

from __future__ import annotations

import logging
from typing import Any

from pyspark.errors import PySparkException

from cachemgr.errors import ConfigurationError, ErrorCode

_log = logging.getLogger("cachemgr")
# Of any statement of ours the server tells the columns only if it can carry it out.
_STATEMENT = "SHOW RELATIONAL CACHES"


def is_remote(spark: Any) -> bool:
    """Whether a session is one of Spark Connect.

    Args:
        spark: The session.
    """
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def see_served(spark: Any) -> None:
    """Make sure that a session's server has relational caches; nothing is changed in it.

    Args:
        spark: A Spark Connect session.

    Raises:
        ConfigurationError: It has none; says what to configure there, or what is wrong there.
    """
    try:
        columns = spark.sql(_STATEMENT).columns
    except PySparkException as error:
        if error.getCondition() != "PARSE_SYNTAX_ERROR":
            raise ConfigurationError(
                ErrorCode.SPARK_CONNECT,
                f"the server of this Spark Connect session does not serve relational caches: "
                f"{str(error).splitlines()[0]}",
            ) from error
        raise ConfigurationError(
            ErrorCode.SPARK_CONNECT,
            "the server of this Spark Connect session has no relational caches: put the lines that "
            "`cachemgr jar --conf` prints into its configuration and start it again; nothing is "
            "configured on the client (docs/doors.md)",
        ) from error
    assert columns
    _log.info("the server of this session has relational caches: its queries hit as they are")
