"""Groups as relations of the block around them: which are the same, what is known of them, and how
they are stored. That hits return the right rows is told by the text cases `groups_…`."""

from __future__ import annotations

import random
from time import process_time

import pytest

from matcher.examples import SCHEMA
from matcher.index.registry import Registry
from matcher.model.codec import PLAN_VERSION, decode_plan, encode_plan
from matcher.model.errors import MatcherError
from matcher.model.ir import Block, CachePlan, MatchOptions, Relation
from matcher.normalize import grouped_relations
from matcher.normalize.grouped_relations import unique_keys
from matcher.normalize.stored_plan import plan_definition
from matcher.render.select import render_stored
from matcher.sql.reader import parse_query
from matcher.sql.schema import Schema

TABLES = Schema.parse(SCHEMA)


def block(query: str) -> Block:
    (found, *_) = parse_query(query, TABLES).roots
    assert found.block is not None, found.reasons
    return found.block


def around(groups: str, name: str = "item") -> str:
    return f"SELECT i.name FROM items i JOIN ({groups}) g ON i.item = g.{name}"


def groups(query: str, name: str = "item") -> Relation:
    (found,) = [r for r in block(around(query, name)).relations if r.groups is not None]
    return found


def plan(query: str) -> CachePlan:
    return plan_definition("c", block(query))


BASE = "SELECT item, SUM(qty) AS s FROM sales WHERE qty > 2 AND store = 7 GROUP BY item"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT SUM(qty) AS s, item FROM sales WHERE store = 7 AND qty > 2 GROUP BY item",
        "SELECT item FROM sales WHERE NOT qty <= 2 AND 7 = store GROUP BY item",
        "SELECT item, COUNT(*) AS n FROM sales WHERE qty > 2 AND store = 7 GROUP BY item",
        "SELECT item FROM sales WHERE qty > 2 AND store = 7 AND item < 5 GROUP BY item",
        "SELECT item FROM sales WHERE qty > 2 AND store = 7 GROUP BY item HAVING SUM(qty) > 5",
        "SELECT item FROM sales WHERE qty > 2 AND qty > 1 AND store = 7 GROUP BY item, item",
        "SELECT DISTINCT item FROM sales WHERE qty > 2 AND store = 7",
        "SELECT item FROM (SELECT * FROM sales WHERE store = 7) x WHERE qty > 2 GROUP BY item",
    ],
)
def test_the_same_groups(query: str) -> None:
    assert groups(query).key == groups(BASE).key


@pytest.mark.parametrize(
    "query",
    [
        "SELECT item, SUM(qty) AS s FROM sales WHERE qty > 2 GROUP BY item",
        "SELECT item, SUM(qty) AS s FROM sales WHERE qty > 3 AND store = 7 GROUP BY item",
        "SELECT item, SUM(qty) AS s FROM sales WHERE qty >= 2 AND store = 7 GROUP BY item",
        "SELECT item, SUM(qty) AS s FROM sales WHERE qty > 2 OR store = 7 GROUP BY item",
        "SELECT item, SUM(qty) AS s FROM sales WHERE qty > 2 AND store = 7 GROUP BY item, day",
        "SELECT id AS item, SUM(qty) AS s FROM sales WHERE qty > 2 AND store = 7 GROUP BY id",
        "SELECT s.item FROM sales s JOIN stores t ON s.store = t.store WHERE qty > 2 "
        "AND s.store = 7 GROUP BY s.item",
        "SELECT s.item FROM sales s LEFT JOIN stores t ON s.store = t.store WHERE qty > 2 "
        "AND s.store = 7 GROUP BY s.item",
        "SELECT s.item FROM sales s LEFT SEMI JOIN stores t ON s.store = t.store WHERE qty > 2 "
        "AND s.store = 7 GROUP BY s.item",
        "SELECT item + 1 AS item FROM sales WHERE qty > 2 AND store = 7 GROUP BY item + 1",
    ],
)
def test_other_groups(query: str) -> None:
    assert groups(query).key != groups(BASE).key


