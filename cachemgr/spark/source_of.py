"""What a session follows, by its settings: a metastore, or the service."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from cachemgr.config.service_address import checked_token, is_service_url
from cachemgr.config.session_settings import Settings
from cachemgr.config.setting_names import PREFIX
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.metastore import open_metastore
from cachemgr.metastore.database import metastore_url
from cachemgr.serving.feed import Feed, acquire_feed_of, acquire_known_feed
from cachemgr.serving.sources import MetastoreSource, Source

_TOKEN_VARIABLE = "CACHEMGR_TOKEN"


def feed_of(settings: Settings, explicit: Mapping[str, str]) -> Feed:
    """The process's feed for what a session's settings name; give it back with `release_feed`.

    A metastore that is followed already is not opened again.

    Args:
        settings: The settings.
        explicit: Those that were set, by key.

    Raises:
        ConfigurationError: They contradict each other, or name no service.
        MetastoreError: The metastore cannot be opened; says what to do.
    """
    if not settings.url:
        url = metastore_url(settings.metastore_url).render_as_string(hide_password=False)
        known = acquire_known_feed(url)
        if known is not None:
            return known
    return acquire_feed_of(source_of(settings, explicit))


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
            ErrorCode.BAD_SETTING,
            f"{PREFIX}url and {PREFIX}metastore.url are both set: a session follows the service or "
            "a metastore, unset one",
        )
    from cachemgr.serving.service_source import (
        ServiceSource,  # the network's libraries are for these alone
    )

    urls = [_checked(url) for url in settings.url.split(",") if url.strip()]
    file = str(Path(settings.token_file).absolute()) if settings.token_file else ""
    return ServiceSource(urls, token_of(settings), settings.max_outage_seconds, token_file=file)


def token_of(settings: Settings) -> Callable[[], str]:
    """Where a session's token comes from: the setting, the file, or the environment.

    Args:
        settings: The settings.

    Raises:
        ConfigurationError: The file cannot be read, or what is there is no token.
    """
    if settings.token_file:
        file = Path(settings.token_file)
        _read(file)
        return lambda: _read(file)
    token = settings.token or os.environ.get(_TOKEN_VARIABLE, "").strip()
    checked_token(token, f"{PREFIX}token or {_TOKEN_VARIABLE}")
    return lambda: token


def _read(file: Path) -> str:
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"{PREFIX}tokenFile names {file}, which cannot be read ({error}): correct it",
        ) from error
    return checked_token(token, f"{PREFIX}tokenFile names {file}, which")


def _checked(url: str) -> str:
    if not is_service_url(url.strip()):
        raise ConfigurationError(
            ErrorCode.BAD_SETTING,
            f"{PREFIX}url has a part that is not a service URL: write http://host:8470, replicas "
            "after commas, and the token in its own setting",
        )
    return url.strip()
