"""Small worlds as earlier releases left them: a metastore of each revision, with the tables and the
caches that it tells of, made by the code of a commit at which that revision was the newest.

`upgrades/r….sql` is the SQLite dump, `upgrades/r….files.json` the folders beside it: of each file
its text or its bytes, and when it was written, which Delta takes for the time of a commit. `@ROOT@`
stands for the folder, `@USER@` for who runs Spark. No commit had 0010 as its newest revision: that
one was made at 0011 and brought down by the migration of that commit.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "upgrades"
REVISIONS: Final = tuple(sorted(path.stem.removeprefix("r") for path in _FOLDER.glob("r*.sql")))


def make(revision: str, root: Path, user: str) -> str:
    """Make a world.

    Args:
        revision: Of the metastore.
        root: The folder; `tables` and `caches` are made in it.
        user: Who runs Spark.

    Returns:
        The metastore's URL.
    """
    text = (_FOLDER / f"r{revision}.sql").read_text()
    with sqlite3.connect(root / "metastore.db") as connection:
        connection.executescript(text.replace("@ROOT@", str(root)).replace("@USER@", user))
    connection.close()
    files = json.loads((_FOLDER / f"r{revision}.files.json").read_text())
    for name, told in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if "text" in told:
            path.write_text(told["text"].replace("@ROOT@", str(root)))
        else:
            path.write_bytes(base64.b64decode(told["base64"]))
        os.utime(path, ns=(told["mtime_ns"], told["mtime_ns"]))
    return f"sqlite:///{root / 'metastore.db'}"
