"""Sessions of our own: the settings that a cache was created under, the hook off, nothing of the
user's touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cachemgr.config.judged.judge import SQL, holds_code, judge
from cachemgr.config.judged.kinds import Kind
from cachemgr.config.judged.others import HADOOP_PREFIX
from cachemgr.config.judged.values import as_read, default_in_spark, is_of_spark
from cachemgr.config.result_settings import (
    FILE_SETTINGS,
    MEANT_UNSET,
    PASSES_OVER,
    result_settings,
)
from cachemgr.config.session_settings import ENABLED
from cachemgr.config.substitution import SUBSTITUTE
from cachemgr.errors import ErrorCode, RefreshError
from cachemgr.jvm.classes import class_on_path
from cachemgr.jvm.loader import java_class
from cachemgr.jvm.session_conf import explicit_settings, unnoticed

# Delta's extension sets these in every session, until RESET: without them it refuses to read a
# table whose columns are mapped by id.
SET_BY_DELTA: Final = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
}
# How the user has his own files written. A cache's hold what was computed, exactly: milliseconds
# would cut timestamps off, the old calendar has no 1582-10-10, and EXCEPTION refuses such days.
# What is written so is read alike under every setting: those of the readers are about files that
# do not say by what they were written, about INT96 and about columns without a type of Spark's.
_FILES: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # A file that cannot be read now may be there again when a query is answered: it fails the
    # refresh, where rows would be missing that the table has at this version.
    **{f"{FILE_SETTINGS}{name}": "false" for name in PASSES_OVER},
}
# What a refresh needs whatever the cache's settings say; none of them can change a row.
_OURS = {
    **_FILES,
    ENABLED: "false",
    "spark.cachemgr.mode": "off",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Without it each task of a write is sorted by partition first, which takes the place of the
    # order that the rows were given. A task holds few grouping sets, so few files are open at once.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    # To find how held rows compress best takes a third of the time that holding them takes.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    # Spark warns of each plan whose text it shortens.
    "spark.sql.debug.maxToStringFields": "1000",
    # The cache's table has no name in any catalog, and Delta's own statements take a path only so.
    "spark.sql.runSQLOnFiles": "true",
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
}

_TIME_ZONE = "spark.sql.session.timeZone"  # always stored
# With it the number of a set depends on which others stand in the same text and in which order. A
# cube's keys have the order that its definition got under it, and some of its sets alone keep their
# numbers by the order of the keys.
_SET_NUMBERS: Final = "spark.sql.legacy.groupingIdWithAppendedUserGroupBy"


def own_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A new session for texts of ours, with exactly these settings but for those of the parser and
    of the numbers of grouping sets: it has Spark's defaults, under which our texts are written.

    Args:
        spark: Any session of the same application; it is not changed.
        settings: The `spark.sql.*` settings that the cache was created under.

    Returns:
        A session that the hook leaves alone.

    Raises:
        RefreshError: A setting cannot be had in this application (a static one with another value).
    """
    left_out = {*java_class(spark, "Tables").parserSettings().split(","), _SET_NUMBERS}
    return session_for_definitions(spark, {k: v for k, v in settings.items() if k not in left_out})


def session_for_definitions(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """As `own_session`, for texts that a user wrote under these settings: a cache's definition.

    Args:
        spark: Any session of the same application; it is not changed.
        settings: The `spark.sql.*` settings that the cache was created under.

    Raises:
        RefreshError: As there.
    """
    session = session_under(spark, settings)
    for key, value in _OURS.items():
        session.conf.set(key, value)
    return session


def session_under(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A new session with exactly these settings among those that can change rows; it substitutes
    nothing in texts.

    Args:
        spark: Any session of the same application; it is not changed.
        settings: The settings; of those stored with a cache by an earlier version, which kept
            more, the ones that can change rows.

    Raises:
        RefreshError: A setting cannot be had in this application.
    """
    with unnoticed():
        session = spark.newSession()
    settings = result_settings(settings)
    _refuse_lacking(session, settings)
    # a new one may not have Delta's yet, and its ANSI setting is what the environment says
    settings = {**SET_BY_DELTA, **MEANT_UNSET, **settings}
    # A new session has what the application was started with, under which the cache may not have
    # been made.
    for key in explicit_settings(session):
        if key.startswith(HADOOP_PREFIX):
            _leave_out(session, key, settings)
            continue
        ours = _is_reset(key) and key not in settings and key != _TIME_ZONE
        if ours and not _is_static(session, key):
            _change(key, "the default", partial(session.conf.unset, key))
    for key, value in settings.items():
        there = session.conf.get(key, None)
        if there is None or as_read(key, there) != as_read(key, value):
            _change(key, repr(value), partial(session.conf.set, key, value))
    # last, whatever the settings say: a text is substituted where its user gave it, or never
    session.conf.set(SUBSTITUTE, "false")
    return session


def refuse_readers_filter(session: SparkSession) -> None:
    """Refuse to compute a cache where Parquet's reader leaves out rows of every table.

    Args:
        session: A session of ours.

    Raises:
        RefreshError: The application was started with such a filter; names the setting.
    """
    found = next((key for key in sorted(explicit_settings(session)) if holds_code(key)), None)
    if found is not None:
        raise RefreshError(
            ErrorCode.SETTING_NOT_AVAILABLE,
            f"this application was started with {found}, by which rows are left out of all that it "
            "reads: start Spark without it",
        )


def _refuse_lacking(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Refuse a setting that this minor of Spark does not have: it would take any value, and do
    nothing."""
    for key, value in settings.items():
        matters = key.startswith(SQL) and as_read(key, value) != default_in_spark(key)
        if matters and is_of_spark(key) and _sql_conf(session).getConfigEntry(key) is None:
            raise RefreshError(
                ErrorCode.SETTING_NOT_AVAILABLE,
                f"the cache was created under {key} = {value}, which Spark {session.version} "
                "does not have: have a later Spark refresh it, or create the cache again",
            )


def _sql_conf(session: SparkSession) -> Any:
    """What Spark knows of its settings."""
    return getattr(class_on_path(session._jvm, "org.apache.spark.sql.internal.SQLConf$"), "MODULE$")


def _leave_out(session: SparkSession, key: str, settings: Mapping[str, str]) -> None:
    """What the application has in Hadoop's configuration, where no session can take it out."""
    bare = key.removeprefix(HADOOP_PREFIX)
    default = default_in_spark(bare)
    if default is not None and bare not in settings:
        session.conf.set(bare, default)


def _is_static(session: SparkSession, key: str) -> bool:
    """Whether a setting is the same in all sessions of the application; those that Spark does not
    know are not."""
    return bool(_sql_conf(session).isStaticConfigKey(key))


def _is_reset(key: str) -> bool:
    """Whether a session of ours leaves out what its application sets: besides what may change rows
    all that decides what a statement of Spark's writes, such as which partitions INSERT OVERWRITE
    deletes. How Delta writes files, and how the work is done, is the application's to say."""
    kind = judge(key).kind
    return kind is Kind.RESULTS or (key.startswith(SQL) and kind is not Kind.EFFORT)


def _change(key: str, value: str, action: Callable[[], None]) -> None:
    try:
        action()
    except PySparkException as error:
        raise RefreshError(
            ErrorCode.SETTING_NOT_AVAILABLE,
            f"the cache was created under {key} = {value}, and this application cannot set that: "
            f"{error.getCondition() or error}; start Spark with it, or create the cache again",
        ) from error
