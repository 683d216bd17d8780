"""Whether a statement may run for the principal who gave it: it is a query, or he is one who may
write and it changes rows of one table; and it reads and writes nothing but Delta tables that he was
granted SELECT on.

The service reads with its own rights, so that nothing else stands between a statement and all that
the service can reach. Analysis alone opens the files and connections that a text names, and carries
out the statements in it. So a text is looked through before Spark analyses it, and its plan once
more before it runs; each look refuses whatever it does not know (`Sources.java`).

What is said of a table that was not granted is what is said of one that does not exist: its name as
the text has it, and no more.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cachemgr.config.substitution import refuse_substitution
from cachemgr.ddl.recognise import looks_like_ours
from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.jvm.classes import java_list
from cachemgr.jvm.loader import java_class, session_of
from cachemgr.spark.results.targets import Targets, Write, written_table
from cachemgr.spark.results.words import RightsError, refused, said, shown, where, words_of
from cachemgr.spark.spark_errors import innermost_code_and_line
from cachemgr.spark.texts import REACHING, Named, readable

# Those that make rows of their arguments alone.
_PURE_TABLE_FUNCTIONS: Final = frozenset(
    "collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer "
    "range sql_keywords stack variant_explode variant_explode_outer".split()
)
# Which rows of the table, and never which table or how its storage is asked.
_OPTIONS: Final = frozenset(
    "readchangefeed readchangedata startingversion endingversion startingtimestamp endingtimestamp "
    "versionasof timestampasof".split()
)
# Spark's short names of sources that are read by their path.
_FORMATS: Final = frozenset(
    "avro binaryfile csv hive iceberg image jdbc json kafka libsvm orc parquet rate socket "
    "statestore state-metadata text xml".split()
)

# As Delta 4.4.0 names a column that a MERGE knows nothing of.
_INTERNAL: Final = "INTERNAL_ERROR"
# What a command may say that is not carried out here, by the field of Spark's node.
_FIELDS: Final = {
    "withSchemaEvolution": "WITH SCHEMA EVOLUTION, which changes the table's columns",
    "schemaEvolutionEnabled": "WITH SCHEMA EVOLUTION, which changes the table's columns",
    "replaceCriteriaOpt": "REPLACE USING or REPLACE ON",
    "table": "a table that is not written to here",
}


@dataclass(frozen=True, slots=True)
class Allowed:
    """A query that may run.

    Args:
        rows: What it gives.
        places: Of the tables that they come from.
    """

    rows: DataFrame
    places: frozenset[str]


def allowed_query(
    spark: SparkSession, text: str, places: Container[str], principal: str
) -> Allowed:
    """A query that its principal may run; see `allowed_statement`, which this is for somebody who
    may not write.

    Args:
        spark: The session in which names are resolved and whose settings hold.
        text: What the principal gave.
        places: The places of the tables that he was granted SELECT on.
        principal: His name, for messages.
    """
    found = allowed_statement(spark, text, places, principal, None)
    assert isinstance(found, Allowed)  # what writes is refused
    return found


def allowed_statement(
    spark: SparkSession,
    text: str,
    places: Container[str],
    principal: str,
    targets: Targets | None,
) -> Allowed | Write:
    """A query's rows, or a statement that changes one table, if its principal may read all that
    they come from and may write there; no job is run, and nothing is carried out.

    What is checked is what runs: the DataFrame is over the very plan that was looked through, as a
    write is that plan, and nothing is parsed or resolved again.

    A view counts for the tables behind it, each of which must be granted: it runs with the rights
    of whoever asks, and not with those of whoever made it. So a view shows nobody a part of a table
    that he was not granted as a whole. A view over no table at all is granted to nobody. A shallow
    clone is granted like any table, by its own place, wherever its files lie.

    Args:
        spark: The session in which names are resolved and whose settings hold.
        text: What the principal gave.
        places: The places of the tables that he was granted SELECT on, in the one spelling of
            `cachemgr.delta.tables.normalise_location`.
        principal: His name, for messages.
        targets: Which tables statements may write to; None if this principal's may not.

    Raises:
        RightsError: `SELECT_NOT_GRANTED` for a relation that he may not read or that does not
            exist; `STATEMENT_REFUSED` for what is neither a query nor a write that he may give, or
            reaches outside of the tables.
        DefinitionError: The text holds `${`, or a table that he may read cannot be read.
        CacheManagerError: It does not parse (`SYNTAX_ERROR`) or analyse (`STATEMENT_INVALID`).
    """
    refuse_substitution(text, "the statement")
    if looks_like_ours(text):
        raise refused(
            "it is about relational caches, joins or grants, for which REST has operations of "
            "their own (/api/v1/caches, /joins, /tables): `cachemgr cache`, `cachemgr apply` and "
            "`cachemgr select` call them, and `cachemgr sql` takes such statements"
        )
    sources, session = java_class(spark, "Sources"), session_of(spark)
    with readable(spark, "the statement"):
        try:
            parsed = java_class(spark, "Texts").parsed(session, text)
        except PySparkException as error:
            raise CacheManagerError(ErrorCode.SYNTAX_ERROR, said(error)) from error
        named = _found(sources.named(session, parsed))
        _refuse_statement(named, principal, is_writer=targets is not None)
        _refuse_parsed(named)
        rights = _Rights(spark, places, principal)
        for one in named:
            if one.kind == "TABLE":
                rights.check(one)
            elif one.kind == "TARGET" and targets is not None:
                rights.check_target(one, targets)
        try:
            analysed = sources.analyse(session, parsed)
        except PySparkException as error:
            raise CacheManagerError(ErrorCode.STATEMENT_INVALID, said(error)) from error
        except Py4JJavaError as error:
            code, line = innermost_code_and_line(error)
            if code != _INTERNAL:
                raise
            why = f"Spark fails to analyse it; a name in it may be wrong: {line}"
            raise CacheManagerError(ErrorCode.STATEMENT_INVALID, why) from error
        read = _found(sources.read(analysed))
        rights.check_plan(read)
        tables = frozenset(one.parts[0] for one in read if one.kind == "DELTA")
        written = frozenset(one.parts[0] for one in read if one.kind == "WRITES")
        target = next((one for one in named if one.kind == "TARGET"), None)
        if target is None or targets is None:
            if written:
                raise refused("Spark makes a write of it, and it does not look like one")
            return Allowed(DataFrame(sources.rows(session, analysed), spark), tables)
        table = written_table(spark, shown(target.parts), written, targets)
        return Write(analysed, table, tables | {table.place})


class _Rights:
    """What one principal may read, and write if he may write at all."""

    def __init__(self, spark: SparkSession, places: Container[str], principal: str) -> None:
        self._spark = spark
        self._places = places
        self._principal = principal
        self._sources = java_class(spark, "Sources")

    def check(self, one: Named) -> None:
        """Refuse a name that leads to what was not granted, before anything there is opened."""
        parts = java_list(self._spark._jvm, one.parts)
        kind, place = json.loads(self._sources.lookedUp(session_of(self._spark), parts))
        if kind == "VIEW":
            self._check_view(one)
        elif kind == "NONE" or place not in self._places:
            if _reads_files(one.parts):
                raise refused(
                    f"{shown(one.parts)} is read by its path or source{where(one)}, and of those "
                    "delta.`/folder` alone is read here: make it a Delta table, and have that "
                    "granted"
                )
            raise self._not_granted(one)
        elif kind not in ("DELTA", "PATH"):
            raise refused(
                f"{shown(one.parts)} is no Delta table{where(one)}, and only these are read here"
            )

    def check_target(self, one: Named, targets: Targets) -> None:
        """The same of the table that a statement writes to, which is one of the catalog."""
        self.check(one)
        parts = java_list(self._spark._jvm, one.parts)
        kind, place = json.loads(self._sources.lookedUp(session_of(self._spark), parts))
        if kind == "VIEW":
            raise refused(
                f"{shown(one.parts)} is a view{where(one)}, and rows are written to tables alone: "
                "name the table behind it"
            )
        if kind != "DELTA":
            raise refused(
                f"{shown(one.parts)} is written to by its path{where(one)}: write to the table by "
                "its name in the catalog"
            )
        targets.refuse_own(shown(one.parts), place)

    def _check_view(self, one: Named) -> None:
        """A view is analysed alone first: what Spark says of a column that is not there lists those
        that are."""
        parts = java_list(self._spark._jvm, one.parts)
        try:
            plan = self._sources.analyseName(session_of(self._spark), parts)
        except (PySparkException, Py4JJavaError) as error:
            raise self._not_granted(one) from error
        read = _found(self._sources.read(plan))
        tables = [each.parts[0] for each in read if each.kind == "DELTA"]
        others = any(each.kind in ("RELATION", "TEMP_VIEW", "NODE") for each in read)
        if others or not tables or any(place not in self._places for place in tables):
            raise self._not_granted(one)

    def check_plan(self, read: Iterable[Named]) -> None:
        """Refuse a plan that reads what was not granted, or anything but granted tables."""
        for one in read:
            match one.kind:
                case "DELTA" | "WRITES" if one.parts[0] not in self._places:
                    # a table that came, or came under this name, after the names were looked up
                    raise self._not_granted(Named("TABLE", [one.parts[-1]], one.line, one.col))
                case "FIELD" | "WRITE_OPTION":
                    raise refused(_not_understood(one))
                case "RELATION":
                    raise refused(f"it reads {one.parts[0]}, and only Delta tables are read here")
                case "TEMP_VIEW":
                    raise self._not_granted(one)
                case "NODE":
                    raise refused(f"it holds {words_of(one.text)}, which is not run here")
                case "FUNCTION" if one.text in REACHING:
                    raise refused(_reach(one))
                case "EXPRESSION" if one.text == "VariableReference":
                    raise refused(f"it reads a variable{where(one)}: write its value")
                case "EXPRESSION":
                    raise refused(
                        f"it calls {one.text}{where(one)}, which is none of Spark's built-in "
                        "functions: only these are called here"
                    )

    def _not_granted(self, one: Named) -> RightsError:
        name = shown(one.parts)
        return RightsError(
            ErrorCode.SELECT_NOT_GRANTED,
            f"{self._principal} was not granted SELECT on {name}{where(one)}, or there is no such "
            "table (of a view, each table behind it must be granted): ask an admin for `cachemgr "
            f"select grant {name} {self._principal}`",
        )


def _refuse_statement(named: Iterable[Named], principal: str, *, is_writer: bool) -> None:
    """Refuse a text that is neither a query nor a write that its principal may give."""
    for one in named:
        match one.kind:
            case "NODE" if is_writer:
                raise refused(
                    f"it is or holds {words_of(one.text)}{where(one)}, and only a query is run "
                    "here, or one INSERT, UPDATE, DELETE or MERGE by itself"
                )
            case "NODE":
                raise refused(
                    f"it is or holds {words_of(one.text)}{where(one)}, and only queries are run "
                    "here: give one SELECT"
                )
            case "WRITE" if not is_writer:
                raise refused(
                    f"it is or holds {words_of(one.text)}{where(one)}, and {principal} may only "
                    "read here: the service's setting statement_writers names who may write"
                )
            case "FIELD" | "WRITE_OPTION":
                raise refused(_not_understood(one))


def _refuse_parsed(named: Iterable[Named]) -> None:
    """Refuse what a text holds besides tables, before anything of it is looked up."""
    for one in named:
        match one.kind:
            case "FUNCTION" if one.text in REACHING:
                raise refused(_reach(one))
            case "OTHER_FUNCTION":
                raise refused(
                    f"{shown(one.parts)} is none of Spark's built-in functions{where(one)}: only "
                    "these are called here"
                )
            case "TABLE_FUNCTION" if one.text not in _PURE_TABLE_FUNCTIONS:
                raise refused(
                    f"{shown(one.parts)}(…) in FROM{where(one)} is not among the table functions "
                    f"that are called here: {', '.join(sorted(_PURE_TABLE_FUNCTIONS))}; "
                    "table_changes and table_changes_by_path with the table as a constant"
                )
            case "OPTION" if one.text not in _OPTIONS:
                raise refused(f"the option {shown(one.parts)} of a table{where(one)}: leave it out")
            case "STREAM":
                raise refused(f"{shown(one.parts)} is read as a stream{where(one)}: leave STREAM")
            case "MARKER":
                raise refused(f"it has a parameter ({one.text}){where(one)}: write its value")
            case "IDENTIFIER":
                raise refused(f"a name is computed by IDENTIFIER{where(one)}: write the name")
            case "TIME_TRAVEL":
                raise refused(
                    f"TIMESTAMP AS OF is given by a query{where(one)}, which would run before the "
                    "statement does: write the time"
                )


def _found(told: str) -> tuple[Named, ...]:
    return tuple(Named(*one) for one in json.loads(told))


def _not_understood(one: Named) -> str:
    """What a command says that is not carried out here."""
    if one.kind == "WRITE_OPTION":
        return f"the option {shown(one.parts)} of the table that is written to: leave it out"
    node, field = one.parts
    what = _FIELDS.get(field, f"{field} of {words_of(node)}, which is not known here")
    return f"it has {what}{where(one)}: leave it out"


def _reach(one: Named) -> str:
    return f"{one.text} reaches outside of the tables (a class, a program or a file){where(one)}"


def _reads_files(parts: list[str]) -> bool:
    """Whether a name that nobody was granted looks like the path of files in some format. What is
    there of that name does not matter, so the answer tells nobody."""
    source, name = parts[-2:] if len(parts) > 1 else ("", parts[-1])
    if source.lower() == "delta":
        return False
    return source.lower() in _FORMATS or "/" in name or "." in source
