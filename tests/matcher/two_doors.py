"""Both doors side by side for one text case: its blocks, and its choices."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cachemgr.ddl import parse_script
from cachemgr.ddl.statements import CreateRelationalCache
from cachemgr.text import offline
from matcher.catalyst.reader import LocatedBlock, definition_block, walk_blocks
from matcher.model.ir import Block, CachePlan, Rewrite, reads_groups
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.row_order import refused_below
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import Interner
from matcher.normalize.stored_plan import plan_definition
from matcher.predicates.implication import implies
from matcher.render.select import NotRenderable, render_rewrite
from matcher.sql.reader import TextBlock
from matcher.sql.schema import Table, View
from matcher.sql.select import is_plain
from tests.matcher.equal_blocks import differences
from tests.matcher.fixture_cases import Case
from tests.matcher.plan_shapes import differing

# What the text door refuses by design, because only Spark knows.
BY_DESIGN = frozenset({ReasonCode.OUTPUT_NAME_UNKNOWN, ReasonCode.HINT})
Choice = set[tuple[str, int | None]]
# functions in whose place Spark puts the moment
_MOMENT = re.compile(
    r"\b(current_(date|time|timestamp)|localtimestamp|curdate|now\(\)|unix_timestamp\(\))", re.I
)
Named = Callable[[Block], Block]


@dataclass
class Sides:
    """What each door makes of a query."""

    text: list[TextBlock]
    roots: list[TextBlock]
    refused: frozenset[ReasonCode]
    spark: list[list[LocatedBlock]]
    text_choice: Choice
    spark_choice: Choice


def capture_inputs(case: Case) -> dict[str, Any]:
    """All that Spark is told of a case, as plain data, for `captures.plans`."""
    schema = offline.prepare(case.schema, case.caches, case.conf).schema
    text = case.schema + case.query + case.caches
    asked = [t for t in schema.tables.values() if t.name.split(".")[-1] in text]
    return {
        "conf": sorted((k, v) for k, v in case.conf.items() if k.startswith("spark.sql.")),
        "schemas": sorted(schema.schemas - {"default"}),
        "tables": [(t.key, _columns(t)) for t in asked],
        "views": [_view(view) for view in schema.views.values()],
        "selects": [select for _, select in _selects(case)],
        "query": case.query,
    }


def lasts(inputs: dict[str, Any]) -> bool:
    """Whether Spark says the same of `capture_inputs` at any other moment."""
    return not any(map(_MOMENT.search, [inputs["query"], *inputs["selects"], *inputs["views"]]))


def _columns(table: Table) -> str:
    return ", ".join(
        f"`{c.name}` {c.type}{'' if c.nullable else ' NOT NULL'}" for c in table.columns
    )


def _view(view: View) -> str:
    names = f" ({', '.join(view.column_names)})" if view.column_names else ""
    return f"{view.name}{names} AS {view.text}"


def compare_case(case: Case, captured: dict[str, Any]) -> list[str]:
    """All that differs between the doors for one case.

    Args:
        case: The case.
        captured: Spark's plans of its caches' definitions and of its query.
    """
    workspace = offline.prepare(case.schema, case.caches, case.conf)
    if "refused" in captured:  # one door takes what the other refuses
        return [captured["refused"]]
    found = [
        f"cache {name}: {difference}"
        for (name, _), document in zip(_selects(case), captured["selects"], strict=True)
        for difference in compare_definition(workspace.plans[name], definition_block(document))
    ]
    answer = offline.answer(workspace, case.query)
    documents = captured["query"]
    for document in documents:
        assert differing(document, case.id) == []
    return found + compare_sides(read_sides(answer, workspace, documents, lambda block: block))


def compare_sides(sides: Sides) -> list[str]:
    """All that differs between the doors for one query."""
    if sides.refused & BY_DESIGN:
        return []
    found = compare_blocks(sides)
    if not _same_choice(sides):
        found.append(f"the text chose {sides.text_choice}, Catalyst {sides.spark_choice}")
    return found


def _same_choice(sides: Sides) -> bool:
    """Catalyst may serve a part of a SELECT that the text door refuses as a whole, and one side of
    a join with groups, which is no SELECT of its own."""
    refused = any(b.block is None or reads_groups(b.block) for b in sides.text)
    mine, theirs = sides.text_choice, sides.spark_choice
    return mine <= theirs if refused else mine == theirs


def _selects(case: Case) -> list[tuple[str, str]]:
    found = [s for s in parse_script(case.caches) if isinstance(s, CreateRelationalCache)]
    return [(s.name.parts[-1], s.select.text) for s in found]


def read_sides(
    answer: offline.Answer, workspace: Any, documents: list[dict[str, Any]], named: Named
) -> Sides:
    """What the text door answered, beside what a session makes of the query's plans.

    Args:
        answer: the text door's answer.
        workspace: the caches.
        documents: the query's plan and those of its uncorrelated subquery expressions.
        named: gives a block the text door's keys for its relations.
    """
    texts = list(answer.parsed.walk())
    codes = {r.code for b in texts for r in b.reasons} | {r.code for r in answer.parsed.reasons}
    plans: list[list[LocatedBlock]] = []
    theirs: Choice = set()
    for document in documents:
        plans.append(_blocks(document, named))
        theirs |= _decided(document, named, workspace)
    mine: Choice = {_choice(r) for r in answer.rewrites}
    return Sides(texts, list(answer.parsed.roots), frozenset(codes), plans, mine, theirs)


def _blocks(document: dict[str, Any], named: Named) -> list[LocatedBlock]:
    found: list[LocatedBlock] = []

    def gather(located: LocatedBlock) -> bool:
        if located.block is not None and not located.once:
            found.append(replace(located, block=named(located.block)))
        return False

    walk_blocks(document, gather)
    return found


def _decided(document: dict[str, Any], named: Named, workspace: Any) -> Choice:
    """What a session would choose."""
    choice: Choice = set()

    def decide(located: LocatedBlock) -> bool:
        # a text has no place for groups where Spark wants each row once
        if located.block is None or located.once:
            return False
        block = named(located.block)
        options = workspace.conf.options
        if refused_below(located.above, block, options) is not None:
            return False
        if located.averaged and not options.assume_exact_averages:
            return False  # nobody knows the rows behind these caches
        decision = workspace.registry.decide(
            block, options, _not_renderable, explain=True, first_rows=located.is_tail
        )
        chosen = decision.rewrite
        if chosen is not None:
            choice.add(_choice(chosen))
        return chosen is not None

    walk_blocks(document, decide)
    return choice


def _choice(rewrite: Rewrite) -> tuple[str, int | None]:
    chosen = rewrite.grouping_set
    return rewrite.cache, None if chosen is None else chosen.grouping_id


def _not_renderable(rewrite: Rewrite) -> Reason | None:
    try:
        render_rewrite(rewrite, "t", positional=True)
    except NotRenderable as error:
        return Reason(ReasonCode.UNSUPPORTED_EXPRESSION, str(error))
    return None


def compare_blocks(sides: Sides) -> list[str]:
    """Blocks of one door that the other does not have.

    A subquery that was merged into the query around it is no block of its own in Catalyst. One
    whose groups are a relation of the query around it has conditions in Catalyst that Spark pushed
    into it.
    The text door takes or refuses a SELECT as a whole; Catalyst shows what stands below the
    operator at fault, and what stands below a block that it could build, for the walk alone.
    """
    found: list[str] = []
    inside = {
        id(child)
        for parent in sides.text
        if parent.block is not None
        for child in parent.children
        if child.block is not None
        and (parent.merged or is_plain(child.block) or reads_groups(parent.block))
    }
    spark = [s for plan in sides.spark for s in plan]
    for text in sides.text:
        if text.block is None or id(text) in inside:
            continue
        whole = text in sides.roots and text.split is None
        tried = [differences(text.block, s.block, whole=whole) for s in spark if s.block]
        if all(tried):
            best = min(tried, key=_distance, default=["no block in Catalyst"])
            found.append(f"{text.label}: {'; '.join(best)}")
    if sides.roots and all(r.block is None for r in sides.roots):
        why = [f"{r.code.value}: {r.detail}" for t in sides.text for r in t.reasons]
        # what only caches of some rows or groups are asked for leaves the rest as it is
        if any(s.path == () and not s.is_tail for s in sides.spark[0]):
            found.append(f"only Catalyst takes the whole query; the text says {why}")
    return found


def _distance(found: list[str]) -> tuple[bool, int]:
    """The block that is nearest is the one to name."""
    return "only one aggregates" in found or found[0].startswith("tables "), len(found)


def compare_definition(text: CachePlan, block: Block) -> list[str]:
    """What tells the text door's plan of a cache from that of Catalyst's block."""
    spark = replace(plan_definition(text.name, block, text.joins), exact_sums=text.exact_sums)
    intern = Interner()
    mine, theirs = PreparedPlan(text, intern), PreparedPlan(spark, intern)
    context = mine.context
    found = []
    if sorted(mine.relations) != sorted(theirs.relations):
        found.append(f"tables {text.relations} and {spark.relations}")
    found += [f"only Catalyst has {p!r}" for p in theirs.predicates if not implies(context, p)]
    found += [f"only the text has {p!r}" for p in mine.predicates if not implies(theirs.context, p)]
    for what in ("columns", "measures"):
        left, right = (
            [(context.canonical(e), e.type, c.name, c.hidden) for e, c in getattr(p, what)]
            for p in (mine, theirs)
        )
        if left != right:
            found.append(f"{what} {left} and {right}")
    if text.grouping_sets != spark.grouping_sets or text.visible != spark.visible:
        found.append(f"sets {text.grouping_sets} and {spark.grouping_sets}")
    shown = [[o.expr for o in plan.shown] for plan in (text, spark)]
    if shown[0] != shown[1]:  # the names that Spark makes up are not known to a text
        found.append(f"outputs {shown[0]} and {shown[1]}")
    return found
