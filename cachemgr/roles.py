"""Roles of the bearers of tokens, and how principals are spelled."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from cachemgr.errors import ConfigurationError, ErrorCode

MAX_PRINCIPAL: Final = 256


class Role(StrEnum):
    """What the bearer of a token may do; each may do what those before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, needed: Role) -> bool:
        """Whether this role may do what `needed` may."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


def check_principal(name: str) -> str:
    """A principal's name as it is stored, without spaces around it.

    Args:
        name: As somebody gave it.

    Raises:
        ConfigurationError: It is empty, or could look like something else in logs and lists.
    """
    found = name.strip()
    if not found or len(found) > MAX_PRINCIPAL or not found.isprintable():
        raise ConfigurationError(
            ErrorCode.BAD_PRINCIPAL,
            f"a principal has 1 to {MAX_PRINCIPAL} printable characters: name one",
        )
    return found
