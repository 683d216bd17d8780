"""Texts of queries: parsed as the session would, never substituted, and looked through before Spark
analyses them.

Analysis alone carries `EXECUTE IMMEDIATE` out, loads the class that `reflect` names and opens the
file behind `` csv.`/etc/passwd` ``, whose columns the error then tells. So a definition is refused
by what its parsed text names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cachemgr.config.substitution import SUBSTITUTE
from cachemgr.delta.places import refuse_scheme
from cachemgr.errors import DefinitionError, ErrorCode
from cachemgr.jvm.alive import jvm_is_gone
from cachemgr.jvm.loader import java_class, session_of

# They call any method of any class, or open a file or URL that an argument or option names, or the
# DTD that a document does.
REACHING: Final = frozenset(
    "reflect java_method try_reflect from_avro to_avro schema_of_avro from_protobuf to_protobuf "
    "from_xml schema_of_xml to_xml read_files read_kafka python_worker_logs "
    "xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short "
    "xpath_string".split()
)
_DELTA: Final = "delta"
_OVERFLOW: Final = "java.lang.StackOverflowError"
_CLASS: Final = re.compile(r"^(?:[\w.$]+(?:Exception|Error): )+")


class Named(NamedTuple):
    """What a text names: STATEMENT, SCRIPT, FUNCTION or RELATION; line and column count from 1,
    None where Spark does not say."""

    kind: str
    parts: list[str]
    line: int | None
    col: int | None

    @property
    def text(self) -> str:
        """Its name."""
        return ".".join(self.parts)


def substituted(spark: SparkSession, text: str) -> str:
    """A user's text as his own session would substitute it.

    Args:
        spark: His session.
        text: What he wrote.
    """
    if str(spark.conf.get(SUBSTITUTE, "true")).lower() != "true":
        return text
    return str(java_class(spark, "Texts").substituted(session_of(spark), text))


def analysed_text(spark: SparkSession, text: str) -> Any:
    """The JVM's Dataset of one query; no job is run and nothing is substituted.

    Args:
        spark: The session in which names are resolved and whose settings hold.
        text: The query.

    Raises:
        DefinitionError: It is a statement.
        pyspark.errors.AnalysisException: It does not analyse.
        pyspark.errors.ParseException: It does not parse.
    """
    named_in(spark, text)
    return java_class(spark, "Texts").analysed(session_of(spark), text)


def named_in(spark: SparkSession, text: str) -> tuple[Named, ...]:
    """What a query names, subqueries included, nothing of it looked up.

    Args:
        spark: The session whose parser reads it.
        text: The query.

    Raises:
        DefinitionError: It is a statement: Spark carries these out as soon as they are analysed.
        pyspark.errors.ParseException: It does not parse.
    """
    texts = java_class(spark, "Texts")
    found = texts.named(texts.parsed(session_of(spark), text))
    named = tuple(Named(*one) for one in json.loads(found))
    statement = next((one for one in named if one.kind == "STATEMENT"), None)
    if statement is not None:
        raise DefinitionError(
            ErrorCode.NOT_A_QUERY,
            f"the text is a statement ({statement.text}), not a query: give a SELECT",
        )
    return named


def is_view(spark: SparkSession, name: str) -> bool:
    """Whether a name that can be read stands for a view. One that shows some columns of a table
    looks like the table in the optimised plan.

    Args:
        spark: The session in which it is resolved.
        name: The name, as a text spells it.
    """
    node = analysed_text(spark, f"SELECT * FROM {name}").queryExecution().analyzed()
    while node.nodeName() != "View" and node.children().size() == 1:
        node = node.children().apply(0)
    return bool(node.nodeName() == "View")


@contextmanager
def readable(spark: SparkSession, what: str) -> Iterator[None]:
    """Tell what a storage answers, to whoever named a table in it, as his text's error.

    Args:
        spark: The session.
        what: What names the table, for the message.

    Raises:
        DefinitionError: Its log cannot be read, or the text is too deep for Spark.
    """
    try:
        yield
    except Py4JJavaError as error:
        if jvm_is_gone(spark, error):
            raise
        if str(error.java_exception.toString()).startswith(_OVERFLOW):
            raise DefinitionError(
                ErrorCode.NESTED_TOO_DEEPLY,
                f"{what}: it is nested too deeply for this Spark: write it with fewer parentheses, "
                "or start Spark with a larger stack (-Xss in spark.driver.extraJavaOptions)",
            ) from error
        cause = str(error.java_exception.getMessage() or "no message").splitlines()[0]
        cause = _CLASS.sub("", cause)[:300]
        raise DefinitionError(
            ErrorCode.TABLE_UNREADABLE,
            f"{what}: a table that it names cannot be read: {cause}; correct its place, or what "
            "this Spark is told of that storage",
        ) from error


def refuse_reach(
    what: str,
    named: tuple[Named, ...],
    is_known: Callable[[list[str]], bool],
    place: Callable[[int | None, int | None], str] = lambda line, col: "",
) -> None:
    """Refuse a definition, or a table's name, that reaches past the tables of the catalog and
    Delta's folders, before it is analysed.

    Args:
        what: What is refused, for the message.
        named: What it names.
        is_known: Whether a table, a view or a cache has that name.
        place: Says where a line and a column are.

    Raises:
        DefinitionError: It does; names the function or the relation.
    """
    for one in named:
        if one.kind == "SCRIPT" or (one.kind == "FUNCTION" and one.parts[-1].lower() in REACHING):
            raise DefinitionError(
                ErrorCode.FUNCTION_REFUSED,
                f"{what}: {one.text} reaches outside of the tables (a class, a program or a file)"
                f"{place(one.line, one.col)}: leave it out",
            )
        if one.kind == "RELATION" and len(one.parts) == 2:
            _refuse_file(what, one, is_known, place)


def _refuse_file(
    what: str,
    one: Named,
    is_known: Callable[[list[str]], bool],
    place: Callable[[int | None, int | None], str],
) -> None:
    source, path = one.parts
    if source.lower() == _DELTA:
        refuse_scheme(path, what)
    elif not is_known(one.parts):
        # Spark would take the first part for a format and read the second as a path
        raise DefinitionError(
            ErrorCode.TABLE_OR_VIEW_NOT_FOUND,
            f"{what}: there is no table or view {one.text}, and no relational cache has that name"
            f"{place(one.line, one.col)}; of files, delta.`/folder` alone is read by its path",
        )
