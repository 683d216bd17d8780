"""What a result is made of: the last file that is written of it, and the first that is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from cachemgr.errors import CacheManagerError, ErrorCode

MANIFEST: Final = "manifest.json"
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result.

    Args:
        name: As the query calls it; not unique, and perhaps empty.
        type: Spark's type, as its JSON has it.
        nullable: Whether it may hold NULL.
    """

    name: str
    type: Any
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A Parquet file of a result.

    Args:
        name: In the result's folder.
        bytes: Its size.
        groups: The rows of each of its row groups.
    """

    name: str
    bytes: int
    groups: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return sum(self.groups)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A result.

    Args:
        columns: Its columns; `c0` in the files is the first.
        files: Its files, in the order of its rows.
        truncated: Whether the query has more rows than were asked for.
        ordered: Whether the query says in which order its rows come.
    """

    columns: tuple[ResultColumn, ...]
    files: tuple[ResultFile, ...]
    truncated: bool = False
    ordered: bool = False

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Size of its files."""
        return sum(file.bytes for file in self.files)

    def to_json(self) -> str:
        """As it is stored.

        >>> made = Manifest((ResultColumn("a", "long"),), (ResultFile("x.parquet", 9, (2, 1)),))
        >>> Manifest.from_json(made.to_json()) == made, made.rows
        (True, 3)
        """
        data = {"version": _VERSION, **asdict(self)}
        return json.dumps(data, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read one that was stored.

        Args:
            text: What `to_json` gave.

        Raises:
            CacheManagerError: It is none (RESULT_DAMAGED), or one of a later release.
        """
        try:
            data = json.loads(text)
            if data["version"] > _VERSION:
                raise _of_a_later_release(data["version"])
            if not data["columns"] or not data["files"]:
                raise ValueError("it names no columns, or no files")
            return cls(
                tuple(_columns(data["columns"])),
                tuple(_files(data["files"])),
                bool(data["truncated"]),
                bool(data["ordered"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(
                f"its manifest cannot be read ({error or type(error).__name__})"
            ) from None


def damaged(why: str) -> CacheManagerError:
    """The error of a result that is not what was written.

    Args:
        why: What is wrong with it.
    """
    return CacheManagerError(
        ErrorCode.RESULT_DAMAGED, f"the result cannot be read: {why}; run the statement again"
    )


def _of_a_later_release(version: int) -> CacheManagerError:
    return CacheManagerError(
        ErrorCode.RESULT_OF_ANOTHER_RELEASE,
        f"the result is of version {version}, which a later release of the service has written, "
        f"and versions up to {_VERSION} are known here; ask a replica of that release, or upgrade "
        "this one",
    )


def _columns(data: list[Mapping[str, Any]]) -> Iterator[ResultColumn]:
    for column in data:
        yield ResultColumn(str(column["name"]), column["type"], bool(column["nullable"]))


def _files(data: list[Mapping[str, Any]]) -> Iterator[ResultFile]:
    for file in data:
        name, groups = str(file["name"]), tuple(int(rows) for rows in file["groups"])
        if "/" in name or name.startswith(".") or min(groups, default=0) < 0:
            raise ValueError(f"the file {name!r} is none of a result's")
        yield ResultFile(name, int(file["bytes"]), groups)
