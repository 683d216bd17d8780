"""Table properties under which no refresh can succeed are refused when they are set."""

from __future__ import annotations

import pytest

from cachemgr.cache_spec import CacheSpec
from cachemgr.config.cache_properties import has_fresh_hits, table_properties
from cachemgr.errors import DefinitionError
from cachemgr.statements.apply import check
from cachemgr.statements.create_cache import refuse_properties
from cachemgr.statements.export import CacheDefinition, Definitions


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.appendOnly", "true"),
        ("DELTA.APPENDONLY", " TRUE "),
        ("delta.constraints.positive", "v > 0"),
        ("delta.columnMapping.mode", "name"),
        ("delta.columnmapping.MODE", " Id "),
    ],
)
def test_what_stops_each_refresh_is_refused(key: str, value: str) -> None:
    with pytest.raises(DefinitionError, match="leave it out") as caught:
        refuse_properties("c", {"team": "bi", key: value})
    assert caught.value.code == "PROPERTY_NOT_ALLOWED" and key in caught.value.message


def test_others_are_not() -> None:
    refuse_properties("c", {"delta.appendOnly": "false", "delta.enableChangeDataFeed": "true"})
    refuse_properties("c", {"delta.columnMapping.mode": "none"})


@pytest.mark.parametrize("value", ["true", "false", "FALSE", " True "])
def test_the_switch_of_hits_between_refreshes_takes_true_and_false(value: str) -> None:
    refuse_properties("c", {"cachemgr.freshHits": value})


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("cachemgr.freshHits", "off", "cachemgr.freshHits is true or false, not 'off'"),
        ("cachemgr.freshHits", "", "true or false, not ''"),
        ("cachemgr.freshHit", "true", "did you mean cachemgr.freshHits?"),
        ("cachemgr.freshhits", "true", "did you mean cachemgr.freshHits?"),
        ("CACHEMGR.FreshHits", "false", "did you mean cachemgr.freshHits?"),
        ("cachemgr.zzz", "1", "there is cachemgr.freshHits"),
    ],
)
def test_properties_of_ours_that_mean_nothing_are_refused(key: str, value: str, said: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        refuse_properties("sales", {"team": "bi", key: value})
    assert caught.value.code == "PROPERTY_NOT_ALLOWED"
    assert said in caught.value.message and "sales" in caught.value.message


def test_the_table_gets_no_property_of_ours() -> None:
    given = {"cachemgr.freshHits": "false", "delta.enableChangeDataFeed": "true", "team": "bi"}
    assert table_properties(given) == {"delta.enableChangeDataFeed": "true", "team": "bi"}
    assert not has_fresh_hits(given) and has_fresh_hits({"cachemgr.freshHits": "true"})


def test_the_table_of_an_earlier_release_is_not_mapped_anew() -> None:
    given = {"Delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "4", "a": "b"}
    assert table_properties(given) == {"a": "b"}


def test_a_document_with_such_a_property_changes_nothing() -> None:
    wanted = Definitions(
        (CacheDefinition("c", "SELECT 1", CacheSpec(properties={"cachemgr.fresh": "1"})),)
    )
    with pytest.raises(DefinitionError, match="did you mean"):
        check((), wanted, lambda text, context: pytest.fail("nothing is analysed"))
