"""Decisions kept by shape in the JVM: what they answer is what Python would have decided, and each
condition under which one holds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import cachemgr
from cachemgr.spark import api, hook
from cachemgr.spark.prepared import PreparedDecisions
from tests.e2e.test_local_answers import CUBE, FROM, ON, counted, is_local, local
from tests.e2e.test_many_sessions import further, pins, until
from tests.worlds.lab_star import exact, make_lab

pytestmark = pytest.mark.spark

SETS = ("region, day, city, price", "region, day", "region", "")
BY_REGION = f"SELECT region, SUM(amt) AS t {FROM} WHERE region <> '{{}}' GROUP BY region"
WORDS = [
    *("north", "south", "nowhere", "", "mark0_0", "a''b", 'a"b', "a\\\\b", '[\\"l\\"'),
    *('["l","x","string"]', "ünï☃", "😀", "\\u0001", " north", "NORTH", "x" * 3000),
]
DAYS = ["2024-01-01", "2024-01-02", "2024-01-03", "0001-01-01", "9999-12-31", "1582-10-15"]
# a shape, and what its free constants are drawn from
SHAPES = [
    (BY_REGION, [WORDS]),
    (
        f"SELECT region, day, SUM(amt), COUNT(*) {FROM} "
        "WHERE day >= DATE'{}' AND DATE'{}' > day GROUP BY region, day ORDER BY 1, 2",
        [DAYS, DAYS],
    ),
    (f"SELECT day, MIN(cost) {FROM} WHERE region = '{{}}' GROUP BY day", [WORDS]),
    (
        f"SELECT city, COUNT(amt) {FROM} WHERE region IN ('{{}}', '{{}}', 'west') GROUP BY city",
        [WORDS, WORDS],
    ),
    (
        f"SELECT SUM(amt), COUNT(*) {FROM} WHERE city = '{{}}' AND region = '{{}}'",
        [["Rome", "Oslo", "Rom"], WORDS[1:]],
    ),
    (
        f"SELECT city, SUM(price) AS p {FROM} WHERE NOT (day = DATE'{{}}' OR day < DATE'{{}}') "
        "GROUP BY city HAVING SUM(price) > 1 ORDER BY p DESC LIMIT 2",
        [DAYS, DAYS],
    ),
    (
        f"SELECT region, SUM(amt) AS t {FROM} WHERE region LIKE 'n%' AND day <= DATE'{{}}' "
        "GROUP BY region",
        [DAYS],
    ),
]


def prepared(lab) -> int:
    """How many queries were answered so, in this application."""
    return hook.counters(lab.spark)["prepared"]


def warmed(lab) -> None:
    """Have all sets held."""
    for keys in SETS:
        query = f"SELECT SUM(amt), COUNT(*) {FROM}" + (f" GROUP BY {keys}" if keys else "")
        until(lambda query=query: is_local(lab, query), "held")


@pytest.fixture(scope="module")
def warm(spark, tmp_path_factory) -> Iterator:
    """A lab whose sets are all held, to be read alone."""
    folder = tmp_path_factory.mktemp("prepared")
    for lab in make_lab(spark, folder, f"sqlite:///{folder}/metastore.db", **ON):
        lab.cache(CUBE)
        warmed(lab)
        yield lab


@pytest.fixture
def lab(spark, tmp_path) -> Iterator:
    """One of its own, whose sets are all held."""
    for lab in make_lab(spark, tmp_path, f"sqlite:///{tmp_path}/metastore.db", **ON):
        lab.cache(CUBE)
        warmed(lab)
        yield lab


def is_answered(lab, query: str, session=None) -> bool:
    """Whether a query is answered by a kept decision; its rows are those without us either way."""
    before = prepared(lab)
    rows = (session or lab.spark).sql(query).collect()
    same = counted if "ORDER BY" not in query else lambda found: list(map(exact, found))
    assert same(rows) == same(lab.plain.sql(query).collect()), query
    return prepared(lab) > before


def learned(lab, text: str = BY_REGION, *constants: str) -> None:
    """Ask a shape until the next query of it is answered so."""
    for n in range(6):
        query = text.format(*(constants or [f"learned{n}"]))
        if is_answered(lab, query):
            return
    raise AssertionError(f"nothing is kept of {text}")


@pytest.mark.parametrize(("text", "constants"), SHAPES)
def test_any_constants_are_answered_as_without_us(warm, text: str, constants: list) -> None:
    draw = random.Random(text)
    learned(warm, text, *(each[n] for n, each in enumerate(constants)))
    asked = [text.format(*others(draw, constants)) for _ in range(25)]
    assert [query for query in asked if not is_answered(warm, query)] == []
    for equal in constants[0]:  # of which Spark makes another condition, or none
        is_answered(warm, text.format(*[equal] * len(constants)))


def others(draw: random.Random, constants: list) -> list:
    """One of each, no two equal."""
    found: list = []
    for each in constants:
        found.append(draw.choice([one for one in each if one not in found]))
    return found


def test_constants_that_belong_to_the_shape(warm) -> None:
    text = (
        f"SELECT '{{}}' AS label, region, SUM(amt) * {{}} {FROM} WHERE day <> DATE'{{}}' GROUP BY 2"
    )
    learned(warm, text, "a", "2", "2020-01-01")
    assert is_answered(warm, text.format("a", "2", "2024-01-02"))
    for others in (("b", "2"), ("a", "3"), ("a", "2.0")):
        assert not is_answered(warm, text.format(*others, "2024-01-02")), others
    limited = f"{BY_REGION} ORDER BY region LIMIT {{}}"
    learned(warm, limited, "x", "2")
    assert is_answered(warm, limited.format("north", "2"))
    assert not is_answered(warm, limited.format("north", "1"))


def test_constants_whose_values_decided(warm) -> None:
    """One day is left between the first two, so that the groups are the cache's own."""
    text = f"SELECT region, SUM(amt) {FROM} WHERE day > DATE'{{}}' AND day < DATE'{{}}' GROUP BY 1"
    for _ in range(6):
        warm.hit(text.format("2024-01-01", "2024-01-03"))
    for last in ("2024-01-04", "2024-01-09", "9999-01-01"):
        is_answered(warm, text.format("2023-01-01", last))


