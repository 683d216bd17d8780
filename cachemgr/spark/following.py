"""What a session follows, by its settings: a metastore, or the service."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from cachemgr.errors import ConfigurationError
from cachemgr.metastore import open_metastore
from cachemgr.settings import PREFIX, Settings
from cachemgr.spark.sources import MetastoreSource, Source

_TOKEN_VARIABLE = "CACHEMGR_TOKEN"


def source_of(settings: Settings, explicit: Mapping[str, str]) -> Source:
    """The source that a session's settings name.

    Args:
        settings: The settings.
        explicit: Those that were set, by key.

    Raises:
        ConfigurationError: They contradict each other, or name no service.
        MetastoreError: The metastore cannot be opened; says what to do.
    """
    if not settings.url:
        return MetastoreSource(open_metastore(settings.metastore_url))
    if PREFIX + "metastore.url" in explicit:
        raise ConfigurationError(
            "BAD_SETTING",
            f"{PREFIX}url and {PREFIX}metastore.url are both set: a session follows the service or "
            "a metastore, unset one",
        )
    from cachemgr.spark.remote import ServiceSource  # the network's libraries are for these alone

    urls = [_checked(url) for url in settings.url.split(",") if url.strip()]
    file = str(Path(settings.token_file).absolute()) if settings.token_file else ""
    return ServiceSource(urls, token_of(settings), settings.max_outage_seconds, token_file=file)


def token_of(settings: Settings) -> Callable[[], str]:
    """Where a session's token comes from: the setting, the file, or the environment.

    Args:
        settings: The settings.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    if settings.token_file:
        file = Path(settings.token_file)
        _read(file)
        return lambda: _read(file)
    token = settings.token or os.environ.get(_TOKEN_VARIABLE, "").strip()
    return lambda: token


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            "BAD_SETTING",
            f"{PREFIX}tokenFile names {file}, which cannot be read ({error}): correct it",
        ) from error


def _checked(url: str) -> str:
    if not _is_service(url.strip()):
        raise ConfigurationError(
            "BAD_SETTING",
            f"{PREFIX}url has a part that is no URL of a service: write http://host:8470, replicas "
            "after commas, and the token in its own setting",
        )
    return url.strip()


def _is_service(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    secret = parts.username or parts.password or parts.query or parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and not secret
