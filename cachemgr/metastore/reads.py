"""What the readers of the metastore share: a transaction that sees one moment and cannot write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Engine
from sqlalchemy.orm import Session

from cachemgr.metastore.engine import reading, translated


class Reads:
    """Opens transactions that read; made by `open_metastore`."""

    def __init__(self, engine: Engine, url: URL) -> None:
        self._engine = reading(engine)
        self._url = url

    @contextmanager
    def _session(self) -> Iterator[Session]:
        with translated(self._url), Session(self._engine) as session, session.begin():
            yield session
