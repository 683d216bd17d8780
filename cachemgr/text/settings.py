"""The settings that a text is read under: what the request states, else the service's, else Spark's
own.

A setting that changes what a text means in a way that is not modelled is a miss, never ignored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import tzlocal

from cachemgr.config.judged.values import default_in_spark
from cachemgr.config.result_settings import (
    ANSI,
    FILE_SETTINGS,
    PASSES_OVER,
    TIME_ZONE,
    changes_results,
)
from cachemgr.config.session_settings import Settings
from cachemgr.config.setting_names import PREFIX
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.text.offline_input import read_conf
from matcher.model.message import Setting
from matcher.model.reasons import Reason, ReasonCode
from matcher.sql.reader import TextSettings

_SPARK: Final = "spark.sql."
_ANSI_MODE: Final = "SPARK_ANSI_SQL_MODE"
_BY_PATH: Final = "spark.sql.runSQLOnFiles"


@dataclass(frozen=True, slots=True)
class TextConf:
    """Settings in the forms that the parts need."""

    text: TextSettings
    own: Settings


def default_of(key: str) -> str | None:
    """A plain session's value of a setting that may change rows; None for one that is not known,
    which then has to be stated to be equal."""
    return default_in_spark(key)


def service_defaults(spark_conf: Mapping[str, str]) -> dict[str, str]:
    """What a session of the service would have: its Spark's settings, this machine's time zone, and
    what this process's environment says of ANSI, which its Spark inherits.

    Args:
        spark_conf: The settings of the service's Spark application.
    """
    ours = {
        key: value
        for key, value in spark_conf.items()
        if key.startswith((_SPARK, PREFIX)) or changes_results(key)
    }
    not_ansi = {ANSI: "false"} if os.environ.get(_ANSI_MODE) == "false" else {}
    return {TIME_ZONE: tzlocal.get_localzone_name(), **not_ansi, **ours}


def read_settings(values: Mapping[str, str]) -> TextConf | Reason:
    """Settings as the text door needs them.

    Args:
        values: All that is known to be set.

    Returns:
        The settings, or why no text can be read under them.

    Raises:
        ConfigurationError: A setting of ours has a value that is not accepted.
    """
    counted = {k: v for k, v in values.items() if changes_results(k) or k.startswith(PREFIX)}
    if values.get(_BY_PATH, "true").strip().lower() != "true":
        return Reason(
            ReasonCode.SETTINGS_DIFFER,
            "{key} is {value}, and caches are read by their place",
            "set {key} to true",
            key=Setting(_BY_PATH),
            value=Setting(repr(values[_BY_PATH])),
        )
    for key in (f"{FILE_SETTINGS}{name}" for name in PASSES_OVER):
        if values.get(key, "false").strip().lower() != "false":
            return Reason(
                ReasonCode.SETTINGS_DIFFER,
                "{key} is {value}, and who runs the text would not see that a file of the cache is "
                "gone or damaged",
                "set {key} to false",
                key=Setting(key),
                value=Setting(repr(values[key])),
            )
    try:
        read = read_conf(counted)
    except ConfigurationError as error:
        if error.code != ErrorCode.SETTING_NOT_MODELLED:
            raise
        why = Setting(error.message)
        return Reason(ReasonCode.SETTINGS_DIFFER, "{why}", "leave the setting out", why=why)
    return TextConf(read.text, Settings.from_mapping(counted))
