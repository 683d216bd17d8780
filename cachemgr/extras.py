"""The extras of the distribution, and the error of whoever asks for something that needs one.

What is installed without any extra is enough for the matcher, the metastore in SQLite and the
command line. Whatever needs more calls `require` before it imports more.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from cachemgr.errors import ErrorCode, MissingExtraError
from cachemgr.installation import install_command

# The packages that each extra of pyproject.toml brings, as they are imported. Asked for by import
# and not by distribution: spark-submit and notebooks bring a pyspark that pip has not installed.
EXTRAS: Final = {
    "server": (
        "anyio",
        "apscheduler",
        "fastapi",
        "h11",
        "prometheus_client",
        "starlette",
        "structlog",
        "uvicorn",
    ),
    "spark": ("delta", "py4j", "pyspark"),
    "postgres": ("psycopg",),
    "results": ("pyarrow",),
}


def missing(*extras: str) -> dict[str, list[str]]:
    """The packages that cannot be imported, by the extra that brings them."""
    absent = {extra: [m for m in EXTRAS[extra] if find_spec(m) is None] for extra in extras}
    return {extra: modules for extra, modules in absent.items() if modules}


def require(what: str, *extras: str) -> None:
    """Refuse what the installed packages are not enough for.

    Args:
        what: What needs them, to begin the message with.
        extras: The extras that it needs, of `EXTRAS`.

    Raises:
        MissingExtraError: Names the missing packages and the command that installs them.
    """
    absent = missing(*extras)
    if absent:
        modules = ", ".join(m for modules in absent.values() for m in modules)
        raise MissingExtraError(
            ErrorCode.EXTRA_MISSING,
            f"{what} needs packages that are not installed ({modules}): {install_command(*absent)}",
        )
