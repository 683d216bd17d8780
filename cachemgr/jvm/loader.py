"""Our Java classes inside the driver's JVM, from the jar that comes with us.

Where a jar of ours is on Spark's own class path (`spark.driver.extraClassPath`), its classes are
those that are used; else a class loader over the jar for this minor of Spark has them.
"""

from __future__ import annotations

import os
import re
import threading
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyspark
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from cachemgr.errors import CacheManagerError, ConfigurationError, ErrorCode
from cachemgr.jvm.classes import class_on_path
from cachemgr.jvm.jar import BUILD, build_of, decode_build, jar_for
from cachemgr.sparks import DELTA, MINORS, minor_of

PACKAGE: Final = "relationalcache"
_DELTA_LOG: Final = "org/apache/spark/sql/delta/DeltaLog.class"
_DELTA_JAR: Final = re.compile(r"delta-spark_(\d+\.\d+)_[^/]*$")

# Those that Python calls.
DOORS: Final = frozenset(
    {
        "Acting",
        "ChangedFiles",
        "Counters",
        "Hook",
        "Nested",
        "Pins",
        "Problems",
        "ResultFiles",
        "ShuffleOnce",
        "Sources",
        "Tables",
        "Texts",
        "Wire",
        "Writes",
        "local.LocalAnswer",
        "prepared.Prepared",
        "results.Preview",
        "sidecar.Sidecar",
    }
)

_lock = threading.Lock()
_loaded: dict[int, tuple[object, dict[str, Any]]] = {}


class HookError(CacheManagerError):
    """The part of ours that runs inside Spark failed."""


def java_class(spark: SparkSession, name: str) -> Any:
    """An instance of our class `name`, through which its static methods are called.

    Args:
        spark: Any session of the application.
        name: One of `DOORS`.

    Raises:
        ConfigurationError: The session is a Spark Connect one, which has no JVM of its own, or was
            started without Delta.
        HookError: The jar on Spark's class path is of another release than this Python package, or
            for another minor of Spark; or there is none for this Spark or Delta.
    """
    jvm = _jvm(spark)
    key = id(jvm._gateway_client)
    found = _loaded.get(key)
    if found is None:
        with _lock:
            found = _loaded.get(key)
            if found is None:
                # The client is kept: its id must not come back for another JVM.
                found = (jvm._gateway_client, _load(jvm))
                _loaded[key] = found
    return found[1][name]


def session_of(spark: SparkSession) -> Any:
    """The JVM's session behind `spark`."""
    return spark._jsparkSession


def _jvm(spark: SparkSession) -> Any:
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise ConfigurationError(
            ErrorCode.NO_JVM,
            f"{type(spark).__name__} has no JVM in this process (Spark Connect?): "
            "enable relational caches in the server's own session",
        )
    return jvm


def _refuse_without_delta(loader: Any) -> None:
    """A Spark that somebody else has started, as `pyspark` and `spark-submit` do, has the jars that
    it was started with."""
    try:
        loader.loadClass("org.apache.spark.sql.delta.DeltaLog")
    except Exception as error:
        lake, spark = version("delta-spark"), minor_of(pyspark.__version__)
        raise ConfigurationError(
            ErrorCode.DELTA_MISSING,
            "this Spark was started without Delta Lake, and cannot be given it any more: start it "
            f"by `pyspark --packages io.delta:delta-spark_{spark}_2.13:{lake} --conf "
            "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension --conf "
            "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog` "
            "(spark-submit takes the same), or run the script by `python`",
        ) from error


