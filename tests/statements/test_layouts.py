"""The reckoning of layouts: files in memory, and what filters like those that were logged open."""

from __future__ import annotations

import pytest

from cachemgr.statements.layouts import (
    MOST_PARTITIONS,
    ColumnFilter,
    Layout,
    LoggedFilter,
    StoredValues,
    candidates,
    most_used,
    partitions,
    reckon,
)

MB = 1_000_000
NONE = Layout()


def table(days=30, shops=10, *, size=100 * MB, files=10, each=100) -> StoredValues:
    """Every day has every shop."""
    found = [((float(d), f"s{s:03}"), each) for d in range(days) for s in range(shops)]
    distinct = {"day": days, "shop": shops}
    return StoredValues(("day", "shop"), found, distinct, each * len(found), size, files)


def points(*columns: str, hits: int = 1, many: int = 1) -> LoggedFilter:
    return LoggedFilter(tuple(ColumnFilter(c, points=many) for c in columns), hits)


def by_layout(stored, filters, *layouts, refreshes=0.0):
    return {r.layout: r for r in reckon(stored, filters, layouts, refreshes)}


def test_without_a_layout_each_hit_opens_every_file():
    found = by_layout(table(), [points("day")], NONE)[NONE]
    assert (found.files, found.files_opened) == (10, pytest.approx(10))
    assert found.bytes_opened == pytest.approx(100 * MB)


def test_a_point_opens_its_partition():
    day = Layout(("day",))
    found = by_layout(table(), [points("day")], day)[day]
    assert (found.files, found.files_opened) == (30, 1)
    assert found.bytes_opened == pytest.approx(100 * MB / 30, rel=0.01)


def test_a_partition_column_leaves_nothing_out_for_a_filter_on_another():
    day = Layout(("day",))
    assert by_layout(table(), [points("shop")], day)[day].files_opened == pytest.approx(30)


def test_sorted_rows_are_cut_into_files_of_equal_size():
    day = Layout((), ("day",))
    one = by_layout(table(), [points("day")], day)[day]
    assert one.files == 10 and one.files_opened == 1
    # three days a file: a range of five days lies in two or three
    five = LoggedFilter((ColumnFilter("day", width=5.0),))
    assert 2 <= by_layout(table(), [five], day)[day].files_opened <= 3


def test_the_second_column_of_a_pair_leaves_out_little():
    pair, single = Layout((), ("day", "shop")), Layout((), ("shop",))
    found = by_layout(table(), [points("shop")], pair, single)
    assert found[single].files_opened < 2 < found[pair].files_opened


@pytest.mark.parametrize(
    ("width", "expected"), [(0.0, 1), (29.0, 30), (None, 6)], ids=["a day", "all", "unknown"]
)
def test_ranges_open_their_share(width, expected):
    day = Layout(("day",))
    asked = LoggedFilter((ColumnFilter("day", width=width),))
    opened = by_layout(table(), [asked], day)[day].files_opened
    assert opened == pytest.approx(expected, abs=0.6)


def test_small_files_lose_against_a_few():
    # 365 files of 4 kB
    small = table(365, 10, size=365 * 4_000, files=1)
    best, *_ = reckon(small, [points("day")], candidates(small, ["day"], ["day"]), 0.1)
    assert best.layout == NONE
    # the same table of 36 GB is another matter
    large = table(365, 10, size=36_000 * MB, files=300)
    best, *_ = reckon(large, [points("day")], candidates(large, ["day"], ["day"]), 0.1)
    assert best.layout == Layout(("day",))


def test_a_refresh_pays_for_each_file():
    day = Layout(("day",))
    stored = table(size=10 * MB, files=2)
    rare, often = (reckon(stored, [points("day")], [NONE, day], r)[0].layout for r in (0.0, 10.0))
    assert (rare, often) == (day, NONE)


def test_a_key_of_many_values_is_no_partition():
    stored = table(MOST_PARTITIONS + 1, 2)
    found = candidates(stored, ["day", "shop"], ["day"])
    assert Layout(("day",)) not in found and Layout(("day", "shop")) not in found
    assert Layout(("shop",)) in found and Layout((), ("day",)) in found


def test_of_a_sample_the_partitions_are_those_of_the_table():
    sample = table(100, 2, each=1)
    whole = StoredValues(
        sample.columns, sample.combinations, {"day": 1_000, "shop": 2}, 100_000, 100 * MB, 10
    )
    assert partitions(whole, Layout(("day",))) == 1_000
    assert partitions(whole, Layout(("day", "shop"))) == 2_000
    day = Layout(("day",))
    found = by_layout(whole, [points("day")], day)[day]
    assert found.files == 1_000
    assert found.bytes_opened == pytest.approx(MB, rel=0.1)


def test_filters_decide_by_how_often_they_were_seen():
    stored = table(30, 30)
    layouts = [NONE, Layout((), ("day",)), Layout((), ("shop",))]
    for name, other in (("day", "shop"), ("shop", "day")):
        best, *_ = reckon(stored, [points(name, hits=9), points(other)], layouts, 0.0)
        assert best.layout.cluster_by == (name,)


def test_without_filters_one_says_least():
    stored = table()
    best, *_ = reckon(stored, [LoggedFilter((), 20)], candidates(stored, ["day"], ["shop"]), 0.1)
    assert best.layout == NONE


def test_the_same_input_gives_the_same_answer():
    stored, asked = table(), [points("day", "shop", many=2)]
    layouts = candidates(stored, ["day"], ["day", "shop"])
    assert reckon(stored, asked, layouts, 0.1) == reckon(stored, asked, layouts, 0.1)


def test_nulls_and_empty_tables():
    day = Layout(("day",))
    held = [((None,), 5), ((1.0,), 5)]
    nulls = StoredValues(("day",), held, {"day": 1}, 10, MB, 1)
    assert by_layout(nulls, [points("day")], day)[day].files == 2
    empty = StoredValues(("day",), [], {"day": 0}, 0, 0, 1)
    for found in reckon(empty, [points("day")], candidates(empty, ["day"], ["day"]), 0.1):
        assert found.files_opened == 0 or found.bytes_opened == 0


def test_the_most_used_columns_come_first():
    filters = [points("a", hits=2), points("b", "c", hits=5), points("c"), points("d"), points("e")]
    assert most_used(filters) == ("c", "b", "a", "d")
