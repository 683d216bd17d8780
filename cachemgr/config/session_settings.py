"""The `spark.cachemgr.*` settings in force, as their table reads them.

Refuses values it does not understand, naming the key, the value and what is accepted. Keys that
it does not know are not refused here (a user's session must start), see `settings_told`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cachemgr.config.setting import Ddl, Mode
from cachemgr.config.setting_names import PREFIX
from cachemgr.config.setting_table import SETTINGS
from cachemgr.sparks import minor_of
from matcher.model.budget import DECISION_STEPS

ENABLED: Final = PREFIX + "enabled"
MODE: Final = PREFIX + "mode"
METASTORE_URL: Final = PREFIX + "metastore.url"
DDL: Final = PREFIX + "ddl"


@dataclass(frozen=True)
class Settings:
    """The settings in force, typed."""

    enabled: bool = True
    mode: Mode = Mode.REWRITE
    metastore_url: str = "sqlite:///cachemgr.db"
    url: str = ""
    token: str = field(default="", repr=False)
    token_file: str = ""
    max_outage_seconds: int = 24 * 3600
    location: str = "relational-caches"
    spark_version: str = ""
    decision_steps: int = DECISION_STEPS
    approximate_floats: bool = False
    approximate_distinct: bool = False
    trust_unvalidated: bool = False
    assume_exact_averages: bool = False
    pin_enabled: bool = True
    pin_max_bytes: int = 256 * 1024 * 1024
    pin_max_rows_per_set: int = 500_000
    local_enabled: bool = True
    prepared_enabled: bool = True
    local_max_held_bytes: int = 128 * 1024 * 1024
    local_max_rows: int = 100_000
    local_max_groups: int = 10_000
    local_max_result_bytes: int = 8 * 1024 * 1024
    local_max_concurrent: int = 0
    implied_ranges: bool = True
    limits_enabled: bool = True
    fresh_hits: bool = True
    fresh_max_files: int = 1_000
    fresh_max_rows: int = 50_000_000
    fresh_max_percent: int = 20
    fresh_tail_max_bytes: int = 64 * 1024 * 1024
    drop_grace_seconds: int = 24 * 3600
    explain_fallback: bool = False
    trust_user_names: bool = False
    admins: str = ""
    ddl: Ddl = Ddl.OWNERS
    sidecar_python: str = ""
    sidecar_timeout: str = "250ms"
    results_to_files: bool = False
    results_location: str = ""
    results_partition_bytes: int = 4 * 1024 * 1024
    preview_concurrent_jobs: int = 0
    preview_growth: float = 1.5
    decision_log_enabled: bool = True

    @property
    def spark_minor(self) -> str | None:
        """The minor of the Spark that will run what is answered; None where nobody says."""
        return minor_of(self.spark_version) or None

    @classmethod
    def from_mapping(cls, values: Mapping[str, str]) -> Settings:
        """Read the settings out of a session's configuration.

        Args:
            values: Key to value; keys without our prefix are ignored.

        Returns:
            The settings, with defaults where a key is absent.

        Raises:
            ConfigurationError: A value is not accepted; names key, value and what is accepted.
        """
        found = {
            setting.field: setting.parse(values[setting.key])
            for setting in SETTINGS
            if setting.key in values
        }
        return cls(**found)
