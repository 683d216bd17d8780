"""One `spark.cachemgr.*` setting: its key, its type, and how a value of it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from cachemgr.config.setting_values import (
    one_of,
    parse_bool,
    parse_bytes,
    parse_duration,
    parse_factor,
    parse_int,
    parse_optional,
    parse_spark_version,
    parse_text,
)
from cachemgr.errors import ConfigurationError, ErrorCode


class Mode(StrEnum):
    """What the hook does with a query."""

    REWRITE = "rewrite"
    PLAN_ONLY = "planOnly"
    FAIL_FAST = "failFast"
    OFF = "off"


class Ddl(StrEnum):
    """Which users of a server may change caches and record-preserving joins there."""

    OWNERS = "owners"
    ALL = "all"
    AUTHENTICATED = "authenticated"
    ADMINS = "admins"


Kind = Literal[
    "boolean", "integer", "factor", "text", "optional text", "mode", "users", "duration", "size",
    "spark version",
]  # fmt: skip

_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "boolean": parse_bool,
    "integer": parse_int,
    "factor": parse_factor,
    "text": parse_text,
    "optional text": parse_optional,
    "spark version": parse_spark_version,
    "mode": one_of(Mode),
    "users": one_of(Ddl),
    "duration": parse_duration,
    "size": parse_bytes,
}


@dataclass(frozen=True)
class Setting:
    """One setting: its key, its field in `Settings`, and what it does."""

    key: str
    field: str
    type: Kind
    default: str
    when: Literal["runtime", "startup"]
    doc: str

    def parse(self, text: str) -> Any:
        """Read a value of this setting.

        Args:
            text: The value as it was set.

        Returns:
            The value in its Python type.

        Raises:
            ConfigurationError: Names the key, the value and what is accepted.
        """
        try:
            return _PARSERS[self.type](text)
        except ValueError as error:
            raise ConfigurationError(
                ErrorCode.BAD_SETTING,
                f"{self.key} is {text!r}, which is not {error}: set it to {error}, "
                f"or unset it for the default {self.default!r}",
            ) from None
