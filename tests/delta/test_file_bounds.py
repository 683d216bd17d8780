"""Bounds of whole numbers in appended files, as their log says them; without Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cachemgr.delta.base_columns import kept_columns, physical_name
from cachemgr.delta.base_commits import BOUNDED_FILES, decode_range, reduced
from cachemgr.delta.changes import Changes
from cachemgr.delta.netting import judge


def adding(*stats: object, path: str = "f") -> list[dict[str, Any]]:
    """The lines of a commit that adds a file for each of these statistics."""
    said = [None if s is None else json.dumps(s) for s in stats]
    return [{"add": {"path": f"{path}{i}", "size": 1, "stats": s}} for i, s in enumerate(said)]


def of(low: object, high: object, rows: int = 2, nulls: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = {"numRecords": rows, "nullCount": {"x": nulls}}
    found |= {"minValues": {} if low is None else {"x": low}}
    return found | {"maxValues": {} if high is None else {"x": high}}


def appended(*stats: object) -> Changes:
    return judge([reduced(1, "i", 1, adding(*stats))], "id")


@pytest.mark.parametrize(
    ("stats", "bounds"),
    [
        ([of(-3, 5)], (-3, 5)),
        ([of(-3, 5), of(7, 1 << 62)], (-3, 1 << 62)),
        ([of(None, None, nulls=2)], (0, 0)),
        ([of(4, 5), of(None, None, nulls=2)], (0, 5)),
        # what the type of the column is nobody asks: no other one is said as whole numbers that
        # a block would take for some
        ([of(-(1 << 63), (1 << 63) - 1)], (-(1 << 63), (1 << 63) - 1)),
        ([of(0, 1 << 63)], None),
        ([of(1.0, 2.0)], None),
        ([of("a", "b")], None),
        ([of(False, True)], None),
        ([of(1, None)], None),
        ([of(None, 1)], None),
        ([of(None, 1, nulls=2)], None),
        ([of(None, None, nulls=1)], None),
        ([of(None, None, rows=0)], (0, 0)),
        ([{"numRecords": 2}], None),
        ([None], None),
        ([of(1, 2), None], None),
        ([{"minValues": {"x": 1}, "maxValues": {"x": 2}}], (1, 2)),
        ([{"numRecords": 2, "nullCount": {"x": {"y": 2}}}], None),
        ([of({"y": 1}, {"y": 2})], None),
    ],
)
def test_bounds_of_appended_files(stats: list[object], bounds: tuple[int, int] | None) -> None:
    assert appended(*stats).bounds_added("x") == bounds
    assert appended(*stats).bounds_added("z") is None


def test_names_are_compared_in_lower_case() -> None:
    found = appended({"numRecords": 1, "minValues": {"Xy": 1}, "maxValues": {"Xy": 2}})
    assert found.bounds_added("xy") == (1, 2)


def test_without_files_nothing_is_known() -> None:
    assert appended().bounds_added("x") is None


def test_those_of_many_files_are_not_kept() -> None:
    few = [of(1, 2)] * BOUNDED_FILES
    assert appended(*few).bounds_added("x") == (1, 2)
    assert appended(*few, of(1, 2)).bounds_added("x") is None


def test_a_deletion_vector_leaves_them_as_wide_as_they_were() -> None:
    (line,) = adding(of(1, 9, rows=3))
    removed = {"remove": {"path": "f0", "stats": line["add"]["stats"]}}
    vector = {"storageType": "u", "pathOrInlineDv": "v", "cardinality": 2}
    again = {"add": line["add"] | {"deletionVector": vector}}
    commits = [reduced(1, "i", 1, [line]), reduced(2, "j", 2, [removed, again])]
    found = judge(commits, "id")
    assert (found.rows_added, found.bounds_added("x")) == (1, (1, 9))


def test_the_jvm_tells_the_same() -> None:
    text = json.dumps(
        {"before": ["b", 1], "commits": [
            [2, "i", 3, None, [], [["f", "", 9, 2, {}, {"x": [-1, 4]}, True]],
             [["o", "", 9, None, {}, {}, False]], []],
        ]}
    )  # fmt: skip
    (commit,) = decode_range(text).commits
    assert judge([commit], "id").bounds_added("x") == (-1, 4)
    assert commit.added[0].data_change and not commit.removed[0].data_change


def test_the_physical_name_of_a_column() -> None:
    fields = [
        {"name": "A", "type": "long", "nullable": True, "metadata": {}},
        {
            "name": "b",
            "type": "long",
            "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": "Col-7"},
        },
    ]
    kept = kept_columns(json.dumps({"type": "struct", "fields": fields}), {"a", "b"})
    assert physical_name(kept, "A") == "a" and physical_name(kept, "B") == "col-7"
    assert physical_name(kept, "c") is None and physical_name("{}", "a") is None
