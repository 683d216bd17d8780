"""Errors keep their code and fields, also across processes."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import cachemgr
import matcher
from cachemgr.errors import (
    AlreadyExistsError,
    ErrorCode,
    LeaseLostError,
    SchemaVersionError,
    StatementError,
)
from cachemgr.worker.passing import is_of_storage
from matcher.model.errors import InputCode


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
MATCHER = sorted(Path(matcher.__file__).parent.rglob("*.py"))


def _raised(tree: ast.AST) -> Iterator[ast.expr]:
    """The arguments of errors that could be their codes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name.endswith("Error"):
                yield from node.args[:2]
            if name == "envelope":
                yield from node.args[2:3]


def test_what_the_matcher_finds_wrong_with_a_text_is_an_error_code_as_well() -> None:
    assert {code.value for code in InputCode} <= {code.value for code in ErrorCode}


@pytest.mark.parametrize(
    ("old", "code"),
    [
        ("BASE_TABLE_UNREADABLE", ErrorCode.TABLE_UNREADABLE),
        ("CACHE_ALREADY_EXISTS", ErrorCode.CACHE_EXISTS),
        ("UNNAMED_COLUMN", ErrorCode.EXPRESSION_NOT_SUPPORTED),
        ("NOTENABLED", ErrorCode.NOT_ENABLED),
        ("TABLE_NOT_READABLE", ErrorCode.TABLE_UNREADABLE),
    ],
)
def test_words_of_earlier_releases_are_understood(old: str, code: ErrorCode) -> None:
    assert ErrorCode(old) is code
    # as an older service answers
    assert AlreadyExistsError(old, "…").code == code.value


@pytest.mark.parametrize("word", ["TABLE_UNREADABLE", "TABLE_NOT_READABLE"])
def test_a_failure_stored_under_an_earlier_word_still_passes_by_itself(word: str) -> None:
    assert is_of_storage(f"[{word}] a table cannot be read: Permission denied")
    assert not is_of_storage("[SYNTAX_ERROR] a table cannot be read: Permission denied")


def test_there_is_no_such_code() -> None:
    with pytest.raises(ValueError, match="NONSENSE"):
        ErrorCode("NONSENSE")


def test_codes_are_of_the_enum_and_not_written_out() -> None:
    written = [
        f"{path.name}:{argument.lineno} {argument.value}"
        for path in [*SOURCES, *MATCHER]
        for argument in _raised(ast.parse(path.read_text()))
        if isinstance(argument, ast.Constant) and argument.value in {*ErrorCode, *InputCode}
    ]
    assert written == []


def test_each_code_is_raised_somewhere() -> None:
    texts = "\n".join(path.read_text() for path in SOURCES)
    of_input = "\n".join(path.read_text() for path in MATCHER)
    written = {code: f"ErrorCode.{code.name}" in texts for code in ErrorCode}
    written |= {ErrorCode(c): f"InputCode.{c.name}" in of_input + texts for c in InputCode}
    assert [code.name for code, is_raised in written.items() if not is_raised] == []


def test_a_code_is_what_it_says() -> None:
    error = LeaseLostError(ErrorCode.LEASE_LOST, "gone")
    assert str(error) == "[LEASE_LOST] gone" and type(error.code) is str
    assert all(code.name == code.value for code in ErrorCode)
