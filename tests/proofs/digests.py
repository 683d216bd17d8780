"""Short names for texts."""

from __future__ import annotations

from hashlib import blake2b


def digest(text: str) -> str:
    """A short name for a text that no other one has."""
    return blake2b(text.encode(), digest_size=16).hexdigest()