def test_constants_that_a_cache_holds_no_rows_of(lab) -> None:
    lab.cache(
        "late AS SELECT region, amt, COUNT(*) AS n FROM sales WHERE amt > 20 GROUP BY region, amt"
    )
    text = "SELECT region, COUNT(*) AS n FROM sales WHERE amt > {} GROUP BY region"
    until(lambda: is_local(lab, text.format(25)), "held")
    for n in range(6):
        lab.hit(text.format(25 + n))
    for none in (19, 5, -1):
        assert not is_answered(lab, text.format(none)), none
        lab.miss(text.format(none))


def test_a_constant_of_another_type_is_another_shape(warm) -> None:
    text = f"SELECT region, SUM(amt) {FROM} WHERE day > {{}} GROUP BY region"
    learned(warm, text, "DATE'2020-01-01'")
    assert is_answered(warm, text.format("DATE'2024-01-01'"))
    for other in (
        "CAST(NULL AS DATE)",
        "DATE'2024-01-01' OR day IS NULL",
        "date_from_unix_date(cid)",
    ):
        assert not is_answered(warm, text.format(other)), other
    text = f"SELECT {{}} AS one, region, SUM(amt) {FROM} WHERE region <> 'x' GROUP BY region"
    learned(warm, text, "1")
    assert not is_answered(warm, text.format("1L"))


