"""What repeated requests to the service are answered with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import delete, update
from sqlalchemy.exc import IntegrityError

from cachemgr.metastore.models import IdempotencyRow
from cachemgr.metastore.records import Repeated
from cachemgr.metastore.transactions import Part

KEY_HOURS: Final = 24

# Who carries a request out says so all the while; one that nobody did for so long was cut off.
KEY_ABANDONED_SECONDS: Final = 30


class Idempotency(Part):
    """Remember which requests are carried out, and the answers of those that were."""

    def begin(self, principal: str, key: str, request: str) -> Repeated:
        """Note that a request is being carried out, unless it was before.

        Args:
            principal: Who sends it.
            key: The key under which it may be repeated.
            request: A digest of what is asked.

        Returns:
            What is known under the key.
        """
        with self._transaction() as session:
            now = self._moment(session, None)
            session.execute(
                delete(IdempotencyRow).where(
                    IdempotencyRow.created_at < now - timedelta(hours=KEY_HOURS)
                )
            )
            found = session.get(IdempotencyRow, (principal, key), with_for_update=True)
            if found is not None and found.status is None and found.request == request:
                if found.created_at < now - timedelta(seconds=KEY_ABANDONED_SECONDS):
                    found.created_at = now
                    return Repeated(True, again=True)
            if found is not None:
                return Repeated(False, found.request == request, found.status, found.body)
            try:
                with session.begin_nested():
                    session.add(
                        IdempotencyRow(
                            principal=principal, key=key, request=request, created_at=now
                        )
                    )
            except IntegrityError:  # another replica was quicker
                return Repeated(False)
            return Repeated(True)

    def keep(self, principal: str, key: str) -> None:
        """Say that a request is still being carried out.

        Args:
            principal: Who sent it.
            key: Its key.
        """
        with self._transaction() as session:
            session.execute(
                update(IdempotencyRow)
                .where(
                    IdempotencyRow.principal == principal,
                    IdempotencyRow.key == key,
                    IdempotencyRow.status.is_(None),
                )
                .values(created_at=self._moment(session, None))
            )

    def end(
        self, principal: str, key: str, status: int | None, body: Mapping[str, Any] | None
    ) -> None:
        """Remember the answer of a request.

        Args:
            principal: Who sent it.
            key: Its key.
            status: The answer's status; None forgets the key, so that it may be tried again.
            body: The answer's body.
        """
        mine = (IdempotencyRow.principal == principal, IdempotencyRow.key == key)
        with self._transaction() as session:
            if status is None:
                session.execute(delete(IdempotencyRow).where(*mine))
                return
            session.execute(
                update(IdempotencyRow)
                .where(*mine)
                .values(status=status, body=None if body is None else dict(body))
            )
