"""Small worlds as earlier releases left them: a metastore of each revision, with the tables and the
caches that it tells of, made by the code of a commit at which that revision was the newest; the
same by the commits of `RELEASES`; and one with all stored forms, `9e095e5`, made by that commit's.
`make_upgraded.py` makes them.

`upgrades/….zip` holds `metastore.sql`, which is the SQLite dump, `files/`, the folders beside it,
and `times.json`: when each file was written, which Delta takes for the time of a commit. `@ROOT@`
stands for the folder, `@USER@` for who runs Spark. No commit had 0010 as its newest revision: that
one was made at 0011 and brought down by the migration of that commit.

The fingerprint of what a cache stores goes over the places of its tables as well, so that a refresh
of a world that was moved would compute everything. Where `root` says in which folder a world was
made, a fingerprint that is this release's too is replaced by that of the folder it is in now.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zipfile
from pathlib import Path
from typing import Final

from cachemgr.refresh.fingerprint import spec_hash
from matcher.model.codec import decode_plan

_FOLDER: Final = Path(__file__).parent / "upgrades"
REVISIONS: Final = tuple(sorted(path.stem for path in _FOLDER.glob("0*.zip")))
# What was in use, and the revision that it had.
RELEASES: Final = {"72b7acd": "0011", "966cf99": "0011"}
ALL_FORMS: Final = "9e095e5"


def make(name: str, root: Path, user: str) -> str:
    """Make a world.

    Args:
        name: Its metastore's revision, one of `RELEASES`, or `ALL_FORMS`.
        root: The folder; `tables` and `caches` are made in it.
        user: Who runs Spark.

    Returns:
        The metastore's URL.
    """
    stands = {"@ROOT@": str(root), "@USER@": user}

    def told(content: bytes) -> bytes:
        for word, text in stands.items():
            content = content.replace(word.encode(), text.encode())
        return content

    with zipfile.ZipFile(_FOLDER / f"{name}.zip") as world:
        if "root" in world.namelist():
            then = world.read("root").decode()
            stands |= _moved(world.read("metastore.sql").decode(), then, str(root))
        with sqlite3.connect(root / "metastore.db") as connection:
            connection.executescript(told(world.read("metastore.sql")).decode())
        connection.close()
        for entry, when in json.loads(world.read("times.json")).items():
            if not entry.startswith("files/"):
                continue
            path, content = root / entry.removeprefix("files/"), world.read(entry)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if path.suffix == ".parquet" else told(content))
            os.utime(path, ns=(when, when))
    return f"sqlite:///{root / 'metastore.db'}"


def _moved(dump: str, then: str, now: str) -> dict[str, str]:
    """Fingerprint by fingerprint what the caches store, in the one folder and in the other."""
    with sqlite3.connect(":memory:") as connection:
        connection.executescript(dump)
        rows = connection.execute("SELECT plan, settings, partition_by, cluster_by FROM caches")
        found = rows.fetchall()
    connection.close()

    def fingerprint(row: tuple[str, ...], root: str) -> str:
        plan, *others = (json.loads(text.replace("@ROOT@", root)) for text in row)
        return spec_hash(decode_plan(plan), *others)

    return {fingerprint(row, then): fingerprint(row, now) for row in found}
