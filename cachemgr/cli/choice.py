"""Options that take one of a few words, spelled in messages as they are everywhere else."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import typer


def one_of(kind: type[StrEnum]) -> dict[str, Any]:
    """What `typer.Option` is given for an option whose value is a word of `kind`, in any case.

    Args:
        kind: The words.
    """
    words = [word.value for word in kind]

    def read(given: str) -> StrEnum:
        found = next((word for word in kind if word.value.lower() == given.lower()), None)
        if found is None:
            raise typer.BadParameter(f"{given!r} is none of {', '.join(words)}")
        return found

    def complete(incomplete: str) -> list[str]:
        # Typer leaves out what does not begin as it was typed
        typed = [word.lower() for word in words] if incomplete.islower() else words
        return [word for word in typed if word.startswith(incomplete)]

    return {"parser": read, "metavar": f"<{'|'.join(words)}>", "autocompletion": complete}
