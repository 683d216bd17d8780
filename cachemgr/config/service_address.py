"""What may stand for the URL of a service, and for a token of it: asked before the network is. And
what an answer that is no success says."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from cachemgr.errors import CacheManagerError, ConfigurationError, ErrorCode


def is_service_url(url: str) -> bool:
    """True for http(s)://host[:port][/path], with no user, query or fragment in it.

    >>> is_service_url("http://cachemgr:8470"), is_service_url("http://cachemgr:99999")
    (True, False)
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    more = parts.username or parts.password or parts.query or parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and not more


def checked_service_url(url: str) -> str:
    """`url` if a service can be at it.

    Args:
        url: As somebody gave it.

    Raises:
        ConfigurationError: It is no such URL.
    """
    if not is_service_url(url):
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"{url!r} is not a service URL: expected e.g. http://host:8470",
        )
    return url


def checked_token(text: str, where: str) -> str:
    """`text` if it can be sent in a header: visible ASCII characters, or none at all.

    Args:
        text: What is given as a token.
        where: Where it was given, for the error.

    Raises:
        ConfigurationError: It is no token.
    """
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise ConfigurationError(
            ErrorCode.BAD_SETTING, f"{where} holds no token: copy it once more"
        )
    return text


def error_told(
    content: bytes, status: int, server: str | None, *, check: str = "the URL"
) -> CacheManagerError:
    """The error that a service tells in the body of an answer.

    Args:
        content: The body.
        status: The answer's status.
        server: Who answered.
        check: What to check where nobody of ours did.

    >>> error_told(b'{"error": {"type": "A", "message": "b"}}', 404, "http://host").code
    'A'
    >>> error_told(b"<html>", 404, "http://host").code
    'NOT_THE_SERVICE'
    """
    try:
        error = json.loads(content)["error"]
        return CacheManagerError(str(error["type"]), str(error["message"]))
    except (ValueError, KeyError, TypeError):
        return CacheManagerError(
            ErrorCode.NOT_THE_SERVICE,
            f"{server} answered {status}, and not as cachemgr does: check {check}",
        )