def _load(jvm: Any) -> dict[str, Any]:
    ours = class_on_path(jvm, "java.lang.Thread").currentThread().getContextClassLoader()
    _refuse_without_delta(ours)
    spark = class_on_path(jvm, "org.apache.spark.package").SPARK_VERSION()
    delta = class_on_path(jvm, "io.delta.package").VERSION()
    refuse_unknown(spark, delta)
    # a sidecar's PySpark asks a JVM that is there already: another minor of it does, too
    python = spark if "PYSPARK_GATEWAY_PORT" in os.environ else pyspark.__version__
    refuse_mixed(spark, python, _jar_of(ours.getResource(_DELTA_LOG)))
    loader = _loader_over_jar(jvm, ours, jar_for(minor_of(spark)))
    _refuse_other_build(jvm, loader, spark)
    # py4j finds a class by name only in the application's own loader; an instance needs no look-up,
    # and static methods can be called through it.
    classes = {n: loader.loadClass(f"{PACKAGE}.{n}").newInstance() for n in DOORS}
    server = JavaObject("GATEWAY_SERVER", jvm._gateway_client)  # as pyspark.java_gateway names it
    classes["Wire"].use(server.getGateway())
    return classes


def refuse_unknown(spark: str, delta: str) -> None:
    """Refuse a Spark or a Delta that this release has no classes for.

    Args:
        spark: The version that runs.
        delta: The version that runs.

    Raises:
        HookError: It has none.
    """
    if minor_of(spark) not in MINORS or delta.partition("-")[0] != DELTA:
        raise HookError(
            ErrorCode.HOOK_VERSION,
            f"this is Spark {spark} with Delta {delta}, and this release of relational-cache "
            f"({version('relational-cache')}) is built for Spark {', '.join(MINORS)} with Delta "
            f"{DELTA}: start Spark with one of these, or install the release that is built for "
            "yours",
        )


def refuse_mixed(spark: str, python: str, delta: str) -> None:
    """Refuse parts that are made for different minors of Spark.

    Args:
        spark: The version that runs.
        python: The version of the PySpark that drives it.
        delta: The path of Delta's jar, which has the minor in its name.

    Raises:
        HookError: They are mixed.
    """
    minor = minor_of(spark)
    if minor_of(python) != minor:
        raise HookError(
            ErrorCode.HOOK_VERSION,
            f"this is Spark {spark}, driven by PySpark {python}: unset SPARK_HOME, or install "
            f"pyspark {minor}",
        )
    made_for = _DELTA_JAR.search(delta)
    if made_for is not None and made_for[1] != minor:
        raise HookError(
            ErrorCode.HOOK_VERSION,
            f"the Delta on Spark's class path, {delta}, is for Spark {made_for[1]}, and this is "
            f"Spark {spark}: put io.delta:delta-spark_{minor}_2.13:{DELTA} in its place",
        )


def _loader_over_jar(jvm: Any, parent: Any, jar: Path) -> Any:
    """A loader that has the jar, unless its parent has one."""
    urls = class_on_path(jvm, "java.lang.reflect.Array").newInstance(
        class_on_path(jvm, "java.lang.Class").forName("java.net.URL"), 1
    )
    urls[0] = class_on_path(jvm, "java.io.File")(str(jar)).toURI().toURL()
    return class_on_path(jvm, "java.net.URLClassLoader").newInstance(urls, parent)


def _refuse_other_build(jvm: Any, loader: Any, spark: str) -> None:
    place = loader.getResource(BUILD)
    text = class_on_path(jvm, "org.apache.commons.io.IOUtils").toString(place, "UTF-8")
    here, minor = decode_build(text), minor_of(spark)
    if here.sources != build_of(jar_for(minor)).sources:
        raise HookError(
            ErrorCode.HOOK_VERSION,
            f"the jar on Spark's class path, {_jar_of(place)}, is of another release than this "
            f"Python package ({version('relational-cache')}): put there what `cachemgr jar` names",
        )
    if here.spark != minor:
        raise HookError(
            ErrorCode.HOOK_VERSION,
            f"the jar on Spark's class path, {_jar_of(place)}, is for Spark {here.spark}, and this "
            f"is Spark {spark}: put there what `cachemgr jar --spark {minor}` names, or nothing",
        )


def _jar_of(resource: Any) -> str:
    """The path in the URL of what lies in a jar: jar:file:/path!/name."""
    return str(resource.getPath()).removeprefix("file:").partition("!")[0]
