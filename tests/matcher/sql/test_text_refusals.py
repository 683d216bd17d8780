"""What the text door refuses, by the construct that it names: each would otherwise be read as
something that Spark does not mean.

The lines of text_refusals.txt: what the reason says (or the code of an error of the writer's, with
an exclamation mark), two dashes, the query.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from matcher.model.errors import SqlInputError
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema
from tests.matcher.fixture_cases import FOLDER

SCHEMA = Schema.parse((FOLDER / "_schema.sql").read_text())
LINES = (Path(__file__).parent / "text_refusals.txt").read_text().splitlines()


@pytest.mark.parametrize("line", LINES)
def test_refused(line: str) -> None:
    said, query = line.split(" -- ")
    if said.endswith("!"):
        with pytest.raises(SqlInputError) as caught:
            parse_query(query, SCHEMA)
        assert caught.value.code == said[:-1]
        return
    parsed = parse_query(query, SCHEMA)
    details = [reason.detail for block in parsed.walk() for reason in block.reasons]
    assert said in details
