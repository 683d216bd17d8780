"""The tree that a text becomes: its SELECTs as blocks, and what each query is to the one around
it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from matcher.ir import Block, Output
from matcher.reasons import Reason


@dataclass(eq=False, slots=True)
class TextBlock:
    """One SELECT.

    `block` is None where `reasons` say why. `children` are the SELECTs below it: they are tried
    only if it is not replaced itself.
    """

    label: str
    block: Block | None
    reasons: tuple[Reason, ...]
    children: tuple[TextBlock, ...]
    node: exp.Select


@dataclass(slots=True)
class Built:
    """What a query is to the one around it.

    `outputs` are its columns, None where they are not known; `plain` its block if it is
    select-project-join alone, so that it merges; `why` says why not; `reasons` are its own
    refusals; `blocks` its outermost SELECTs.
    """

    outputs: tuple[Output, ...] | None
    plain: Block | None = None
    why: str = ""
    reasons: tuple[Reason, ...] = ()
    blocks: tuple[TextBlock, ...] = ()
