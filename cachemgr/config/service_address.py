"""What may stand for the URL of a service, and for a token of it: asked before the network is."""

from __future__ import annotations

from urllib.parse import urlsplit

from cachemgr.errors import ConfigurationError, ErrorCode


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
