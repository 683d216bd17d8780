"""What may be asked of the metastore, and all changes to it; each method is one transaction."""

from __future__ import annotations

from cachemgr.metastore.caches import Caches
from cachemgr.metastore.clock import Clock
from cachemgr.metastore.commit_numbers import CommitNumbers
from cachemgr.metastore.decisions import Decisions
from cachemgr.metastore.dump import Dumps
from cachemgr.metastore.grants import Grants
from cachemgr.metastore.idempotency import Idempotency
from cachemgr.metastore.joins import Joins
from cachemgr.metastore.queue import Queue
from cachemgr.metastore.refreshes import Refreshes
from cachemgr.metastore.registry import Registry
from cachemgr.metastore.schedules import Schedules
from cachemgr.metastore.snapshots import Snapshots
from cachemgr.metastore.tables import Tables
from cachemgr.metastore.tokens import Tokens


class Reader(
    Caches,
    Grants,
    Refreshes,
    CommitNumbers,
    Snapshots,
    Queue,
    Schedules,
    Joins,
    Tokens,
    Idempotency,
    Tables,
    Decisions,
    Registry,
    Dumps,
    Clock,
):
    """Questions and changes to the metastore."""
