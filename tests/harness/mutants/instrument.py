"""Every refusal of the matcher as a mutant: the guard that leads to it can be switched off.

A refusal raises one of the matcher's errors, notes a reason, or gives a `Miss` or a `_why_not`;
where rules and predicates decide, also one that returns None or False. From the syntax tree of each
module, a guard is what leads to one:

- an `if` whose branch ends in a refusal, and an `a if test else None`;
- an `if` whose branch returns a result where a refusal is what follows;
- the place itself where a loop's body, or its `else`, ends in one.

All guards of all modules are compiled in at once as `guard(number, accepts, test)`; switching one
off makes its test what leads past the refusal.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import matcher as _package

ROOT = Path(_package.__file__).parent
_HOOK = "__guard__"
# What is raised for other ends than to refuse.
_NO_REFUSALS = ("NeedsRegrouping", "AssertionError", "AttributeError", "TypeError", "ValueError")
# Where a bare None or False says no; elsewhere it is a value like any other.
_DECIDING = ("matcher/rules/", "matcher/memory/decisions",
             "matcher/normalize/functional_dependencies", "matcher/model/values",
             *(f"matcher/predicates/{name}" for name in (
                 "aggregate_filters", "constant_folding", "context", "domains", "implication",
                 "like_patterns", "monotone", "null_sources", "time_buckets", "time_zones",
                 "truth")))  # fmt: skip
_CHOOSING = ("matcher/rules/choose", "matcher/rules/cost", "matcher/rules/grouping_sets")


@dataclass(frozen=True)
class Mutant:
    """One guard: where it stands and what it asks. `name` stays the same when lines move."""

    number: int
    name: str
    line: int
    accepts: bool


@dataclass
class State:
    """Which guards are off, and the guards that refused since `refused` was cleared."""

    off: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        self.refused: set[int] = set()

    def guard(self, number: int, accepts: bool, value: object) -> object:
        """The guard's value, or the accepting one if it is off."""
        if bool(value) == accepts:
            return value
        self.refused.add(number)
        return accepts if number in self.off else value


STATE = State()


