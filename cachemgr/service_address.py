"""What may stand for the URL of a service, and for a token of it: asked before the network is."""

from __future__ import annotations

from urllib.parse import urlsplit


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


def may_be_token(text: str) -> bool:
    """True for what can be sent in a header: visible ASCII characters."""
    return text.isascii() and text.isprintable() and " " not in text
