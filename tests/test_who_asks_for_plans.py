"""All who ask for the plan of a block: what a further kind of definition would have to say to each.

A module that comes to the list asks for one block where a cache may be of another kind some day: is
there an answer for that, or may it ask for less (names, places, columns)?
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
ASKING = {
    "what it is, how it is stored, what is shown of it": {
        "matcher/model/codec.py",
        "matcher/model/ir.py",
        "matcher/normalize/groups_of_caches.py",
        "matcher/normalize/kept_order.py",
        "matcher/normalize/nested_aggregates.py",
        "matcher/normalize/put_in.py",
        "matcher/normalize/shown_outputs.py",
        "matcher/normalize/stored_block.py",
        "matcher/normalize/stored_plan.py",
        "matcher/render/from_clause.py",
        "matcher/render/select.py",
        "matcher/render/shown_outputs.py",
        "cachemgr/config/judged/used_functions.py",
        "cachemgr/delta/base_columns.py",
        "cachemgr/refresh/fingerprint.py",
    },
    "matching": {
        "matcher/examples.py",
        "matcher/index/explain.py",
        "matcher/index/registry.py",
        "matcher/normalize/prepared_plan.py",
        "matcher/rules/cost.py",
    },
    "rows of parts of the base rows": {
        "matcher/partials/coarser.py",
        "matcher/partials/collapse.py",
        "matcher/partials/lossless.py",
        "matcher/partials/partial_rows.py",
        "matcher/partials/split.py",
    },
    "definitions and their statements": {
        "cachemgr/spark/definitions/analysis.py",
        "cachemgr/spark/definitions/replan.py",
        "cachemgr/spark/engine.py",
        "cachemgr/spark/session_statements.py",
        "cachemgr/statements/cache_facts.py",
        "cachemgr/statements/describe.py",
        "cachemgr/statements/engine.py",
        "cachemgr/statements/layout_advice.py",
        "cachemgr/text/offline.py",
        "cachemgr/text/offline_input.py",
    },
    "refresh": {
        "cachemgr/refresh/by_change/delta_rows.py",
        "cachemgr/refresh/by_change/incremental.py",
        "cachemgr/refresh/by_change/measure_delta.py",
        "cachemgr/refresh/by_change/ways.py",
        "cachemgr/refresh/full/build.py",
        "cachemgr/refresh/full/lattice.py",
        "cachemgr/refresh/full/layout.py",
        "cachemgr/refresh/full/sample.py",
        "cachemgr/refresh/job.py",
        "cachemgr/refresh/measure.py",
        "cachemgr/refresh/pin.py",
        "cachemgr/refresh/planning/plan.py",
        "cachemgr/refresh/publish.py",
        "cachemgr/refresh/run.py",
        "cachemgr/refresh/small.py",
        "cachemgr/refresh/source.py",
        "cachemgr/refresh/stages.py",
        "cachemgr/refresh/totals.py",
        "cachemgr/refresh/validate_snapshot_joins.py",
        "cachemgr/refresh/write.py",
    },
    "serving, and what is held in memory": {
        "cachemgr/serving/other_spark.py",
        "cachemgr/serving/served_cache.py",
        "cachemgr/serving/tails.py",
        "cachemgr/serving/unbuilt.py",
        "cachemgr/spark/held/pins.py",
        "cachemgr/spark/held/tail_maker.py",
    },
}


def asks(path: Path) -> bool:
    """Whether a module names the plan of a block, comments and docstrings apart."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and any(n.name == "CachePlan" for n in node.names):
            return True
        if isinstance(node, ast.ClassDef) and node.name == "CachePlan":
            return True
    return False


def test_all_who_ask_for_the_plan_of_a_block_are_listed() -> None:
    listed = [path for paths in ASKING.values() for path in paths]
    assert len(listed) == len(set(listed))
    found = {
        path.relative_to(ROOT).as_posix()
        for package in ("matcher", "cachemgr", "scheduler")
        for path in (ROOT / package).rglob("*.py")
        if asks(path)
    }
    assert found == set(listed)
