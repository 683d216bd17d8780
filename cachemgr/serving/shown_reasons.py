"""What the decision log says, as one principal may be shown it: counts and values that tell of a
cache's rows are for those who may be answered from it, whatever their role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from cachemgr.access.redaction import Discretion, without_secrets
from cachemgr.metastore.logged_reasons import message_of_reason, shown_reason
from cachemgr.metastore.records import CacheRecord, DecisionRecord
from cachemgr.metastore.store import Metastore
from cachemgr.serving.served_cache import matcher_name
from matcher.model.message import CacheName, Message, is_literal, names_in, tells


class ShownReasons:
    """Logged reasons for one reader, as the metastore stands when this is made.

    Args:
        metastore: Where caches, grants and restricted tables are.
        principal: Who reads them.
    """

    def __init__(self, metastore: Metastore, principal: str) -> None:
        self._metastore = metastore
        self._discretion = Discretion(metastore, principal)
        self._known: dict[str, bool] = {}

    def decision(self, decision: DecisionRecord) -> DecisionRecord:
        """A decision with its reasons as they are shown."""
        return replace(decision, reasons=tuple(map(self.reason, decision.reasons)))

    def reason(self, reason: Mapping[str, Any]) -> dict[str, Any]:
        """A reason as it is shown.

        Args:
            reason: As it is stored.
        """
        message = message_of_reason(reason)
        if not self._may_see(message):
            message = without_secrets(message)
        return shown_reason(reason, message)

    def _may_see(self, message: Message) -> bool:
        if not tells(message):
            return True
        named = names_in(message, CacheName)
        if is_literal(message) or not named:
            return all(map(self._may_know, self._caches))  # of whichever cache it speaks
        return all(map(self._may_know, named))

    def _may_know(self, name: str) -> bool:
        lower = name.lower()
        if lower not in self._known:
            caches = self._caches.get(lower, ())
            self._known[lower] = bool(caches) and all(map(self._discretion.may_know, caches))
        return self._known[lower]

    @cached_property
    def _caches(self) -> Mapping[str, list[CacheRecord]]:
        """The caches by their names in lower case; several where one was dropped."""
        found: dict[str, list[CacheRecord]] = {}
        for cache in self._metastore.caches.all(include_dropped=True):
            found.setdefault(matcher_name(cache).lower(), []).append(cache)
        return found
