"""Opaque page tokens: where the next page begins, and of which list."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Final, TypeVar

from fastapi import Query

from cachemgr.api.errors import ApiError
from cachemgr.errors import ErrorCode

MAX_PAGE: Final = 1000
Item = TypeVar("Item")

PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=MAX_PAGE)]
PageToken = Annotated[str | None, Query(alias="pageToken", max_length=8192)]


def page(
    items: Sequence[Item],
    key: Callable[[Item], Sequence[str]],
    of: str,
    size: int,
    token: str | None,
) -> tuple[list[Item], str | None]:
    """One page of a sorted list.

    Args:
        items: The list, sorted by `key`.
        key: What tells where an item stands; strings, unique.
        of: The list's name: a token of another list is refused.
        size: Items in a page.
        token: Of the page before; None for the first.

    Returns:
        The items, and the token of the next page, None at the end.

    Raises:
        ApiError: The token is not one of this list.
    """
    after = None if token is None else read_token(token, of)
    rest = [i for i in items if after is None or list(key(i)) > after]
    shown = rest[:size]
    more = len(rest) > size
    return shown, write_token(of, key(shown[-1])) if more else None


def write_token(of: str, after: Sequence[str]) -> str:
    """The token of the page that begins after an item.

    Args:
        of: The list's name.
        after: What tells where that item stands.
    """
    data = json.dumps([of, *after], ensure_ascii=False)
    return base64.urlsafe_b64encode(data.encode()).decode().rstrip("=")


def read_token(token: str, of: str) -> list[str]:
    """Where a page begins.

    Args:
        token: What `write_token` gave.
        of: The list's name.

    Returns:
        What tells where the item before it stands.

    Raises:
        ApiError: The token is not one of this list.
    """
    try:
        data = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        data = None
    if (
        not isinstance(data, list)
        or not data
        or data[0] != of
        or not all(isinstance(part, str) for part in data)
    ):
        raise foreign_token()
    return [str(part) for part in data[1:]]


def foreign_token() -> ApiError:
    """The error of a token that is none of a list's."""
    return ApiError(
        400,
        ErrorCode.PAGE_TOKEN,
        "pageToken is not one that this list gave out: leave it out for the first page",
    )
