"""The hints `NO_RELATIONAL_CACHE`, `RELATIONAL_CACHE(name, …)` and `RELATIONAL_CACHE_STEPS(n)`, in
SQL text and on DataFrames.

Spark's analyser drops hints that it does not know, but each plan node remembers the text that it
was parsed from. A hint counts only as a real hint comment: not inside a string, a quoted name or an
ordinary comment.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from cachemgr.jvm.classes import class_on_path
from cachemgr.jvm.loader import java_class, session_of
from matcher.render.select import quote
from matcher.sql.comments import Unclosed, hints, steps_in

NO_CACHE: Final = "NO_RELATIONAL_CACHE"
USE_CACHE: Final = "RELATIONAL_CACHE"
STEPS: Final = "RELATIONAL_CACHE_STEPS"

_QUOTED: Final = r"`(?:[^`]|``)*`|'[^']*'|\"[^\"]*\""
_CALL: Final = re.compile(
    rf"\b(?P<name>{NO_CACHE}|{USE_CACHE}|{STEPS})\b\s*(?:\((?P<args>(?:{_QUOTED}|[^`'\")])*)\))?",
    re.IGNORECASE,
)
_ARGUMENT: Final = re.compile(rf"(?:{_QUOTED}|[^`'\",])+")
_LOG4J: Final = "org.apache.logging.log4j"
_WARNS: Final = "org.apache.spark.sql.catalyst.analysis.HintErrorLogger"
_WARNED: Final = rf"Unrecognized hint: (?i:{NO_CACHE}|{USE_CACHE}|{STEPS})\b.*"
_IDENTIFIER: Final = re.compile(r"`((?:[^`]|``)*)`")


@dataclass(frozen=True, slots=True)
class Hints:
    """The hints of one query: their names in upper case, the caches that RELATIONAL_CACHE names, in
    order, and the steps that its decision may take, if one says so."""

    names: frozenset[str] = frozenset()
    caches: tuple[str, ...] = ()
    steps: int | None = None


def read_hints(texts: Iterable[str], tags: Iterable[str] = ()) -> Hints:
    """The hints in SQL texts, and those given to DataFrames (`NAME` or `NAME(cache,…)`).

    >>> sorted(read_hints(["SELECT /*+ no_relational_cache */ '/*+ RELATIONAL_CACHE(a) */'"]).names)
    ['NO_RELATIONAL_CACHE']
    >>> read_hints(["SELECT /*+ RELATIONAL_CACHE(a, `b`), BROADCAST(t) */ 1"]).caches
    ('a', 'b')
    >>> read_hints(["SELECT /*+ RELATIONAL_CACHE_STEPS(50000) */ 1"]).steps
    50000
    >>> read_hints(["SELECT /*+ RELATIONAL_CACHE(s.`a, b``)`, 'c') */ 1"]).caches
    ('s.a, b`)', 'c')
    >>> read_hints([r"SELECT r'\\' /*+ NO_RELATIONAL_CACHE */, ''"]).names
    frozenset({'NO_RELATIONAL_CACHE'})
    >>> read_hints(["SELECT /* not /* yet */ /*+ */ 1 /* /* */ /*+ NO_RELATIONAL_CACHE */"]).names
    frozenset()
    """
    bodies = [body for text in texts if "/*+" in text for body in _bodies(text)]
    names: set[str] = set()
    caches: dict[str, None] = {}
    steps = None
    for body in (*bodies, *tags):
        for call in _CALL.finditer(body):
            names.add(call["name"].upper())
            if call["name"].upper() == STEPS:
                steps = steps_in((call["args"] or "").replace("`", ""))
                continue
            for arg in _ARGUMENT.findall(call["args"] or ""):
                cache = _unquoted(arg.strip())
                if cache:
                    caches[cache] = None
    return Hints(frozenset(names), tuple(caches), steps)


def _unquoted(arg: str) -> str:
    """A name as it is, of one in quotes or with parts in backticks."""
    if arg[:1] in ("'", '"'):
        return arg.strip("'\"")
    return _IDENTIFIER.sub(lambda found: found[1].replace("``", "`"), arg)


def _bodies(text: str) -> list[str]:
    """What the hints of a text say; nothing of one that Spark does not read."""
    try:
        return [*hints(text)]
    except Unclosed:
        return []


def _quoted(cache: str) -> str:
    """A name in a hint, whatever is in it; one that is quoted already stays as it is."""
    return cache if cache[:1] in ("`", "'", '"') else quote(cache)


def install_dataframe_hint() -> None:
    """Make `df.hint("NO_RELATIONAL_CACHE")`, `df.hint("RELATIONAL_CACHE", "name")` and
    `df.hint("RELATIONAL_CACHE_STEPS", n)` known.

    Once per process; harmless if repeated. Other hints go to Spark unchanged.
    """
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    original = ClassicDataFrame.hint
    if getattr(original, "_cachemgr", False):
        return

    @functools.wraps(original)
    def hint(self: ClassicDataFrame, name: str, *parameters: Any) -> DataFrame:
        if not isinstance(name, str) or name.upper() not in (NO_CACHE, USE_CACHE, STEPS):
            return original(self, name, *parameters)
        session = self.sparkSession
        text = f"{name.upper()}({','.join(_quoted(str(one)) for one in parameters)})"
        analysed = self._jdf.queryExecution().analyzed()
        hook = java_class(session, "Hook")
        return ClassicDataFrame(hook.hinted(session_of(session), analysed, text), session)

    hint._cachemgr = True  # type: ignore[attr-defined]
    ClassicDataFrame.hint = hint  # type: ignore[method-assign]


def expect_own_hints(spark: SparkSession) -> None:
    """Keep Spark from warning that it does not know our hints; it goes on to warn of all others.

    Harmless if repeated, and nothing happens where Spark logs by another library than its own.

    Args:
        spark: Any session of the application.
    """
    jvm: Any = spark._jvm
    with suppress(Exception):
        context = class_on_path(jvm, f"{_LOG4J}.LogManager").getContext(False)
        config = context.getConfiguration()
        result = class_on_path(jvm, f"{_LOG4J}.core.Filter$Result")
        own = class_on_path(jvm, f"{_LOG4J}.core.filter.RegexFilter").createFilter(
            _WARNED, None, False, result.DENY, result.NEUTRAL
        )
        found = config.getLoggers().get(_WARNS)
        if found is None:  # without a level: that of the logger above holds, as before
            found = class_on_path(jvm, f"{_LOG4J}.core.config.LoggerConfig")(_WARNS, None, True)
            config.addLogger(_WARNS, found)
        if found.getFilter() is None:
            found.addFilter(own)
        context.updateLoggers()
