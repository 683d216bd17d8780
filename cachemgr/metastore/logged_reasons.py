"""Reasons as the decision log stores them: `code`, `detail` (the text), `parts` (the template and
the arguments by kind, from which the text is made for who may not see all of it) and `tables` (the
places of what the part reads that was not answered). Rows of earlier releases have no parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cachemgr.metastore.accounts import stored_message
from cachemgr.secrets import masked
from matcher.model.message import CacheName, Message, Text, walk
from matcher.model.message_codec import args_data, message_of, names_in_data
from matcher.model.reasons import Reason

PARTS: Final = "parts"


def logged_reason(reason: Reason, tables: Iterable[str] = ()) -> dict[str, Any]:
    """A reason as it is stored.

    Args:
        reason: The reason.
        tables: Places of the tables that it concerns.
    """
    # what stands in the suggestion alone says as well which cache it is about
    parts = {"template": reason.template, "args": args_data(reason.args)}
    return {
        "code": reason.code.value,
        "detail": reason.detail,
        PARTS: parts,
        "tables": sorted(tables),
    }


def message_of_reason(reason: Mapping[str, Any]) -> Message:
    """What a stored reason says.

    Args:
        reason: As it is stored, by any release.
    """
    return stored_message(reason.get(PARTS), str(reason.get("detail", "")))


def caches_of_reason(reason: Mapping[str, Any]) -> frozenset[str] | None:
    """The names of the caches that a stored reason speaks of, in lower case; None where it was
    stored as a text alone.

    Args:
        reason: As it is stored.
    """
    parts = reason.get(PARTS)
    if parts is None:
        return None
    return frozenset(name.lower() for name in names_in_data(parts, CacheName))


def shown_reason(reason: Mapping[str, Any], message: Message) -> dict[str, Any]:
    """A stored reason for a reader.

    Args:
        reason: As it is stored.
        message: What it says to him.
    """
    rest = {name: value for name, value in reason.items() if name != PARTS}
    args = {} if reason.get(PARTS) is None else args_data(message.args)
    return {**rest, "detail": str(message), "args": args}


def masked_reason(reason: Mapping[str, Any]) -> dict[str, Any]:
    """A stored reason without credentials: it quotes constants of queries.

    Args:
        reason: As it is stored.
    """
    found, detail = dict(reason), reason.get("detail")
    if isinstance(detail, str):
        found["detail"] = masked(detail)
    if found.get(PARTS) is not None and _quotes_secret(message_of(found[PARTS])):
        del found[PARTS]
    return found


def _quotes_secret(message: Message) -> bool:
    texts = [str(message), *(arg.value for arg in walk(message) if isinstance(arg, Text))]
    return any(masked(text) != text for text in texts)
