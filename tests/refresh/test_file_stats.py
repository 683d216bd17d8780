"""Bounds of columns from the statistics in a log: known of the table only if known of each file."""

from __future__ import annotations

import json

import pytest

from cachemgr.refresh.file_stats import ListedFile, bounds_listed


def listed(text):
    return ListedFile(100, json.loads(text or "{}"))


def stats(low, high, nulls=0, rows=10):
    return json.dumps(
        {
            "numRecords": rows,
            "minValues": {"a": low} if low is not None else {},
            "maxValues": {"a": high} if high is not None else {},
            "nullCount": {"a": nulls},
        }
    )


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([stats(1, 5), stats(-7, 2)], (-7, 5)),
        ([stats(1 << 62, (1 << 63) - 1)], (1 << 62, (1 << 63) - 1)),
        ([stats(None, None, nulls=10), stats(3, 4)], (3, 4)),
        ([stats(None, None, nulls=10)], (0, 0)),
        ([], (0, 0)),
    ],
)
def test_bounds_of_all_files(files, expected):
    assert bounds_listed([listed(f) for f in files], ["a"]) == {"a": expected}


@pytest.mark.parametrize(
    "unknown",
    [
        None,
        "{}",
        stats(None, None, nulls=3),  # some values, and nobody wrote their bounds
        stats(None, 5),
        json.dumps({"minValues": {"a": 1}, "maxValues": {}}),
        stats("1", "5"),
    ],
)
def test_what_one_file_does_not_say_is_not_known(unknown):
    assert bounds_listed([listed(stats(1, 5)), listed(unknown)], ["a"]) is None
