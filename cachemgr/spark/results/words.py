"""How a statement that does not run is told about: names as they would be written, nodes of Spark's
parser as the statements that they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pyspark.errors import PySparkException

from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.printable import printable
from cachemgr.spark.texts import Named
from matcher.render.select import quote

_WORDS: Final = {
    "CompoundBody": "a script (BEGIN … END)",
    "ScriptTransformation": "TRANSFORM, which runs a program",
    "SetCatalogAndNamespace": "USE",
    "SetNamespaceCommand": "USE",
    "DescribeRelation": "DESCRIBE",
    "NamedStreamingRelation": "a stream",
    "OverwriteByExpression": "INSERT INTO … REPLACE WHERE",
    "DeleteFromTable": "DELETE",
    "UpdateTable": "UPDATE",
    "MergeIntoTable": "MERGE",
}
_TAIL: Final = re.compile(r"(Command|Statement)$")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+;?")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_LONGEST: Final = 300


class RightsError(CacheManagerError):
    """A statement does not run for the principal who gave it."""


def refused(why: str) -> RightsError:
    """The error of a statement that is refused by what it is.

    Args:
        why: What it is or does, and what to do instead.
    """
    return RightsError(ErrorCode.STATEMENT_REFUSED, f"the statement is refused: {why}")


def words_of(node: str) -> str:
    """A node of Spark's parser as the statement that it is.

    Args:
        node: Its name.

    >>> words_of("CreateTableAsSelect"), words_of("SetCommand"), words_of("CompoundBody")
    ('CREATE TABLE AS SELECT', 'SET', 'a script (BEGIN … END)')
    """
    known = _WORDS.get(node)
    name = _TAIL.sub("", node.removeprefix("Unresolved"))
    return known or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper()


def shown(parts: Iterable[str]) -> str:
    """A name as it would be written.

    Args:
        parts: Its parts.

    >>> shown(["s", "my table"])
    's.`my table`'
    """
    text = ".".join(part if _PLAIN_NAME.fullmatch(part) else quote(part) for part in parts)
    return printable(text, one_line=True)[:_LONGEST]


def where(one: Named) -> str:
    """Where something stands in the text; empty where Spark does not say."""
    return "" if one.line is None or one.col is None else f" (line {one.line}, column {one.col})"


def said(error: PySparkException) -> str:
    """What Spark says of a text, without the plan, the text and the trace that follow."""
    first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return printable(_STATE.sub("", first), one_line=True)
