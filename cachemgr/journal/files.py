"""The few things that are done to files beside the caches' tables, wherever those are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit


class Files(Protocol):
    """Text files of one storage."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, none if it does not exist."""
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


class LocalFiles:
    """Files of this machine, by path or `file:` URI."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, none if it does not exist."""
        try:
            return sorted(os.listdir(_path(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return []

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


def _path(text: str) -> Path:
    return Path(unquote(urlsplit(text).path)) if text.startswith("file:") else Path(text)
