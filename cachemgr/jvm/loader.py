"""Our Java classes inside the driver's JVM: compiled once, at run time, by the Janino that ships
with Spark.

No jar is built or shipped: the sources are package data. Each source is compiled against the
classes before it, so their order matters. Raw types and no lambdas, since Janino knows no more.
"""

from __future__ import annotations

import threading
from importlib import resources
from importlib.metadata import version
from typing import Any, Final

import pyspark
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from cachemgr.errors import CacheManagerError, ConfigurationError, ErrorCode

PACKAGE: Final = "relationalcache"
SOURCES: Final = (
    "Scala",
    "Order",
    "Tags",
    "Counters",
    "Commits",
    "Ranges",
    "Tables",
    "ExprWriter",
    "PlanWriter",
    "ChangedFiles",
    "Problems",
    "Texts",
    "Nested",
    "Moment",
    "Split",
    "Grafter",
    "Pins",
    "Frames",
    "Subqueries",
    "Request",
    "Wire",
    "Hook",
)

# Those that Python calls.
DOORS: Final = frozenset(
    {"ChangedFiles", "Counters", "Hook", "Nested", "Pins", "Problems", "Tables", "Texts", "Wire"}
)

_lock = threading.Lock()
_loaded: dict[int, tuple[object, dict[str, Any]]] = {}


class HookError(CacheManagerError):
    """The part of ours that runs inside Spark failed."""


def java_class(spark: SparkSession, name: str) -> Any:
    """An instance of our class `name`, through which its static methods are called.

    Args:
        spark: Any session of the application.
        name: Simple name of one of `DOORS`.

    Raises:
        ConfigurationError: The session is a Spark Connect one, which has no JVM of its own, or was
            started without Delta.
        HookError: The sources do not compile against this Spark.
    """
    jvm = _jvm(spark)
    key = id(jvm._gateway_client)
    found = _loaded.get(key)
    if found is None:
        with _lock:
            found = _loaded.get(key)
            if found is None:
                # The client is kept: its id must not come back for another JVM.
                found = (jvm._gateway_client, _compile(jvm))
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
        lake, spark = version("delta-spark"), ".".join(pyspark.__version__.split(".")[:2])
        raise ConfigurationError(
            ErrorCode.DELTA_MISSING,
            "this Spark was started without Delta Lake, and cannot be given it any more: start it "
            f"by `pyspark --packages io.delta:delta-spark_{spark}_2.13:{lake} --conf "
            "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension --conf "
            "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog` "
            "(spark-submit takes the same), or run the script by `python`",
        ) from error


def _compile(jvm: Any) -> dict[str, Any]:
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    _refuse_without_delta(loader)
    classes: dict[str, Any] = {}
    for name in SOURCES:
        source = resources.files(__package__).joinpath("java", f"{name}.java").read_text("utf-8")
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(loader)
        try:
            compiler.cook(source)
            loader = compiler.getClassLoader()
            # py4j finds a class by name only in the application's own loader; an instance needs no
            # look-up,
            # and static methods can be called through it.
            if name in DOORS:
                classes[name] = loader.loadClass(f"{PACKAGE}.{name}").newInstance()
        except Exception as error:
            raise HookError(
                ErrorCode.HOOK_COMPILE,
                f"{name}.java does not compile against this Spark: {error}; "
                "use the pinned pyspark and delta-spark versions",
            ) from error
    server = JavaObject("GATEWAY_SERVER", jvm._gateway_client)  # as pyspark.java_gateway names it
    classes["Wire"].use(server.getGateway())
    return classes
