"""The few things that are done to files beside the caches' tables, wherever those are."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One entry of a folder.

    Args:
        is_folder: Whether it is a folder; its size then says nothing.
        size: Bytes.
        modified_ms: When it was last written, in milliseconds since 1970.
    """

    is_folder: bool
    size: int
    modified_ms: int


class Files(Protocol):
    """Text files of one storage."""

    def listing(self, folder: str) -> Mapping[str, FileInfo]:
        """What is in a folder, by name; nothing if it does not exist."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names in a folder, none if it does not exist."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        ...

    def read(self, path: str) -> str | None:
        """A file's text; None if it does not exist."""
        ...

    def write(self, path: str, text: str) -> None:
        """Write a file with the folders above it: whole, or not at all."""
        ...

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        ...

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all that is in it, if it exists."""
        ...


class LocalFiles:
    """Files of this machine, by path or `file:` URI."""

    def listing(self, folder: str) -> Mapping[str, FileInfo]:
        """What is in a folder, by name; nothing if it does not exist."""
        found = {}
        try:
            with os.scandir(_path(folder)) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # deleted meanwhile
                        seen = entry.stat()
                        found[entry.name] = FileInfo(
                            entry.is_dir(), seen.st_size, seen.st_mtime_ns // 1_000_000
                        )
        except (FileNotFoundError, NotADirectoryError):
            return {}
        return found

    def names(self, folder: str) -> list[str]:
        """The names in a folder, none if it does not exist."""
        try:
            return sorted(os.listdir(_path(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        try:
            os.stat(_path(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def read(self, path: str) -> str | None:
        """A file's text; None if it does not exist."""
        try:
            return _path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        """Write a file with the folders above it: whole, or not at all."""
        target = _path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        _path(path).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all that is in it, if it exists; others may do so meanwhile."""

        def failed(_function: object, _path: str, raised: Any) -> None:
            if not isinstance(raised[1], FileNotFoundError):
                raise raised[1]

        shutil.rmtree(_path(folder), onerror=failed)


def is_folder(place: str) -> bool:
    """Whether there is a folder at a place of this machine.

    Args:
        place: A path or a `file:` URI.
    """
    return _path(place).is_dir()


def why_no_folder(place: str) -> str:
    """Why no folder can be made at a place of this machine; empty if one can, or is there.

    Args:
        place: A path or a `file:` URI; nothing stays there.
    """
    folder = _path(place)
    try:
        there = next(f for f in (folder, *folder.parents) if os.path.lexists(f))
        # what it may do, the system alone knows: /proc says that it can be written to
        os.rmdir(tempfile.mkdtemp(prefix=".relational-cache-", dir=there))
    except OSError as error:
        return f"{error.strerror or error}: {there}"
    return ""


def root_of(location: str) -> str:
    """A table's place as `Files` takes it with any name below: a URI would be unescaped."""
    return str(_path(location)) if location.startswith("file:") else location


def under(root: str, path: str) -> str:
    """A file of a Delta table.

    Args:
        root: What `root_of` gives.
        path: The file as the table's log spells it: relative, and escaped as in a URI.
    """
    return f"{root}/{unquote(path)}"


def _path(text: str) -> Path:
    return Path(unquote(urlsplit(text).path)) if text.startswith("file:") else Path(text)
