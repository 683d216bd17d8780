"""The functions of a module, by name, where they stand, and a digest of what they do.

A function is what a test covers and what a change changes: one at the top of a module, or a method;
what is defined within it belongs to it. The rest of a module (constants, tables, classes' fields)
counts as one more, with an empty name.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

_Function = ast.FunctionDef | ast.AsyncFunctionDef
REST = ""


@dataclass(frozen=True)
class Function:
    """A function of a module.

    Attributes:
        name: `function` or `Class.method`; empty for the rest of the module.
        first: The first line of its body, which runs when it is called; 0 for the rest.
        last: The last line of its body.
        digest: Of all that it does: comments, docstrings and the places of lines are no part of it.
    """

    name: str
    first: int
    last: int
    digest: str


def functions(source: str) -> tuple[Function, ...]:
    """The functions of a module's source, and its rest.

    Raises:
        SyntaxError: It is no Python.
    """
    module = ast.parse(source)
    found = tuple(_named(module, ""))
    for node in ast.walk(module):
        _without_docstring(node)
    made = [
        Function(name, node.body[0].lineno, node.end_lineno or 0, _digest(node))
        for name, node in found
    ]
    return (*made, Function(REST, 0, 0, _digest(_WithoutFunctions().visit(module))))


class _WithoutFunctions(ast.NodeTransformer):
    """Takes functions out, with their decorators and defaults, which are parts of them."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        return None

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        return None


def _named(parent: ast.AST, prefix: str) -> Iterator[tuple[str, _Function]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, _Function):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _named(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _named(node, prefix)


def _without_docstring(node: ast.AST) -> None:
    if (
        isinstance(node, _Function | ast.ClassDef | ast.Module)
        and ast.get_docstring(node) is not None
    ):
        del node.body[0]
        if not node.body and not isinstance(node, ast.Module):
            node.body = [ast.Pass(lineno=node.lineno, end_lineno=node.end_lineno)]


def _digest(node: ast.AST) -> str:
    return hashlib.sha256(ast.dump(node).encode()).hexdigest()[:16]
