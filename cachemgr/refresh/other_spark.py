"""Definitions that one minor of Spark can read, and another one cannot."""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import SparkSession

from cachemgr.causes import cause_of
from cachemgr.errors import ErrorCode, RefreshError
from cachemgr.metastore.records import CacheRecord
from cachemgr.sparks import BEFORE, SPARK, minor_of

# What Spark and we say of what a text has, and this Spark lacks; as whole words, since Delta says
# DELTA_UNSUPPORTED_FEATURES_FOR_READ of a table that no Spark reads with it.
_UNKNOWN: Final = re.compile(
    r"\b(UNRESOLVED_ROUTINE|PARSE_SYNTAX_ERROR|UNSUPPORTED_DATATYPE|UNSUPPORTED_FEATURE"
    r"|EXPRESSION_NOT_SUPPORTED|ROUTINE_NOT_FOUND|SETTING_NOT_AVAILABLE|OTHER_SPARK)\b"
)


def is_of_another_spark(spark: SparkSession, cache: CacheRecord, error: Exception) -> bool:
    """Whether a refresh failed since this Spark lacks what the one has which read the definition.

    Args:
        spark: Any session.
        cache: The cache.
        error: What went wrong.
    """
    lacks = _UNKNOWN.search(str(error)) is not None
    return lacks and read_by(cache) != minor_of(spark.version)


def read_by(cache: CacheRecord) -> str:
    """The minor of the Spark that has read a cache's definition."""
    return str(cache.context.get(SPARK, BEFORE))


def left_to_another(spark: SparkSession, cache: CacheRecord, error: Exception) -> RefreshError:
    """What is said where a refresh is left to a worker of another Spark.

    Args:
        spark: Any session.
        cache: The cache.
        error: What went wrong.
    """
    return RefreshError(
        ErrorCode.OTHER_SPARK,
        f"this worker has Spark {spark.version}, which cannot build cache {cache.qualified_name}, "
        f"whose definition was read by Spark {read_by(cache)}: {cause_of(error)}; the refresh "
        f"waits for a worker of Spark {read_by(cache)}",
    )
