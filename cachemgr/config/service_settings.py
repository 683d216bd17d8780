"""The settings of `cachemgr serve` and `cachemgr worker`: from flags, environment and a file.

A flag wins over `CACHEMGR_<NAME>`, which wins over the file that `CACHEMGR_CONFIG` names
(`cachemgr.toml` in the working folder if it names none).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from cachemgr.config.setting_names import nearest
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.priority import LOWEST
from cachemgr.secrets import masked, names_secret

_DEFAULT_FILE = "cachemgr.toml"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ServiceSettings(BaseSettings):
    """What a service or worker process is told."""

    model_config = SettingsConfigDict(env_prefix="CACHEMGR_", extra="forbid")

    metastore_url: str = Field(
        "sqlite:///cachemgr.db",
        description="The metastore: sqlite:///file for one process, postgresql://… for many.",
    )
    sqlite_group: str | None = Field(
        None,
        description="The group whose members share a SQLite metastore (0660); without one its "
        "owner alone reads it (0600).",
    )
    location: str = Field(
        "relational-caches", description="Root folder of the caches' Delta tables."
    )
    locations: list[str] = Field(
        default_factory=list,
        description="More folders that a LOCATION in a cache's definition may lie in.",
    )
    host: str = Field("127.0.0.1", description="Where to listen; beyond loopback needs tokens.")
    auth: str = Field(
        "auto",
        pattern="^(auto|required)$",
        description="required: always ask for tokens; auto: a service on loopback is open to "
        "everybody on the machine as long as no token was ever made.",
    )
    port: int = Field(8470, ge=0, le=65535, description="The port to listen on.")
    spark_master: str = Field("local[*]", description="The Spark master that refreshes run on.")
    spark_conf: dict[str, str] = Field(
        default_factory=dict, description="More settings of that Spark application."
    )
    spark_init: list[str] = Field(
        default_factory=list,
        description="SQL statements run when it starts: USE …, CREATE TABLE … USING delta "
        "LOCATION …, where the catalog is not shared. One that fails keeps Spark from starting; "
        "the log, answers and `cachemgr doctor` name it.",
    )
    spark_nice: int = Field(
        10,
        ge=0,
        le=LOWEST,
        description="How much lower the priority of that Spark is than the service's own; 0: none.",
    )
    refreshes_at_once: int = Field(1, ge=1, le=64, description="Refreshes of one process.")
    refreshes_in_all: int | None = Field(
        None, ge=1, description="Refreshes of all processes together; no limit if not given."
    )
    lease_seconds: float = Field(
        20.0, ge=3, le=600, description="How long a crashed process holds up its refreshes."
    )
    stop_grace_seconds: float = Field(
        60.0, ge=0, description="How long a stopping process lets its refreshes finish."
    )
    lost_table_seconds: float = Field(
        600.0,
        ge=0,
        description="How long a base table that is gone counts as one that a job makes anew: its "
        "caches are tried again and not paused. For as long a storage that cannot be asked is "
        "tried as often.",
    )
    history_days: int = Field(
        30,
        ge=1,
        description="How long runs of refreshes and decisions are kept; of each cache the last 20 "
        "runs and the published one stay.",
    )
    results_location: str | None = Field(
        None,
        description="Where the rows of statements are kept, a path or a URI that all processes "
        "reach; the service runs no statements without one.",
    )
    statements_at_once: int = Field(4, ge=1, le=64, description="Statements of one process.")
    statements_each: int = Field(
        2, ge=1, description="Statements of one principal that run, on all processes together."
    )
    statements_waiting_each: int = Field(
        100, ge=1, description="Statements of one principal that wait."
    )
    statement_seconds: float = Field(
        3600.0, gt=0, description="How long a statement may run at most."
    )
    statement_result_bytes: int = Field(
        50 << 30, ge=1, description="Size of one statement's result at most."
    )
    statement_kept_bytes: int = Field(
        200 << 30, ge=1, description="Size of all results that are kept for one principal."
    )
    statement_writers: str | None = Field(
        None,
        description="The principals whose statements may also INSERT, UPDATE, DELETE and MERGE, "
        "into Delta tables on which they were granted SELECT; separated by commas.",
    )
    result_keep_seconds: float = Field(
        3600.0,
        gt=0,
        description="How long a result is kept at most; for somebody who reads it up to twice as "
        "long.",
    )
    requests_a_second: float = Field(
        100,
        ge=0,
        description="Requests a second of one token, in bursts of twice that; 0: no limit.",
    )
    log_format: str = Field(
        "auto",
        pattern="^(auto|json|text)$",
        description="json, text, or auto: text on a terminal, else json.",
    )
    log_level: str = Field(
        "INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="The least level logged."
    )

    @property
    def writers(self) -> frozenset[str]:
        """The principals whose statements may write."""
        return frozenset(filter(None, map(str.strip, (self.statement_writers or "").split(","))))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return self.host in LOOPBACK

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, environment, file."""
        file = TomlConfigSettingsSource(
            settings_cls, os.environ.get("CACHEMGR_CONFIG", _DEFAULT_FILE)
        )
        return init_settings, env_settings, file


def service_settings(**flags: Any) -> ServiceSettings:
    """Read the settings.

    Args:
        flags: What the command line says; None where it says nothing.

    Returns:
        The settings.

    Raises:
        ConfigurationError: One is not accepted, or the file cannot be read; says which and why.
    """
    named = os.environ.get("CACHEMGR_CONFIG")
    if named is not None and not Path(named).is_file():
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"CACHEMGR_CONFIG points to {named}, which is not a file: fix or unset it",
        )
    try:
        return ServiceSettings(**{k: v for k, v in flags.items() if v is not None})
    except ValidationError as error:
        parts = [_wrong(e) for e in error.errors()]
        raise ConfigurationError(ErrorCode.BAD_SETTING, "; ".join(parts)) from None
    except SettingsError as error:  # names the field, and has the parser's error as its cause
        field = str(error).split('"')[1].upper()
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"CACHEMGR_{field} is not JSON ({error.__cause__}): correct or unset it",
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"the settings file {named or _DEFAULT_FILE} cannot be read: {error}",
        ) from None


def _wrong(error: Any) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        near = nearest(name, ServiceSettings.model_fields)
        known = f"did you mean {near}?" if near else "docs/service.md lists the settings"
        return f"unknown setting {name}: {known}"
    return f"{name}: {error['msg']} (given: {_shown(error)})"


def _shown(error: Any) -> str:
    # what was given for a URL, or for a key to the storage, is not to be told
    name = ".".join(map(str, error["loc"]))
    hides = "url" in name.lower() or names_secret(name)
    return "…" if hides else masked(repr(error["input"]))[:80]
