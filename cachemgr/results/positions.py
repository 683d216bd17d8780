"""Where a page of a result begins, as text that nobody else can use or make.

A token is signed with a secret of its statement, which the metastore keeps and nobody is shown, so
that every replica reads it and no principal can read on in another's result.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final

from cachemgr.errors import CacheManagerError, ErrorCode

_PLACE: Final = re.compile(r"(\d{1,9})\.(\d{1,9})\.(\d{1,18})")
_SIGNATURE_BYTES: Final = 16


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A row of a result.

    Args:
        file: The number of its file.
        group: The number of its row group in that file.
        row: Its number in that row group.
    """

    file: int = 0
    group: int = 0
    row: int = 0


FIRST: Final = Position()


@dataclass(frozen=True, slots=True)
class Signer:
    """Writes and reads the tokens of one principal for one statement.

    Args:
        statement: The statement's id.
        principal: Who reads.
        secret: The statement's.
    """

    statement: str
    principal: str
    secret: str

    def token(self, position: Position) -> str:
        """The token of a position.

        >>> ann = Signer("s1", "ann", "secret")
        >>> ann.position(ann.token(Position(1, 2, 3)))
        Position(file=1, group=2, row=3)
        """
        place = f"{position.file}.{position.group}.{position.row}"
        return base64.urlsafe_b64encode(self._signed(place) + place.encode()).decode().rstrip("=")

    def position(self, token: str) -> Position:
        """What a token says.

        Args:
            token: As `token` gave it.

        Raises:
            CacheManagerError: It is none, or one of another statement or principal.
        """
        try:
            data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            place = data[_SIGNATURE_BYTES:].decode("ascii")
        except (ValueError, binascii.Error):
            raise _bad_token() from None
        found = _PLACE.fullmatch(place)
        if found is None or not hmac.compare_digest(data[:_SIGNATURE_BYTES], self._signed(place)):
            raise _bad_token()
        return Position(*map(int, found.groups()))

    def _signed(self, place: str) -> bytes:
        # lengths first, so that no two things that are signed read alike
        parts = (self.statement.encode(), self.principal.encode(), place.encode())
        text = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.new(self.secret.encode(), text, hashlib.sha256).digest()[:_SIGNATURE_BYTES]


def _bad_token() -> CacheManagerError:
    return CacheManagerError(
        ErrorCode.PAGE_TOKEN,
        "the pageToken is none of this statement's for you: begin again without one",
    )
