"""The judgement of one setting."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from cachemgr.config.judged.delta import (
    DELTA_EFFORT,
    DELTA_IO,
    DELTA_OTHER_SOURCES,
    DELTA_RESULTS,
    DELTA_WRITES,
)
from cachemgr.config.judged.functions import of_functions
from cachemgr.config.judged.kinds import Judgement, Kind, judged
from cachemgr.config.judged.others import (
    HADOOP_CODE,
    HADOOP_PREFIX,
    HADOOP_RESULTS,
    REMOVED,
    VENDORS,
)
from cachemgr.config.judged.sql_harmless import (
    SQL_EFFORT,
    SQL_NAMES,
    SQL_OTHER_SOURCES,
    SQL_WRITES,
)
from cachemgr.config.judged.sql_results import SQL_RESULTS

SQL: Final = "spark.sql."
DELTA: Final = "spark.databricks.delta."
_DEBUGGING: Final = (("spark.python.sql.dataFrameDebugging.enabled", "texts of errors"),)

JUDGED: Final[tuple[Judgement, ...]] = (
    *judged(SQL, Kind.RESULTS, SQL_RESULTS),
    *of_functions(),
    *judged(SQL, Kind.WRITES, SQL_WRITES),
    *judged(SQL, Kind.EFFORT, SQL_EFFORT),
    *judged(SQL, Kind.EFFORT, SQL_NAMES),
    *judged(SQL, Kind.OTHER_SOURCES, SQL_OTHER_SOURCES),
    *judged(DELTA, Kind.RESULTS, DELTA_RESULTS),
    *judged(DELTA, Kind.WRITES, DELTA_WRITES),
    *judged(DELTA, Kind.EFFORT, DELTA_EFFORT),
    *judged(DELTA, Kind.OTHER_SOURCES, DELTA_OTHER_SOURCES),
    *judged("", Kind.WRITES, DELTA_IO),
    *judged("", Kind.EFFORT, _DEBUGGING),
    *judged("", Kind.EFFORT, REMOVED),
    *judged("", Kind.WRITES, VENDORS),
    *judged("", Kind.RESULTS, HADOOP_RESULTS),
    *judged(HADOOP_PREFIX, Kind.RESULTS, HADOOP_RESULTS),
)
_NAMES: Final = frozenset(each.pattern for each in judged(SQL, Kind.EFFORT, SQL_NAMES))
_EXACT: Final = {each.pattern: each for each in JUDGED if not each.is_family}
_FAMILIES: Final = {each.pattern[:-1]: each for each in JUDGED if each.is_family}
_LENGTHS: Final = sorted({len(prefix) for prefix in _FAMILIES}, reverse=True)
_FOREIGN: Final = Judgement("*", Kind.EFFORT, "no setting of Spark's SQL or of Delta Lake")
_UNKNOWN: Final = "no setting that Spark or Delta Lake has here: nobody knows what it changes"


@lru_cache(maxsize=4096)
def judge(key: str) -> Judgement:
    """What a setting can change.

    Args:
        key: A configuration key.

    Returns:
        What the table says of it, by the longest family that its name belongs to where it does not
        stand there itself. A key of Spark's SQL or Delta's that is not in the table, as a fork, a
        plug-in or another version may have it, counts as changing rows.

    >>> judge("spark.sql.storeAssignmentPolicy").kind.value
    'only writes'
    >>> judge("spark.sql.some.plug-in").kind.value
    'may change rows or types of a query'
    """
    found = _EXACT.get(key) or _family(key)
    if found is not None:
        return found
    if key.startswith((SQL, DELTA)):
        return Judgement(key, Kind.RESULTS, _UNKNOWN)
    return _FOREIGN


def is_of_an_application(key: str) -> bool:
    """Whether a setting says where an application finds names, jars and files, holds code, or is
    none of Spark's SQL or Delta's: whoever defines a cache has no say in it.

    Args:
        key: A configuration key.
    """
    found = judge(key)
    return found is _FOREIGN or found.pattern in _NAMES or holds_code(key)


def holds_code(key: str) -> bool:
    """Whether a setting names a class or holds an object of the user's that Parquet's reader makes.

    Args:
        key: A configuration key.
    """
    return key.removeprefix(HADOOP_PREFIX) in HADOOP_CODE


def _family(key: str) -> Judgement | None:
    for length in _LENGTHS:
        found = _FAMILIES.get(key[:length])
        if found is not None:
            return found
    return None
