"""The folder for what a service's Spark writes down for a while: shuffles, blocks, jars, artifacts.

Spark deletes them when it ends in good order. One that was killed cannot, so each process gives its
Spark a folder of its own below Spark's usual place, and deletes those of processes that are gone.
Whether one is gone its locks tell, which end with a process however it ends: one of Python and one
of the JVM, which may outlive it for a while.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from uuid import uuid4

from cachemgr.telemetry import logger

LOCAL_DIR: Final = "spark.local.dir"
_LOCAL_DIRS: Final = "SPARK_LOCAL_DIRS"  # it wins over the setting
_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
_OURS: Final = "relational-cache-spark"
_NEW: Final = "relational-cache-new"
_PYTHON, _JVM = "python.lock", "jvm.lock"


def roots_of(conf: Mapping[str, str]) -> tuple[str, ...]:
    """Where Spark would write: what the user says, or the machine's folder for such files.

    Args:
        conf: The settings that the user gave to the service's Spark.
    """
    said = os.environ.get(_LOCAL_DIRS) or conf.get(LOCAL_DIR) or _default(LOCAL_DIR)
    roots = [root.strip() for root in said.split(",") if root.strip()]
    return tuple(roots) or (tempfile.gettempdir(),)


def _default(key: str) -> str:
    """A setting of Spark's own file of defaults."""
    home = os.environ.get("SPARK_HOME", "")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else "")
    with suppress(OSError):
        text = Path(folder, "spark-defaults.conf").read_text(errors="replace")
        for line in text.splitlines():
            name, _, value = line.strip().replace("=", " ", 1).partition(" ")
            if name == key:
                return value.strip()
    return ""


@dataclass
class Scratch:
    """The folders of one process, one below each root.

    Args:
        folders: The folders.
        locks: The open files whose locks say that this process is there.
    """

    folders: tuple[Path, ...]
    locks: tuple[IO[str], ...]
    held: tuple[Any, ...] = ()

    @contextmanager
    def told(self) -> Iterator[None]:
        """While this lasts, a JVM that is started writes here.

        By the environment and not by settings: the user's own options of the JVM stay as they are,
        and win.
        """
        before = {key: os.environ.get(key) for key in (_LOCAL_DIRS, _OPTIONS)}
        os.environ[_LOCAL_DIRS] = ",".join(map(str, self.folders))
        options = (before[_OPTIONS] or "", f'"-Djava.io.tmpdir={self.folders[0]}"')
        os.environ[_OPTIONS] = " ".join(filter(None, options))
        try:
            yield
        finally:
            for key, value in before.items():
                if value is None:
                    del os.environ[key]
                else:
                    os.environ[key] = value

    def hold(self, jvm: Any) -> None:
        """Let the JVM say that it is there, and clear up after itself where it ends in good order.

        Args:
            jvm: The view of the JVM that was started.
        """
        if self.held:
            return
        held = []
        for folder in self.folders:
            file = jvm.java.io.RandomAccessFile(str(folder / _JVM), "rw")
            held += [file, file.getChannel().lock()]
            # what was named last is deleted first
            for place in (folder, folder / _PYTHON, folder / _JVM):
                jvm.java.io.File(str(place)).deleteOnExit()
        self.held = tuple(held)  # the locks would end with them


def scratch(roots: Sequence[str]) -> Scratch | None:
    """Make the folders of this process.

    Args:
        roots: The folders that they are to lie in.

    Returns:
        The folders; None if one cannot be made: then Spark does as it would without us, and says
        what is wrong.
    """
    folders, locks = [], []
    try:
        for root in roots:
            Path(root).mkdir(parents=True, exist_ok=True)
            # it has its name, by which others look for it, once it is locked
            new = Path(tempfile.mkdtemp(prefix=f"{_NEW}-", dir=root))
            lock = (new / _PYTHON).open("w")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            name = f"{_prefix()}{os.getpid()}-{uuid4().hex[:12]}"
            folders.append(new.rename(Path(root).resolve() / name))
            locks.append(lock)
    except OSError as error:
        logger.warning("Spark's temporary files get no folder of their own: %s", error)
        return None
    return Scratch(tuple(folders), tuple(locks))


def sweep(roots: Sequence[str]) -> int:
    """Delete what processes of ours on this machine left that are gone.

    Args:
        roots: The folders that they wrote in.

    Returns:
        How many folders were deleted.
    """
    deleted = 0
    for root in roots:
        with suppress(OSError):  # a root that is not there yet
            for entry in list(os.scandir(root)):
                if entry.name.startswith(_prefix()) and entry.is_dir(follow_symlinks=False):
                    deleted += _deleted(Path(entry.path))
    if deleted:
        logger.info("deleted what %d dead processes had left of Spark's temporary files", deleted)
    return deleted


def _prefix() -> str:
    # Another machine that shares the folder may not share the locks.
    return f"{_OURS}-{socket.gethostname()}-"


def _deleted(folder: Path) -> bool:
    try:
        if folder.stat().st_uid != os.getuid():
            return False
        with (folder / _PYTHON).open("a") as python, (folder / _JVM).open("a") as jvm:
            fcntl.flock(python, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(jvm, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
    except (BlockingIOError, FileNotFoundError):
        return False  # its process lives, or somebody else deleted it
    except OSError as error:
        logger.warning("%s, which a dead process left, cannot be deleted: %s", folder, error)
        return False
    return True
