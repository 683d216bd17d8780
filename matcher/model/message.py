"""Texts for people as data: a template, and what stands in it by kind.

Who may be told of a cache's rows and who may not are told the same sentence, with other things in
it; whoever adds up reasons asks which cache they speak of. Neither should have to read English: so
a text is kept in its parts, and `Message.__str__` is the one place that puts them together.

>>> text = Message("{table}: {rows} of {cache}", table=TableName("sales"), rows=Count(1, "row"),
...                cache=CacheName("c"))
>>> str(text), str(text.without(SECRET)), names_in(text, CacheName)
('sales: 1 row of c', 'sales: some rows of c', ('c',))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

_PLACE: Final = re.compile(r"\{(\w+)\}")
_BOUND: Final = 1_000
_LITERAL: Final = "{text}"


@dataclass(frozen=True, slots=True)
class Text:
    """One thing in a message that is shown as it is; each kind of it is a subclass."""

    value: str


@dataclass(frozen=True, slots=True)
class CacheName(Text):
    """The name of a relational cache."""


@dataclass(frozen=True, slots=True)
class TableName(Text):
    """The name of a base table."""


@dataclass(frozen=True, slots=True)
class ColumnName(Text):
    """The name of a column."""


@dataclass(frozen=True, slots=True)
class JoinName(Text):
    """The name of a record-preserving join."""


@dataclass(frozen=True, slots=True)
class PrincipalName(Text):
    """The name of a user or service."""


@dataclass(frozen=True, slots=True)
class Setting(Text):
    """A setting, by its key or with its value."""


@dataclass(frozen=True, slots=True)
class Sql(Text):
    """A part of a query or definition, constants included."""


@dataclass(frozen=True, slots=True)
class Word(Text):
    """A word of SQL's or of the program's: an operator, a type, a way of joining."""


@dataclass(frozen=True, slots=True)
class Value(Text):
    """A value that stands in a row of a table."""


@dataclass(frozen=True, slots=True)
class Cause(Text):
    """What another program said, which may quote values."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number that tells nothing of rows: a version, a limit, seconds.

    Args:
        value: The number; None where nobody knows.
        form: How it is written, as for `format`.
        noun: Of what, for one; empty where the number stands alone.
    """

    value: float | None
    form: str = ""
    noun: str = ""


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows, files or bytes a table or cache has, or what follows from that.

    Args:
        value: How many; None where nobody knows.
        noun: Of what, for one; empty where the number stands alone.
        form: How it is written, as for `format`.
    """

    value: float | None
    noun: str = ""
    form: str = ".0f"


@dataclass(frozen=True, slots=True)
class Several:
    """A list.

    Args:
        items: What it holds.
        separator: What stands between them.
    """

    items: tuple[Arg, ...]
    separator: str = ", "


@dataclass(frozen=True, slots=True)
class Hidden:
    """What stands in place of something that is not for the reader.

    Args:
        shown: What he is shown.
    """

    shown: str


Arg: TypeAlias = "Text | Number | Count | Several | Hidden | Message"
Kind = type[Text] | type[Number] | type[Count]
SECRET: Final[tuple[Kind, ...]] = (Count, Value, Cause)
"""The kinds that tell something of rows."""


@dataclass(frozen=True, slots=True, init=False)
class Message:
    """A sentence for people.

    Args:
        template: A constant of the program, in which `{name}` stands for an argument.
        args: The arguments by their names.
    """

    template: str
    args: tuple[tuple[str, Arg], ...]

    def __init__(self, template: str, /, **args: Arg) -> None:
        object.__setattr__(self, "template", template)
        object.__setattr__(self, "args", tuple(args.items()))

    def __str__(self) -> str:
        return render(self.template, self.args)

    def __bool__(self) -> bool:
        return bool(self.template)

    def without(self, kinds: tuple[Kind, ...]) -> Message:
        """The same for those who may not see arguments of some kinds."""
        return Message(self.template, **{name: _without(arg, kinds) for name, arg in self.args})


NOTHING: Final = Message("")
"""No text."""


def literal(text: str) -> Message:
    """A text of which no more is known than what it says: nothing in it can be hidden by its kind.

    Args:
        text: One that was stored before texts had parts, or that somebody else wrote.
    """
    return Message(_LITERAL, text=Cause(text)) if text else NOTHING


