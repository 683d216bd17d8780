"""The users of `make users` for some seconds; and that a wrong answer or a hit without a right
would be seen."""

from __future__ import annotations

import time
from collections import Counter
from random import Random

import pytest

from tests.harness.users import allowed
from tests.harness.users.allowed import Allowed
from tests.harness.users.run import ask
from tests.harness.users.tables import Table, drawn_query, drawn_rows


def _committed(table: Table, rows, version: int) -> None:
    with table.becomes(rows, lambda: version):
        pass


def test_an_answer_is_held_to_the_states_that_were_there() -> None:
    table, (one, two, three) = Table("facts"), [drawn_rows(Random(n), 3) for n in range(3)]
    _committed(table, one, 0)
    between = time.monotonic()
    _committed(table, two, 1)
    after = time.monotonic()
    assert table.seen(between, between) == [one]
    assert table.seen(between, after) == [one, two]
    assert table.seen(after, after) == [two]
    with table.becomes(three, lambda: 2):
        # it may be there already, and it may not
        assert table.seen(after, time.monotonic()) == [two, three]


def test_each_query_tells_rows_apart() -> None:
    rng, asked = Random(5), Counter()
    few, many = drawn_rows(rng, 20), drawn_rows(rng, 400)
    for _ in range(200):
        query = drawn_query(rng, "UTC")
        asked[query.table] += query.over(few) != query.over(many)
    assert asked["facts"] > 100 and asked["restored"] > 20


def test_a_right_that_was_taken_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    users = Allowed(("ann", "bob"))
    users.revoked("ann")
    now = time.monotonic()
    assert users.may_hit("ann", now) and users.may_hit("bob", now + 60)
    assert not users.may_hit("ann", now + allowed.GRACE_SECONDS)
    assert not users.is_allowed("ann")
    users.granted("ann")
    assert users.may_hit("ann", now + 60)


@pytest.mark.spark
@pytest.mark.postgres
@pytest.mark.slow
def test_nobody_gets_a_wrong_row(spark) -> None:
    users = ask(25, seed=11, spark=spark)
    assert users.found == []
    assert users.told["hits"] > 0, users.told
