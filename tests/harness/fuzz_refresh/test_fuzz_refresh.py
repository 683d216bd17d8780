"""Half a minute of `make fuzz-refresh`, and that it finds what is there to be found."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from cachemgr.base_state import BaseState
from tests.harness.fuzz_refresh import changes, ledger, queries, steps
from tests.harness.fuzz_refresh.bugs import BUGS, Bug, NotPlantable, planted
from tests.harness.fuzz_refresh.judge import Answer, difference
from tests.harness.fuzz_refresh.layouts import COLUMNS, LAYOUTS, OTHER_JOINS, insert, statements
from tests.harness.fuzz_refresh.live import world
from tests.harness.fuzz_refresh.outcomes import Tally
from tests.harness.fuzz_refresh.run import Options, entry, fuzz
from tests.harness.fuzz_refresh.shapes import SHAPES, at_versions, named
from tests.harness.fuzz_refresh.shrink import shrink
from tests.harness.fuzz_refresh.steps import CacheSpec, Change, Declare, Query, Refresh, Walk
from tests.harness.fuzz_refresh.templates import Templates


@pytest.mark.spark
@pytest.mark.slow
def test_half_a_minute(spark, tmp_path):
    # so many steps and not so many seconds: a busy machine does the same
    options = Options(20261124, minutes=15, worlds=1, steps=30, shrink_seconds=30)
    run = fuzz(spark, tmp_path / "worlds", options)
    assert not run.found, "\n".join(f"{told}\n{text}" for told, text in run.found)
    assert run.steps == 30 and run.tally.counts["hits"] > 0 and run.tally.ways, run


APPEND = "INSERT INTO sales (id, day, cat, shop, item, amt, qty) VALUES (1, NULL, 'a', 1, 1, 5, 9)"
APPENDED = Change("append", "sales", (APPEND,))
TOTALS = Query(
    "SELECT s.cat AS cat, SUM(s.amt) AS amt, COUNT(*) AS n FROM {sales} s GROUP BY s.cat"
)
RENAMED = Change("update", "shops", ("UPDATE shops SET grp = 'new' WHERE k < 4",))
BY_GRP = Query(
    "SELECT h.grp AS grp, SUM(s.amt) AS amt FROM {sales} s JOIN {shops} h ON s.shop = h.k "
    "GROUP BY h.grp"
)
NO_A = Change("delete", "sales", ("DELETE FROM sales WHERE cat = 'a'",))
SOME_GO = Change("delete", "sales", ("DELETE FROM sales WHERE id % 4 = 1",))
SHOWN = {
    "stale as exact": Walk("plain", (CacheSpec("by_cat"),), (APPENDED, TOTALS)),
    "other version": Walk(
        "plain", (CacheSpec("by_grp"),), (RENAMED, Refresh("by_grp")),
    ),
    "first table alone": Walk(
        "plain", (CacheSpec("by_grp"),), (RENAMED, Refresh("by_grp")),
    ),
    "commit ignored": Walk(
        "plain", (CacheSpec("by_cat"),),
        (
            Change("copy", "sales", ("!copy sales",)), APPENDED, Refresh("by_cat"),
            Change("put back", "sales", ("!put back sales", APPEND.replace("5, 9", "7, 9"))),
            TOTALS,
        ),
    ),
    "no count guard": Walk(
        "plain", (CacheSpec("by_cat"),), (NO_A, Refresh("by_cat", "INCREMENTAL")),
    ),
    "vector ignored": Walk(
        "vectors", (CacheSpec("by_cat"),), (SOME_GO, Refresh("by_cat", "INCREMENTAL")),
    ),
    "add by path alone": Walk(
        "vectors", (CacheSpec("by_cat"),), (SOME_GO, Refresh("by_cat", "INCREMENTAL")),
    ),
    "dead keys": Walk(
        "plain", (CacheSpec("by_cat"),), (NO_A, Refresh("by_cat", "INCREMENTAL"), TOTALS),
        few_rows=-1,
    ),
    "stale dimension": Walk(
        "plain", (CacheSpec("by_grp"),), (RENAMED, APPENDED, Refresh("by_grp", "INCREMENTAL")),
    ),
    # of values that can be counted twice: a sum that overflows is refreshed in full, and rightly
    "OPTIMIZE counted": Walk(
        "vectors", (CacheSpec("by_cat"),),
        (Change("optimize", "sales", ("OPTIMIZE sales",)), Refresh("by_cat", "INCREMENTAL")),
    ),
    "two ways in two commits": Walk(
        "plain", (CacheSpec("cube"),), (APPENDED, Refresh("cube", "INCREMENTAL")), few_rows=4,
    ),
    "partial read raw": Walk(
        "plain", (CacheSpec("by_cat"),), (APPENDED, Refresh("by_cat", "INCREMENTAL"), TOTALS),
        few_rows=-1,
    ),
    "facts not loosened": Walk(
        "plain", (CacheSpec("by_cat"),),
        (
            Change("delete", "sales", ("DELETE FROM sales WHERE abs(amt) > 1000000",)),
            Refresh("by_cat", "FULL"),
            Change("append", "sales", (
                "INSERT INTO sales (id, cat, amt) VALUES (1, 'z', 9007199254740993), "
                "(2, 'z', 1), (3, 'z', 1)",
            )),
            Refresh("by_cat", "INCREMENTAL"),
            Query("SELECT s.cat AS cat, AVG(s.amt) AS a FROM {sales} s GROUP BY s.cat"),
        ),
    ),
    "tail of other files": Walk(
        "plain", (CacheSpec("by_cat"),),
        (
            Change("copy", "sales", ("!copy sales",)), APPENDED, TOTALS,
            Change("restore", "sales", ("RESTORE TABLE sales TO VERSION AS OF 3",)),
            Change("append", "sales", (APPEND.replace("5, 9", "7, 9"),)), TOTALS,
        ),
        tails=True,
    ),
    "keys not looked at": Walk(
        "snowflake", (CacheSpec("by_grp"),),
        (
            Change("append", "shops", ("INSERT INTO shops SELECT * FROM shops WHERE k = 1",)),
            APPENDED,
            BY_GRP,
        ),
    ),
    "all joins told by counts": Walk(
        "vectors", (CacheSpec("by_grp_and_item"),),
        (
            Declare((f"CREATE RECORD PRESERVING JOIN other AS {OTHER_JOINS[0]}",)),
            APPENDED, Refresh("by_grp_and_item", "INCREMENTAL"),
            Change("append", "sales", (APPEND.replace("1, 1, 5", "1, 99, 5"),)),
            Refresh("by_grp_and_item", "INCREMENTAL"),
            Query(
                "SELECT g.grp AS grp, SUM(s.amt) AS amt FROM {sales} s JOIN {shops} h "
                "ON s.shop = h.k LEFT JOIN {shops} g ON s.item = g.k GROUP BY g.grp"
            ),
        ),
    ),
    "join not re-checked": Walk(
        "vectors", (CacheSpec("by_grp"),),
        (
            Change("append", "sales", (APPEND.replace("'a', 1", "'a', 99"),)),
            Refresh("by_grp", "INCREMENTAL"), TOTALS,
        ),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def templates(spark, tmp_path_factory):
    return Templates(spark, tmp_path_factory.mktemp("fuzz_refresh"))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("bug", SHOWN)
def test_a_planted_bug_is_found(templates, bug):
    walk = SHOWN[bug]
    for name, shows in ((bug, True), ("", False)):
        with planted(name), world(templates, walk, Tally()) as made:
            done = [made.do(step) for step in walk.steps]
        assert all(d.applied for d in done), done
        assert [d.finding is not None for d in done] == [*[False] * (len(done) - 1), shows], done


@pytest.mark.spark
@pytest.mark.slow
def test_a_walk_is_shortened(templates):
    noise = (Change("comment", "sales", ("COMMENT ON TABLE sales IS 'x'",)), Refresh("whole"))
    told = Walk(
        "plain", (CacheSpec("by_cat"), CacheSpec("whole")), (*noise, APPENDED, *noise, TOTALS)
    )
    with planted("stale as exact"):
        with world(templates, told, Tally()) as made:
            finding = [made.do(step) for step in told.steps][-1].finding
        assert finding is not None and finding.kind == "query"
        short, shown = shrink(templates, told, finding, 300)
    assert shown is not None
    assert short == SHOWN["stale as exact"]


@pytest.mark.spark
@pytest.mark.slow
def test_a_step_that_does_not_apply_is_skipped(templates):
    lagging = CacheSpec("by_cat", "MAX STALENESS UNLIMITED")
    tally = Tally()
    with world(templates, Walk("plain", (lagging,)), tally) as made:
        gone = made.do(Change("x", "sales", ("ALTER TABLE sales DROP COLUMN nothing",)))
        assert not gone.applied and gone.finding is None and gone.note
        assert not made.do(Change("x", "sales", ("!put back sales",))).applied
        assert made.do(APPENDED).applied
        assert made.do(TOTALS).finding is None, "of the state before"
        assert tally.counts["lagging hits"] == 1
        assert made.do(Refresh("by_cat", "FULL")).finding is None
        assert tally.ways == Counter({"FULL after append": 1})
        assert made.do(Refresh("by_cat", "INCREMENTAL ONLY")).finding is None


def test_a_bug_is_planted_for_a_time(monkeypatch):
    one, other = BaseState("t", 1, "a"), BaseState("t", 1, "b")
    with planted("commit ignored"):
        assert one.is_same(other)
    assert not one.is_same(other)
    assert set(SHOWN) == {name for name, bug in BUGS.items() if bug.patches}
    monkeypatch.setitem(BUGS, "waits", Bug("for its code"))
    monkeypatch.setitem(BUGS, "moved", Bug("no longer there", {"cachemgr.errors:Gone.x": str}))
    for name in ("waits", "moved"):
        with pytest.raises(NotPlantable), planted(name):
            pass


def test_what_counts_as_a_difference():
    rows = ((("int", "1"),), (("int", "1"),), (("int", "2"),))
    one = Answer((("a", "int"),), rows)
    assert difference(one, Answer((("a", "int"),), rows[::-1])) == ""
    assert difference(one, Answer((("a", "int"),), rows[::-1]), ordered=True)
    assert "3 rows, should be 2" in difference(one, Answer((("a", "int"),), rows[1:]))
    assert "columns" in difference(one, Answer((("a", "bigint"),), rows))
    failed = Answer(error=ValueError("no"))
    assert "raises ValueError" in difference(failed, one)
    assert "instead of" in difference(failed, failed)


def test_a_script_says_the_walk():
    walk = Walk("plain", (CacheSpec("by_cat", "STRICT"),), (APPENDED, TOTALS, Refresh("by_cat")))
    said = []
    lines = steps.script(walk).splitlines()
    code = "\n".join(line for line in lines[2:-1])
    exec(code, {**vars(steps), "replay": said.append})
    assert said == [walk]


def test_texts_follow_from_the_seed_and_suit_the_tables():
    def drawn(seed):
        rng = random.Random(seed)
        layout = LAYOUTS["snowflake"]
        scene = changes.Scene(rng, layout, COLUMNS.__getitem__, wild=True)
        found = [changes.draw(scene) for _ in range(300)]
        return found + [queries.draw(rng, s, layout) for s in SHAPES.values() for _ in range(40)]

    assert drawn(1) == drawn(1) != drawn(2)
    made = [step for step in drawn(3) if step is not None]
    assert len({c.kind for c in made if isinstance(c, Change)}) > 25
    texts = [q.text for q in made if isinstance(q, Query)]
    assert not [t for t in texts if "SELECT  " in t or "BY  " in t]
    assert any("VERSION AS OF 3" in at_versions(t, {"sales": 3}) for t in texts)
    assert not any("{" in named(t) or "{" in at_versions(t, {}) for t in texts)
    assert any(
        "NULL" in insert(random.Random(n), "sales", COLUMNS["sales"], range(9), wild=True)
        for n in range(3)
    )
    for layout in LAYOUTS.values():
        rows = " ".join(text for text in statements(layout) if "INTO sales" in text)
        assert "CREATE TABLE sales" in " ".join(statements(layout))
        assert not (layout.tame and ("NULL" in rows or "9007199254740993" in rows))
    assert any(layout.tame for layout in LAYOUTS.values())


def test_the_ledger_adds_up(tmp_path, monkeypatch):
    for each in ledger.read():
        assert ledger.check(each) == []
    assert ledger.unexplained(ledger.read()) == []
    with_finding = {"found": ["world 1"], "explained": "the judge's"}
    assert ledger.unexplained([{"found": []}, with_finding]) == []
    assert ledger.unexplained([with_finding, {"found": ["world 2"]}]) == ["world 2"]
    monkeypatch.setattr(ledger, "LEDGER", tmp_path / "ledger.json")
    from tests.harness.fuzz_refresh.run import Run

    run = Run(steps=7, worlds=1, seconds=60)
    run.tally.ways["FULL after append"] += 2
    run.tally.shapes["cube"] += 3
    for _ in range(2):
        ledger.append(entry(run, Options(5, minutes=1)))
    found = ledger.total(ledger.read())
    assert (found["steps"], found["ways"]["FULL after append"], found["shapes"]["cube"]) == (
        14,
        4,
        6,
    )
    assert "FULL" in ledger.report(ledger.read()) and "14 steps" in ledger.report(ledger.read())
    with pytest.raises(ValueError, match="seed is missing"):
        ledger.append({k: v for k, v in entry(run, Options(5, minutes=1)).items() if k != "seed"})
