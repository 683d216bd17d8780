"""Who on the machine can read a SQLite metastore: its owner, and a group that a setting names.

The file holds definitions, grants, hashes of tokens and constants of users' queries. SQLite makes
its journal files (`-wal`, `-shm`, `-journal`) with the permissions of the database, so it is enough
to make that file private before SQLite opens it, and to look after those that are there already.

What is found wider is tightened, and said so once: others lose every right, and the group a right
to read alone, which an ordinary umask leaves behind. A group that may read and write stays, since
another process's setting may have let it in. `cachemgr doctor` says who could read it.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import URL

from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.telemetry import logger

_PRIVATE: Final = 0o600
_SHARED: Final = 0o660
_BESIDE: Final = ("", "-wal", "-shm", "-journal", ".process")
_warned: set[str] = set()


@dataclass(frozen=True)
class Readers:
    """Who can read a file, besides root.

    Args:
        owner: Its owner.
        group: The group that can; empty if it cannot.
        everybody: Whether everybody on the machine can.
        mode: The permissions as `ls` shows them.
    """

    owner: str
    group: str
    everybody: bool
    mode: str


def make_private(url: URL, group: str | None = None, *, create: bool) -> None:
    """Let nobody but the owner, and a named group, read a SQLite metastore.

    Args:
        url: The metastore's; another database is left to its own rights.
        group: Whose members share it; None for nobody.
        create: Whether a file that is missing is made.

    Raises:
        ConfigurationError: There is no such group, or this user may not hand files to it.
    """
    if url.get_backend_name() != "sqlite":
        return
    path = Path(str(url.database))
    number = _number_of(group)
    if create and not path.exists():
        _make(path)
    for beside in _BESIDE:
        with suppress(FileNotFoundError):
            before = _tighten(Path(f"{path}{beside}"), number, group)
            if before is not None and not beside:
                now = stat.filemode(path.stat().st_mode)
                _say(f"{path} could be read by others on this machine ({before}): it is {now} now")


def readers_of(path: Path) -> Readers:
    """Who can read a file, as its permissions and those of its folders say.

    Args:
        path: The file.

    Raises:
        OSError: It cannot be looked at.
    """
    found = path.stat()
    reach = [folder.stat().st_mode for folder in path.absolute().parents]
    everybody = bool(found.st_mode & stat.S_IROTH) and all(mode & stat.S_IXOTH for mode in reach)
    by_group = bool(found.st_mode & stat.S_IRGRP)
    return Readers(
        _user(found.st_uid),
        _group(found.st_gid) if by_group else "",
        everybody,
        stat.filemode(found.st_mode),
    )


def is_alone_in(group: str, owner: str) -> bool:
    """Whether a group has no other member than a user, as the group of his own name has.

    Args:
        group: The group's name.
        owner: The user's.
    """
    try:
        found = grp.getgrnam(group)
    except KeyError:
        return False
    others = {user.pw_name for user in pwd.getpwall() if user.pw_gid == found.gr_gid}
    return (others | set(found.gr_mem)) <= {owner}


def _make(path: Path) -> None:
    """Make the file without ever opening it: SQLite's locks on a file that another thread has
    opened meanwhile would be lost with the descriptor (https://sqlite.org/howtocorrupt.html)."""
    with suppress(FileExistsError):
        try:
            os.mknod(path, _PRIVATE | stat.S_IFREG)
        except PermissionError:
            if not os.access(path.parent, os.W_OK):
                return  # SQLite says so
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))
        except FileExistsError:
            raise
        except OSError:
            return


def _tighten(path: Path, group: int | None, name: str | None) -> str | None:
    """Take away what is too wide; the permissions before, where they were."""
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    if group is not None:
        wanted = _SHARED
    else:
        shared = mode & stat.S_IRGRP and mode & stat.S_IWGRP
        wanted = mode & (_SHARED if shared else _PRIVATE)
    is_other_group = group is not None and found.st_gid != group
    if wanted == mode and not is_other_group:
        return None
    try:
        if is_other_group:
            os.chown(path, -1, group or -1)
        os.chmod(path, wanted)
    except OSError as error:
        _say_it_stays(path, mode, name, error)
        return None
    return stat.filemode(found.st_mode) if mode & ~wanted else None


def _say_it_stays(path: Path, mode: int, group: str | None, error: OSError) -> None:
    if group and os.geteuid() == path.stat().st_uid:
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"{path} cannot be given to the group {group} ({error.strerror}): let sqlite_group "
            "name a group that this user is a member of",
        )
    if mode & stat.S_IRWXO:
        _say(
            f"{path} can be read by everybody on this machine, and this user may not change that: "
            f"let its owner, {_user(path.stat().st_uid)}, run `chmod o-rwx {path}`"
        )


def _say(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        logger.warning("%s", text)


def _number_of(group: str | None) -> int | None:
    if not group:
        return None
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"sqlite_group is {group!r}, and this machine has no such group: correct or unset it",
        ) from None


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
