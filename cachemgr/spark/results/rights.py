"""Whether a statement may run for the principal who gave it: it is a query, and reads nothing but
Delta tables that he was granted SELECT on.

The service reads with its own rights, so that nothing else stands between a statement and all that
the service can reach. Analysis alone opens the files and connections that a text names, and carries
out the statements in it. So a text is looked through before Spark analyses it, and its plan once
more before it runs; each look refuses whatever it does not know (`Sources.java`).

What is said of a table that was not granted is what is said of one that does not exist: its name as
the text has it, and no more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cachemgr.config.substitution import refuse_substitution
from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.jvm.classes import java_list
from cachemgr.jvm.loader import java_class, session_of
from cachemgr.printable import printable
from cachemgr.spark.texts import REACHING, Named, readable
from matcher.render.select import quote

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
_WORDS: Final = {
    "CompoundBody": "a script (BEGIN … END)",
    "ScriptTransformation": "TRANSFORM, which runs a program",
    "SetCatalogAndNamespace": "USE",
    "SetNamespaceCommand": "USE",
    "DescribeRelation": "DESCRIBE",
    "NamedStreamingRelation": "a stream",
}
_TAIL: Final = re.compile(r"(Command|Statement)$")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+;?")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Allowed:
    """A statement that may run.

    Args:
        rows: What it gives.
        places: Of the tables that they come from.
    """

    rows: DataFrame
    places: frozenset[str]


class RightsError(CacheManagerError):
    """A statement does not run for the principal who gave it."""


def allowed_query(
    spark: SparkSession, text: str, places: Container[str], principal: str
) -> Allowed:
    """A statement's rows, if its principal may read all that they come from; no job is run.

    What is checked is what runs: the DataFrame is over the very plan that was looked through, and
    nothing is parsed or resolved again.

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

    Raises:
        RightsError: `SELECT_NOT_GRANTED` for a relation that he may not read or that does not
            exist; `STATEMENT_REFUSED` for what is no query, or reaches outside of the tables.
        DefinitionError: The text holds `${`, or a table that he may read cannot be read.
        CacheManagerError: It does not parse (`SYNTAX_ERROR`) or analyse (`STATEMENT_INVALID`).
    """
    refuse_substitution(text, "the statement")
    sources, session = java_class(spark, "Sources"), session_of(spark)
    with readable(spark, "the statement"):
        try:
            parsed = java_class(spark, "Texts").parsed(session, text)
        except PySparkException as error:
            raise CacheManagerError(ErrorCode.SYNTAX_ERROR, _said(error)) from error
        named = _found(sources.named(session, parsed))
        _refuse_parsed(named)
        rights = _Rights(spark, places, principal)
        for one in named:
            if one.kind == "TABLE":
                rights.check(one)
        try:
            analysed = sources.analyse(session, parsed)
        except PySparkException as error:
            raise CacheManagerError(ErrorCode.STATEMENT_INVALID, _said(error)) from error
        read = _found(sources.read(analysed))
        rights.check_plan(read)
        tables = frozenset(one.parts[0] for one in read if one.kind == "DELTA")
        return Allowed(DataFrame(sources.rows(session, analysed), spark), tables)


class _Rights:
    """What one principal may read."""

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
                raise _refused(
                    f"{_shown(one.parts)} is read by its path or source{_where(one)}, and of those "
                    "delta.`/folder` alone is read here: make it a Delta table, and have that "
                    "granted"
                )
            raise self._not_granted(one)
        elif kind != "DELTA":
            raise _refused(
                f"{_shown(one.parts)} is no Delta table{_where(one)}, and only these are read here"
            )

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
                case "DELTA" if one.parts[0] not in self._places:
                    # a table that came, or came under this name, after the names were looked up
                    raise self._not_granted(Named("TABLE", [one.parts[1]], one.line, one.col))
                case "RELATION":
                    raise _refused(f"it reads {one.parts[0]}, and only Delta tables are read here")
                case "TEMP_VIEW":
                    raise self._not_granted(one)
                case "NODE":
                    raise _refused(f"it holds {_words(one.text)}, which is not run here")
                case "FUNCTION" if one.text in REACHING:
                    raise _refused(_reach(one))
                case "EXPRESSION" if one.text == "VariableReference":
                    raise _refused(f"it reads a variable{_where(one)}: write its value")
                case "EXPRESSION":
                    raise _refused(
                        f"it calls {one.text}{_where(one)}, which is none of Spark's built-in "
                        "functions: only these are called here"
                    )

    def _not_granted(self, one: Named) -> RightsError:
        name = _shown(one.parts)
        return RightsError(
            ErrorCode.SELECT_NOT_GRANTED,
            f"{self._principal} was not granted SELECT on {name}{_where(one)}, or there is no such "
            "table (of a view, each table behind it must be granted): ask an admin for `cachemgr "
            f"select grant {name} {self._principal}`",
        )


def _refuse_parsed(named: Iterable[Named]) -> None:
    """Refuse what a text holds besides tables, before anything of it is looked up."""
    for one in named:
        match one.kind:
            case "NODE":
                raise _refused(
                    f"it is or holds {_words(one.text)}{_where(one)}, and only queries are run "
                    "here: give one SELECT"
                )
            case "FUNCTION" if one.text in REACHING:
                raise _refused(_reach(one))
            case "OTHER_FUNCTION":
                raise _refused(
                    f"{_shown(one.parts)} is none of Spark's built-in functions{_where(one)}: only "
                    "these are called here"
                )
            case "TABLE_FUNCTION" if one.text not in _PURE_TABLE_FUNCTIONS:
                raise _refused(
                    f"{_shown(one.parts)}(…) in FROM{_where(one)} is not among the table functions "
                    f"that are called here: {', '.join(sorted(_PURE_TABLE_FUNCTIONS))}; "
                    "table_changes and table_changes_by_path with the table as a constant"
                )
            case "OPTION" if one.text not in _OPTIONS:
                raise _refused(
                    f"the option {_shown(one.parts)} of a table{_where(one)}: leave it out"
                )
            case "STREAM":
                raise _refused(
                    f"{_shown(one.parts)} is read as a stream{_where(one)}: leave STREAM"
                )
            case "MARKER":
                raise _refused(f"it has a parameter ({one.text}){_where(one)}: write its value")
            case "IDENTIFIER":
                raise _refused(f"a name is computed by IDENTIFIER{_where(one)}: write the name")
            case "TIME_TRAVEL":
                raise _refused(
                    f"TIMESTAMP AS OF is given by a query{_where(one)}, which would run before the "
                    "statement does: write the time"
                )


def _found(told: str) -> tuple[Named, ...]:
    return tuple(Named(*one) for one in json.loads(told))


def _refused(why: str) -> RightsError:
    return RightsError(ErrorCode.STATEMENT_REFUSED, f"the statement is refused: {why}")


def _reach(one: Named) -> str:
    return f"{one.text} reaches outside of the tables (a class, a program or a file){_where(one)}"


def _reads_files(parts: list[str]) -> bool:
    """Whether a name that nobody was granted looks like the path of files in some format. What is
    there of that name does not matter, so the answer tells nobody."""
    source, name = parts[-2:] if len(parts) > 1 else ("", parts[-1])
    if source.lower() == "delta":
        return False
    return source.lower() in _FORMATS or "/" in name or "." in source


def _words(node: str) -> str:
    """A node of Spark's parser as the statement that it is.

    >>> _words("CreateTableAsSelect"), _words("SetCommand"), _words("CompoundBody")
    ('CREATE TABLE AS SELECT', 'SET', 'a script (BEGIN … END)')
    """
    known = _WORDS.get(node)
    name = _TAIL.sub("", node.removeprefix("Unresolved"))
    return known or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()


def _shown(parts: Iterable[str]) -> str:
    """A name as it would be written.

    >>> _shown(["s", "my table"])
    's.`my table`'
    """
    text = ".".join(part if _PLAIN_NAME.fullmatch(part) else quote(part) for part in parts)
    return printable(text, one_line=True)[:_LONGEST]


def _where(one: Named) -> str:
    return "" if one.line is None or one.col is None else f" (line {one.line}, column {one.col})"


def _said(error: PySparkException) -> str:
    """What Spark says of a text, without the plan, the text and the trace that follow."""
    first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return printable(_STATE.sub("", first), one_line=True)