JOINED = [
    "SELECT s.item, t.city FROM sales s JOIN stores t ON s.store = t.store WHERE t.city = 'a'",
    "SELECT s.item, t.city FROM sales s LEFT JOIN stores t ON s.store = t.store AND t.city = 'a'",
    "SELECT s.item, t.city FROM sales s LEFT JOIN stores t ON s.store = t.store",
    "SELECT s.item, t.city FROM sales s FULL JOIN stores t ON s.store = t.store",
    "SELECT s.item, t.city FROM sales s JOIN stores t ON s.store < t.store",
    "SELECT s.item, t.city FROM sales s CROSS JOIN stores t",
]


def test_each_kind_of_join_below_makes_other_groups() -> None:
    keys = {groups(f"{text} GROUP BY s.item, t.city").key for text in JOINED}
    assert len(keys) == len(JOINED)


def test_the_order_in_which_things_are_written_does_not_matter() -> None:
    tables = ["sales s", "items i", "stores t"]
    conditions = [
        "s.item = i.item",
        "s.store = t.store",
        "s.qty > 3",
        "t.city = 'a'",
        "i.class > 'x'",
    ]
    keys = ["i.item", "t.city", "s.day"]
    draw, found = random.Random(7), set()
    for _ in range(30):
        for part in (tables, conditions, keys):
            draw.shuffle(part)
        sides = [c if draw.random() < 0.5 or "=" not in c else " = ".join(reversed(c.split(" = ")))
                 for c in conditions]  # fmt: skip
        text = f"SELECT {', '.join(keys)} FROM {', '.join(tables)} WHERE {' AND '.join(sides)}"
        found.add(groups(f"{text} GROUP BY {', '.join(keys)}").key)
    assert len(found) == 1


def test_a_table_that_is_read_twice_may_be_written_in_either_order() -> None:
    one = (
        "SELECT a.item, SUM(b.qty) AS s FROM sales a JOIN sales b ON a.id = b.store GROUP BY a.item"
    )
    two = (
        "SELECT y.item, SUM(x.qty) AS s FROM sales x JOIN sales y ON x.store = y.id GROUP BY y.item"
    )
    assert groups(one).key == groups(two).key
    other = (
        "SELECT x.item, SUM(x.qty) AS s FROM sales x JOIN sales y ON x.store = y.id GROUP BY x.item"
    )
    assert groups(one).key != groups(other).key


