"""A plan document of a shape that came before, beside the same one decoded."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

from matcher.catalyst.reader import LocatedBlock
from matcher.catalyst.templates import PlanDocument, PlanShapes
from matcher.model.codec import encode_expr
from matcher.model.ir import Block

_LITERAL = re.compile(r'\["l",("(?:[^"\\]|\\.)*"|[^,\[\]]*|\{[^}]*\}),"([^"]*)"\]')
_STRINGS = ["", "x", "AMERICA", 'a"b\\', "ö\n", "mark0_0", '["l",1,"int"]']
_NUMBERS = [0, 1, -1, 5, 2**31 - 1, -(2**31), 900_000_001]


def differing(document: dict[str, Any], seed: str = "", variants: int = 8) -> list[str]:
    """What tells the blocks of remembered shapes from decoded ones, for a document and others that
    differ from it in constants; nothing if all are the same.

    Args:
        document: A plan document.
        seed: Of the constants.
        variants: How many others.
    """
    text = written(document)
    shapes = PlanShapes()
    chosen = random.Random(seed + text)
    found = []
    for each in [text, text, *_variants(text, chosen, variants), text]:
        for replaced in (0.0, 0.5):
            asked = chosen.random()
            mine = visited(shapes.read(each), replaced, asked)
            theirs = visited(PlanDocument(json.loads(each)), replaced, asked)
            found += [f"{m} is not {t}" for m, t in zip(mine, theirs, strict=False) if m != t]
            if len(mine) != len(theirs):
                found.append(f"{len(mine)} blocks in place of {len(theirs)}")
    return found


def written(document: dict[str, Any]) -> str:
    """A document as the hook writes it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def visited(document: PlanDocument, replaced: float, seed: float) -> list[Any]:
    """All that a walk shows, down to what is nullable.

    Args:
        document: The document.
        replaced: The share of the blocks that are said to be replaced.
        seed: Which ones.
    """
    chosen = random.Random(seed)
    found: list[Any] = []

    def visit(located: LocatedBlock) -> bool:
        found.append((located.path, _spelled(located.block), located.reasons))
        return chosen.random() < replaced

    document.walk(visit)
    return found


def _spelled(block: Block | None) -> Any:
    if block is None:
        return None
    exprs = [*block.predicates, *(o.expr for o in block.outputs), *(block.group_keys or ())]
    exprs += [*block.having, *(k.expr for k in block.order_by)]
    exprs += [part for join in block.outer for part in join.conditions()]
    return repr(block), [encode_expr(e) for e in exprs]


def _variants(text: str, chosen: random.Random, count: int) -> Iterator[str]:
    written = [value for value, _ in _LITERAL.findall(text)]

    def other(found: re.Match[str]) -> str:
        value, type = found.groups()
        same = [w for w in written if w[:1] in '"{tfn' and w[:1] == value[:1]]
        if chosen.random() < 0.3 or value[:1] in ("n", "t", "f", "{", ""):
            new = chosen.choice(same or [value])
        elif value[0] == '"':
            new = json.dumps(chosen.choice(_STRINGS), ensure_ascii=False)
        else:
            new = str(chosen.choice([*_NUMBERS, int(value) + 1, int(value) - 1]))
        return f'["l",{new},"{type}"]'

    for _ in range(count):
        yield _LITERAL.sub(other, text)
