"""The files of one grouping set at one version, read as they are.

A set too large to pin is read from its files. Asked through Delta, each query pays for Delta's
look at
the table's statistics (measured at scale 1: 95 of 250 ms), although the files of a published
version
never change. So they are listed once, and later hits read these files alone; Parquet's own
statistics pass over the row groups that a filter rules out.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

from cachemgr.config.result_settings import PASSES_OVER
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.jvm.loader import java_class, session_of
from cachemgr.spark.held.degraded import warn
from cachemgr.spark.hook import suspended
from matcher.model.ir import GROUPING_ID_COLUMN
from matcher.render.placeholders import CACHE
from matcher.render.select import quote

_log = logging.getLogger("cachemgr.files")
_CAPACITY = 256
_MAX_FILES = 200

FileKey = tuple[str, int, int]


class FileReads:
    """Plans over the files of grouping sets, listed once; safe for several threads.

    Args:
        spark: A session of ours, which the user's settings do not reach.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._plans: OrderedDict[FileKey, Any] = OrderedDict()
        self._making: set[FileKey] = set()

    def plan(self, read: TableRead, grouping_id: int) -> Any:
        """A logical plan of the JVM over the set's files.

        Args:
            read: The cache's table at the published version.
            grouping_id: The set.

        Returns:
            The plan; None where the set has to be read through Delta (deletion vectors, mapped
            columns) or is better read so (no file, or very many, or another query is listing them
            at this moment).
        """
        key = (read.location, read.version, grouping_id)
        with self._lock:
            if key in self._plans:
                self._plans.move_to_end(key)
                return self._plans[key]
            if key in self._making:
                return None
            self._making.add(key)
        try:
            made = self._make(read, grouping_id)
        except Exception as error:
            warn(_log, f"the files of {read.location} cannot be listed and Delta lists them", error)
            made = None
        with self._lock:
            self._making.discard(key)
            self._plans[key] = made
            while len(self._plans) > _CAPACITY:
                self._plans.popitem(last=False)
        return made

    def _make(self, read: TableRead, grouping_id: int) -> Any:
        text = f"SELECT * FROM {CACHE} WHERE {quote(GROUPING_ID_COLUMN)} = {grouping_id}L"
        folder = f"{GROUPING_ID_COLUMN}={grouping_id}"
        with suspended(self._spark):
            tables = java_class(self._spark, "Tables")
            if not tables.plainFiles(session_of(self._spark), read.location, read.version):
                return None
            through_delta = run_select(self._spark, text, {CACHE: read})
            files = [f for f in through_delta.inputFiles() if f"/{folder}/" in unquote(f)]
            # other partition columns are left to Delta, whose log has their values as they are
            if any(unquote(f).rsplit("/", 2)[1] != folder for f in files):
                return None
            if not 0 < len(files) <= _MAX_FILES:
                return None
            reader = self._spark.read.schema(through_delta.schema).option("__globPaths__", "false")
            reader = reader.options(**dict.fromkeys(PASSES_OVER, "false"))  # as WholeFiles.java
            frame = reader.option("basePath", read.location).parquet(*files)
            return frame._jdf.queryExecution().analyzed()
