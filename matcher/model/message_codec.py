"""Messages as JSON data: what a log stores of a text, so that it can be put together later, whole
or without what its reader may not see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from matcher.model.message import (
    Arg,
    CacheName,
    Cause,
    ColumnName,
    Count,
    Hidden,
    JoinName,
    Message,
    Number,
    PrincipalName,
    Setting,
    Several,
    Sql,
    TableName,
    Text,
    Value,
    Word,
)

_TEXTS: Final[dict[str, type[Text]]] = {
    "cache": CacheName,
    "cause": Cause,
    "column": ColumnName,
    "join": JoinName,
    "principal": PrincipalName,
    "setting": Setting,
    "sql": Sql,
    "table": TableName,
    "value": Value,
    "word": Word,
}
_KINDS: Final = {kind: name for name, kind in _TEXTS.items()}


def message_data(message: Message) -> dict[str, Any]:
    """A message as JSON data.

    Args:
        message: The message.

    >>> message_data(Message("{cache} is old", cache=CacheName("c")))
    {'template': '{cache} is old', 'args': {'cache': {'kind': 'cache', 'value': 'c'}}}
    """
    return {"template": message.template, "args": args_data(message.args)}


def args_data(args: tuple[tuple[str, Arg], ...]) -> dict[str, Any]:
    """The arguments of a message, or of a reason, as JSON data.

    Args:
        args: The arguments by their names.
    """
    return {name: _data(arg) for name, arg in args}


def message_of(data: Mapping[str, Any]) -> Message:
    """The message that `message_data` wrote down.

    Args:
        data: What it gave. An argument of a kind that a later release knows is left out.
    """
    args = {name: _arg(arg) for name, arg in data["args"].items()}
    return Message(data["template"], **{name: arg for name, arg in args.items() if arg is not None})


def names_in_data(data: Mapping[str, Any], kind: type[Text]) -> Iterator[str]:
    """What `names_in` gives of the message, without making it: a log holds many.

    Args:
        data: From `message_data`.
        kind: Which names.
    """
    for arg in data["args"].values():
        yield from _names(arg, _KINDS[kind])


def _names(data: Mapping[str, Any], kind: str) -> Iterator[str]:
    if data["kind"] == kind:
        yield data["value"]
    for item in data.get("items", ()):
        yield from _names(item, kind)
    for arg in data.get("args", {}).values():
        yield from _names(arg, kind)


def _data(arg: Arg) -> dict[str, Any]:
    match arg:
        case Text():
            return {"kind": _KINDS[type(arg)], "value": arg.value}
        case Number():
            return {"kind": "number", "value": arg.value, "noun": arg.noun, "form": arg.form}
        case Count():
            return {"kind": "count", "value": arg.value, "noun": arg.noun, "form": arg.form}
        case Several():
            items = [_data(item) for item in arg.items]
            return {"kind": "several", "items": items, "separator": arg.separator}
        case Hidden():
            return {"kind": "hidden", "shown": arg.shown}
        case Message():
            return {"kind": "message", **message_data(arg)}


def _arg(data: Mapping[str, Any]) -> Arg | None:
    match data["kind"]:
        case str() as kind if kind in _TEXTS:
            return _TEXTS[kind](data["value"])
        case "number":
            return Number(data["value"], data["form"], data["noun"])
        case "count":
            return Count(data["value"], data["noun"], data["form"])
        case "several":
            items = map(_arg, data["items"])
            return Several(tuple(item for item in items if item is not None), data["separator"])
        case "hidden":
            return Hidden(data["shown"])
        case "message":
            return message_of(data)
        case _:
            return None
