"""Table properties under which no refresh can succeed are refused when they are set."""

from __future__ import annotations

import pytest

from cachemgr.errors import DefinitionError
from cachemgr.statements.create_cache import refuse_properties


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.appendOnly", "true"),
        ("DELTA.APPENDONLY", " TRUE "),
        ("delta.constraints.positive", "v > 0"),
    ],
)
def test_what_stops_each_refresh_is_refused(key: str, value: str) -> None:
    with pytest.raises(DefinitionError, match="leave it out") as caught:
        refuse_properties("c", {"team": "bi", key: value})
    assert caught.value.code == "PROPERTY_NOT_ALLOWED" and key in caught.value.message


def test_others_are_not() -> None:
    refuse_properties("c", {"delta.appendOnly": "false", "delta.enableChangeDataFeed": "true"})
