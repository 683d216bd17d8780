"""Errors keep their code and fields, also across processes."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import cachemgr
from cachemgr.errors import ErrorCode, LeaseLostError, SchemaVersionError, StatementError


@pytest.mark.parametrize(
    "error",
    [
        LeaseLostError("LEASE_LOST", "gone"),
        SchemaVersionError("old", "0001", "0002"),
        StatementError("no such clause", 3, 7, "REFESH", ("REFRESH", "AS")),
    ],
)
def test_an_error_survives_pickling(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)


def test_a_statement_error_names_the_place_and_what_is_expected():
    error = StatementError("no such clause", 3, 7, "REFESH", ("REFRESH", "AS"))
    assert str(error) == (
        "[SYNTAX_ERROR] no such clause (line 3, column 7, at 'REFESH'); expected REFRESH or AS"
    )
    assert "at the end of the statement" in str(StatementError("more", 1, 9, ""))


SOURCES = sorted(Path(cachemgr.__file__).parent.rglob("*.py"))


def _raised(tree: ast.AST) -> Iterator[ast.expr]:
    """The arguments of errors that could be their codes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name.endswith("Error"):
                yield from node.args[:2]


def test_codes_are_of_the_enum_and_not_written_out() -> None:
    written = [
        f"{path.name}:{argument.lineno} {argument.value}"
        for path in SOURCES
        for argument in _raised(ast.parse(path.read_text()))
        if isinstance(argument, ast.Constant) and argument.value in set(ErrorCode)
    ]
    assert written == []


def test_each_code_is_raised_somewhere() -> None:
    texts = "\n".join(path.read_text() for path in SOURCES)
    assert [code.name for code in ErrorCode if f"ErrorCode.{code.name}" not in texts] == []


def test_a_code_is_what_it_says() -> None:
    error = LeaseLostError(ErrorCode.LEASE_LOST, "gone")
    assert str(error) == "[LEASE_LOST] gone" and type(error.code) is str
    assert all(code.name == code.value for code in ErrorCode)
