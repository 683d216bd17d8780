"""Constants that may be others: which of a block's conditions compare them, and the same block with
others in their places.

Both doors remember what a query of a shape means. They read it once with *marks* for its constants,
values that stand nowhere else, and look where these come out: a mark that is one side of a
comparison with a plain column of the very same type, there and nowhere else, may be any constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, TypeAlias

from matcher.model.expr import Call, Col, Expr, Lit, walk
from matcher.model.ir import Block
from matcher.model.operators import NULL_REJECTING

_CONNECTS: Final = frozenset(("and", "or", "not"))
FIRST_NUMBER: Final = 900_000_001

Mark: TypeAlias = str | int
# For each argument: the place of a constant, None for what stays, or the same of its arguments.
Slots: TypeAlias = "tuple[int | Slots | None, ...]"
# The constant of a place, of a type.
Constant = Callable[[int, str], Lit]


def marks_for(text: str, words: Sequence[bool], first: int = FIRST_NUMBER) -> tuple[Mark, ...]:
    """A mark for each constant of a query, different from all others and from all in the query.

    Args:
        text: All that is written in the query, its constants too.
        words: Of each constant, whether it is a string; else it is a whole number.
        first: The greatest number that the first mark may be.
    """
    word = next(word for n in count() if (word := f"mark{n}_") not in text)
    number = first
    while any(str(number + place) in text for place in range(len(words))):
        number -= len(words)
    return tuple(
        f"{word}{place}" if is_word else number + place for place, is_word in enumerate(words)
    )


def slots_of(predicate: Expr, places: Mapping[Mark, int], types: Collection[str]) -> Slots | None:
    """Where marks stand in a condition as sides of comparisons; None where no mark does.

    Args:
        predicate: The condition.
        places: The place of each mark among a query's constants.
        types: The types whose constants may be others.
    """
    if not isinstance(predicate, Call):
        return None
    if predicate.op in _CONNECTS:
        below = tuple(slots_of(arg, places, types) for arg in predicate.args)
        return below if any(found is not None for found in below) else None
    if predicate.op not in NULL_REJECTING:
        return None
    columns = [a for a in predicate.args if not isinstance(a, Lit)]
    if len(columns) != 1 or not isinstance(columns[0], Col) or columns[0].type not in types:
        return None
    if any(a.type != columns[0].type for a in predicate.args):
        return None
    found = tuple(_place(arg, places) for arg in predicate.args)
    return found if any(place is not None for place in found) else None


def _place(arg: Expr, places: Mapping[Mark, int]) -> int | None:
    if isinstance(arg, Lit) and isinstance(arg.value, str | int):
        return places.get(arg.value)
    return None


def free_places(
    block: Block, slots: tuple[Slots | None, ...], places: Mapping[Mark, int]
) -> frozenset[int]:
    """The places of the constants that may be others: those of marks that stand in one slot of the
    block's conditions, and nowhere else in the block.

    Args:
        block: A block with marks.
        slots: Those of its conditions.
        places: As for `slots_of`.
    """
    counts = Counter(
        place for lit in _literals(block) if (place := _place(lit, places)) is not None
    )
    slotted = {place for found in slots if found is not None for place in _slotted(found)}
    return frozenset(place for place in slotted if counts[place] == 1)


def _slotted(slots: Slots) -> Iterator[int]:
    for slot in slots:
        if isinstance(slot, int):
            yield slot
        elif slot is not None:
            yield from _slotted(slot)


def _literals(block: Block) -> Iterator[Lit]:
    for expr in block.expressions():
        yield from (node for node in walk(expr) if isinstance(node, Lit))


def filled(predicate: Expr, slots: Slots, constant: Constant) -> Expr:
    """A condition with other constants in its slots.

    Args:
        predicate: The condition that the slots are of.
        slots: Its slots.
        constant: Gives what to put in each.
    """
    assert isinstance(predicate, Call)
    args = tuple(
        [_filled(arg, slot, constant) for arg, slot in zip(predicate.args, slots, strict=True)]
    )
    return Call(predicate.op, args, predicate.type, predicate.nullable, predicate.params)


def _filled(arg: Expr, slot: int | Slots | None, constant: Constant) -> Expr:
    if slot is None:
        return arg
    return constant(slot, arg.type) if isinstance(slot, int) else filled(arg, slot, constant)
