"""The modules that a test file imports, at any depth: for tests whose run nobody has recorded, and
for the tests' own helpers."""

from __future__ import annotations

from collections.abc import Mapping

import grimp

from tests.gate.recording import PRODUCT


def imported(files: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """The files of all modules of ours that these test files import, themselves included.

    Args:
        files: Test files, as paths within the checkout.
    """
    graph = grimp.build_graph("tests", *PRODUCT, cache_dir=None)
    made = {}
    for file in files:
        module = file.removesuffix(".py").replace("/", ".")
        reached = graph.find_upstream_modules(module) if module in graph.modules else set()
        made[file] = frozenset({file, *(path for each in reached for path in _paths(each))})
    return made


def _paths(module: str) -> tuple[str, str]:
    path = module.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"
