"""`Files` on whatever storage the application's Hadoop configuration reaches: HDFS, S3, ABFS, …"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from cachemgr.causes import cause_of, is_storage_trouble
from cachemgr.delta.places import is_local
from cachemgr.delta.storage import FileInfo, Files, LocalFiles, root_of
from cachemgr.jvm.classes import HADOOP_PATH, class_on_path
from cachemgr.jvm.loader import java_class, session_of


class HadoopFiles:
    """Text files by URI.

    Args:
        spark: A session of the application.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()

    def listing(self, folder: str) -> Mapping[str, FileInfo]:
        """What is in a folder, by name; nothing if it does not exist."""
        rows = json.loads(
            java_class(self._spark, "Tables").listing(session_of(self._spark), folder)
        )
        return {name: FileInfo(*told) for name, *told in rows}

    def names(self, folder: str) -> list[str]:
        """The names in a folder, none if it does not exist."""
        path, system = self._open(folder)
        if not system.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in system.listStatus(path))

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        target, system = self._open(path)
        return bool(system.exists(target))

    def read(self, path: str) -> str | None:
        """A file's text; None if it does not exist."""
        target, system = self._open(path)
        if not system.exists(target):
            return None
        stream = system.open(target)
        try:
            whole = class_on_path(self._jvm, "org.apache.commons.io.IOUtils").toByteArray
            data: bytes = whole(stream)
            return bytes(data).decode("utf-8")
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Write a file with the folders above it: whole, or not at all."""
        target, system = self._open(path)
        temporary = self._path(f"{target.getParent().toString()}/.{uuid.uuid4().hex}")
        stream = system.create(temporary, True)
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()
        # where a rename does not replace (HDFS), the file that is there tells of the same change
        if not system.rename(temporary, target):
            system.delete(temporary, False)

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        target, system = self._open(path)
        system.delete(target, False)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all that is in it, if it exists."""
        target, system = self._open(folder)
        system.delete(target, True)

    def _path(self, text: str) -> Any:
        return class_on_path(self._jvm, HADOOP_PATH)(text)

    def _open(self, text: str) -> tuple[Any, Any]:
        path = self._path(text)
        return path, path.getFileSystem(self._conf)


def files_of(spark: SparkSession) -> Callable[[str], Files]:
    """The storage of a place: this machine's own, or what Hadoop reaches.

    Args:
        spark: A session of the application.
    """
    local, others = LocalFiles(), HadoopFiles(spark)
    return lambda location: local if is_local(location) else others


def why_log_unasked(spark: SparkSession, location: str, error: BaseException) -> str:
    """Why the log of a table could not be asked, after something failed on it: in doubt its storage
    is asked for no more than the names in it and the newest commit.

    Args:
        spark: A session of the application.
        location: The table.
        error: What failed.

    Returns:
        What the storage says, in plain words; empty if it answers, so that the log itself is to
        blame.
    """
    if is_storage_trouble(error):
        return cause_of(error)
    files, log = files_of(spark)(location), f"{root_of(location)}/_delta_log"
    try:
        commits = [n for n in files.names(log) if n[:20].isdigit() and n[20:] == ".json"]
        for name in commits[-1:]:
            files.read(f"{log}/{name}")
    except UnicodeError:
        return ""  # it was read
    except Exception as unasked:
        return cause_of(unasked)
    return ""
