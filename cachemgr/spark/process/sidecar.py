"""The Python process beside a driver in which no Python of ours runs; see `sidecar/Sidecar.java`.

It attaches to that JVM by the gateway that the environment names, decides for all sessions, and
carries their statements out. It ends with the JVM: the standard input is a pipe from there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from cachemgr.access.asker import Asker
from cachemgr.config.session_settings import METASTORE_URL
from cachemgr.config.setting_names import PREFIX
from cachemgr.ddl import parse
from cachemgr.errors import CacheManagerError, ConfigurationError, ErrorCode, StatementError
from cachemgr.jvm.classes import class_on_path
from cachemgr.jvm.loader import java_class
from cachemgr.jvm.session_conf import unnoticed
from cachemgr.secrets import masked
from cachemgr.spark import api, hook
from cachemgr.spark.result_frames import to_frame
from cachemgr.spark.session import CacheSession
from cachemgr.spark.session_statements import execute_for
from cachemgr.spark.spark_errors import code_and_line, without_traces
from cachemgr.statements.columns import columns_of
from cachemgr.telemetry import logger

_URL_VARIABLE: Final = "CACHEMGR_METASTORE_URL"


def run() -> None:
    """Serve the JVM that started this process until it ends.

    Raises:
        CacheManagerError: It cannot be served; says why.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        raise ConfigurationError(
            ErrorCode.NO_GATEWAY,
            "this command is for relationalcache.Extension, which starts it beside Spark: name "
            "that in spark.sql.extensions",
        )
    without_traces()
    spark = _attached()
    fixed = _fixed(spark)
    session = api.serve_all(spark.newSession(), fixed, os.environ.get(_URL_VARIABLE, ""))
    decides = hook.proxy(spark, session)
    carries_out = _Statements(spark.sparkContext, session)
    java_class(spark, "sidecar.Sidecar").attach(decides, carries_out, session.prepared.java)
    while sys.stdin.buffer.read(1):
        pass
    # Nothing of Spark's is ours to close, and its threads wait for a JVM that is gone.
    os._exit(0)


def _attached() -> SparkSession:
    """The default session of the JVM, as a Python object."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    jvm: Any = gateway.jvm
    sessions = class_on_path(jvm, "org.apache.spark.sql.classic.SparkSession")
    java_session = sessions.getDefaultSession().get()
    java_context = class_on_path(jvm, "org.apache.spark.api.java.JavaSparkContext")(
        java_session.sparkContext()
    )
    conf = SparkConf(_jvm=jvm, _jconf=java_context.getConf())
    context = SparkContext(gateway=gateway, jsc=java_context, conf=conf)
    return SparkSession(context, java_session)


def _fixed(spark: SparkSession) -> Mapping[str, str]:
    """The settings of ours in the application's configuration.

    Raises:
        ConfigurationError: One of them is a secret, which each client could read.
    """
    found = {k: v for k, v in spark.sparkContext.getConf().getAll() if k.startswith(PREFIX)}
    if found.get(PREFIX + "token"):
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"{PREFIX}token is set, which each client of this server can read: put the token into "
            f"a file, and name that by {PREFIX}tokenFile",
        )
    if _has_password(found.get(METASTORE_URL, "")):
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"{METASTORE_URL} holds a password, which each client of this server can read: set the "
            f"environment variable {_URL_VARIABLE} of the server instead, or put the password into "
            "a file for PGPASSFILE",
        )
    return found


def _has_password(url: str) -> bool:
    try:
        return bool(url) and masked(make_url(url).render_as_string(hide_password=False)) != url
    except ArgumentError:
        return masked(url) != url


class _Statements:
    """The py4j face of what carries statements out; see `sidecar/Statements.java`."""

    class Java:
        implements: Final = ["java.util.function.BiFunction"]

    def __init__(self, context: SparkContext, session: CacheSession) -> None:
        self._context = context
        self._session = session

    def apply(self, call: Any, text: str) -> str:
        """Carry out what is wanted of one statement; everything is told to `call`. Or take note of
        a query that `failed`, without a call."""
        wanted, text = text.split("\n", 1)
        if wanted == "failed":
            if (told := self._session.failed_on(text)) is not None:
                logger.warning("%s", told)
            return ""
        try:
            statement = parse(text)
            if wanted == "columns":
                call.columns(columns_of(statement).schema)
                return ""
            with unnoticed():
                spark = SparkSession(self._context, call.session())
            asker = Asker(call.user(), call.vouched())
            found = execute_for(spark, self._session, statement, asker)
            call.rows(to_frame(spark, found)._jdf)
        except StatementError as error:
            call.failed(error.code, masked(error.message), error.line, error.col)
        except CacheManagerError as error:
            call.failed(error.code, masked(error.message), 0, 0)
        except PySparkException as error:
            code, message = code_and_line(error)
            call.failed(code, masked(message), 0, 0)
        except Exception as error:
            logger.exception("a statement failed")
            told = (str(error).strip() or type(error).__name__).splitlines()[0]
            message = f"{masked(told)}: this is a fault of relational-cache, report it"
            call.failed(ErrorCode.INTERNAL_ERROR.value, message, 0, 0)
        return ""
