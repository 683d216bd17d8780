"""A session builder with Delta and what relational caches need; what the user set always wins."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyspark
from delta import configure_spark_with_delta_pip
from pyspark import SparkContext
from pyspark.sql import SparkSession

from cachemgr.config.session_settings import ENABLED, Settings
from cachemgr.config.settings_told import warn_of_unknown
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.jvm import runtime
from cachemgr.spark.delta_jars import jars_of
from cachemgr.sparks import minor_of

_DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
_EXTENSIONS = "spark.sql.extensions"
_PACKAGES = "spark.jars.packages"
_DELTA_JAR: Final = "*delta-spark*.jar"

# Key, value and why; each only where the user set nothing.
DEFAULTS: tuple[tuple[str, str, str], ...] = (
    (
        "spark.sql.catalog.spark_catalog",
        "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "Delta tables by name",
    ),
    (
        "spark.sql.legacy.parameterSubstitution.constantsOnly",
        "true",
        "Delta 4.4.0 fails every spark.sql(text, args=…) on Spark 4.2.0 without it",
    ),
    (
        "spark.redaction.regex",
        r"(?i)secret|password|token|access[.]?key|cachemgr[.]metastore|://[^/\s:@]*:[^@\s]*@",
        "Spark's own, and the metastore's URL, whose password its UI and event log would show",
    ),
    (
        "spark.sql.debug.maxToStringFields",
        "1000",
        "Delta's plans have more fields than the 25 that Spark writes down without a warning",
    ),
    (
        "spark.sql.codegen.cache.maxEntries",
        "1000",
        "a dozen queries fill the 100 classes that Spark keeps; each is compiled again then",
    ),
)
# The same for a local master, where Spark's defaults are made for clusters.
LOCAL_DEFAULTS: tuple[tuple[str, str, str], ...] = (
    (
        "spark.databricks.delta.snapshotPartitions",
        "2",
        "reading a Delta log in 50 tasks costs more than the log",
    ),
    (
        "spark.sql.shuffle.partitions",
        str(max(2, os.cpu_count() or 2)),
        "200 tasks for a small aggregate",
    ),
)


def configure_builder(
    builder: SparkSession.Builder,
    extra_packages: Sequence[str] | None,
    started: Callable[[SparkSession], object],
) -> SparkSession.Builder:
    """Add Delta and our defaults to a builder.

    Args:
        builder: The user's builder; what it holds already is kept.
        extra_packages: More Maven coordinates.
        started: Called with the session if the builder says `spark.cachemgr.enabled=true`.

    Returns:
        The same builder.

    Raises:
        ConfigurationError: The builder is one of Spark Connect.
    """
    given = dict(getattr(builder, "_options", {}))
    if given.get("spark.remote") or os.environ.get("SPARK_REMOTE"):
        raise ConfigurationError(
            ErrorCode.SPARK_CONNECT,
            "relational caches cannot be configured on a Spark Connect session, whose plans are "
            "made on the server: configure and enable them in the server's own session",
        )
    master = str(given.get("spark.master", os.environ.get("MASTER", "local[*]")))
    is_local = master.startswith("local")
    packages = [p.strip() for p in str(given.get(_PACKAGES, "")).split(",") if p.strip()]
    packages += [p for p in extra_packages or () if p not in packages]
    alone = ""
    if not _has_delta(given, is_local):
        configure_spark_with_delta_pip(builder, packages)
        if is_local and not packages and not _names_jars(given):
            alone = str(builder._options[_PACKAGES])
    elif packages:
        builder.config(_PACKAGES, ",".join(packages))
    extensions = [e.strip() for e in str(given.get(_EXTENSIONS, "")).split(",") if e.strip()]
    if _DELTA_EXTENSION not in extensions:
        extensions.append(_DELTA_EXTENSION)
    builder.config(_EXTENSIONS, ",".join(extensions))
    defaults = DEFAULTS + (LOCAL_DEFAULTS if is_local else ())
    for key, value, _ in defaults:
        if key not in given:
            builder.config(key, value)
    _when_built(builder, started, alone)
    return builder


def refuse_java() -> None:
    """Refuse to start a Spark with a Java that it does not start with.

    Raises:
        NoJavaError: There is none, or it is too old or too new.
    """
    runs_already = SparkContext._gateway or "PYSPARK_GATEWAY_PORT" in os.environ
    # which Spark reads before it looks for Java, and which may name another one
    environment_file = _conf_folder() / "spark-env.sh"
    if not runs_already and not environment_file.exists():
        runtime.refuse_unfit(minor_of(pyspark.__version__))


def _names_jars(given: Mapping[str, Any]) -> bool:
    """Whether the user says anything of jars, in the builder or in Spark's own file."""
    with suppress(OSError):
        text = (_conf_folder() / "spark-defaults.conf").read_text(errors="replace")
        if any(line.strip().startswith("spark.jars") for line in text.splitlines()):
            return True
    return "PYSPARK_SUBMIT_ARGS" in os.environ or any(k.startswith("spark.jars") for k in given)


def _conf_folder() -> Path:
    """Where Spark's own files of settings are."""
    home = os.environ.get("SPARK_HOME") or pyspark.__path__[0]
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf"))


def _has_delta(given: Mapping[str, Any], is_local: bool) -> bool:
    """Whether Delta's jar is there already, so that Spark need not ask Maven for it: it may have no
    way there, and takes seconds to ask even where all is on the disk. On a cluster the executors
    must have it as well, to whom Spark gives what `spark.jars` names."""
    home = os.environ.get("SPARK_HOME") or pyspark.__path__[0]
    if any(Path(home, "jars").glob(_DELTA_JAR)) or _names_delta(given, "spark.jars", ","):
        return True
    paths = ["spark.driver.extraClassPath"]
    paths += [] if is_local else ["spark.executor.extraClassPath"]
    return all(_names_delta(given, path, os.pathsep) for path in paths)


def _names_delta(given: Mapping[str, Any], key: str, separator: str) -> bool:
    entries = [entry.strip() for entry in str(given.get(key, "")).split(separator)]
    places = [Path(entry.removeprefix("file:")) for entry in entries if entry]
    return any(
        place.match(_DELTA_JAR) or (place.name == "*" and any(place.parent.glob(_DELTA_JAR)))
        for place in places
    )


def _when_built(
    builder: SparkSession.Builder, started: Callable[[SparkSession], object], packages: str
) -> None:
    """Name the jars of these packages if the builder starts a Spark for them alone, and enable its
    session. This builder alone, not the class: other builders of the process stay as they are.
    """
    original = builder.getOrCreate
    if getattr(original, "_cachemgr", False):
        return

    def get_or_create() -> SparkSession:
        options = builder._options
        given = {key: str(value) for key, value in options.items()}
        refuse_java()
        asked = Settings.from_mapping(given).enabled and ENABLED in given  # before Spark starts
        if packages and options.get(_PACKAGES) == packages and not SparkContext._gateway:
            jars = jars_of(packages)
            if jars is not None:
                del options[_PACKAGES]
                builder.config("spark.jars", jars)
        session = original()
        if asked:
            started(session)
        else:
            warn_of_unknown(given)
        return session

    get_or_create._cachemgr = True  # type: ignore[attr-defined]
    builder.getOrCreate = get_or_create  # type: ignore[method-assign]
