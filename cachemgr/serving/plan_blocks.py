"""A query's plan, as Spark gives it to the hook, as the blocks that caches may answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cachemgr.serving.decision import Hit
from matcher.catalyst.reader import LocatedBlock
from matcher.catalyst.templates import PlanDocument


class PlanBlocks:
    """See `cachemgr.serving.decide.QueryBlocks`.

    Args:
        document: The plan.
    """

    def __init__(self, document: PlanDocument) -> None:
        self.document = document

    def visit(self, visit: Callable[[LocatedBlock], bool], *, tails: bool) -> None:
        """See `QueryBlocks`."""
        self.document.walk(visit, tails=tails)

    def tables_outside(self, hits: Sequence[Hit]) -> frozenset[str]:
        """See `QueryBlocks`."""
        return self.document.tables_outside({hit.path for hit in hits})
