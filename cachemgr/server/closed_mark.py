"""A mark on this machine that a service asked for tokens.

The tokens are in the metastore. One that is lost, emptied or put back from before the first token
holds none, like one in which nobody ever made one, and the service would let everybody in. The mark
stands beside the settings, and beside the metastore if that is a file.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from cachemgr.metastore.database import metastore_url
from cachemgr.telemetry import logger

_TEXT = (
    "A service on this metastore asked for tokens. As long as this file is here it does not let "
    "everybody in, should the metastore hold no token any more. Delete it to open the service.\n"
)


class ClosedMark:
    """Whether a service over one metastore asked for tokens before.

    Args:
        url: The metastore's.
        settings_folder: Where the settings file is or would be.
    """

    def __init__(self, url: str, settings_folder: Path) -> None:
        parsed = metastore_url(url)
        of = f"{parsed.host}:{parsed.port}/{parsed.database}"
        digest = hashlib.sha256(of.encode()).hexdigest()[:12]
        self._paths = [settings_folder / f".cachemgr-closed-{digest}"]
        if parsed.get_backend_name() == "sqlite":
            self._paths.append(Path(f"{parsed.database}.closed"))
        self._noted = False

    def found(self) -> tuple[Path, ...]:
        """The marks that are there; none if it never asked for tokens."""
        return tuple(path for path in self._paths if path.exists())

    def note(self) -> None:
        """Leave the mark; where that is not possible, say so once."""
        if self._noted:
            return
        self._noted = True
        for path in self._paths:
            with suppress(OSError):
                path.write_text(_TEXT)
        if not self.found():
            logger.warning(
                "no mark can be written at %s that this service asks for tokens: set "
                "auth = required, so that it stays closed should its metastore be lost",
                " or ".join(map(str, self._paths)),
            )


def settings_folder() -> Path:
    """Where the settings file is: the one that `CACHEMGR_CONFIG` names, else the working folder."""
    named = os.environ.get("CACHEMGR_CONFIG")
    return Path(named).absolute().parent if named else Path.cwd()
