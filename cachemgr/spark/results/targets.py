"""Which tables statements may write to, and what became of a write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from cachemgr.delta.places import as_path, is_inside
from cachemgr.jvm.loader import java_class, session_of
from cachemgr.spark.results.words import refused, shown
from cachemgr.spark.texts import REACHING, Named

# Of the expressions that a table has for each write of it: none of Spark's own that reaches out,
# and nothing but Spark's own.
_OWN: Final = "FUNCTION"


@dataclass(frozen=True, slots=True)
class Targets:
    """Which tables no statement writes to: those of the caches, which refreshes alone may change.

    Args:
        root: The folder that caches' tables lie in.
        caches: Tells the places of those that there are or were.
    """

    root: str
    caches: Callable[[], Iterable[str]]

    def refuse_own(self, name: str, place: str) -> None:
        """Refuse a table of ours.

        Args:
            name: As the text has it.
            place: Where it lies.

        Raises:
            RightsError: It is the table of a cache, or lies where these do.
        """
        path = as_path(place)
        if any(is_inside(path, own) or is_inside(own, path) for own in (self.root, *self.caches())):
            raise refused(
                f"{name} lies where the tables of relational caches do, which their refreshes "
                "alone write: write to the base tables"
            )


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table that a statement is about to write to.

    Args:
        name: As the statement calls it.
        place: Where it lies.
        version: Where it stood: the statement's commit comes later.
    """

    name: str
    place: str
    version: int


@dataclass(frozen=True, slots=True)
class Write:
    """A statement that may run, and changes one table.

    Args:
        plan: The command that was looked through.
        table: What it changes.
        places: Of the tables that it reads and writes.
    """

    plan: Any
    table: WrittenTable
    places: frozenset[str]

    def carried_out(self, spark: SparkSession) -> DataFrame:
        """Carry it out now.

        Args:
            spark: The session in which it was analysed.

        Returns:
            The rows that Spark gives for it, which are there already.

        Raises:
            pyspark.errors.PySparkException: It fails; the table's history tells whether before or
                after its commit.
        """
        return DataFrame(java_class(spark, "Writes").run(session_of(spark), self.plan), spark)


def written_table(
    spark: SparkSession, name: str, places: frozenset[str], targets: Targets
) -> WrittenTable:
    """The table that an analysed command writes to, once it has been looked at as well.

    Args:
        spark: The session.
        name: What the statement calls it.
        places: Where the command writes, by its plan.
        targets: Which tables may be written to.

    Raises:
        RightsError: The command writes to none, or several; the table is one of a cache's, or
            computes what a statement may not; or its log alone does not tell its commits.
    """
    if len(places) != 1:
        raise refused(f"Spark makes of it what is not run here, so that {name} stays as it is")
    (place,) = places
    targets.refuse_own(name, place)
    told = java_class(spark, "Writes").state(session_of(spark), place)
    version, by_catalog, found = json.loads(told)
    if by_catalog:
        raise refused(f"the commits of {name} go to a catalog, and only those of a log are made")
    for one in (Named(*each) for each in found):
        if one.kind != _OWN or one.text in REACHING:
            raise refused(
                f"a constraint, default or generated column of {name} holds {shown(one.parts)}, "
                "which is not run here"
            )
    return WrittenTable(name, place, int(version))


def commit_of(spark: SparkSession, place: str, after: int, mark: str) -> int | None:
    """The version that a write has made, by the note in its commit.

    Args:
        spark: Any session.
        place: Where the table lies.
        after: Where it stood before.
        mark: What the commit's userMetadata says.

    Returns:
        None if no commit says so, as far as the log goes now.

    Raises:
        py4j.protocol.Py4JJavaError: The log cannot be read, or does not tell any more.
    """
    found = int(java_class(spark, "Writes").committed(session_of(spark), place, after, mark))
    return None if found < 0 else found
