"""Errors keep their code and fields, also across processes."""

from __future__ import annotations

import pickle

import pytest

from cachemgr.errors import LeaseLostError, SchemaVersionError, StatementError


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