def is_literal(message: Message) -> bool:
    """Whether a message is a `literal`."""
    return message.template == _LITERAL


def bounded(message: Message) -> Message:
    """A message that is no longer than people read.

    Args:
        message: Any.
    """
    text = str(message)
    return message if len(text) <= _BOUND else Message("{text}…", text=Sql(text[:_BOUND]))


def joined(messages: Iterable[Arg], separator: str = "; ") -> Message:
    """Several texts as one, those that say nothing left out.

    Args:
        messages: The texts.
        separator: What stands between them.
    """
    said = tuple(m for m in messages if not isinstance(m, Message) or m)
    if len(said) == 1 and isinstance(said[0], Message):
        return said[0]
    return Message("{texts}", texts=Several(said, separator)) if said else NOTHING


def listed(kind: type[Text], names: Iterable[str], separator: str = ", ") -> Several:
    """Names, or other things of one kind.

    Args:
        kind: What each of them is.
        names: The names.
        separator: What stands between them.
    """
    return Several(tuple(map(kind, names)), separator)


def render(template: str, args: tuple[tuple[str, Arg], ...]) -> str:
    """The text of a template; what it has no argument for is left as it is.

    Args:
        template: With `{name}` where an argument stands.
        args: The arguments by their names.
    """
    if not args:
        return template
    known = dict(args)
    texts = list(_split(template))
    for number in range(1, len(texts), 2):
        arg = known.get(texts[number])
        texts[number] = f"{{{texts[number]}}}" if arg is None else _shown(arg)
    return "".join(texts)


@lru_cache(maxsize=1024)
def _split(template: str) -> tuple[str, ...]:
    """What stands between the arguments of a template, and their names, by turns: a decision may
    look through the texts of many reasons."""
    return tuple(_PLACE.split(template))


def mapped(message: Message, change: Callable[[Text], Text]) -> Message:
    """A message with all texts in it changed.

    Args:
        message: The message.
        change: What becomes of a text.
    """
    args = {name: _mapped(arg, change) for name, arg in message.args}
    return Message(message.template, **args)


def names_in(message: Message, kind: type[Text]) -> tuple[str, ...]:
    """The names of a kind that a message speaks of, in their order.

    Args:
        message: The message.
        kind: Which names.
    """
    return tuple(arg.value for arg in walk(message) if isinstance(arg, kind))


def tells(message: Message) -> bool:
    """Whether a message holds something that tells of rows."""
    return any(isinstance(arg, SECRET) for arg in walk(message))


def walk(arg: Arg) -> Iterator[Arg]:
    """An argument and all that is in it."""
    yield arg
    inner: Iterable[Arg] = ()
    if isinstance(arg, Several):
        inner = arg.items
    elif isinstance(arg, Message):
        inner = (each for _, each in arg.args)
    for each in inner:
        yield from walk(each)


def _mapped(arg: Arg, change: Callable[[Text], Text]) -> Arg:
    match arg:
        case Text():
            return change(arg)
        case Several():
            return replace(arg, items=tuple(_mapped(item, change) for item in arg.items))
        case Message():
            return mapped(arg, change)
        case _:
            return arg


def _shown(arg: Arg) -> str:
    """An argument in a text: the one place where the kinds are written."""
    match arg:
        case Text():
            return arg.value
        case Number(None):
            return "unknown"
        case Number():
            return _counted(format(arg.value, arg.form), arg.noun)
        case Count(None):
            return f"{arg.noun}s"
        case Count():
            return _counted(format(arg.value, arg.form), arg.noun)
        case Several():
            return arg.separator.join(map(_shown, arg.items))
        case Hidden():
            return arg.shown
        case Message():
            return str(arg)


def _counted(number: str, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != '1')}" if noun else number


def _without(arg: Arg, kinds: tuple[Kind, ...]) -> Arg:
    match arg:
        case Several():
            return replace(arg, items=tuple(_without(item, kinds) for item in arg.items))
        case Message():
            return arg.without(kinds)
        case Count() if Count in kinds:
            return Hidden(f"some {arg.noun}s" if arg.noun else "…")
        case _ if isinstance(arg, kinds):
            return Hidden("…")
        case _:
            return arg
