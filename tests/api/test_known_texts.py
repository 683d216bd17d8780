"""Texts that come for the third time are known, and answered at once as they are otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from sqlalchemy import text

from cachemgr.base_state import TableAt
from cachemgr.delta.head_lookup import Heads
from cachemgr.delta.past import UNKNOWN_PAST, Past
from cachemgr.text.door import TextDoor, TextRequest
from matcher.model.reasons import ReasonCode
from tests.api.text_service import QUERY, UNLIMITED, Texts
from tests.harness.load.population import SETTINGS, schema_of, write_commit


def test_a_known_text_is_answered_at_once_as_it_is_otherwise(texts: Texts):
    other = QUERY.replace("ASIA", "EUROPE").replace("1993", "1995")
    asked = TextRequest(other, "ann")
    assert texts.door.quick(asked) is None
    for _ in range(3):
        texts.ask("rewrite", {"sql": QUERY})
        texts.ask("explain", {"sql": QUERY, "candidates": 5})
    found = texts.door.quick(asked)
    assert found is not None and found == texts.door.answer(asked)
    assert found.sql is not None and "'EUROPE'" in found.sql and "1995" in found.sql
    explained = texts.door.quick(asked, explain=5)
    assert explained is not None and explained == texts.door.answer(asked, explain=5)
    assert texts.door.quick(TextRequest(other, "ann", schema="elsewhere")) is None
    ansi = {"spark.sql.ansi.enabled": "false"}
    assert texts.door.quick(TextRequest(other, "ann", settings=ansi)) is None
    unlike = other.replace("d_year >= 1995", "d_year >= 1995 AND c_city = 'x'")
    assert texts.door.quick(TextRequest(unlike, "ann")) is None


def test_what_takes_longer_than_a_moment_is_not_told_soon(
    texts: Texts, monkeypatch: pytest.MonkeyPatch
):
    """Nor is what a moment was too short for taken for what the query has."""
    usual = TextRequest(QUERY, "ann")
    assert texts.door.soon(usual) == texts.door.answer(usual)
    copies = ", ".join(f"lineorder l{i}" for i in range(16))
    joined = " AND ".join(f"l{i}.lo_orderkey = l{i + 1}.lo_orderkey" for i in range(15))
    worst = TextRequest(f"SELECT SUM(l0.lo_revenue) AS a FROM {copies} WHERE {joined}", "ann")
    with monkeypatch.context() as shorter:
        shorter.setattr("cachemgr.text.door.SOON_SECONDS", 0.0)
        assert texts.door.soon(worst) is None
    found = texts.door.answer(worst)
    assert found.sql is None
    assert {r.code for r in found.reasons}.isdisjoint({ReasonCode.OUT_OF_TIME})
    assert texts.feed.telemetry.counters().get("errors", 0) == 0


def test_a_known_text_stays_known_while_caches_are_refreshed(texts: Texts):
    """A refresh somewhere happens every few seconds: what is known of texts must outlive it."""
    asked = TextRequest(QUERY, "ann")
    for _ in range(3):
        texts.ask("rewrite", {"sql": QUERY})
    assert texts.door.quick(asked) is not None

    def change(columns: dict[str, str]) -> None:
        seen = (replace(t, version=t.version + 1) for t in texts.tables.values())
        noted = [replace(t, columns=columns.get(t.name, t.columns)) for t in seen]
        texts.tables = {t.name.rpartition(".")[2]: t for t in noted}
        texts.store.tables.note(noted)
        cache = texts.store.caches.matching()[0]
        now = texts.store.clock.now()
        texts.store.caches.update(cache.id, cache.version, now=now, freshness=UNLIMITED)
        assert texts.feed.sync()

    change({})
    found = texts.door.quick(asked)
    assert found is not None and found.sql is not None
    narrower = schema_of("customer").replace("c_nation", "c_country")
    change({texts.tables["customer"].name: narrower})
    assert texts.door.quick(asked) is None
    # the log, which is what counts, still has the columns of before
    assert texts.rewrite(QUERY)["hit"]
    change({texts.tables["customer"].name: narrower})
    assert texts.rewrite(QUERY)["hit"]
    names = texts.door._reader.names
    assert names is not None
    place = texts.tables["customer"].location
    assert names.tables[place].columns == schema_of("customer"), "seen in the log"


class Asked:
    """Notes which tables a Spark is asked for, and knows none."""

    def __init__(self) -> None:
        self.places: list[str] = []

    def look(self, seeds: Iterable[TableAt]) -> Mapping[str, TableAt]:
        self.places += [seed.location for seed in seeds]
        return {}

    def past(self, table: TableAt, version: int, *, columns_then: bool) -> Past:
        self.places.append(table.location)
        return UNKNOWN_PAST


@pytest.mark.parametrize("left", ["nothing", "a log without its schema"])
def test_no_spark_is_asked_for_a_known_text(texts: Texts, left):
    """It would hold up all other known texts."""
    spark = Asked()
    door = TextDoor(texts.feed, Heads(spark), SETTINGS)
    for _ in range(3):
        door.answer(TextRequest(QUERY, "ann"))
    assert door.quick(TextRequest(QUERY, "ann")) is not None
    log = texts.folder / "part" / "_delta_log"
    for commit in log.iterdir():
        commit.unlink()
    if left != "nothing":
        write_commit(log, 5, [{"commitInfo": {}}])
    assert door.quick(TextRequest(QUERY, "ann")) is None
    assert spark.places == []
    assert door.answer(TextRequest(QUERY, "ann")).sql is None
    assert spark.places == [texts.tables["part"].location], "as for a text that is not known"


def test_a_table_without_a_name_is_known_by_its_folder(texts: Texts):
    was = texts.tables["lineorder"]
    with texts.store.engine.begin() as connection:
        connection.execute(text("DELETE FROM base_tables WHERE name = :n"), {"n": was.name})
    texts.store.tables.note([replace(was, name=was.location)])
    texts.feed.sync()
    assert texts.code(QUERY) == "UNSUPPORTED_RELATION"
    by_path = QUERY.replace("FROM lineorder", f"FROM delta.`{was.location}`")
    assert texts.rewrite(by_path)["hit"]


def test_a_name_for_two_places_is_known_under_neither(texts: Texts):
    other = texts.store.caches.matching()[5]
    place = next(r[0] for r in other.plan["relations"] if "customer" in r[0])
    twin = texts.tables["customer"]
    copy = TableAt(twin.name, place, "x", 0, 0, columns=twin.columns)
    texts.store.tables.note([copy])
    texts.feed.sync()
    found = texts.rewrite(QUERY)
    assert not found["hit"] and "two locations" in found["reasons"][0]["detail"]


def test_long_settings_are_not_remembered(texts: Texts):
    for number in range(3):
        settings = {f"spark.my.own.{n}": "x" * 5_000 + str(number) for n in range(3)}
        assert texts.rewrite(QUERY, settings=settings)["hit"]
        assert texts.rewrite(QUERY, settings={"spark.my.own": str(number)})["hit"]
    kept = [sum(len(k) + len(v) for k, v in key) for key in texts.door._settings._entries]
    assert len(kept) == 3 and max(kept) < 5_000
