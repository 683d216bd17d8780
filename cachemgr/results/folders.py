"""Where results lie: one place that all processes of a service reach, on a disk or in a store."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.results.manifest import MANIFEST, Manifest, ResultFile

# Spark's name of a store's scheme, where pyarrow has another
_SCHEMES: Final = {"s3a": "s3", "abfs": "abfss"}


@dataclass(frozen=True)
class Folder:
    """A folder of one run of a statement.

    Args:
        files: The storage.
        path: The folder's path there.
    """

    files: fs.FileSystem
    path: str

    def open(self, name: str) -> pa.NativeFile:
        """A file, to be read at any place; raises OSError."""
        return self.files.open_input_file(f"{self.path}/{name}")

    def size(self, name: str) -> int:
        """Bytes of a file; raises OSError."""
        info = self.files.get_file_info(f"{self.path}/{name}")
        if info.type != fs.FileType.File:
            raise FileNotFoundError(name)
        return int(info.size)

    def create(self, name: str) -> pa.NativeFile:
        """A file, to be written from its beginning to its end; raises OSError."""
        return self.files.open_output_stream(f"{self.path}/{name}")

    def write_manifest(self, manifest: Manifest) -> None:
        """Make a result of the files: nobody reads one without a manifest, or half of one.

        Args:
            manifest: What they are.
        """
        with self.create(f"{MANIFEST}.part") as file:
            file.write(manifest.to_json().encode())
        self.files.move(f"{self.path}/{MANIFEST}.part", f"{self.path}/{MANIFEST}")

    def delete(self, file: ResultFile) -> None:
        """Delete a file of a result, if it is there."""
        with suppress(FileNotFoundError):
            self.files.delete_file(f"{self.path}/{file.name}")


class Results:
    """The folders of all statements.

    Args:
        location: A path, or a URI such as `s3a://bucket/results`.

    Raises:
        ConfigurationError: No storage is known by it.
    """

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/")
        scheme = urlsplit(self.location).scheme
        try:
            if scheme:
                uri = f"{_SCHEMES.get(scheme, scheme)}{self.location[len(scheme) :]}"
                self._files, self._root = fs.FileSystem.from_uri(uri)
            else:
                self._files, self._root = fs.LocalFileSystem(), self.location
        except (ValueError, OSError) as error:
            raise ConfigurationError(
                ErrorCode.BAD_SETTING,
                f"results_location is {location!r}, where nothing can be kept ({error}): give a "
                "path or a URI that Spark and pyarrow know",
            ) from None

    def check(self) -> None:
        """Write a file there and delete it, as whoever keeps results will.

        Raises:
            ConfigurationError: That is not possible.
        """
        probe = f"{self._root}/.writable-{uuid4().hex}"
        try:
            self._files.create_dir(self._root, recursive=True)
            with self._files.open_output_stream(probe) as file:
                file.write(b"1")
            self._files.delete_file(probe)
        except OSError as error:
            raise ConfigurationError(
                ErrorCode.BAD_SETTING,
                f"results_location is {self.location!r}, where this process cannot write "
                f"({error}): give it the right to, or another place",
            ) from None

    @property
    def is_local(self) -> bool:
        """Whether it is on a disk."""
        return isinstance(self._files, fs.LocalFileSystem)

    def folder(self, statement: str, run: int) -> Folder:
        """The folder of one run of a statement; no two runs have the same.

        Args:
            statement: Its id.
            run: The fencing token of who runs it.
        """
        return Folder(self._files, f"{self._root}/{statement}/{run}")

    def uri(self, statement: str, run: int) -> str:
        """The same, as Spark calls it."""
        place = f"{self.location}/{statement}/{run}"
        return place if urlsplit(self.location).scheme else f"file://{place}"

    def make(self, statement: str, run: int) -> Folder:
        """Make a folder that only this user may enter.

        Args:
            statement: The statement's id.
            run: The fencing token of who runs it.
        """
        folder = self.folder(statement, run)
        self._files.create_dir(folder.path, recursive=True)
        return folder

    def bytes(self, statement: str, run: int) -> int:
        """What one run of a statement has written so far.

        Args:
            statement: Its id.
            run: The fencing token of who runs it.
        """
        selector = fs.FileSelector(self.folder(statement, run).path, allow_not_found=True)
        return sum(info.size or 0 for info in self._files.get_file_info(selector))

    def delete(self, statement: str) -> None:
        """Delete all that was written for a statement, if anything was.

        Args:
            statement: Its id.
        """
        with suppress(FileNotFoundError):
            self._files.delete_dir(f"{self._root}/{statement}")

    def statements(self) -> dict[str, frozenset[int]]:
        """The ids of the statements for which something was written, with the runs of each."""
        selector = fs.FileSelector(self._root, allow_not_found=True)
        ids = [info.base_name for info in self._files.get_file_info(selector) if _is_folder(info)]
        return {each: self._runs(each) for each in ids}

    def _runs(self, statement: str) -> frozenset[int]:
        selector = fs.FileSelector(f"{self._root}/{statement}", allow_not_found=True)
        names = (i.base_name for i in self._files.get_file_info(selector) if _is_folder(i))
        return frozenset(int(name) for name in names if name.isdecimal())

    def delete_run(self, statement: str, run: int) -> None:
        """Delete what one run of a statement has written.

        Args:
            statement: Its id.
            run: The fencing token of who ran it.
        """
        with suppress(FileNotFoundError):
            self._files.delete_dir(self.folder(statement, run).path)


def _is_folder(info: fs.FileInfo) -> bool:
    return bool(info.type == fs.FileType.Directory)
