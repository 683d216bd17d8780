"""Record-preserving joins on real data: duplicates, lost rows, NULL keys, pinned versions."""

from __future__ import annotations

import shutil

import pytest

from cachemgr.base_state import versions_of
from cachemgr.delta.tables import base_tables
from cachemgr.errors import JoinValidationError
from cachemgr.refresh.validate_join import JoinCheck, validate_join
from tests.worlds.refresh_star import SHOPS, Star

pytestmark = pytest.mark.spark
KEYS = (("shop_id", "id"),)


def check(
    star: Star, keys: tuple[tuple[str, str], ...] = KEYS, *, finds_each: bool = True
) -> JoinCheck:
    places = (star.key("sales"), star.key("shops"))
    versions = versions_of(base_tables(star.spark, dict(zip(places, places, strict=True))))
    return validate_join(star.spark, *places, keys, versions, {}, finds_each=finds_each)


def text(found: JoinCheck) -> str:
    return str(found.message("j", "sales", "shops", KEYS))


def test_a_join_that_holds(star: Star) -> None:
    found = check(star)
    assert found.ok and text(found) == ""
    assert found.versions == {star.key("sales"): 0, star.key("shops"): 0}


def test_lost_rows_are_counted_also_when_the_right_side_holds_a_null_key(star: Star) -> None:
    """NOT IN would find none of them here."""
    star.write("shops", [(None, "Nowhere", None)], SHOPS, "append")
    star.sell((7, "pen", 1, 1, "1.00"), (7, "pen", 1, 1, "1.00"), (None, "pen", 1, 1, "1.00"))
    found = check(star)
    assert (found.ok, found.lost_rows, found.null_keys, found.duplicates) == (False, 3, 1, 0)
    assert "3 rows of sales would be lost, 1 of them with a NULL key" in text(found)
    assert "for example shop_id = 7" in text(found)


def test_a_left_join_loses_no_row(star: Star) -> None:
    star.sell((7, "pen", 1, 1, "1.00"), (None, "pen", 1, 1, "1.00"))
    star.write("shops", [(None, "Nowhere", None), (None, "Nowhere", None)], SHOPS, "append")
    assert check(star, finds_each=False).ok and not check(star).ok


def test_a_left_join_multiplies_rows_as_an_inner_one_does(star: Star) -> None:
    star.write("shops", [(2, "Roma", "south")], SHOPS, "append")
    star.sell((7, "pen", 1, 1, "1.00"))
    found = check(star, finds_each=False)
    assert (found.ok, found.duplicates, found.multiplied, found.lost_rows) == (False, 1, 2, 0)
    assert "2 rows of sales would be multiplied" in text(found) and "lost" not in text(found)


def test_only_null_keys(star: Star) -> None:
    star.sell((None, "pen", 1, 1, "1.00"))
    found = check(star)
    assert not found.ok and "for example shop_id = NULL" in text(found)


def test_multiplied_rows_are_counted(star: Star) -> None:
    star.write("shops", [(2, "Roma", "south")], SHOPS, "append")
    found = check(star)
    assert (found.ok, found.duplicates, found.multiplied, found.lost_rows) == (False, 1, 2, 0)
    assert "2 rows of sales would be multiplied" in text(found) and "id = 2" in text(found)


def test_several_null_keys_on_the_right_multiply_nothing(star: Star) -> None:
    star.write("shops", [(None, "x", None), (None, "y", None)], SHOPS, "append")
    assert check(star).ok


def test_a_duplicate_that_no_row_uses_yet_is_not_unique_either(star: Star) -> None:
    star.write("shops", [(9, "x", None), (9, "y", None)], SHOPS, "append")
    found = check(star)
    assert not found.ok and (found.duplicates, found.multiplied) == (1, 0)


def test_keys_of_two_columns(star: Star) -> None:
    star.write("shops", [(1, "pen", None)], SHOPS, "append")
    found = check(star, (("shop_id", "id"), ("item", "city")))
    assert (found.lost_rows, found.null_keys) == (4, 1)
    assert found.examples is not None and len(found.examples["lost"]) == 2


def test_it_is_checked_at_the_pinned_versions(star: Star) -> None:
    star.sell((7, "pen", 1, 1, "1.00"))
    places = (star.key("sales"), star.key("shops"))
    assert validate_join(star.spark, *places, KEYS, dict.fromkeys(places, 0), {}).ok
    assert not check(star).ok


def test_a_table_without_versions_cannot_be_checked(star: Star) -> None:
    with pytest.raises(JoinValidationError, match="no version is known"):
        validate_join(star.spark, star.key("sales"), star.key("shops"), KEYS, {}, {})
    with pytest.raises(JoinValidationError, match="no key columns"):
        check(star, ())


def test_a_key_column_that_is_gone_is_named(star: Star) -> None:
    def found() -> str:
        places = (star.key("sales"), star.key("shops"))
        versions = versions_of(base_tables(star.spark, dict(zip(places, places, strict=True))))
        with pytest.raises(JoinValidationError, match="JOIN_COLUMN_LOST") as caught:
            validate_join(
                star.spark, *places, KEYS, versions, {}, told="o_c", names=("sales", "shops")
            )
        assert "\n" not in str(caught.value)
        return str(caught.value)

    shutil.rmtree(star.path("shops"))
    star.write("shops", [("Oslo",)], "city string", "overwrite")
    assert "join o_c: table shops has no column id any more" in found()
    assert "(the table has city)" in found()
    shutil.rmtree(star.path("shops"))
    star.spark.sql(f"CREATE TABLE delta.`{star.path('shops')}` USING delta")
    assert "(the table has no column at all)" in found()
    shutil.rmtree(star.path("sales"))
    star.spark.sql(f"CREATE TABLE delta.`{star.path('sales')}` USING delta")
    assert "table sales has no column shop_id" in found()
