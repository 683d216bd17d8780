"""The metastore: what caches exist, what they hold, and who is refreshing them.

SQLAlchemy stays inside: what comes out are the frozen records of `records`.
"""

from __future__ import annotations

from cachemgr.metastore.reader import Reader
from cachemgr.metastore.store import Metastore, open_metastore
from cachemgr.metastore.writer import Writer

__all__ = ["Metastore", "Reader", "Writer", "open_metastore"]