def test_what_a_decision_depends_on(warm) -> None:
    learned(warm)
    query = BY_REGION.format("north")
    for settings in (
        {"spark__sql__session__timeZone": "Asia/Kathmandu"},
        {"spark__sql__ansi__enabled": "false"},
        {"spark__sql__shuffle__partitions": "7"},
        {"spark__cachemgr__prepared__enabled": "false"},
        {"spark__cachemgr__local__maxGroups": "1"},
    ):
        assert is_answered(warm, query)
        with warm.conf(**settings):
            assert not is_answered(warm, query), settings
    context = warm.spark.sparkContext
    context.setLocalProperty("kyuubi.session.user", "bob")
    try:
        assert not is_answered(warm, query)
    finally:
        context.setLocalProperty("kyuubi.session.user", None)
    assert not is_answered(warm, query.replace("SELECT", "SELECT /*+ NO_RELATIONAL_CACHE */"))
    assert not is_answered(warm, query.replace("SELECT", "SELECT /*+ RELATIONAL_CACHE(c) */"))
    warm.spark.sql("CREATE SCHEMA IF NOT EXISTS elsewhere_prepared")
    named = query.replace("sales JOIN cust", f"{warm.schema}.sales JOIN {warm.schema}.cust")
    learned(warm, named.replace("north", "{}"))
    assert is_answered(warm, named)
    warm.spark.sql("USE elsewhere_prepared")
    try:
        assert not is_answered(warm, named)
    finally:
        warm.spark.sql(f"USE {warm.schema}")
        warm.spark.sql("DROP SCHEMA elsewhere_prepared")


def test_what_asks_python_each_time(warm, tmp_path) -> None:
    learned(warm)
    query, before = BY_REGION.format("north"), prepared(warm)
    for n in range(5):  # as often as it takes elsewhere to be kept
        warm.spark.sql(query).write.parquet(str(tmp_path / f"written{n}"))
        kept = warm.spark.sql(query).persist()
        kept.count()
        kept.unpersist()
        with warm.conf(spark__cachemgr__mode="planOnly"):
            warm.spark.sql(query).collect()
        cachemgr.explain(warm.spark, query)
        warm.spark.sql(f"SELECT EXISTS ({query})").collect()
    twice = f"{query} UNION ALL {query}"
    for _ in range(6):
        warm.hit(twice)
    assert prepared(warm) == before


def test_each_version_is_looked_at(lab) -> None:
    learned(lab)
    query = BY_REGION.format("north")
    with lab.caches_alone():
        learned(lab)
        lab.plain.sql("INSERT INTO sales SELECT * FROM sales LIMIT 3")
        assert not is_answered(lab, query)
    lab.sql("REFRESH RELATIONAL CACHE c")
    warmed(lab)
    learned(lab)
    lab.plain.sql("UPDATE cust SET city = 'Pisa' WHERE cid = 1")
    assert not is_answered(lab, query)


def test_what_hangs_on_the_clock_or_on_commits_is_not_kept(lab) -> None:
    """A cache that may lag behind, rows appended since, commits that change no row."""
    query = BY_REGION.format("north")
    lab.plain.sql("OPTIMIZE sales")
    for _ in range(6):
        assert is_local(lab, query) and not is_answered(lab, query)
    lab.plain.sql("INSERT INTO sales SELECT * FROM sales LIMIT 3")
    for _ in range(6):
        lab.hit(query)
        assert not is_answered(lab, query)
    lab.sql("ALTER RELATIONAL CACHE c SET MAX STALENESS INTERVAL 1 HOUR")
    lab.sql("REFRESH RELATIONAL CACHE c")
    warmed(lab)
    for _ in range(6):
        assert is_local(lab, query) and not is_answered(lab, query)


