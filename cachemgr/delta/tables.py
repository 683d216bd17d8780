"""Delta tables by place and version: SELECT text over them, their versions now, and when they
moved.

Nothing here goes through the catalog, so it works under any catalog, any current schema and
`spark.sql.runSQLOnFiles=false`, and leaves nothing that a user could see.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cachemgr.base_state import BaseState, TableAt, Unreadable
from cachemgr.causes import cause_of, in_plain_words, is_storage_trouble, tell_of_storage
from cachemgr.delta.base_commits import MOST_BYTES, CommitRange, decode_range, unreadable
from cachemgr.delta.hadoop_files import why_log_unasked
from cachemgr.delta.past import Past
from cachemgr.delta.places import above, is_local
from cachemgr.delta.storage import why_no_folder
from cachemgr.errors import DefinitionError, ErrorCode
from cachemgr.jvm.classes import HADOOP_PATH, class_on_path, java_list, java_map
from cachemgr.jvm.loader import java_class, session_of


@dataclass(frozen=True, slots=True)
class TableRead:
    """What a relation of a SELECT reads: a Delta table, a cache's own included, at one version. No
    `TableAt`, since to read it nobody needs to know which table it is."""

    location: str
    version: int


@dataclass(frozen=True, slots=True)
class PinnedSet:
    """Rows held in memory: a logical plan of the JVM that reads them, and their size there.

    Attributes:
        held_bytes: What the driver's copy of the rows takes; 0 where there is none.
    """

    plan: Any
    rows: int
    bytes: int
    held_bytes: int = 0


def run_select(spark: SparkSession, text: str, relations: Mapping[str, object]) -> DataFrame:
    """The DataFrame of a SELECT text over the given relations, analysed in `spark`'s session and
    not yet run.

    The text is parsed as Spark SQL without variable substitution, by a parser with Spark's own
    defaults, whatever the session's settings. Relations of a WITH clause are not seen: write
    subqueries in FROM.

    Args:
        spark: The session whose settings decide types and functions.
        text: One SELECT.
        relations: For each relation name of the text a `TableRead`, a `PinnedSet`, a DataFrame,
            or a logical plan of the JVM.

    Raises:
        pyspark.errors.AnalysisException: The text does not analyse.
    """
    plans = java_map(
        spark._jvm, {name: logical_plan(spark, each) for name, each in relations.items()}
    )
    return DataFrame(java_class(spark, "Tables").select(session_of(spark), text, plans), spark)


def logical_plan(spark: SparkSession, relation: object) -> Any:
    """The analysed logical plan of a `TableRead`, a `PinnedSet`, a DataFrame, or of a plan
    itself."""
    if isinstance(relation, TableRead):
        tables = java_class(spark, "Tables")
        return tables.atVersion(session_of(spark), relation.location, relation.version)
    return plan_of(relation)


def plan_of(relation: object) -> Any:
    """The analysed logical plan of a `PinnedSet`, a DataFrame, or of a plan itself."""
    if isinstance(relation, PinnedSet):
        return relation.plan
    if isinstance(relation, DataFrame):
        return relation._jdf.queryExecution().analyzed()
    return relation


def normalise_location(spark: SparkSession, location: str) -> str:
    """The one spelling of a place: an absolute URI (`file:/data/t`), without a slash at its end."""
    text: str = java_class(spark, "Tables").normalise(session_of(spark), location)
    return text


def current_versions(
    spark: SparkSession, names: Mapping[str, str]
) -> dict[str, TableAt | Unreadable | None]:
    """What stands at each place now, without its columns; None where there is no Delta table. Reads
    the logs' heads only, no job is run; one that cannot be read keeps no other from being told.

    Args:
        spark: Any session.
        names: Location to the table's name in the catalog.
    """
    places = java_list(spark._jvm, names)
    rows = json.loads(java_class(spark, "Tables").versions(session_of(spark), places))
    asked = zip(names.items(), rows, strict=True)
    return {place: _found(spark, place, name, row) for (place, name), row in asked}


def _found(
    spark: SparkSession, place: str, name: str, row: list[Any] | str | None
) -> TableAt | Unreadable | None:
    if row is None:
        return None
    if isinstance(row, str):
        if tell_of_storage([row]):
            return Unreadable(in_plain_words(row.splitlines())[:300], is_away=True)
        away = why_log_unasked(spark, place, RuntimeError(row))
        if away:
            return Unreadable(away[:300], is_away=True)
        _, _, said = row.strip().partition(": ")
        return Unreadable((said or row).splitlines()[0][:300])
    location, table_id, version, commit, timestamp_ms = row
    return TableAt(name, location, table_id, version, timestamp_ms, commit)


def base_tables(spark: SparkSession, names: Mapping[str, str]) -> tuple[TableAt, ...]:
    """Base tables as they are now, with their columns; those that are gone or cannot be read are
    left out.

    Args:
        spark: Any session.
        names: Location to the table's name in the catalog.
    """
    found = current_versions(spark, names).values()
    return tuple(with_columns(spark, table) for table in found if isinstance(table, TableAt))


def with_columns(spark: SparkSession, table: TableAt) -> TableAt:
    """A table at the same version, with the columns that it has there."""
    return replace(table, columns=schema_at(spark, table.location, table.version))


def schema_at(spark: SparkSession, location: str, version: int) -> str:
    """The schema of a Delta table at a version, in the JSON of the Delta protocol."""
    return str(java_class(spark, "Tables").schema(session_of(spark), location, version))


def current_states(
    spark: SparkSession, locations: Iterable[str]
) -> dict[str, BaseState | Unreadable | None]:
    """`current_versions` as states."""
    found = current_versions(spark, {place: place for place in locations})
    return {p: now.state if isinstance(now, TableAt) else now for p, now in found.items()}


def past_of(spark: SparkSession, table: TableAt, version: int, *, columns_then: bool) -> Past:
    """A version that a table is past; see `cachemgr.serving.freshness.PastOf`."""
    tables, place = java_class(spark, "Tables"), table.location
    commit, made, following = json.loads(
        tables.past(session_of(spark), place, version, table.version)
    )
    then = None
    if columns_then:
        with suppress(Py4JJavaError, PySparkException):  # that version cannot be read any more
            then = schema_at(spark, place, version)
    columns = table.columns or schema_at(spark, place, table.version)
    return Past(commit, made, following, columns, then)


def commits_of(
    spark: SparkSession, table: TableAt, version: int, *, must_answer: bool = False
) -> CommitRange:
    """The commits after a version of a table; see `cachemgr.delta.base_commits.CommitsOf`.

    Args:
        spark: Any session.
        table: The table.
        version: The version.
        must_answer: A storage that cannot be asked is an error, and not a range that is unknown.

    Raises:
        py4j.protocol.Py4JJavaError, pyspark.errors.PySparkException: Only if `must_answer`.
    """
    tables, place = java_class(spark, "Tables"), table.location
    try:
        text = tables.commits(session_of(spark), place, version, table.version, MOST_BYTES)
    except (Py4JJavaError, PySparkException) as error:
        if must_answer and is_storage_trouble(error):
            raise
        return unreadable(cause_of(error))
    return decode_range(text)


def table_place(spark: SparkSession, name: str) -> str | None:
    """Where the table lies that a name stands for in Spark's own catalog, without its log being
    read; None where there is none of that name, or where it cannot be told.

    Args:
        spark: Any session of the application.
        name: The name, as `schema.table`.
    """
    schema, _, table = name.rpartition(".")
    if not schema or "." in schema:
        return None
    option = class_on_path(spark._jvm, "scala.Option")
    identifier = class_on_path(spark._jvm, "org.apache.spark.sql.catalyst.TableIdentifier")
    catalog = spark._jsparkSession.sessionState().catalog()
    try:
        found = catalog.getTableMetadata(identifier(table, option.apply(schema)))
        return normalise_location(spark, found.location().toString())
    except (Py4JJavaError, PySparkException):
        return None


def has_delta_log(spark: SparkSession, location: str) -> bool:
    """Whether a Delta table lies at a place. One question to the storage, none to Delta, which may
    remember a table whose files are gone."""
    log = class_on_path(spark._jvm, HADOOP_PATH)(location, "_delta_log")
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    return bool(log.getFileSystem(conf).exists(log))


def refuse_inside_table(spark: SparkSession, place: str, what: str) -> None:
    """Refuse a folder that is a Delta table's, or inside of one: its VACUUM deletes whatever its
    log does not name.

    Args:
        spark: Any session.
        place: The folder, which need not be there yet.
        what: What is to be written there, for the message.

    Raises:
        DefinitionError: It is one, or lies in one.
        py4j.protocol.Py4JJavaError: The storage does not answer.
    """
    table = next((folder for folder in above(place) if has_delta_log(spark, folder)), None)
    if table is not None:
        raise DefinitionError(
            ErrorCode.PLACE_TAKEN,
            f"{what}: {place} lies in the Delta table at {table}, whose VACUUM would delete the "
            "cache's files: give a folder outside of all tables",
        )


def refuse_unwritable(spark: SparkSession, place: str, what: str) -> None:
    """Refuse a folder of this machine that cannot be made, or that nothing can be made in.

    Args:
        spark: Any session; it says where a path without a scheme lies.
        place: The folder, which need not be there yet.
        what: What is to be written there, for the message.

    Raises:
        DefinitionError: Every refresh would fail there.
    """
    if not is_local(place):
        return
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    path = class_on_path(spark._jvm, HADOOP_PATH)(place)
    if path.getFileSystem(conf).getUri().getScheme() != "file":
        return
    why = why_no_folder(place)
    if why:
        raise DefinitionError(
            ErrorCode.PLACE_NOT_WRITABLE,
            f"{what}: no folder can be made below {place} ({why}): give a place that this process "
            "may write to",
        )


def first_commit_after(spark: SparkSession, location: str, version: int) -> int | None:
    """When the first commit after `version` was made, in milliseconds since the epoch.

    Returns:
        None if `version` is the newest; 0 if that commit's log entry is gone already, so that a lag
        computed from it is never too small.
    """
    when: int = java_class(spark, "Tables").firstCommitAfter(session_of(spark), location, version)
    return None if when < 0 else when
