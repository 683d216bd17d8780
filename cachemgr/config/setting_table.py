"""The `spark.cachemgr.*` settings: one table, and how one of them is found by its key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from cachemgr.config.setting import Kind, Setting
from cachemgr.config.setting_names import PREFIX, nearest
from cachemgr.errors import ConfigurationError, ErrorCode
from matcher.model.budget import DECISION_STEPS


def _setting(
    name: str,
    field: str,
    kind: Kind,
    default: str,
    when: Literal["runtime", "startup"],
    doc: str,
) -> Setting:
    return Setting(PREFIX + name, field, kind, default, when, doc)


SETTINGS: tuple[Setting, ...] = (
    _setting("enabled", "enabled", "boolean", "true", "runtime", "Rewrite queries at all."),
    _setting(
        "mode",
        "mode",
        "mode",
        "rewrite",
        "runtime",
        "rewrite: answer from caches; planOnly: decide and log, run the original; "
        "failFast: raise our own errors instead of falling back; off: do nothing.",
    ),
    _setting(
        "metastore.url",
        "metastore_url",
        "text",
        "sqlite:///cachemgr.db",
        "startup",
        "Where caches are recorded: sqlite:///file or postgresql://user@host/database.",
    ),
    _setting(
        "url",
        "url",
        "optional text",
        "",
        "startup",
        "The service to follow instead of a metastore: http://host:8470, more replicas after "
        "commas.",
    ),
    _setting(
        "token",
        "token",
        "optional text",
        "",
        "startup",
        "The token for the service; better in the environment variable CACHEMGR_TOKEN, or in a "
        "file.",
    ),
    _setting(
        "tokenFile",
        "token_file",
        "optional text",
        "",
        "startup",
        "A file that holds the token; read again whenever the service is asked.",
    ),
    _setting(
        "maxOutage",
        "max_outage_seconds",
        "duration",
        "24h",
        "startup",
        "How long a session goes on with the caches that it knows while the service cannot be "
        "reached; at most the dropGrace that the service runs with.",
    ),
    _setting(
        "location",
        "location",
        "text",
        "relational-caches",
        "runtime",
        "Root folder of the caches' Delta tables.",
    ),
    _setting(
        "approximateFloats",
        "approximate_floats",
        "boolean",
        "false",
        "runtime",
        "Allow FLOAT and DOUBLE sums, averages and moments to be re-aggregated; "
        "the last digits may differ from the original's.",
    ),
    _setting(
        "sparkVersion",
        "spark_version",
        "spark version",
        "",
        "runtime",
        "For the service, and offline: the Spark that will run what is answered, as 4.1 or 4.1.4. "
        "Unless it is said, what Sparks compute or read differently is no hit. A session knows "
        "its own Spark, whatever stands here.",
    ),
    _setting(
        "decisionSteps",
        "decision_steps",
        "integer",
        str(DECISION_STEPS),
        "runtime",
        "The most steps of work that deciding on one query may take, the same on every machine; a "
        "query that takes more is left as it is, and EXPLAIN REWRITE says how many it takes. More "
        "steps may take more time in proportion. The hint RELATIONAL_CACHE_STEPS(n) says it for "
        "one query. The service never takes more than the default.",
    ),
    _setting(
        "approximateDistinct",
        "approximate_distinct",
        "boolean",
        "false",
        "runtime",
        "Let a stored HLL_SKETCH_AGG(x) answer APPROX_COUNT_DISTINCT(x) and COUNT(DISTINCT x): "
        "an estimate, some percent off.",
    ),
    _setting(
        "trustUnvalidated",
        "trust_unvalidated",
        "boolean",
        "false",
        "runtime",
        "Let record-preserving joins declared NOT VALIDATED serve.",
    ),
    _setting(
        "assumeExactAverages",
        "assume_exact_averages",
        "boolean",
        "false",
        "runtime",
        "Offline: take |SUM| <= 2^53 for averages of integers as checked.",
    ),
    _setting(
        "pin.enabled",
        "pin_enabled",
        "boolean",
        "true",
        "runtime",
        "Keep hot small grouping sets in the application's memory.",
    ),
    _setting(
        "pin.maxBytes",
        "pin_max_bytes",
        "size",
        "256m",
        "runtime",
        "Memory for the pinned sets of the application; the largest of its sessions' holds, "
        "as it was when they were enabled. A session with 0 uses none.",
    ),
    _setting(
        "pin.maxRowsPerSet",
        "pin_max_rows_per_set",
        "integer",
        "500000",
        "runtime",
        "A grouping set with more rows is not pinned.",
    ),
    _setting(
        "local.enabled",
        "local_enabled",
        "boolean",
        "true",
        "runtime",
        "Compute the rows of a query that reads a pinned set alone in the thread that plans it, "
        "without a Spark job. The driver has them where a session of the application has this when "
        "it is enabled.",
    ),
    _setting(
        "local.maxHeldBytes",
        "local_max_held_bytes",
        "size",
        "128m",
        "runtime",
        "Memory of the driver for the rows of pinned sets; the largest of its sessions' holds, as "
        "it was when they were enabled. One set takes at most a fourth of it.",
    ),
    _setting(
        "local.maxRows",
        "local_max_rows",
        "integer",
        "100000",
        "runtime",
        "A query that looks at more of those rows is left to a Spark job.",
    ),
    _setting(
        "local.maxGroups",
        "local_max_groups",
        "integer",
        "10000",
        "runtime",
        "A query with more groups, or rows in its result, is left to a Spark job.",
    ),
    _setting(
        "local.maxResultBytes",
        "local_max_result_bytes",
        "size",
        "8m",
        "runtime",
        "A query whose groups or result take more is left to a Spark job.",
    ),
    _setting(
        "local.maxConcurrent",
        "local_max_concurrent",
        "integer",
        "0",
        "runtime",
        "Where so many queries are computed so at the same time, another one is left to a Spark "
        "job. 0 stands for four times the driver's processors, less where the results of so many "
        "may take more than an eighth of its heap.",
    ),
    _setting(
        "prepared.enabled",
        "prepared_enabled",
        "boolean",
        "true",
        "runtime",
        "Answer a query of a shape that was answered from sets held by the driver before, at the "
        "same versions of its tables, without asking Python again.",
    ),
    _setting(
        "pruning.impliedRanges",
        "implied_ranges",
        "boolean",
        "true",
        "runtime",
        "Read fewer files where a filter bounds a column by a function of it, as year(day) = 2024.",
    ),
    _setting(
        "limits.enabled",
        "limits_enabled",
        "boolean",
        "true",
        "runtime",
        "A LIMIT opens as many files as have its rows, and runs as few tasks as collecting them.",
    ),
    _setting(
        "freshHits",
        "fresh_hits",
        "boolean",
        "true",
        "runtime",
        "Answer from a cache whose table was only appended to since, by reading the appended files "
        "beside it.",
    ),
    _setting(
        "freshHits.maxFiles",
        "fresh_max_files",
        "integer",
        "1000",
        "runtime",
        "A hit reads so many appended files at most.",
    ),
    _setting(
        "freshHits.maxRows",
        "fresh_max_rows",
        "integer",
        "50000000",
        "runtime",
        "A hit reads so many appended rows at most.",
    ),
    _setting(
        "freshHits.maxPercent",
        "fresh_max_percent",
        "integer",
        "20",
        "runtime",
        "A hit reads appended rows up to this share of those behind the cache, in percent; 100,000 "
        "rows are always few.",
    ),
    _setting(
        "freshHits.tailMaxBytes",
        "fresh_tail_max_bytes",
        "size",
        "64m",
        "runtime",
        "Memory of the application for appended rows that hits read, grouped as their caches are; "
        "the largest of its sessions' holds, as it was when they were enabled. A session with 0 "
        "uses none.",
    ),
    _setting(
        "dropGrace",
        "drop_grace_seconds",
        "duration",
        "24h",
        "runtime",
        "How long the files of a dropped or replaced cache stay for queries already planned.",
    ),
    _setting(
        "explain.fallback",
        "explain_fallback",
        "boolean",
        "false",
        "runtime",
        "Log the full error when a query falls back to the original plan.",
    ),
    _setting(
        "trustUserNames",
        "trust_user_names",
        "boolean",
        "false",
        "startup",
        "In a server: take the names of its users as right though it authenticates nobody, since "
        "something before it does.",
    ),
    _setting(
        "admins",
        "admins",
        "optional text",
        "",
        "startup",
        "In a server: those of its users who may GRANT, REVOKE and RESTRICT, and change any cache, "
        "after commas; they count where the server authenticates them.",
    ),
    _setting(
        "ddl",
        "ddl",
        "users",
        "owners",
        "startup",
        "In a server: which of its users may CREATE, ALTER, DROP, REFRESH and VALIDATE. all; "
        "authenticated: those whom the server authenticates; admins: those whom `admins` names; "
        "owners: all, but a user whom it does not authenticate may ALTER, DROP or replace only "
        "caches that were made there under his name.",
    ),
    _setting(
        "sidecar.python",
        "sidecar_python",
        "optional text",
        "",
        "startup",
        "In a server: the Python that has relational-cache[spark]; that of the jar's own folder, "
        "or PYSPARK_PYTHON, where nothing is set.",
    ),
    _setting(
        "sidecar.timeout",
        "sidecar_timeout",
        "text",
        "250ms",
        "startup",
        "In a server: how long a query waits for a decision, as Spark writes times; then it runs "
        "as it is.",
    ),
    _setting(
        "results.toFiles",
        "results_to_files",
        "boolean",
        "false",
        "runtime",
        "In a Thrift server: write the rows of a SELECT into files first, and send them from "
        "there.",
    ),
    _setting(
        "results.location",
        "results_location",
        "optional text",
        "",
        "startup",
        "In a Thrift server: the folder for those files, which it and all executors reach; a local "
        "master has spark.local.dir.",
    ),
    _setting(
        "results.partitionBytes",
        "results_partition_bytes",
        "size",
        "4m",
        "runtime",
        "In a Thrift server: how much of those files is read at a time, about.",
    ),
    _setting(
        "preview.concurrentJobs",
        "preview_concurrent_jobs",
        "integer",
        "0",
        "runtime",
        "In the process of statements: so many jobs at once look for the first rows of a query, "
        "each in the next few partitions. 0 stands for as many as there are processors, up to 16.",
    ),
    _setting(
        "preview.growth",
        "preview_growth",
        "factor",
        "1.5",
        "runtime",
        "In the process of statements: by how much the partitions of such a job grow after so many "
        "jobs.",
    ),
    _setting(
        "decisionLog.enabled",
        "decision_log_enabled",
        "boolean",
        "true",
        "runtime",
        "Log hits and misses to the metastore or the service.",
    ),
)
# The server's to make where its users are others than its own, see docs/doors.md.
FIXED: Final = frozenset(
    PREFIX + name
    for name in (
        "mode", "metastore.url", "url", "token", "tokenFile", "maxOutage", "location", "dropGrace",
        "trustUnvalidated", "trustUserNames", "admins", "ddl", "results.location",
    )
)  # fmt: skip
BY_KEY: Final[Mapping[str, Setting]] = {setting.key: setting for setting in SETTINGS}
# What counts as it is when a session's caches are enabled.
STARTUP: Final = frozenset(setting.key for setting in SETTINGS if setting.when == "startup")


def setting(key: str) -> Setting:
    """Find one setting.

    Args:
        key: The full key, `spark.cachemgr.…`.

    Returns:
        The setting.

    Raises:
        ConfigurationError: There is no such setting; names the nearest one.
    """
    if key in BY_KEY:
        return BY_KEY[key]
    near = nearest(key, BY_KEY)
    hint = f"did you mean {near}?" if near else f"the settings are {', '.join(BY_KEY)}"
    raise ConfigurationError(ErrorCode.UNKNOWN_SETTING, f"unknown setting {key}: {hint}")
