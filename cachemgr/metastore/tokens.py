"""Who may ask the service: bearer tokens; and what repeated requests are answered with."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete, select, true, update
from sqlalchemy.exc import IntegrityError

from cachemgr.errors import ConfigurationError, ErrorCode, NotFoundError
from cachemgr.metastore.models import IdempotencyRow, TokenRow
from cachemgr.metastore.records import Repeated, TokenRecord, new_id
from cachemgr.metastore.transactions import Part, database_moment
from cachemgr.roles import Role, check_principal

PREFIX: Final = "cachemgr"
KEY_HOURS: Final = 24
# Who carries a request out says so all the while; one that nobody did for so long was cut off.
KEY_ABANDONED_SECONDS: Final = 30


class AccessReads(Part):
    """Look tokens up."""

    def tokens(self) -> tuple[TokenRecord, ...]:
        """All tokens, revoked and expired ones included, oldest first."""
        with self._session() as session:
            rows = session.scalars(select(TokenRow).order_by(TokenRow.created_at, TokenRow.id))
            return tuple(_record(row) for row in rows)

    def has_tokens(self, role: Role | None = None) -> bool:
        """Whether there is a token that is good now.

        Args:
            role: Only one of this role; None takes any.
        """
        of_role = true() if role is None else TokenRow.role == role.value
        with self._session() as session:
            now = database_moment(session)
            return any(_good(row, now) for row in session.scalars(select(TokenRow).where(of_role)))

    def had_tokens(self) -> bool:
        """Whether there ever was a token: to revoke the last one must not let everybody in."""
        with self._session() as session:
            return session.scalar(select(TokenRow.id).limit(1)) is not None

    def bearer(self, token: str) -> TokenRecord | None:
        """Whose token this is.

        Args:
            token: As `create_token` gave it out.

        Returns:
            The token; None if it is unknown, expired or revoked.
        """
        parts = token.split("_")
        if len(parts) != 3 or parts[0] != PREFIX:
            return None
        with self._session() as session:
            row = session.get(TokenRow, parts[1])
            if row is None or not hmac.compare_digest(row.digest, _digest(parts[2])):
                return None
            return _record(row) if _good(row, database_moment(session)) else None


class AccessWrites(Part):
    """Give out and revoke tokens; remember answers."""

    def create_token(
        self, principal: str, role: Role, *, expires_in: timedelta | None = None
    ) -> tuple[TokenRecord, str]:
        """Give out a token.

        Args:
            principal: Whom it stands for.
            role: What it allows.
            expires_in: How long it is good; None for ever.

        Returns:
            The record, and the token itself, which nobody can find out later.

        Raises:
            ConfigurationError: The principal is empty, or the time is not positive.
        """
        name = check_principal(principal)
        if expires_in is not None and expires_in <= timedelta(0):
            raise ConfigurationError(ErrorCode.BAD_EXPIRY, "a token that has expired serves nobody")
        secret = secrets.token_hex(24)
        with self._transaction() as session:
            now = self._moment(session, None)
            row = TokenRow(
                id=new_id(),
                principal=name,
                role=role.value,
                digest=_digest(secret),
                created_at=now,
                expires_at=None if expires_in is None else now + expires_in,
            )
            session.add(row)
            session.flush()
            return _record(row), f"{PREFIX}_{row.id}_{secret}"

    def revoke_token(self, token_id: str) -> TokenRecord:
        """Make a token void from now on.

        Args:
            token_id: Its id.

        Returns:
            The token; one that was revoked already stays as it was.

        Raises:
            NotFoundError: There is none of that id.
        """
        with self._transaction() as session:
            row = session.get(TokenRow, token_id, with_for_update=True)
            if row is None:
                raise NotFoundError(
                    ErrorCode.TOKEN_NOT_FOUND,
                    f"there is no token {token_id}: cachemgr token list shows those that exist",
                )
            row.revoked_at = row.revoked_at or self._moment(session, None)
            session.flush()
            return _record(row)

    def begin_request(self, principal: str, key: str, request: str) -> Repeated:
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

    def keep_request(self, principal: str, key: str) -> None:
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

    def end_request(
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


def _digest(secret: str) -> str:
    # 192 random bits need no slow hash: there is nothing to guess
    return hashlib.sha256(secret.encode()).hexdigest()


def _good(row: TokenRow, now: datetime) -> bool:
    return row.revoked_at is None and (row.expires_at is None or row.expires_at > now)


def _record(row: TokenRow) -> TokenRecord:
    return TokenRecord(
        row.id, row.principal, Role(row.role), row.created_at, row.expires_at, row.revoked_at
    )
