"""What a person is told of a session's `spark.cachemgr.*` settings: of those that do not exist, and
of those that come too late."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Final

from cachemgr.config.setting_names import PREFIX, nearest
from cachemgr.config.setting_table import BY_KEY, STARTUP
from cachemgr.errors import ConfigurationError, ErrorCode

logger = logging.getLogger(__name__)

_SET = re.compile(rf"\s*SET\s+`?({re.escape(PREFIX)}[\w.]+)`?\s*=\s*(.*?)\s*;?\s*", re.I | re.S)


def setting_in(text: str) -> tuple[str, str] | None:
    """The setting of ours that a SQL text sets, and its value; None where it does not.

    >>> setting_in("SET spark.cachemgr.mode = off;")
    ('spark.cachemgr.mode', 'off')
    """
    found = _SET.fullmatch(text)
    return None if found is None else (found[1], found[2])


_warned: Final[set[str]] = set()
_MOST_WARNED: Final = 100


def warn_of_unknown(keys: Iterable[str], *, again: bool = False) -> None:
    """Log a warning for each key with our prefix that is not a setting, with the one meant: once in
    a process, since a builder, `enable` and each query see the same.

    Args:
        keys: Configuration keys.
        again: Also of those that were warned of before: somebody has just set them.
    """
    for unknown, meant in unknown_keys(keys).items():
        _warn_once(unknown, told_of_unknown(unknown, meant), again=again)


def _warn_once(key: str, told: str, *, again: bool = False) -> None:
    if again or (key not in _warned and len(_warned) < _MOST_WARNED):
        logger.warning("%s", told)
    if len(_warned) < _MOST_WARNED:
        _warned.add(key)


def told_of_unknown(key: str, meant: str | None) -> str:
    """What a person is told of a key that means nothing.

    >>> told_of_unknown("spark.cachemgr.mod", "spark.cachemgr.mode")
    'unknown setting spark.cachemgr.mod: did you mean spark.cachemgr.mode?'
    """
    hint = f"did you mean {meant}?" if meant else "docs/settings.md lists them"
    return f"unknown setting {key}: {hint}"


def unknown_keys(keys: Iterable[str]) -> dict[str, str | None]:
    """The keys that carry our prefix and mean nothing, most likely misspelt.

    Args:
        keys: Configuration keys.

    Returns:
        The unknown ones, sorted, each with the setting that was most likely meant.
    """
    found = sorted(k for k in keys if k.startswith(PREFIX) and k not in BY_KEY)
    return {key: nearest(key, BY_KEY) for key in found}


def refuse_late(key: str, value: str, now: str | None) -> None:
    """Refuse to change a setting of the start where caches are enabled already.

    Args:
        key: The setting.
        value: What it is set to.
        now: What it is; None if nothing set it.

    Raises:
        ConfigurationError: Says what to do. To set it to what it is, is no change.
    """
    if key in STARTUP and value != (BY_KEY[key].default if now is None else now):
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"{key} is a setting of the start, and this session's caches are enabled already: "
            f"{_SET_IT_BEFORE}",
        )


def warn_of_late(then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Log a warning, once, for each setting of the start that was changed since, by what cannot be
    refused, such as `spark.conf.set`.

    Args:
        then: The session's settings when its caches were enabled.
        now: Its settings.
    """
    for key in STARTUP:
        if now.get(key) != then.get(key):
            _warn_once(
                key,
                f"{key} is a setting of the start, and was changed after this session's caches "
                f"were enabled, which need not have any effect: {_SET_IT_BEFORE}",
            )


_SET_IT_BEFORE: Final = (
    "set it in the builder or in spark-defaults.conf; or call cachemgr.disable(spark), set it, and "
    "call cachemgr.enable(spark)"
)
