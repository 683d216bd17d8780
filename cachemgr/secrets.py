"""Passwords and tokens: masked in all that is shown or logged, refused where they would be kept.

A cache's definition, place and properties are shown to every viewer and stand in each export, so a
key to the storage has no place there: it belongs into the Spark application's own settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cachemgr.errors import ConfigurationError, ErrorCode

_MASKS: Final = (
    # a URL's password: postgresql://ann:secret@db/x
    (re.compile(r"(://[^/\s:@'\"]*:)[^\s'\"]+@"), r"\1***@"),
    # the same as a parameter, or a signature of object storage
    (re.compile(r"(?i)([?&;](?:password|sslpassword|sig|token|x-amz-[a-z-]+)=)[^&;\s'\"]+"),
     r"\1***"),
    # a token of the service, which begins with its id
    (re.compile(r"\b(cachemgr_[0-9a-f]+_)[0-9a-f]+"), r"\1***"),
    (re.compile(r"(?i)\b(bearer\s+)[a-z0-9._~+/=-]{8,}"), r"\1***"),
)  # fmt: skip
_SECRET_KEY: Final = re.compile(
    r"(?i)secret|passw|credential|access[._-]?key|account[._-]?key|auth[._-]?token|sas[._-]?token"
)


def masked(text: str) -> str:
    """The text without passwords and tokens.

    >>> masked("postgresql://ann:secret@db/x?sslpassword=y")
    'postgresql://ann:***@db/x?sslpassword=***'
    """
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return text


def refuse_secrets(cache: str, texts: Mapping[str, str], properties: Mapping[str, str]) -> None:
    """Refuse a cache that would show a key to the storage to everybody.

    Args:
        cache: Its name.
        texts: Its place and its SELECT, each with what it is called.
        properties: Its TBLPROPERTIES.

    Raises:
        ConfigurationError: Names the place, not the secret.
    """
    held = next((what for what, text in texts.items() if masked(text) != text), None)
    if held is None:
        held = next(
            (
                f"TBLPROPERTIES ('{key}')"
                for key, value in properties.items()
                if _SECRET_KEY.search(key) or masked(value) != value
            ),
            None,
        )
    if held is not None:
        raise ConfigurationError(
            ErrorCode.SECRET_IN_DEFINITION,
            f"cache {cache}: {held} holds what looks like a password or key, and everybody can "
            "read a cache's definition: give keys to the storage as settings of the Spark "
            "application (spark.hadoop.…), and leave them out here",
        )