class _Guards(ast.NodeTransformer):
    def __init__(self, module: str, first: int) -> None:
        self.module = module
        self.deciding = module.startswith(_DECIDING) and not module.startswith(_CHOOSING)
        self.next = first
        self.found: list[Mutant] = []
        self._scope: list[str] = []
        self._names: dict[str, int] = {}
        self._passed: set[ast.If] = set()

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._inside(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._inside(node)

    def _inside(self, node: ast.ClassDef | ast.FunctionDef) -> ast.AST:
        self._scope.append(node.name)
        self.generic_visit(node)
        self._scope.pop()
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for body in _bodies(node) if self._scope else ():
            for statement, following in pairwise([*body, None]):
                if following is not None and _refuses([following], self.deciding):
                    self._passed.update(_passes(statement, self.deciding))
        return super().generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if self._scope and _refuses(node.body, self.deciding):
            node.test = self._guarded(node.test, accepts=False)
        elif node in self._passed:
            node.test = self._guarded(node.test, accepts=True)
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        for body in (node.body, node.orelse):
            if self._scope and body and _refuses(body, self.deciding):
                text = " ".join(ast.unparse(_without_hooks(node.target)).split())
                of = " ".join(ast.unparse(_without_hooks(node.iter)).split())
                text = f"{'each' if body is node.body else 'no'} {text} in {of}"
                here = ast.copy_location(ast.Constant(True), body[-1])
                made = ast.If(self._guarded(here, accepts=False, text=text), [body[-1]], [])
                body[-1] = ast.copy_location(made, body[-1])
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        no, yes = (_is_refusal(side, self.deciding) for side in (node.orelse, node.body))
        if self._scope and no != yes:
            node.test = self._guarded(node.test, accepts=no)
        return node

    def _guarded(self, test: ast.expr, accepts: bool, text: str = "") -> ast.expr:
        text = text or " ".join(ast.unparse(_without_hooks(test)).split())
        name = f"{self.module}: {'.'.join(self._scope)}: {text}"
        self._names[name] = self._names.get(name, 0) + 1
        if self._names[name] > 1:
            name += f" (#{self._names[name]})"
        number, self.next = self.next, self.next + 1
        self.found.append(Mutant(number, name, test.lineno, accepts))
        made = ast.Call(
            ast.Name(_HOOK, ast.Load()),
            [ast.Constant(number), ast.Constant(accepts), test],
            [],
        )
        return ast.copy_location(made, test)


class _Strip(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == _HOOK:
            return node.args[2]
        return node


def _without_hooks(node: ast.expr) -> ast.expr:
    copy = ast.parse(ast.unparse(node), mode="eval").body
    done = _Strip().visit(copy)
    assert isinstance(done, ast.expr)
    return done


def _passes(statement: ast.stmt | None, deciding: bool) -> list[ast.If]:
    """The `if`s by which the statement returns a result."""
    while isinstance(statement, ast.For):
        statement = statement.body[-1]
    if not isinstance(statement, ast.If) or statement.orelse:
        return []
    if _refuses(statement.body, deciding):
        return []
    within = _passes(statement.body[-1], deciding)
    returns = isinstance(statement.body[-1], ast.Return)
    return [statement, *within] if within or returns else []


def _bodies(node: ast.AST) -> list[list[ast.stmt]]:
    found = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    return [body for body in found if isinstance(body, list)]


def _refuses(body: Sequence[ast.stmt], deciding: bool) -> bool:
    last = body[-1]
    if isinstance(last, ast.Raise):
        return last.exc is not None and not ast.unparse(last.exc).startswith(_NO_REFUSALS)
    if isinstance(last, ast.Return) and last.value is None and len(body) > 1:
        return _notes_reason(body[-2])
    if isinstance(last, ast.Return):
        why = isinstance(last.value, ast.Tuple) and ast.unparse(last.value).startswith("(None, [")
        return why or _is_refusal(last.value, deciding)
    return _notes_reason(last)


def _notes_reason(statement: ast.stmt) -> bool:
    text = ast.unparse(statement) if isinstance(statement, ast.Expr) else ""
    noted = ("._refuse(", "reasons.append(", "Miss(", "Reason(", "not_taken(", "missing.append(")
    return any(words in text for words in noted)


def _is_refusal(value: ast.expr | None, deciding: bool) -> bool:
    if isinstance(value, ast.Constant):
        return deciding and (value.value is None or value.value is False)
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("Miss", "_why_not")


def _modules() -> list[Path]:
    return sorted(p for p in ROOT.rglob("*.py") if p.name != "__init__.py")


def _transform(path: Path, first: int) -> tuple[ast.Module, list[Mutant]]:
    tree = ast.parse(path.read_text(), str(path))
    guards = _Guards(path.relative_to(ROOT.parent).as_posix(), first)
    guards.visit(tree)
    return ast.fix_missing_locations(tree), guards.found


def place(mutant: Mutant) -> str:
    """Where the guard stands, as `# guard:` of a text case says it: `module.function`."""
    module, scope, _ = mutant.name.split(": ", 2)
    return f"{module.rsplit('/', 1)[-1].removesuffix('.py')}.{scope}"


def mutants() -> list[Mutant]:
    """All guards of the matcher."""
    found: list[Mutant] = []
    for path in _modules():
        found += _transform(path, len(found))[1]
    return found


class _Loader(importlib.machinery.SourceFileLoader):
    trees: ClassVar[dict[str, ast.Module]] = {}

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__[_HOOK] = STATE.guard
        tree = self.trees.get(str(self.path))
        if tree is None:
            super().exec_module(module)
        else:
            exec(compile(tree, self.path, "exec"), module.__dict__)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):  # type: ignore[no-untyped-def]
        if not name.startswith("matcher."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            spec.loader = _Loader(name, spec.origin)
        return spec


def install() -> list[Mutant]:
    """Compile the guards into the matcher's modules, all of which must not be imported yet."""
    early = [m for m in sys.modules if m.startswith("matcher.")]
    if early:
        raise RuntimeError(f"imported before its guards could be put in: {early}")
    found: list[Mutant] = []
    for path in _modules():
        tree, here = _transform(path, len(found))
        _Loader.trees[str(path)] = tree
        found += here
    sys.meta_path.insert(0, _Finder())
    return found
