"""A refresh's failure in one line, by what Spark 4.2 and Delta 4.4 say."""

from __future__ import annotations

import pytest

from cachemgr.causes import cause_of, in_plain_words, is_storage_trouble, tell_of_storage
from cachemgr.spark.failures import is_not_as_written

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


@pytest.mark.parametrize(
    "text",
    [
        "java.nio.file.AccessDeniedException: s3a://b/c: getFileStatus on s3a://b/c: "
        "software.amazon.awssdk.services.s3.model.S3Exception: null (Service: S3, Status Code: "
        "403)",
        "org.apache.hadoop.fs.s3a.AWSBadRequestException: The provided token has expired. "
        "(Service: S3, Status Code: 400, Request ID: x): ExpiredToken",
        "org.apache.hadoop.fs.s3a.AWSStatus500Exception: We encountered an internal error",
        "org.apache.hadoop.fs.s3a.AWSServiceThrottledException: Slow Down (Status Code: 503)",
        "org.apache.hadoop.net.ConnectTimeoutException: 20000 millis timeout while waiting",
        "java.net.SocketTimeoutException: Read timed out",
        "java.net.UnknownHostException: bucket.s3.amazonaws.com",
        "org.apache.hadoop.security.AccessControlException: Permission denied: user=ann",
        "org.apache.hadoop.hdfs.server.namenode.SafeModeException: Cannot create file. Name node "
        "is in safe mode",
        "org.apache.hadoop.ipc.StandbyException: Operation category READ is not supported",
        "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException: The DiskSpace quota is exceeded",
        "Operation failed: This request is not authorized, 403, AuthorizationPermissionMismatch",
        "java.io.IOException: No space left on device",
        "java.io.IOException: Stale file handle",
        "java.io.IOException: Input/output error",
    ],
)
def test_what_a_storage_says_that_cannot_be_asked(text: str) -> None:
    assert tell_of_storage(["org.apache.spark.SparkException: Job aborted", text])


@pytest.mark.parametrize(
    "text",
    [
        "java.io.FileNotFoundException: File s3a://b/c/part-0.parquet does not exist",
        "java.io.FileNotFoundException: No such file or directory: s3a://b/c",
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint pos (v > 0) violated",
        "java.lang.OutOfMemoryError: Java heap space",
        "[DIVIDE_BY_ZERO] Division by zero",
        "s3a://b/c/part-00503-x.snappy.parquet is not a Parquet file. Expected magic number",
        "org.apache.spark.sql.delta.DeltaUnsupportedTableFeatureException: ofTomorrow",
    ],
)
def test_what_is_another_matter(text: str) -> None:
    assert not tell_of_storage([text])


def test_what_is_below_an_error_of_ours_counts() -> None:
    try:
        try:
            raise PermissionError(13, "no")
        except PermissionError as below:
            raise ValueError("a table cannot be read") from below
    except ValueError as error:
        assert is_storage_trouble(error)
    assert not is_storage_trouble(FileNotFoundError(2, "gone"))


ZEROED = (
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/caches/x/a.parquet\n"
    "java.lang.RuntimeException: file:/caches/x/a.parquet is not a Parquet file. Expected magic "
    "number at tail, but found [0, 0, 0, 0]"
)


def test_a_file_that_is_not_what_was_written_is_told_from_one_that_cannot_be_read() -> None:
    assert is_not_as_written(ZEROED)
    assert is_not_as_written("org.apache.hadoop.fs.ChecksumException: Checksum error: a.parquet")
    read = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3a://b/caches/x/a"
    assert not is_not_as_written(f"{read}\njava.net.SocketTimeoutException: Read timed out")
    assert not is_not_as_written(f"{read}\nCould not read footer: Access Denied")
    assert not is_not_as_written(f"{read}\njava.lang.OutOfMemoryError: Java heap space")
    assert not is_not_as_written(f"{read}\njava.io.FileNotFoundException: a does not exist")
