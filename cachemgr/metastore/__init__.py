"""The metastore: what caches exist, what they hold, and who is refreshing them.

SQLAlchemy stays inside: what comes out are the frozen records of `records`. It is imported when a
metastore is opened: who only needs the records, as the offline explain does, starts without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cachemgr.metastore.reader import Reader
    from cachemgr.metastore.store import Metastore, open_metastore
    from cachemgr.metastore.writer import Writer

__all__ = ["Metastore", "Reader", "Writer", "open_metastore"]


def __getattr__(name: str) -> Any:
    if name == "Reader":
        from cachemgr.metastore.reader import Reader

        return Reader
    if name == "Writer":
        from cachemgr.metastore.writer import Writer

        return Writer
    if name in ("Metastore", "open_metastore"):
        from cachemgr.metastore import store

        return getattr(store, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
