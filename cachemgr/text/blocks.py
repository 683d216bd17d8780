"""A text's query as the blocks that caches may answer, and the text that reads the caches.

Where a session's plan holds every table at one version, the text says `VERSION AS OF`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from cachemgr.base_state import TableAt
from cachemgr.serving.decision import Decision, Hit
from cachemgr.serving.eligibility import Behind, Cleared, Eligibility, Moved
from cachemgr.serving.served_cache import collapsing_sql
from matcher.catalyst.reader import LocatedBlock
from matcher.model.ir import Block, Rewrite
from matcher.model.message import Sql
from matcher.model.reasons import Reason, ReasonCode
from matcher.render.placeholders import CACHE
from matcher.render.select import NotRenderable, quote, render_rewrite
from matcher.sql.reader import TextBlock, TextQuery
from matcher.sql.schema import Table

_ALIAS: Final = f" AS {quote(CACHE)}"


@dataclass(frozen=True, slots=True)
class _Select(LocatedBlock):
    """A SELECT is one block with its ORDER BY and LIMIT, which need no caches of first rows."""

    @property
    def is_tail(self) -> bool:
        return False


class TextBlocks:
    """See `cachemgr.serving.decide.QueryBlocks`. A block's path is its number.

    Args:
        parsed: The text.
    """

    def __init__(self, parsed: TextQuery) -> None:
        self.parsed = parsed
        self._blocks: list[TextBlock] = []

    def visit(self, visit: Callable[[LocatedBlock], bool], *, tails: bool) -> None:
        """See `QueryBlocks`."""
        self._blocks = []

        def visit_text(text: TextBlock) -> bool:
            path = (len(self._blocks),)
            self._blocks.append(text)
            return visit(_Select(path, text.block, tuple(text.reasons), above=text.above))

        self.parsed.visit(visit_text)

    def tables_outside(self, hits: Sequence[Hit]) -> frozenset[str]:
        """See `QueryBlocks`."""
        answered = {id(self._text_of(hit).node) for hit in hits}
        return frozenset(t.name for t in self.parsed.document.tables_outside(answered))

    def rewritten(
        self,
        decision: Decision,
        sql: Callable[[Hit], str],
        clause: Callable[[Table], str] | None = None,
    ) -> str:
        """The text with what runs instead of the blocks that are answered.

        Args:
            decision: What was decided of it.
            sql: What runs instead of a block.
            clause: What to say after a table that is read outside of them.

        Raises:
            NotRenderable: There is no place in the text for what has to be said.
        """
        texts = {self._text_of(hit): sql(hit) for hit in decision.hits}
        return self.parsed.replace(texts) if clause is None else self.parsed.replace(texts, clause)

    def is_root(self, located: LocatedBlock) -> bool:
        """Whether a block is the whole query."""
        return self._blocks[located.path[0]].node is self.parsed.document.root

    def _text_of(self, hit: Hit) -> TextBlock:
        return self._blocks[hit.path[0]]


class TextEligibility(Eligibility):
    """Of a text it is checked as well that the columns keep their names and types, which a session
    checks as Spark replaces the plan."""

    def clear(
        self, located: LocatedBlock, block: Block, rewrite: Rewrite
    ) -> Cleared | Behind | Moved | Reason:
        """See `Eligibility`."""
        wanted = [(o.name, o.expr.type) for o in block.outputs]
        given = [(o.name, o.expr.type) for o in rewrite.outputs]
        if wanted == given:
            return super().clear(located, block, rewrite)
        return Reason(
            ReasonCode.SCHEMA_WOULD_DIFFER,
            "its columns would be {given} instead of {wanted}",
            "report it: this is a bug in cachemgr",
            given=Sql(str(given)),
            wanted=Sql(str(wanted)),
        )


def text_at_versions(blocks: TextBlocks, decision: Decision, heads: Mapping[str, TableAt]) -> str:
    """The text to run instead, every table at one version.

    Args:
        blocks: The text.
        decision: What was decided of it.
        heads: The tables of the text as they are now, by location.

    Raises:
        NotRenderable: There is no place in the text for a table's version.
    """

    def clause(table: Table) -> str:
        return f"VERSION AS OF {_version(table.place, table.name, heads)}"

    return blocks.rewritten(decision, lambda hit: _sql(hit, heads), clause)


def _sql(hit: Hit, heads: Mapping[str, TableAt]) -> str:
    assert hit.cache.version is not None
    cache = _read(hit.cache.location, hit.cache.version)
    collapsing = collapsing_sql(hit.cache, hit.rewrite.grouping_set, cache, hit.rewrite)
    cache = cache if collapsing is None else f"(\n{collapsing}\n)"
    extra = [
        _read(unquote(e.relation.key), _version(e.relation.key, e.relation.name, heads))
        for e in hit.rewrite.extra
    ]
    # joined tables get their aliases from the renderer
    table = cache if extra else cache + _ALIAS
    return render_rewrite(hit.rewrite, table, extra_sql=extra)


def _read(location: str, version: int) -> str:
    return f"delta.{quote(location)} VERSION AS OF {version}"


def _version(place: str, name: str, heads: Mapping[str, TableAt]) -> int:
    head = heads.get(place)
    if head is None:
        raise NotRenderable(f"{name}, whose version is not known")
    return head.version