@pytest.mark.parametrize("part", range(5))
def test_nothing_of_what_groups_are_told_by_could_be_left_out(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables, classes of equal columns, conditions, keys, outer joins."""
    pairs = [
        ("SELECT item FROM sales GROUP BY item", "SELECT item FROM items GROUP BY item"),
        (
            "SELECT s.item FROM sales s, stores t WHERE s.store = t.store GROUP BY s.item",
            "SELECT s.item FROM sales s, stores t WHERE s.id = t.store GROUP BY s.item",
        ),
        (
            "SELECT item FROM sales WHERE qty > 2 GROUP BY item",
            "SELECT item FROM sales WHERE qty > 3 GROUP BY item",
        ),
        ("SELECT item FROM sales GROUP BY item", "SELECT item FROM sales GROUP BY item, day"),
        (
            "SELECT s.item FROM sales s LEFT JOIN stores t ON s.store = t.store GROUP BY s.item",
            "SELECT s.item FROM sales s LEFT JOIN stores t ON s.id = t.store GROUP BY s.item",
        ),
    ]
    one, other = pairs[part]
    assert groups(one).key != groups(other).key
    dumps = grouped_relations.json.dumps
    monkeypatch.setattr(
        grouped_relations.json,
        "dumps",
        lambda told: dumps(
            told[:part] + told[part + 1 :] if isinstance(told[0], list) and len(told) == 5 else told
        ),
    )
    assert groups(one).key == groups(other).key


def test_whoever_joins_by_all_keys_finds_one_group_at_most() -> None:
    relation = groups("SELECT item, day, COUNT(*) AS n FROM sales GROUP BY item, day")
    (join,) = unique_keys((relation, Relation("t", "t")))
    assert join.right == relation.key
    assert len(join.keys) == 2
    assert not join.finds_each


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT ratio AS item FROM sales GROUP BY ratio", "block of its own"),
        ("SELECT item FROM sales GROUP BY item ORDER BY item LIMIT 1", "block of its own"),
        ("SELECT item FROM sales GROUP BY ROLLUP (item)", "block of its own"),
        (
            "SELECT item, SUM(ratio) AS r FROM sales GROUP BY item HAVING SUM(ratio) > 1",
            "of its own",
        ),
        (
            "SELECT item, FIRST(qty) AS q FROM sales GROUP BY item HAVING FIRST(qty) > 1",
            "of its own",
        ),
    ],
)
def test_what_is_no_relation(query: str, words: str) -> None:
    (found, *_) = parse_query(around(query), TABLES).roots
    assert found.block is None
    assert words in found.reasons[0].detail


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT item FROM sales", "without groups"),
        ("SELECT COUNT(*) AS n FROM sales GROUP BY 'all'", "by a constant"),
        ("SELECT item FROM sales WHERE ratio >= -0.0D GROUP BY item", "compares with -0.0"),
        (
            "SELECT s.item FROM sales s LEFT JOIN items i ON s.item = i.item AND s.ratio = -0.0D "
            "GROUP BY s.item",
            "compares with -0.0",
        ),
    ],
)
def test_groups_that_are_no_relation(query: str, words: str) -> None:
    (found, *_) = parse_query(query, TABLES).roots
    assert found.block is not None
    with pytest.raises(MatcherError, match=words):
        grouped_relations.as_relation(found.block, 1)


def test_a_float_sum_may_be_shown_and_is_not_worked_with() -> None:
    summed = "(SELECT item, SUM(ratio) AS r FROM sales GROUP BY item) g ON i.item = g.item"
    shown = block(f"SELECT i.name, g.r FROM items i JOIN {summed}")
    assert len(shown.relations) == 2
    for query in (
        f"SELECT i.name FROM items i JOIN {summed} AND g.r > 1",
        f"SELECT i.name FROM items i LEFT JOIN {summed} AND g.r > 1",
        f"SELECT g.r FROM items i JOIN {summed} GROUP BY g.r",
        f"SELECT i.name, SUM(g.r) AS r FROM items i JOIN {summed} GROUP BY i.name",
        f"SELECT i.name FROM items i JOIN {summed} GROUP BY i.name HAVING MAX(g.r) > 1",
    ):
        (found, *_) = parse_query(query, TABLES).roots
        assert found.block is None, query


def test_a_plan_over_groups_is_stored_and_read_again() -> None:
    stored = plan(
        "SELECT i.name, g.s FROM items i LEFT JOIN (SELECT x.item, SUM(x.n) AS s FROM (SELECT "
        "item, store, COUNT(*) AS n FROM sales s LEFT JOIN stores USING (store) "
        "GROUP BY item, store) x GROUP BY x.item) g ON i.item = g.item AND g.s > 3"
    )
    data = encode_plan(stored)
    again = decode_plan(data)
    assert again == stored
    assert [r.groups for r in again.relations] == [r.groups for r in stored.relations]
    # a program that does not know of groups does not read it, and whoever asks for tables gets them
    assert data["version"] != PLAN_VERSION
    names = sorted(name for _, name in data["relations"])
    assert names == ["items", "sales", "stores"]
    assert sorted(t.name for t in stored.tables) == names


def test_what_is_stored_is_written_over_base_tables() -> None:
    stored = plan(
        "SELECT i.name, g.s FROM items i JOIN (SELECT item, SUM(qty) AS s FROM sales "
        "WHERE store = 7 AND item < 9 GROUP BY item) g ON i.item = g.item"
    )
    text = render_stored(stored, [f"T_{table.name}" for table in stored.tables])
    assert "FROM T_sales AS t0 WHERE (t0.`store` = 7) GROUP BY t0.`item`" in text
    assert "T_items AS t" in text
    again = block(text.replace("T_", ""))
    assert {r.key for r in again.relations} == {r.key for r in stored.relations}


def test_grouping_sets_over_groups_are_refused() -> None:
    with pytest.raises(MatcherError, match="GROUPING SETS over groups"):
        plan(
            "SELECT i.name, i.class, COUNT(*) AS n FROM items i JOIN (SELECT item, SUM(qty) AS s "
            "FROM sales GROUP BY item) g ON i.item = g.item GROUP BY CUBE (i.name, i.class)"
        )


def chain(length: int, *, doubled: bool) -> str:
    """A query of CTEs that read each other, once or twice each."""
    ctes = ["c0 AS (SELECT item, store, SUM(qty) AS s FROM sales GROUP BY item, store)"]
    for i in range(1, length):
        other = f" JOIN c{i - 1} b ON a.item = b.item AND a.store = b.store" if doubled else ""
        ctes.append(
            f"c{i} AS (\n  SELECT\n    a.item,\n    a.store,\n    SUM(a.s) + {i} AS s,\n"
            f"    COUNT(*) AS n\n  FROM c{i - 1} a{other}\n  WHERE a.s > {i}\n"
            "  GROUP BY a.item, a.store)"
        )
    last = length - 1
    return f"WITH {', '.join(ctes)} SELECT item, COUNT(*) AS n FROM c{last} GROUP BY item"


def test_forty_ctes_that_read_each_other_are_one_definition() -> None:
    text = chain(40, doubled=False)
    assert text.count("\n") > 300
    began = process_time()
    registry = Registry()
    registry.put(plan(text))
    found = registry.decide(block(text), MatchOptions())
    assert found.rewrite is not None
    assert process_time() - began < 5
    other = registry.decide(block(text.replace("a.s > 1\n", "a.s > 0\n")), MatchOptions())
    assert other.rewrite is None


def test_ctes_that_read_each_other_twice_are_refused_in_time() -> None:
    began = process_time()
    (found, *_) = parse_query(chain(40, doubled=True), TABLES).roots
    assert found.block is None
    assert process_time() - began < 5


def test_groups_in_groups_in_subqueries_are_read_in_time() -> None:
    text = "SELECT item, SUM(qty) AS s FROM sales GROUP BY item"
    for _ in range(12):
        text = (
            "SELECT a.item, SUM(a.qty) AS s FROM sales a JOIN (SELECT item, SUM(qty) AS s FROM "
            "sales GROUP BY item) b ON a.item = b.item WHERE a.item IN (SELECT x.item FROM "
            f"({text}) x) GROUP BY a.item"
        )
    began = process_time()
    parse_query(text, TABLES)
    assert process_time() - began < 5


def test_a_semi_join_by_keys_alone_is_one_with_the_rows() -> None:
    keys = "SELECT item, COUNT(*) AS n FROM sales WHERE qty > 2 GROUP BY item"
    for word, negated in (("SEMI", ""), ("ANTI", "NOT ")):
        joined = block(f"SELECT i.name FROM items i LEFT {word} JOIN ({keys}) g ON i.item = g.item")
        tested = block(
            f"SELECT i.name FROM items i WHERE {negated}EXISTS (SELECT 1 FROM sales s WHERE "
            "s.qty > 2 AND s.item = i.item)"
        )
        assert [r.key for r in joined.relations] == [r.key for r in tested.relations]
        conditions = [
            {frozenset(map(repr, part.children)) for part in found.outer[0].on}
            for found in (joined, tested)
        ]
        assert conditions[0] == conditions[1]
    counted = block(
        f"SELECT i.name FROM items i LEFT SEMI JOIN ({keys}) g ON i.item = g.item AND g.n > 1"
    )
    assert counted.relations[1].groups is not None


def test_constants_of_groups_are_no_constants_of_a_shape() -> None:
    """What is remembered of a query is not given for one with another constant below."""
    text = around("SELECT item, SUM(qty) AS s FROM sales WHERE qty > {0} GROUP BY item")
    registry = Registry()
    registry.put(plan(text.format(2)))
    for _ in range(3):
        assert registry.decide(block(text.format(2)), MatchOptions()).rewrite is not None
        assert registry.decide(block(text.format(3)), MatchOptions()).rewrite is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("qty > 2 AND qty < 9", "qty BETWEEN 3 AND 8"),
        ("qty IN (1, 2)", "qty = 1 OR qty = 2"),
        ("store <=> 7", "store = 7 AND store IS NOT NULL"),
        ("year(day) = 2024", "day >= DATE'2024-01-01' AND day <= DATE'2024-12-31'"),
        ("note LIKE 'ab%'", "startswith(note, 'ab')"),
    ],
)
def test_conditions_that_say_the_same_make_the_same_groups(one: str, other: str) -> None:
    text = "SELECT item FROM sales WHERE {} GROUP BY item"
    assert groups(text.format(one)).key == groups(text.format(other)).key
