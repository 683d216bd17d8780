"""Every statement and every bad statement of the fixture files."""

from __future__ import annotations

import pickle

import pytest
from ddl_fixtures import FIXTURES, BadCase, Case, load, load_invalid, shown

from cachemgr.ddl import STATEMENTS, looks_like_ours, parse, render
from cachemgr.errors import CacheManagerError, StatementError

_FILES = sorted(FIXTURES.glob("*.sql"))
_GOOD = [case for path in _FILES if "__invalid" not in path.stem for case in load(path)]
_BAD = [case for path in _FILES if "__invalid" in path.stem for case in load_invalid(path)]


@pytest.mark.parametrize("case", _GOOD, ids=lambda case: case.title)
def test_parses_as_written_down(case: Case) -> None:
    assert shown(parse(case.text)) == case.expected


@pytest.mark.parametrize("case", _GOOD, ids=lambda case: case.title)
def test_renders_and_parses_back(case: Case) -> None:
    statement = parse(case.text)
    text = render(statement)
    assert parse(text) == statement
    assert render(parse(text)) == text
    assert looks_like_ours(case.text)
    assert looks_like_ours(text)


@pytest.mark.parametrize("case", _BAD, ids=lambda case: case.title)
def test_bad_statement_is_refused_at_its_place(case: BadCase) -> None:
    with pytest.raises(StatementError) as caught:
        parse(case.text)
    error = caught.value
    assert (error.line, error.col) == (case.line, case.column), str(error)
    for fragment in case.fragments:
        assert fragment in str(error)
    assert isinstance(error, CacheManagerError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    # The token stands where the error says it does.
    line = case.text.split("\n")[error.line - 1]
    assert line[error.col - 1 :].startswith(error.token.removesuffix("…"))


def test_every_statement_class_has_a_good_case() -> None:
    assert {type(parse(case.text)) for case in _GOOD} == set(STATEMENTS)
