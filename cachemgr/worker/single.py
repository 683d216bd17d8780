"""One process at a time on a SQLite metastore: its writers would wait for each other, and its
leases are timed by one machine's clock."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cachemgr.errors import ErrorCode, MetastoreError
from cachemgr.metastore.database import metastore_url


@contextmanager
def sole_process(url: str, what: str = "process") -> Iterator[None]:
    """Hold a SQLite metastore for this process; PostgreSQL takes any number.

    Args:
        url: The metastore's URL.
        what: The kind of process: one of each. Statements run in one beside the service's.

    Raises:
        MetastoreError: Another service or worker holds it.
    """
    parsed = metastore_url(url)
    if parsed.get_backend_name() != "sqlite":
        yield
        return
    path = Path(f"{parsed.database}.{what}")
    # as private as the database; `metastore.file_access` lets a group in
    with open(path, "a+", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise MetastoreError(
                ErrorCode.METASTORE_TAKEN,
                f"{holder} serves the metastore {parsed.database} already, and SQLite takes one "
                "such process: stop it, or use a PostgreSQL metastore for several",
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}")
        file.flush()
        yield