@pytest.mark.parametrize(
    ("change", "back"),
    [
        ("ALTER RELATIONAL CACHE c DISABLE REWRITE", "ALTER RELATIONAL CACHE c ENABLE REWRITE"),
        ("ALTER RELATIONAL CACHE c SET TBLPROPERTIES ('a' = 'b')", None),
        ("CREATE RELATIONAL CACHE d AS SELECT day, COUNT(*) AS n FROM sales GROUP BY day", None),
        ("RESTRICT BASE TABLE sales", "UNRESTRICT BASE TABLE sales"),
        ("DROP RELATIONAL CACHE c", None),
    ],
)
def test_each_change_of_what_is_served_ends_them(lab, change: str, back: str | None) -> None:
    learned(lab)
    query = BY_REGION.format("north")
    assert is_answered(lab, query)
    lab.sql(change)
    api._of(lab.spark).session.feed.sync()
    assert not is_answered(lab, query)
    if back is not None:
        lab.sql(back)
        api._of(lab.spark).session.feed.sync()
        learned(lab)


def test_noted_damage_ends_them(lab) -> None:
    learned(lab)
    session = api._of(lab.spark).session
    (cache,) = session.feed.caches()
    session.feed.notes.note_damage(cache, "a file is gone: test")
    assert not is_answered(lab, BY_REGION.format("north"))


def test_none_is_used_once_python_is_silent(warm, monkeypatch) -> None:
    query = BY_REGION.format("north")
    learned(warm)
    with monkeypatch.context() as patched:
        patched.setattr(PreparedDecisions, "_hear", lambda self: None)
        until(lambda: not is_answered(warm, query), "void")
    until(lambda: is_answered(warm, query), "heard of again")


def test_none_is_used_once_its_rows_are_let_go_of(lab) -> None:
    learned(lab)
    store = pins(lab)
    before = store._max_bytes
    store.resize(0, 0)
    try:
        assert not is_answered(lab, BY_REGION.format("north"))
    finally:
        store.resize(before, before)


def test_disabled_is_left_alone(lab) -> None:
    learned(lab)
    with lab.conf(spark__cachemgr__enabled="false"):
        assert not is_answered(lab, BY_REGION.format("north"))
    cachemgr.disable(lab.spark)
    assert not is_answered(lab, BY_REGION.format("north"))
    cachemgr.enable(lab.spark)


def test_what_is_told(warm) -> None:
    """Counters and the decision log are those of a query that Python was asked about."""
    text = f"SELECT region, COUNT(*) AS told {FROM} WHERE region > '{{}}' GROUP BY region"
    with warm.conf(spark__cachemgr__prepared__enabled="false"):
        until(lambda: is_local(warm, text.format("told")), "computed while it is planned")
    asked = newest(warm)
    learned(warm, text)
    counters = cachemgr.counters(warm.spark)
    assert is_answered(warm, text.format("told"))
    after = cachemgr.counters(warm.spark)
    for name in ("hits", "local_hits", "prepared_hits", "pin_hits"):
        assert after[name] == counters[name] + 1, name
    found = newest(warm)
    assert found.id != asked.id
    same = ("query_hash", "outcome", "caches", "grouping_set", "reasons", "session_id", "local")
    for name in same:
        assert getattr(found, name) == getattr(asked, name), name


def newest(lab):
    """The last decision that was logged."""
    cachemgr.counters(lab.spark)
    api._of(lab.spark).session.feed.flush_log()
    with lab.metastore() as metastore:
        return metastore.decisions.latest()[0]


def test_many_threads_of_several_sessions(warm) -> None:
    learned(warm)
    wanted = {w: counted(warm.plain.sql(BY_REGION.format(w)).collect()) for w in WORDS}
    before = prepared(warm)
    with further(warm, 4, **ON) as sessions, ThreadPoolExecutor(16) as pool:
        asked = [
            (word, pool.submit(sessions[n % 4].sql(BY_REGION.format(word)).collect))
            for n, word in enumerate(WORDS * 6)
        ]
        for word, rows in asked:
            assert counted(rows.result()) == wanted[word], word
    assert prepared(warm) - before > len(WORDS) * 3
    assert local(warm) > 0
