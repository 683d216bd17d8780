"""The tree that a text becomes: its SELECTs as blocks, and what each query is to the one around
it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from matcher.model.ir import Block, Output
from matcher.model.reasons import Reason
from matcher.model.row_order import Shown
from matcher.sql.split import Split


@dataclass(eq=False, slots=True)
class TextBlock:
    """One SELECT.

    `block` is None where `reasons` say why. `children` are the SELECTs below it: they are tried
    only if it is not replaced itself. `split` is set where the block is only the part of the SELECT
    below its window functions, `merged` where it is one with the aggregating SELECT in its FROM.
    `above` is what something above the block may show of the order of its rows.
    """

    label: str
    block: Block | None
    reasons: tuple[Reason, ...]
    children: tuple[TextBlock, ...]
    node: exp.Select
    split: Split | None = None
    merged: bool = False
    above: Shown = Shown.NOTHING

    def written(self, text: str) -> str:
        """The whole SELECT with `text` in place of the block: what stays on top is put around
        it."""
        return text if self.split is None else self.split.around(text)


@dataclass(slots=True)
class Built:
    """What a query is to the one around it.

    `outputs` are its columns, None where they are not known; `plain` its block if it is
    select-project-join alone, so that it merges; `why` says why not; `groups` its block if it
    aggregates, and `written` that block as it was read, not simplified; `reasons` are its own
    refusals; `blocks` its outermost SELECTs.
    """

    outputs: tuple[Output, ...] | None
    plain: Block | None = None
    why: str = ""
    reasons: tuple[Reason, ...] = ()
    blocks: tuple[TextBlock, ...] = ()
    groups: Block | None = None
    written: Block | None = None
