"""The table properties of a cache that are ours: switches of one cache, in TBLPROPERTIES.

They begin with `cachemgr.`, are kept with the cache and tell sessions what it does; its Delta table
never gets them. Nor does it get mapped columns: its log and folders name them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cachemgr.config.setting_names import nearest
from cachemgr.errors import DefinitionError, ErrorCode

OWN: Final = "cachemgr."
FRESH_HITS: Final = "cachemgr.freshHits"
_KNOWN: Final = (FRESH_HITS,)
_SWITCHES: Final = ("true", "false")


def has_fresh_hits(properties: Mapping[str, str]) -> bool:
    """Whether rows that were appended since a cache's refresh may be read beside it.

    Args:
        properties: The cache's.

    >>> has_fresh_hits({}), has_fresh_hits({"cachemgr.freshHits": "FALSE"})
    (True, False)
    """
    return properties.get(FRESH_HITS, "true").strip().lower() != "false"


def table_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that a cache's Delta table is to have: those that are not ours, nor of column
    mapping, which an earlier release let pass.

    Args:
        properties: The cache's.
    """
    return {k: v for k, v in properties.items() if not is_own(k) and not is_of_mapping(k)}


def is_of_mapping(key: str) -> bool:
    """Whether a property is one of Delta's column mapping."""
    return key.lower().startswith("delta.columnmapping.")


def is_own(key: str) -> bool:
    """Whether a property is meant for this program."""
    return key.lower().startswith(OWN)


def refuse_own(name: str, properties: Mapping[str, str]) -> None:
    """Refuse properties of ours that mean nothing.

    Args:
        name: The cache's name, for the message.
        properties: Those of CREATE or ALTER.

    Raises:
        DefinitionError: There is no such property, or it takes no such value.
    """
    for key, value in properties.items():
        if not is_own(key):
            continue
        if key not in _KNOWN:
            near = nearest(key.lower().removeprefix(OWN), [k.removeprefix(OWN) for k in _KNOWN])
            meant = f"did you mean {OWN}{near}?" if near else f"there is {', '.join(_KNOWN)}"
            raise DefinitionError(
                ErrorCode.PROPERTY_NOT_ALLOWED,
                f"cache {name}: there is no table property {key}: {meant}",
            )
        if value.strip().lower() not in _SWITCHES:
            raise DefinitionError(
                ErrorCode.PROPERTY_NOT_ALLOWED,
                f"cache {name}: the table property {key} is {' or '.join(_SWITCHES)}, not "
                f"{value!r}",
            )
