"""Roles of the bearers of tokens."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What the bearer of a token may do; each may do what those before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, needed: Role) -> bool:
        """Whether this role may do what `needed` may."""
        order = list(Role)
        return order.index(self) >= order.index(needed)
