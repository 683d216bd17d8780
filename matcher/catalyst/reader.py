"""Catalyst plans, as plain data, to blocks: the main door, names and types resolved by Spark
itself.

A plan document (`matcher.catalyst.document`) is a tree of nodes. A block is built at each node
whose subtree is one select-project-join tree over tables, or one aggregation of such a tree; every
other operator is a barrier, whose children are looked at on their own. The optimiser has already
pushed filters down and pruned columns: projections, filters and joins are merged back into one
block, so their order does not matter.

The tree is walked from the outermost node inwards, so that the largest part that a cache covers is
replaced. An expression that no block may hold spoils only the blocks that use it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from matcher.catalyst import document as doc
from matcher.catalyst.above import Above
from matcher.catalyst.document import Document, Entry, Node, Path, Settings
from matcher.catalyst.expand import (
    conditions_on_sets,
    decode_expand,
    expand_below,
    set_keys,
    spell_grouping,
)
from matcher.catalyst.expr import Env, decode
from matcher.catalyst.once import Once, distinct_of
from matcher.catalyst.split import Split, Way, ways
from matcher.catalyst.subqueries import subquery_test, written_conjuncts
from matcher.catalyst.tail import build_tail, is_having, is_ordered, is_tail
from matcher.catalyst.tree import SPJ, Tree, items, passed_below, tried, unsupported
from matcher.model.errors import NotSupported
from matcher.model.expr import IGNORE_NULLS, Expr, aggregates, conjuncts
from matcher.model.ir import Block, Output
from matcher.model.message import ColumnName, Sql, Word
from matcher.model.reasons import Reason, ReasonCode, not_taken
from matcher.model.row_order import Shown, left_alone
from matcher.normalize.grouped_relations import check_groups
from matcher.normalize.nested_aggregates import merged
from matcher.normalize.simplify import simplified
from matcher.predicates.captured_settings import WRAPPING_SUM


@dataclass(frozen=True, slots=True)
class LocatedBlock:
    """The block at `path` (child numbers from the plan's root), or the reasons why there is none.
    With `split` its columns are parts of what the subtree puts out. `above` is what something above
    it shows of the order of its rows, if anything; `averaged` are those of its outputs, of whole
    numbers, of which averages are taken above. `once`: the block is the DISTINCT of the subtree's
    rows, which means the same where they stand, or perhaps does."""

    path: Path
    block: Block | None
    reasons: tuple[Reason, ...] = ()
    split: Split | None = None
    above: Shown = Shown.NOTHING
    averaged: tuple[int, ...] = ()
    once: Once = Once.NO

    @property
    def is_tail(self) -> bool:
        """True for ORDER BY … LIMIT and for HAVING over a block, for which only caches are asked
        that hold the first rows or some groups alone: all others answer what is below."""
        return self.block is not None and self.block.has_tail


_NOTHING: Final = Above()
Read = Callable[[Node, Path, int], "LocatedBlock | None"]
Blocks: TypeAlias = Generator[LocatedBlock, bool | None, None]
Tried: TypeAlias = Generator[LocatedBlock, bool | None, tuple[LocatedBlock | None, bool]]


class Reader(Protocol):
    """Makes the blocks of a plan document while it is walked; see `NodeReader`."""

    def ways(self, node: Node, path: Path) -> int:
        """In how many ways the subtree `node` at `path` may be read (`split.ways`)."""
        ...

    def block(self, node: Node, path: Path, way: int) -> LocatedBlock | None:
        """The block of a subtree, or why it is none; None where there is no such way after all."""
        ...

    def tail(self, node: Node, path: Path, way: int) -> LocatedBlock | None:
        """The block of an ORDER BY … LIMIT or a HAVING, None where what is below is none."""
        ...


class NodeReader:
    """Makes each block from its node.

    Args:
        document: The plan document.
    """

    def __init__(self, document: Document) -> None:
        self._document: Final = document

    def ways(self, node: Node, path: Path) -> int:
        """See `Reader`."""
        return len(ways_of(node, self._document))

    def block(self, node: Node, path: Path, way: int) -> LocatedBlock | None:
        """See `Reader`."""
        found = self._way(node, way)
        return None if found is None else finished(raw_block_by(found, path, self._document))

    def tail(self, node: Node, path: Path, way: int) -> LocatedBlock | None:
        """See `Reader`."""
        found = self._way(node, way)
        if found is None or (found.once and is_having(node)):
            return None
        try:
            block = _tail_block(found.node, self._document)
            return LocatedBlock(path, block, split=found.split)
        except NotSupported:  # what is below speaks for itself
            return None

    def _way(self, node: Node, number: int) -> Way | None:
        found = ways_of(node, self._document)
        return found[number] if number < len(found) else None


def walk_blocks(
    document: Document,
    visit: Callable[[LocatedBlock], bool],
    reader: Reader | None = None,
    *,
    tails: bool = True,
) -> None:
    """Calls `visit` for each block, outermost first; it returns True if it replaced the block, so
    that nothing below is visited.

    Args:
        document: A plan document of `matcher.catalyst.document.VERSION`.
        visit: Called once for each place; places that only wrap a barrier are passed over in
            silence.
        reader: Makes the blocks; a `NodeReader` if None.
        tails: Also visit ORDER BY … LIMIT and HAVING over a block.

    Raises:
        ValueError: The document is of another version.
    """
    walker = blocks(document, reader, tails=tails)
    replaced: bool | None = None
    while True:
        try:
            located = next(walker) if replaced is None else walker.send(replaced)
        except StopIteration:
            return
        replaced = visit(located)


def blocks(document: Document, reader: Reader | None = None, *, tails: bool = True) -> Blocks:
    """The blocks, outermost first, as a generator; `send(True)` says that the last one was
    replaced. For the arguments see `walk_blocks`."""
    doc.check_version(document)
    return _walk(doc.plan_of(document), (), reader or NodeReader(document), tails)


def _walk(node: Node, path: Path, reader: Reader, tails: bool, above: Above = _NOTHING) -> Blocks:
    if doc.is_answered(node):
        return
    large = doc.too_large(node)
    if large is not None:
        yield LocatedBlock(
            path, None, (not_taken(ReasonCode.QUERY_TOO_LARGE, "{large}", large=Word(large)),)
        )
        return
    ordered = doc.depends_on_order(node)
    if ordered is not None:
        yield LocatedBlock(path, None, (left_alone(Sql(ordered)),))
        return
    kind = doc.operator(node)
    below = node
    depth = path
    above_block = tails and (is_tail(node) or is_having(node))
    if above_block and (yield from _tried(node, path, reader, reader.tail, above))[1]:
        return
    if kind == "Aggregate" or (kind in SPJ and _reaches_tables(node)):
        located, replaced = yield from _tried(node, path, reader, reader.block, above)
        if replaced:
            return
        assert located is not None  # the last of a block's ways is always there
        # A cache of the same rows would have matched with a filter or projection on top: go on
        # below the joins. Where the expressions themselves are at fault, go down one step.
        while located.block is not None and _only_wraps(below):
            above = above.below(below)
            below, depth = doc.child(below), (*depth, 0)
        if (
            located.block is not None
            and below is not node
            and doc.operator(below) == "LogicalRelation"
        ):
            return
    if doc.operator(below) == "Aggregate" and expand_below(below) is not None:
        while doc.operator(below) != "Expand":
            above = above.below(below)
            below, depth = doc.child(below), (*depth, 0)
    above = above.below(below)
    for number, child in enumerate(doc.children(below)):
        yield from _walk(child, (*depth, number), reader, tails, above)


def _tried(node: Node, path: Path, reader: Reader, read: Read, above: Above) -> Tried:
    """What a subtree is in the ways in which it may be read, until one is replaced: the last one,
    and whether it was."""
    located = None
    for way in range(reader.ways(node, path)):
        found = read(node, path, way)
        if found is not None:
            told = found if above is _NOTHING else _told(found, node, above)
            if (yield told):
                return told, True
            located = located if found.once else told
    return located, False


def _told(found: LocatedBlock, node: Node, above: Above) -> LocatedBlock:
    """The block with what is shown of it above; of parts of outputs it is not known. One that is
    only looked at, to be asked about once more, is asked about then."""
    if found.once is Once.PERHAPS:
        return found
    shown, averaged = above.at(node)
    if averaged and found.split is not None:
        shown, averaged = shown | Shown.AVERAGES, ()
    return replace(found, above=shown, averaged=averaged)


def _only_wraps(node: Node) -> bool:
    """True for a projection, and for a filter that holds no join."""
    if doc.operator(node) == "Filter":
        return not any(map(subquery_test, written_conjuncts(doc.condition(node))))
    return bool(doc.operator(node) == "Project")


def _tail_block(node: Node, document: Document, *, nested: bool = False) -> Block:
    if is_having(node):
        return _grouped(node, document, nested=nested)
    settings = doc.settings_of(document)

    def build(below: Node) -> Block:
        return _maybe_renamed(below, document, nested=nested)

    def attempt(item: Entry, env: Env) -> Expr | NotSupported:
        return tried(item, env, settings)

    return build_tail(node, build, items, settings, attempt)


def _maybe_renamed(node: Node, document: Document, *, nested: bool = False) -> Block:
    """The block of a subtree, a projection and a HAVING above its aggregation merged in."""
    if doc.operator(node) == "Project":
        below = doc.child(node)
        if doc.operator(below) == "Aggregate" or is_having(below):
            return _renamed(node, _grouped(below, document, nested=nested), document)
    return _grouped(node, document, nested=nested)


def _grouped(node: Node, document: Document, *, nested: bool = False) -> Block:
    """The block of a subtree, a HAVING above its aggregation merged in."""
    if not is_having(node):
        return build_block(node, document, nested=nested)
    groups = doc.child(node)
    block = build_block(groups, document, nested=nested)
    shown = zip(items(groups), block.outputs, strict=True)
    env: Env = {doc.id_of(item): output.expr for item, output in shown}
    condition = decode(doc.condition(node), env, doc.settings_of(document))
    return simplified(replace(block, having=conjuncts(condition)))


def _below(node: Node) -> Node:
    """What a filter is on, but for what only chooses columns."""
    found = doc.child(node)
    while doc.operator(found) == "Project":
        found = doc.child(found)
    return found


def _reaches_tables(node: Node) -> bool:
    """False where projections and filters only wrap a barrier, which speaks for itself."""
    while doc.operator(node) in ("Project", "Filter"):
        node = doc.child(node)
    return doc.operator(node) in ("Join", "LogicalRelation")


def finished(raw: LocatedBlock) -> LocatedBlock:
    """What `raw_block` gave, simplified."""
    if raw.block is None:
        return raw
    try:
        return replace(raw, block=simplified(raw.block))
    except NotSupported as error:
        return replace(_unfit(raw.path, error), split=raw.split, once=raw.once)


def ways_of(node: Node, document: Document) -> tuple[Way, ...]:
    """The ways to read a node of a plan document; see `split.ways`. The last one may be
    the DISTINCT of its rows."""
    found = ways(node, doc.settings_of(document))
    distinct = distinct_of(node)
    return found if distinct is None else (*found, Way(distinct, once=Once(doc.once(node))))


def raw_block_by(way: Way, path: Path, document: Document) -> LocatedBlock:
    """`raw_block`, read in one of the ways of `ways_of`."""
    return replace(raw_block(way.node, path, document), split=way.split, once=way.once)


def raw_block(node: Node, path: Path, document: Document) -> LocatedBlock:
    """The block of the subtree at `path` as decoded: `simplified` still has to look at it.

    Args:
        node: The subtree's root.
        path: Where it stands.
        document: The plan document.
    """
    try:
        return LocatedBlock(path, _decoded(node, document))
    except NotSupported as error:
        return _unfit(path, error)


def _unfit(path: Path, error: NotSupported) -> LocatedBlock:
    return LocatedBlock(path, None, (error.reason,))


def build_block(node: Node, document: Document, *, nested: bool = False) -> Block:
    """The block of one subtree; its outputs are the subtree's, in order.

    Args:
        node: The subtree's root.
        document: The plan document.
        nested: True to merge an aggregation below with the block, as for a cache over a cache: the
            outputs then are those of the base rows, whose types may be narrower.

    Raises:
        NotSupported: The subtree is no block; says which operator or expression is at fault.
    """
    return simplified(_decoded(node, document, nested=nested))


def _decoded(node: Node, document: Document, *, nested: bool = False) -> Block:
    large = doc.too_large(node)
    if large is not None:
        raise NotSupported(ReasonCode.QUERY_TOO_LARGE, "{large}", large=Word(large))
    settings = doc.settings_of(document)
    tree = Tree(settings, doc.tables_of(document), nested=nested)
    if doc.operator(node) != "Aggregate":
        env = tree.add(node)
        outputs = tuple(Output(doc.name_of(item), _output(item, env)) for item in items(node))
        return _block(tree, outputs, _keys_below(tree))
    tree.passed = passed_below(node)
    expand = expand_below(node)
    if expand is not None:
        return _by_sets(node, expand, tree)
    env = tree.add(doc.child(node))
    keys = tuple(decode(key, env, settings) for key in doc.keys_of(node))
    tree.check_nested(keys)
    outputs = _merged_outputs(_outputs(node, env, settings), tree)
    return _block(tree, outputs, keys)


def _merged_outputs(outputs: tuple[Output, ...], tree: Tree) -> tuple[Output, ...]:
    if tree.below is None:
        return outputs
    return tuple(Output(o.name, merged(o.expr)) for o in outputs)


def _keys_below(tree: Tree) -> tuple[Expr, ...] | None:
    """The group keys of a block that only filters and projects an aggregation below."""
    if tree.below is None:
        return None
    tree.check_nested()
    if tree.below.tables != range(len(tree.relations)):
        raise unsupported("an aggregation below that is joined and not aggregated again")
    return tree.below.keys


def _block(tree: Tree, outputs: tuple[Output, ...], keys: tuple[Expr, ...] | None) -> Block:
    predicates, outer = tuple(tree.predicates), tuple(tree.outer)
    return check_groups(
        Block(tuple(tree.relations), predicates, outputs, group_keys=keys, outer=outer)
    )


def _by_sets(node: Node, expand: Node, tree: Tree) -> Block:
    """GROUPING SETS, with the conditions of HAVING that were pushed to the expanded rows."""
    env, sets = decode_expand(node, expand, tree.add(doc.child(expand)), tree.settings)
    grouped = set_keys(node, expand)
    keys = tuple(decode(key, env, tree.settings) for key in grouped)
    having = [decode(c, env, tree.settings) for c in conditions_on_sets(node)]
    tree.check_nested((*keys, *having))
    outputs = _merged_outputs(_outputs(node, env, tree.settings), tree)
    return replace(
        _block(
            tree, tuple(Output(o.name, spell_grouping(o.expr, len(keys))) for o in outputs), keys
        ),
        grouping_sets=sets,
        having=tuple(spell_grouping(p, len(keys)) for h in having for p in conjuncts(h)),
    )


def _outputs(node: Node, env: Env, settings: Settings) -> tuple[Output, ...]:
    return tuple(Output(doc.name_of(i), decode(i, env, settings)) for i in items(node))


def _output(item: Entry, env: Env) -> Expr:
    if doc.tag(item) not in doc.NAMED:
        raise NotSupported(
            ReasonCode.UNSUPPORTED_EXPRESSION,
            "{column} tells where a row is stored",
            column=ColumnName(doc.name_of(item)),
        )
    found = env[doc.id_of(item)]
    if isinstance(found, NotSupported):
        raise found
    return found


def definition_block(document: Document, *, nested: bool = False) -> Block:
    """The block of a whole plan, for a cache definition.

    Args:
        document: The plan document.
        nested: See `build_block`.

    Raises:
        NotSupported: The plan is more than one block, or holds something that no cache can; the
            construct is named.
        ValueError: The document is of another version.
    """
    doc.check_version(document)
    if not nested:
        return _definition_block(document, nested=False)
    try:
        return _definition_block(document, nested=True)
    except NotSupported as error:  # no block over the base rows: then one over groups of them
        try:
            return _definition_block(document, nested=False)
        except NotSupported:
            raise error from None


def _definition_block(document: Document, *, nested: bool) -> Block:
    root = doc.plan_of(document)
    if is_tail(root) or is_ordered(root):
        block = _tail_block(root, document, nested=nested)
    elif (
        doc.operator(root) == "Project"
        and doc.operator(doc.child(root)) == "Filter"
        and not is_having(doc.child(root))
        and not _reaches_tables(root)
    ):
        # as QUALIFY is to Spark
        windows = doc.operator(_below(doc.child(root))) == "Window"
        raise unsupported("a window function" if windows else "a filter on a subquery")
    else:
        block = _maybe_renamed(root, document, nested=nested)
    for expr in block.shown():
        _refuse_aggregates(expr)
    return block


def _renamed(project: Node, block: Block, document: Document) -> Block:
    settings = doc.settings_of(document)
    below = zip(items(doc.child(project)), block.outputs, strict=True)
    env = {doc.id_of(item): output.expr for item, output in below}
    return replace(block, outputs=_outputs(project, env, settings))


def _refuse_aggregates(expr: Expr) -> None:
    for agg in aggregates(expr):
        if agg.params not in ((), (IGNORE_NULLS,)) and agg.func != "approx_count_distinct":
            wraps = agg.func == WRAPPING_SUM
            what = "SUM as a view with spark.sql.ansi.enabled=false has it" if wraps else agg.func
            raise NotSupported(
                ReasonCode.UNSUPPORTED_EXPRESSION,
                "aggregate {aggregate} cannot be stored",
                aggregate=Word(what),
            )
