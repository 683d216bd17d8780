"""How this package was installed, and so how pip installs more of it.

No index has it: its name alone is enough only where it came from an index or a folder of wheels of
somebody's own. What pip wrote down of its origin (PEP 610) says which it was.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

NAME: Final = "relational-cache"
_ROOT: Final = Path(__file__).parents[1]


def install_words(*extras: str) -> tuple[str, ...]:
    """The words after `pip` that install these extras from where this package came from.

    Args:
        extras: Of `cachemgr.extras.EXTRAS`; none for the package alone.
    """
    with suppress(metadata.PackageNotFoundError):
        found = metadata.distribution(NAME)
        told = found.read_text("direct_url.json")
        origin = json.loads(told) if told else None
        return words_for(extras, found.version, origin)
    # never installed: the modules are found in a checkout that is on the path
    return words_for(extras, "", {"url": _ROOT.as_uri(), "dir_info": {"editable": True}})


def words_for(
    extras: tuple[str, ...], version: str, origin: Mapping[str, Any] | None
) -> tuple[str, ...]:
    """The words for an installation.

    Args:
        extras: What to install.
        version: The installed version.
        origin: Its direct_url.json; None if pip was given a name and no place.

    >>> words_for(("spark",), "0.1", {"url": "file:///x/rc.whl", "archive_info": {}})
    ('install', '/x/rc.whl[spark]')
    >>> words_for((), "0.1", None)
    ('install', 'relational-cache==0.1')
    """
    wanted = f"[{','.join(extras)}]" if extras else ""
    if origin is None:
        return "install", f"{NAME}{wanted}=={version}"
    url = str(origin["url"])
    vcs = origin.get("vcs_info")
    if vcs is not None:
        place = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
        return "install", f"{NAME}{wanted} @ {place}"
    if not url.startswith("file:"):
        return "install", f"{NAME}{wanted} @ {url}"
    path = unquote(urlsplit(url).path)
    if origin.get("dir_info", {}).get("editable"):
        return "install", "-e", f"{path}{wanted}"
    return "install", f"{path}{wanted}"


def install_command(*extras: str) -> str:
    """The same as a command, as it can be pasted into a shell."""
    return shlex.join(["pip", *install_words(*extras)])
