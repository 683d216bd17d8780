"""A refresh's failure in one line, by what Spark 4.2 and Delta 4.4 say."""

from __future__ import annotations

import pytest

from cachemgr.refresh.causes import cause_of, in_plain_words

ABORTED = "org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to x"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (
            [ABORTED, "java.io.IOException: No space left on device"],
            "the disk is full: No space left on device",
        ),
        (
            [ABORTED, "java.io.FileNotFoundException: /data/c/part-0 (Permission denied)"],
            "permission denied: /data/c/part-0 (Permission denied)",
        ),
        (
            ['org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "x"'],
            "the location is of a storage that this Spark cannot write: "
            'No FileSystem for scheme "x"',
        ),
        (
            [
                ABORTED,
                "org.apache.spark.sql.delta.schema.DeltaInvariantViolationException: "
                "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint pos (v > 0) violated "
                "by row with values:\n - v : -1",
            ],
            "a CHECK constraint: [DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint pos "
            "(v > 0) violated by row with values:",
        ),
        (
            [ABORTED, "java.lang.IllegalStateException: something else"],
            "something else",
        ),
        (
            ["java.lang.RuntimeException: outer", "java.lang.NullPointerException"],
            "outer",
        ),
        ([""], ""),
    ],
)
def test_the_innermost_cause_is_said(texts: list[str], said: str) -> None:
    assert in_plain_words(texts) == said


def test_an_error_that_says_nothing_is_named() -> None:
    assert cause_of(ValueError()) == "ValueError"
    assert cause_of(ValueError("two\nlines")) == "two"
