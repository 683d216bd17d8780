"""POST /rewrite and /explain: SQL in, the SQL to run or the reason out, without a Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from cachemgr.base_state import TableAt
from cachemgr.cache_spec import Freshness
from cachemgr.delta.head_lookup import Heads
from cachemgr.delta.past import UNKNOWN_PAST, Past
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.roles import Role
from cachemgr.serving.feed import Feed
from cachemgr.serving.sources import MetastoreSource
from cachemgr.serving.why import why
from cachemgr.text.door import TextDoor, TextRequest
from cachemgr.vocabulary import FreshnessKind
from matcher.model.reasons import ReasonCode
from tests.harness.load.population import SETTINGS, populate, schema_of, write_commit

FROM = """FROM lineorder, dates, customer, supplier, part
WHERE lo_orderdate = d_datekey AND lo_custkey = c_custkey
AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey"""
UNLIMITED = Freshness(FreshnessKind.UNLIMITED)
QUERY = f"""SELECT d_year, c_nation, SUM(lo_revenue) AS revenue {FROM}
AND c_region = 'ASIA' AND d_year >= 1993 GROUP BY d_year, c_nation ORDER BY d_year"""


@dataclass
class Texts:
    """A service with some caches, and clients of it. Each request is sent `times` times: a text is
    known when it comes for the third time, and what is known must not change any answer."""

    url: str
    store: Metastore
    feed: Feed
    folder: Path
    tables: dict[str, TableAt]
    door: TextDoor
    times: int
    tokens: dict[str, str] = field(default_factory=dict)

    def ask(self, path: str, body: object, principal: str = "ann") -> httpx.Response:
        if principal not in self.tokens:
            self.tokens[principal] = self.store.tokens.create(principal, Role.VIEWER)[1]
        headers = {"Authorization": f"Bearer {self.tokens[principal]}"}
        url = f"{self.url}/api/v1/{path}"
        for _ in range(self.times):
            answer = httpx.post(url, json=body, headers=headers, timeout=30)
        return answer

    def rewrite(self, sql: str, principal: str = "ann", **more: object) -> dict:
        answer = self.ask("rewrite", {"sql": sql, **more}, principal)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["hit"] is (found["sql"] is not None)
        return found

    def code(self, sql: str, principal: str = "ann", **more: object) -> str:
        found = self.rewrite(sql, principal, **more)
        assert not found["hit"] and found["tables"] == [], found
        return found["reasons"][0]["code"]

    def commit(self, table: str, version: int, *actions: dict) -> None:
        write_commit(self.folder / table / "_delta_log", version, list(actions))


@pytest.fixture(params=[1, 3], ids=["new", "known"])
def texts(serve, store: Metastore, metastore_url: str, tmp_path: Path, request) -> Iterator[Texts]:
    tables = populate(store, tmp_path, 10)
    feed = Feed(MetastoreSource(open_metastore(metastore_url)))
    feed.start()
    assert feed.wait_loaded(20)
    door = TextDoor(feed, Heads(), SETTINGS)
    yield Texts(serve(texts=door), store, feed, tmp_path, tables, door, request.param)
    feed.close()


def test_the_sql_to_run_and_what_its_rows_are(texts: Texts):
    found = texts.rewrite(QUERY)
    assert found["hit"] and found["exact"] and found["reasons"] == []
    (cache,) = found["caches"]
    record = texts.store.caches.named("default", cache)
    assert f"FROM delta.`{record.location}` VERSION AS OF 1" in found["sql"]
    assert {(t["name"], t["version"], t["tableId"]) for t in found["tables"]} == {
        (f"default.{n}", 2, f"id-of-{n}") for n in texts.tables
    }
    assert found["settings"] == SETTINGS
    again = texts.rewrite(QUERY.replace("ASIA", "EUROPE"))
    assert again["sql"] == found["sql"].replace("ASIA", "EUROPE")


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


def test_explain_tells_of_the_nearest_caches(texts: Texts):
    found = texts.ask("explain", {"sql": QUERY}).json()
    assert found["hit"] and found["candidates"][0]["outcome"] == "chosen"
    assert found["candidates"][0]["cost"] > 0
    few = texts.ask("explain", {"sql": QUERY, "candidates": 1}).json()
    assert [c["outcome"] for c in few["candidates"]] == ["chosen"]
    assert few["rewrittenSql"] == found["rewrittenSql"] == texts.rewrite(QUERY)["sql"]
    missed = QUERY.replace("lo_revenue", "lo_tax")
    assert texts.code(missed) in ("AGG_NOT_DERIVABLE", "NO_CACHE_FOR_TABLES")
    why = texts.ask("explain", {"sql": missed}).json()
    assert not why["hit"] and {c["outcome"] for c in why["candidates"]} == {"refused"}
    assert all(r["detail"] for c in why["candidates"] for r in c["reasons"])


def test_a_commit_is_seen_at_once(texts: Texts):
    assert texts.rewrite(QUERY)["hit"]
    texts.commit("customer", 3, {"commitInfo": {}}, {"add": {"path": "x"}})
    assert texts.code(QUERY) == "STALE"
    cache = texts.store.caches.matching()[0]
    for one in texts.store.caches.matching():
        texts.store.caches.update(
            one.id, one.version, now=texts.store.clock.now(), freshness=UNLIMITED
        )
    texts.feed.sync()
    found = texts.rewrite(QUERY)
    assert found["hit"] and not found["exact"] and cache
    versions = {t["name"]: t["version"] for t in found["tables"]}
    assert versions["default.customer"] == 2, "those are the rows that the SQL gives"


def test_a_table_that_has_other_columns_now(texts: Texts):
    assert texts.rewrite(QUERY)["hit"]
    wider = schema_of("customer").replace("c_city", "d_year")
    texts.commit("customer", 3, {"metaData": {"id": "id-of-customer", "schemaString": wider}})
    found = texts.rewrite(QUERY)
    assert not found["hit"] and "AMBIGUOUS" in found["reasons"][0]["detail"]
    narrower = schema_of("customer").replace("c_nation", "c_country")
    texts.commit("customer", 4, {"metaData": {"id": "id-of-customer", "schemaString": narrower}})
    found = texts.rewrite(QUERY)
    assert not found["hit"] and "c_nation" in found["reasons"][0]["detail"]


def test_a_table_created_again_or_gone(texts: Texts):
    assert texts.rewrite(QUERY)["hit"]
    log = texts.folder / "part" / "_delta_log"
    for commit in log.iterdir():
        commit.unlink()
    assert texts.code(QUERY) == "FRESHNESS_UNKNOWN"
    for version in range(3):
        again = {"id": "another", "schemaString": schema_of("part")}
        write_commit(log, version, [{"metaData": again}] if version == 0 else [{"commitInfo": {}}])
    assert texts.code(QUERY) == "TABLE_RECREATED"


def test_a_log_that_is_cut_off(texts: Texts):
    """What a log does not say any more is not known, unless it goes on from where we looked."""
    assert texts.rewrite(QUERY)["hit"]
    log = texts.folder / "part" / "_delta_log"
    (log / f"{0:020d}.json").unlink()
    assert texts.rewrite(QUERY)["hit"], "the head is the one that was seen"
    for version in (1, 2):
        (log / f"{version:020d}.json").unlink()
    write_commit(log, 5, [{"commitInfo": {}}])
    assert texts.code(QUERY) == "FRESHNESS_UNKNOWN"


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


def test_texts_that_are_refused(texts: Texts):
    for sql, code, told in (
        ("SELECT x FROM nowhere", "UNSUPPORTED_RELATION", "nowhere"),
        (QUERY.replace("lineorder", "elsewhere.lineorder"), "UNSUPPORTED_RELATION", "lineorder"),
        ("DROP TABLE lineorder", "UNSUPPORTED_OPERATOR", "NOT_A_QUERY"),
        ("SELECT 1; SELECT 2", "UNSUPPORTED_OPERATOR", "NOT_ONE_QUERY"),
        ("SELECT FROM WHERE", "UNSUPPORTED_OPERATOR", "SYNTAX_ERROR"),
        ("SELECT '", "UNSUPPORTED_OPERATOR", "SYNTAX_ERROR"),
        ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "UNSUPPORTED_OPERATOR", ""),
        (QUERY.replace("'ASIA'", "'${region}'"), "UNSUPPORTED_EXPRESSION", "setting"),
        (QUERY.replace("'ASIA'", ":region"), "UNSUPPORTED_EXPRESSION", "a literal in its place"),
        (QUERY.replace("'ASIA'", "?"), "UNSUPPORTED_EXPRESSION", "a literal in its place"),
        (QUERY.replace("SELECT", "SELECT /*+ NO_RELATIONAL_CACHE */"), "HINT", ""),
        (QUERY.replace("dates,", "dates VERSION AS OF 1,"), "UNSUPPORTED_RELATION", ""),
    ):  # fmt: skip
        found = texts.rewrite(sql)
        assert not found["hit"], sql
        assert (found["reasons"][0]["code"], told in str(found["reasons"])) == (code, True), found


def test_texts_that_would_take_the_parser_forever(texts: Texts):
    """Each of these ran for minutes, or ended the process, before it was refused."""
    texts.times = 1
    for sql in (
        "SELECT 1 AS x FROM lineorder " + "JOIN lineorder " * 40,
        "SELECT 1 AS x FROM lineorder " + "LEFT JOIN lineorder x " * 3000,
        "SELECT * FROM (" * 60_000 + "SELECT 1" + ")" * 60_000,
        "SELECT CAST(lo_tax AS " + "ARRAY<" * 3000 + "INT" + ">" * 3000 + ")",
        "SELECT " + "1 AS a," * 100_000 + "1 AS a FROM lineorder",
        "SELECT lo_tax FROM lineorder WHERE " + "lo_tax = 1 OR " * 3000 + "lo_tax = 2",
        "SELECT lo_tax FROM lineorder WHERE " + "NOT " * 15_000 + "true",
        "SELECT 1 AS a UNION ALL " * 3000 + "SELECT 1",
        "SELECT lo_tax" + "[0]" * 3000 + " FROM lineorder",
        "SELECT '" + "x" * 900_000,
        "/*" * 400_000,
    ):
        began = time.monotonic()
        assert not texts.rewrite(sql)["hit"]
        assert time.monotonic() - began < 20, sql[:40]
    assert texts.rewrite(QUERY)["hit"]
    many = " ".join(f"JOIN customer c{n} ON c{n}.c_custkey = 1" for n in range(9))
    assert "TOO" not in str(texts.rewrite(f"SELECT 1 AS x FROM customer {many}")["reasons"])


def test_names_in_catalogs_and_schemas(texts: Texts):
    assert texts.rewrite(QUERY.replace("FROM lineorder", "FROM spark_catalog.default.lineorder"))[
        "hit"
    ]
    assert texts.rewrite(QUERY, catalog="SPARK_CATALOG", schema="Default")["hit"]
    assert texts.code(QUERY, schema="other") == "UNSUPPORTED_RELATION"
    assert texts.code(QUERY, catalog="other") == "UNSUPPORTED_RELATION"
    full = QUERY
    for name in texts.tables:
        full = full.replace(f"{name},", f"spark_catalog.default.{name},")
    full = full.replace(" part\n", " spark_catalog.default.part\n")
    assert texts.rewrite(full, catalog="other", schema="s")["hit"]


def test_tables_by_their_folders(texts: Texts):
    folder = texts.tables["lineorder"].location.removeprefix("file:")
    by_path = QUERY.replace("FROM lineorder", f"FROM delta.`{folder}`")
    assert texts.rewrite(by_path)["hit"]
    for spelled in (f"file:{folder}", f"file://{folder}", f"/{folder}//"):
        assert texts.rewrite(by_path.replace(f"`{folder}`", f"`{spelled}`"))["hit"], spelled
    qualified = by_path.replace("SUM(lo_", f"SUM(delta.`{folder}`.lo_")
    assert texts.rewrite(qualified)["hit"]
    aliased = by_path.replace(f"`{folder}`", f"`{folder}` AS l").replace("SUM(lo_", "SUM(l.lo_")
    assert texts.rewrite(aliased)["hit"]
    for other in (folder[1:], f"{folder}x", f"{folder}` VERSION AS OF `2", f"s3a:/{folder}"):
        assert not texts.rewrite(by_path.replace(f"`{folder}`", f"`{other}`"))["hit"], other
    parquet = by_path.replace("delta.`", "parquet.`")
    assert texts.code(parquet) == "UNSUPPORTED_RELATION"


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


def test_settings_of_the_session(texts: Texts):
    zone = "spark.sql.session.timeZone"
    assert texts.code(QUERY, settings={zone: "Asia/Tokyo"}) == "SETTINGS_DIFFER"
    assert texts.code(QUERY, settings={"spark.sql.ansi.enabled": "false"}) == "SETTINGS_DIFFER"
    assert texts.code(QUERY, settings={"spark.sql.legacy.x": "1"}) == "SETTINGS_DIFFER"
    assert texts.code(QUERY, settings={"spark.cachemgr.mode": "off"}) == "SETTINGS_DIFFER"
    delta = {"spark.databricks.delta.normalizePartitionValuesOnRead": "false"}
    assert texts.code(QUERY, settings=delta) == "SETTINGS_DIFFER"
    same = {zone: "UTC", "spark.sql.ansi.enabled": "true", "spark.sql.shuffle.partitions": "3"}
    assert texts.rewrite(QUERY, settings=same)["hit"]
    harmless = {"spark.sql.sources.partitionOverwriteMode": "dynamic",
                "spark.sql.storeAssignmentPolicy": "LEGACY", "spark.sql.orc.impl": "hive",
                "spark.sql.legacy.setCommandRejectsSparkCoreConfs": "false",
                "spark.databricks.delta.optimizeWrite.enabled": "true"}  # fmt: skip
    assert texts.rewrite(QUERY, settings=same | harmless)["hit"]
    defaults = {"spark.sql.legacy.timeParserPolicy": "corrected",
                "spark.sql.mapKeyDedupPolicy": "Exception",
                "spark.databricks.delta.normalizePartitionValuesOnRead": "TRUE"}  # fmt: skip
    assert texts.rewrite(QUERY, settings=same | defaults)["hit"]
    functions = {"spark.sql.mapKeyDedupPolicy": "LAST_WIN"}
    assert texts.rewrite(QUERY, settings=same | functions)["hit"]  # it makes no map
    wrong = texts.ask("rewrite", {"sql": QUERY, "settings": {"spark.cachemgr.mode": "maybe"}})
    assert wrong.status_code == 400 and "maybe" in wrong.json()["error"]["message"]


def test_long_settings_are_not_remembered(texts: Texts):
    for number in range(3):
        settings = {f"spark.my.own.{n}": "x" * 5_000 + str(number) for n in range(3)}
        assert texts.rewrite(QUERY, settings=settings)["hit"]
        assert texts.rewrite(QUERY, settings={"spark.my.own": str(number)})["hit"]
    kept = [sum(len(k) + len(v) for k, v in key) for key in texts.door._settings._entries]
    assert len(kept) == 3 and max(kept) < 5_000


def test_grants_and_restricted_tables_hold(texts: Texts):
    for cache in texts.store.caches.matching():
        texts.store.grants.add(cache.id, "ann")
    texts.feed.sync()
    assert texts.rewrite(QUERY, "ann")["hit"]
    assert texts.code(QUERY, "bob") == "NOT_GRANTED"
    why = texts.ask("explain", {"sql": QUERY}, "bob").json()
    assert not why["hit"] and "NOT_GRANTED" in str(why["candidates"])


def test_a_join_of_a_replaced_part_with_a_table_is_read_at_one_moment(texts: Texts):
    inner = QUERY.rpartition("ORDER BY")[0]
    sql = f"SELECT c.c_name, x.revenue FROM ({inner}) x JOIN customer c ON x.c_nation = c.c_nation"
    found = texts.rewrite(sql)
    assert found["hit"] and "JOIN customer VERSION AS OF 2 c ON" in found["sql"]
    texts.commit("customer", 3, {"commitInfo": {}})  # no row changed
    assert "JOIN customer VERSION AS OF 3 c ON" in texts.rewrite(sql)["sql"]
    gone = {"remove": {"path": "part-0", "dataChange": True}}
    texts.commit("customer", 4, gone)
    assert "STALE" in {r["code"] for r in texts.rewrite(sql)["reasons"]}


def test_appended_rows_cannot_be_named_in_a_text(texts: Texts):
    added = {"path": "part-9", "size": 10, "partitionValues": {}, "dataChange": True}
    texts.commit("lineorder", 3, {"add": {**added, "stats": '{"numRecords":5}'}})
    found = texts.rewrite(QUERY)
    assert not found["hit"]
    codes = {r["code"]: r["detail"] for r in found["reasons"]}
    assert codes.keys() == {"STALE", "FRESH_IN_SPARK_ONLY"}
    assert "5 rows in 1 file appended to" in codes["FRESH_IN_SPARK_ONLY"]


def test_decisions_are_logged(texts: Texts):
    texts.rewrite(QUERY)
    texts.rewrite("SELECT x FROM nowhere")
    texts.feed.flush_log()
    logged = texts.store.decisions.latest(session_id="rest")
    assert [d.outcome.value for d in logged] == ["MISS"] * texts.times + ["HIT"] * texts.times
    assert len({d.query_hash for d in logged}) == 2


def test_the_log_names_what_the_nearest_caches_lack(texts: Texts):
    missed = QUERY.replace("c_nation", "c_name")
    assert texts.code(missed) == "NO_CACHE_FOR_TABLES"
    texts.feed.flush_log()
    for logged in texts.store.decisions.latest(session_id="rest"):
        codes = {reason["code"] for reason in logged.reasons}
        assert codes and "NO_CACHE_FOR_TABLES" not in codes
        assert any("c_name" in reason["detail"] for reason in logged.reasons)


def test_why_counts_what_was_rewritten_and_explained(texts: Texts):
    name = texts.rewrite(QUERY)["caches"][0]
    texts.ask("explain", {"sql": QUERY})
    missed = QUERY.replace("c_nation", "c_name")
    texts.ask("explain", {"sql": missed})
    texts.rewrite(missed)
    texts.rewrite(QUERY.replace("c_nation", "c_ntaion"))  # not read, but it names the tables
    texts.rewrite("SELECT x FROM nowhere")  # concerns no cache
    texts.feed.flush_log()
    cache = texts.store.caches.named("default", name)
    found = why(texts.store, cache)
    assert (found.hits, found.misses) == (2 * texts.times, 3 * texts.times)
    assert {"UNSUPPORTED_OPERATOR"} < {r.code for r in found.reasons}
    explained = texts.store.decisions.latest(session_id="explain")
    assert {d.outcome.value for d in explained} == {"PLAN_ONLY", "MISS"}


def test_while_the_metastore_is_away_nothing_is_answered(texts: Texts, monkeypatch):
    monkeypatch.setattr(texts.feed, "_fresh_at", -1e9)
    monkeypatch.setattr(texts.feed, "sync", lambda: False)
    assert texts.code(QUERY) == "REGISTRY_LOADING"


LONG_NUMBERS = {
    "digits": "9" * 5_000,
    "leading zeros": "0" * 5_000 + "7",
    "a decimal": "1" * 5_000 + ".5",
    "a suffix": "8" * 5_000 + "L",
    "other digits": "\u0663" * 5_000,
    "the longest text": "9" * 999_000,
}
LONG_PLACES = (
    "SELECT {n} AS x FROM dates",
    "SELECT d_year FROM dates WHERE d_year = -{n}",
    "SELECT d_year FROM dates GROUP BY {n}",
    "SELECT d_year FROM dates LIMIT {n}",
    "SELECT CAST('{n}' AS INT) AS x FROM dates",
    "SELECT CAST(d_year AS DECIMAL({n}, 2)) AS x FROM dates",
    "SELECT DATE'2026-01-01' + INTERVAL '{n}' DAY AS x FROM dates",
    "SELECT `{n}` FROM dates",
)


@pytest.mark.parametrize("number", LONG_NUMBERS.values(), ids=LONG_NUMBERS)
def test_a_number_of_any_length_is_no_error_of_ours(texts: Texts, number: str):
    """Python converts 4,300 digits and no more; the parser takes the square of an interval's."""
    for place in LONG_PLACES:
        sql = place.replace("{n}", number)
        started = time.perf_counter()
        answer = texts.ask("rewrite", {"sql": sql})
        took = (time.perf_counter() - started) / texts.times
        assert answer.status_code == 200, (place, answer.text[:300])
        found = answer.json()
        assert not found["hit"] and found["reasons"], place
        assert "INTERNAL_ERROR" not in answer.text and len(answer.content) < 10_000, place
        assert took < 5, place
    assert texts.ask("explain", {"sql": LONG_PLACES[0].replace("{n}", number)}).status_code == 200


def test_an_error_of_ours_while_reading_is_a_miss(texts: Texts, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("cachemgr.text.door.check_text", broken)
    found = texts.rewrite(QUERY.replace("ASIA", "NOWHERE"))
    assert [r["code"] for r in found["reasons"]] == ["INTERNAL_ERROR"]
    assert "secret" not in str(found)
