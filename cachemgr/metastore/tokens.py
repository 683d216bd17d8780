"""Who may ask the service: bearer tokens."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select, true

from cachemgr.errors import ConfigurationError, ErrorCode, NotFoundError
from cachemgr.metastore.models import TokenRow
from cachemgr.metastore.records import TokenRecord, new_id
from cachemgr.metastore.transactions import Part, database_moment
from cachemgr.roles import Role, check_principal

PREFIX: Final = "cachemgr"


class Tokens(Part):
    """Look tokens up; give them out and revoke them."""

    def all(self) -> tuple[TokenRecord, ...]:
        """All tokens, revoked and expired ones included, oldest first."""
        with self._session() as session:
            rows = session.scalars(select(TokenRow).order_by(TokenRow.created_at, TokenRow.id))
            return tuple(_record(row) for row in rows)

    def has_any(self, role: Role | None = None) -> bool:
        """Whether there is a token that is good now.

        Args:
            role: Only one of this role; None takes any.
        """
        of_role = true() if role is None else TokenRow.role == role.value
        with self._session() as session:
            now = database_moment(session)
            return any(_good(row, now) for row in session.scalars(select(TokenRow).where(of_role)))

    def had_any(self) -> bool:
        """Whether there ever was a token: to revoke the last one must not let everybody in."""
        with self._session() as session:
            return session.scalar(select(TokenRow.id).limit(1)) is not None

    def bearer(self, token: str) -> TokenRecord | None:
        """Whose token this is.

        Args:
            token: As `create` gave it out.

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

    def create(
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

    def revoke(self, token_id: str) -> TokenRecord:
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


def _digest(secret: str) -> str:
    # 192 random bits need no slow hash: there is nothing to guess
    return hashlib.sha256(secret.encode()).hexdigest()


def _good(row: TokenRow, now: datetime) -> bool:
    return row.revoked_at is None and (row.expires_at is None or row.expires_at > now)


def _record(row: TokenRow) -> TokenRecord:
    return TokenRecord(
        row.id, row.principal, Role(row.role), row.created_at, row.expires_at, row.revoked_at
    )
