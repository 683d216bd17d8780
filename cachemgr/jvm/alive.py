"""Whether an application and the JVM under it still run: what Python is told when they end says
little."""

from __future__ import annotations

import subprocess
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

# How long the end of a process may take to be seen after its connections broke.
_PATIENCE_SECONDS = 3.0


def jvm_is_gone(spark: SparkSession, error: BaseException | None = None) -> bool:
    """True if the JVM that this process started has ended.

    Args:
        spark: Any session of the application.
        error: What made the caller ask; broken connections are given a moment to be explained.
    """
    gateway = spark.sparkContext._gateway
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if process is None:
        return False
    broken = isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)
    try:
        process.wait(_PATIENCE_SECONDS if broken else 0)
    except subprocess.TimeoutExpired:
        return False
    return True


def is_stopped(context: SparkContext) -> bool:
    """Whether an application was stopped.

    Args:
        context: Its context.
    """
    inner: Any = context._jsc
    return inner is None or bool(inner.sc().isStopped())
