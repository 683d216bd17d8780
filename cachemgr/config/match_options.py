"""A session's settings as the matcher takes them: the one reading of them for every door and for
refreshes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cachemgr.config.result_settings import ANSI
from cachemgr.config.session_settings import Settings
from cachemgr.errors import ConfigurationError, ErrorCode
from matcher.model.ir import MatchOptions

_TIME_ZONE: Final = "spark.sql.session.timeZone"
_PRECISION: Final = "spark.sql.decimalOperations.allowPrecisionLoss"


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Spark's settings on which the meaning of an expression depends.

    Args:
        ansi: Whether errors are raised, and not NULL given.
        decimal_precision_loss: Whether results of decimals may be rounded to fit.
        time_zone: The session's; empty where it is not known.
    """

    ansi: bool = True
    decimal_precision_loss: bool = True
    time_zone: str = ""


def spark_settings(values: Mapping[str, str]) -> SparkSettings:
    """Spark's settings among all that are set.

    Args:
        values: All settings explicitly set.

    Raises:
        ConfigurationError: One that is true or false has another value.

    >>> spark_settings({"spark.sql.ansi.enabled": " FALSE "}).ansi
    False
    """
    return SparkSettings(
        _flag(values, ANSI), _flag(values, _PRECISION), values.get(_TIME_ZONE, "").strip()
    )


def match_options(
    values: Mapping[str, str],
    own: Settings | None = None,
    forced: frozenset[str] = frozenset(),
    *,
    steps: int | None = None,
    only_declared: bool = False,
) -> MatchOptions:
    """The matcher's switches.

    Args:
        values: All settings explicitly set.
        own: Our settings among them; those of a plain session if None.
        forced: Lower-case names of the caches that the query's hint asks for.
        steps: What the query's hint lets its decision cost.
        only_declared: Whether there are declarations alone, and no refresh has looked at any row:
            then `assumeExactAverages` says what it would have found.

    Raises:
        ConfigurationError: A setting of Spark's that is true or false has another value.
    """
    own = own or Settings()
    spark = spark_settings(values)
    return MatchOptions(
        forced=forced,
        approximate_floats=own.approximate_floats,
        trust_unvalidated=own.trust_unvalidated,
        assume_exact_averages=only_declared and own.assume_exact_averages,
        ansi=spark.ansi,
        decimal_precision_loss=spark.decimal_precision_loss,
        time_zone=spark.time_zone,
        approximate_distinct=own.approximate_distinct,
        most_steps=own.decision_steps if steps is None else steps,
    )


def _flag(values: Mapping[str, str], key: str) -> bool:
    """A setting whose default is true."""
    text = values.get(key, "true")
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ConfigurationError(
            ErrorCode.BAD_SETTING, f"{key} is {text!r}: set it to true or false"
        )
    return word == "true"
