"""Which settings of Spark can change rows, and whether two sessions agree on those that can.

Decides by the table in `cachemgr.config.judged`. Whatever is set explicitly and does not stand
there counts as changing results, since a setting that nobody here has thought about must cost a hit
and never a wrong row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cachemgr.config.judged.functions import SHOW_ZONE
from cachemgr.config.judged.judge import holds_code, judge
from cachemgr.config.judged.kinds import Kind
from cachemgr.config.judged.others import HADOOP_PREFIX
from cachemgr.config.judged.values import OLD_NAMES, as_read, falls_back_to
from matcher.memory.bounded import Bounded
from matcher.model.message import Setting
from matcher.model.reasons import Reason, ReasonCode
from matcher.predicates.time_zones import fixed_offset

TIME_ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
# What is meant by a setting that is not named, where the environment of a process makes another
# default (SPARK_ANSI_SQL_MODE): settings of a cache mean the same in all processes.
MEANT_UNSET: Mapping[str, str] = {ANSI: "true"}
FILE_SETTINGS = "spark.sql.files."
# Settings with that prefix, and options of a reader: whether Spark passes over such files. It may
# do so with those of the user's tables, and not with those of a cache.
PASSES_OVER: Sequence[str] = ("ignoreMissingFiles", "ignoreCorruptFiles")
_MOST_VERDICTS = 10_000

Fingerprint = frozenset[tuple[str, str]]


@lru_cache(maxsize=4096)
def changes_results(key: str) -> bool:
    """Whether a setting must be equal for a cache to serve a session, or a query of it that calls
    the functions that the setting is about.

    Args:
        key: A configuration key.

    Returns:
        False for keys outside of `spark.sql.` and `spark.databricks.delta.`, but for those of
        Hadoop's that Parquet's reader looks at, and for those that change no row.

    >>> changes_results("spark.sql.ansi.enabled"), changes_results("spark.sql.shuffle.partitions")
    (True, False)
    """
    return judge(key).kind is Kind.RESULTS


def result_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings among those explicitly set that can change rows, the time zone among them.

    Args:
        settings: All settings explicitly set in a session, and its time zone, as
            `explicit_settings` gives them; or those stored with a cache, of which an earlier
            version may have kept more.

    Returns:
        The ones to store with a cache, and to refresh it under, by key: those of Hadoop's by the
        name that a session sets, and none that holds code.
    """
    kept = [key for key in settings if changes_results(key) and not holds_code(key)]
    found = {key.removeprefix(HADOOP_PREFIX): settings[key] for key in kept}
    # what a session sets itself comes before what Spark's configuration has of Hadoop's
    found |= {key: settings[key] for key in kept if key in found}
    return dict(sorted(found.items()))


def fingerprint(settings: Mapping[str, str]) -> Fingerprint:
    """The settings that count, each in one spelling for all values that Spark reads alike, as one
    hashable value.

    Args:
        settings: All settings explicitly set, or those stored with a cache.

    >>> sorted(fingerprint({"spark.sql.ansi.enabled": "TRUE", "spark.sql.cbo.enabled": "true"}))
    [('spark.sql.ansi.enabled', 'true')]
    """
    return frozenset([_as_read(key, settings[key]) for key in settings if changes_results(key)])


@lru_cache(maxsize=4096)
def _as_read(key: str, value: str) -> tuple[str, str]:
    return key, as_read(_current(key), value)


def agree(left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Whether the settings stored with two caches are the same, without a look at defaults."""
    return fingerprint(left) == fingerprint(right)


@dataclass(frozen=True, slots=True)
class _Difference:
    """Two values that differ, and the functions that alone it matters to; empty for all rows."""

    reason: Reason
    functions: frozenset[str]


class SettingsComparer:
    """Compares a session's settings with caches', at the cost of a look-up once both were seen.

    Args:
        default: The value of a key that is not set, or None if there is no such key; what Spark
            says of one that falls back to another (`<value of …>`) is followed. Not asked for those
            of `MEANT_UNSET`.
    """

    def __init__(self, default: Callable[[str], str | None]) -> None:
        self._default = default
        self._defaults: dict[str, str | None] = {}
        self._verdicts: Bounded[tuple[_Difference, ...]] = Bounded(_MOST_VERDICTS)

    def compare(
        self,
        session: Fingerprint,
        cache: Fingerprint,
        used: Callable[[], frozenset[str]] | None = None,
    ) -> Reason | None:
        """Why a cache may not serve a session, if so.

        Args:
            session: Fingerprint of the session's settings.
            cache: Fingerprint of the settings that the cache is refreshed under.
            used: The functions that the query's block and the cache call, as `used_functions` gives
                them; asked for only where it matters. None if any may be called.

        Returns:
            A `SETTINGS_DIFFER` that names the first differing key and both values, or None.
        """
        if session == cache:
            return None
        pair = (session, cache)
        found = self._verdicts.get(pair)
        if found is None:
            found = self._differences(_by_current_name(session), _by_current_name(cache))
            self._verdicts.put(pair, found)
        if not found:
            return None
        first = found[0]
        if used is None or not first.functions:
            return first.reason
        called = used()
        return next((each.reason for each in found if each.functions & called), None)

    def _differences(
        self, session: Mapping[str, str], cache: Mapping[str, str]
    ) -> tuple[_Difference, ...]:
        """Those that matter to all rows first."""
        found = []
        for key in sorted({*session, *cache}):
            here, there = self._value(session, key), self._value(cache, key)
            if here != there:
                reason = Reason(
                    ReasonCode.SETTINGS_DIFFER,
                    "{key} is {here} in this session and {there} in the cache",
                    "set {key} to {there} in this session, or create the cache again under "
                    "this session's settings",
                    key=Setting(key),
                    here=Setting(_show(here)),
                    there=Setting(_show(there)),
                )
                functions = judge(key).functions
                if key == TIME_ZONE and _same_offset(here, there):
                    functions = SHOW_ZONE
                found.append(_Difference(reason, functions))
        return tuple(sorted(found, key=lambda each: bool(each.functions)))

    def _value(self, settings: Mapping[str, str], key: str) -> str | None:
        """A setting as Spark reads it: what is set, else what it falls back to, else its
        default."""
        seen = {key}
        while key not in settings:
            default = self._default_of(key)
            other = falls_back_to(default)
            if other is None or other in seen:
                return None if default is None else as_read(key, default)
            seen.add(other)
            key = other
        return settings[key]

    def _default_of(self, key: str) -> str | None:
        if key not in self._defaults:
            self._defaults[key] = MEANT_UNSET.get(key) or self._default(key)
        return self._defaults[key]


def _same_offset(here: str | None, there: str | None) -> bool:
    """Whether two zones are one by two names, as UTC and Etc/UTC."""
    offset = fixed_offset(here or "")
    return offset is not None and offset == fixed_offset(there or "")


def _by_current_name(settings: Fingerprint) -> dict[str, str]:
    """A setting under an old name counts where it is not set under its own."""
    found = dict(settings)
    for key, value in settings:
        current = _current(key)
        if current != key:
            del found[key]
            found.setdefault(current, value)
    return found


def _current(key: str) -> str:
    return OLD_NAMES.get(key) or key.removeprefix(HADOOP_PREFIX)


def _show(value: str | None) -> str:
    return "not set" if value is None else value
