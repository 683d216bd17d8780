"""The metastore: what caches exist, what they hold, and who is refreshing them.

SQLAlchemy stays inside: what comes out are the frozen records of `records`. It is imported when a
metastore is opened: who only needs the records, as the offline explain does, starts without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cachemgr.metastore.store import Metastore, open_metastore

__all__ = ["Metastore", "open_metastore"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.store"), name)
