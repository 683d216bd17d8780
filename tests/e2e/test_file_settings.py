# ruff: noqa: E501 - tables of SQL read better unbroken
"""What a cache stores is what Spark computed, whatever its user's settings say of files."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark

# How the user's own files are written, and how those are read that do not say by what they were written.
LOSSY = {
    "spark__sql__parquet__outputTimestampType": "TIMESTAMP_MILLIS",
    "spark__sql__parquet__datetimeRebaseModeInWrite": "LEGACY",
    "spark__sql__parquet__int96RebaseModeInWrite": "LEGACY",
    "spark__sql__parquet__writeLegacyFormat": "true",
    "spark__sql__parquet__datetimeRebaseModeInRead": "LEGACY",
    "spark__sql__parquet__int96RebaseModeInRead": "LEGACY",
    "spark__sql__parquet__int96TimestampConversion": "true",
    "spark__sql__parquet__int96AsTimestamp": "false",
    "spark__sql__parquet__inferTimestampNTZ__enabled": "false",
    "spark__sql__parquet__binaryAsString": "true",
    "spark__sql__legacy__parquet__nanosAsLong": "true",
}
STRICT = {
    "spark__sql__parquet__datetimeRebaseModeInWrite": "EXCEPTION",
    "spark__sql__parquet__int96RebaseModeInWrite": "EXCEPTION",
    "spark__sql__parquet__datetimeRebaseModeInRead": "EXCEPTION",
    "spark__sql__parquet__int96RebaseModeInRead": "EXCEPTION",
}
ROWS = """INSERT INTO times VALUES
 (1, TIMESTAMP'2024-01-01 00:00:00.123456', TIMESTAMP_NTZ'2024-01-01 00:00:00.123456', DATE'1582-10-10', X'00FF', 1.50, 1),
 (1, TIMESTAMP'2024-01-01 00:00:00.123999', TIMESTAMP_NTZ'2024-01-01 00:00:00.123999', DATE'1582-10-15', X'61', 2.25, 2),
 (2, TIMESTAMP'1500-03-01 00:00:00.000001', TIMESTAMP_NTZ'1500-03-01 00:00:00.000001', DATE'1500-03-01', X'', NULL, 4),
 (2, NULL, NULL, NULL, NULL, 9.99, 8)"""
QUERIES = (
    "SELECT CAST(ts AS STRING) AS s, SUM(v) AS v FROM times GROUP BY ts",
    "SELECT CAST(ntz AS STRING) AS s, d, SUM(v) AS v FROM times GROUP BY ntz, d",
    "SELECT CAST(d AS STRING) AS d, hex(b) AS b, SUM(price) AS p FROM times GROUP BY d, b",
    "SELECT k, CAST(MAX(ts) AS STRING) AS hi, CAST(MIN(ntz) AS STRING) AS lo, MIN(d) AS d FROM times GROUP BY k",
    "SELECT COUNT(*) AS n FROM times WHERE ts > TIMESTAMP'2024-01-01 00:00:00.1235' OR d = DATE'1582-10-10'",
)


@pytest.mark.parametrize("settings", [LOSSY, STRICT], ids=["lossy", "strict"])
def test_what_is_stored_is_what_was_computed(lab, settings):
    # each hit reads the files, in the user's session
    lab.spark.conf.set("spark.cachemgr.pin.maxBytes", "0")
    # as another job writes them: in microseconds, without a calendar of old
    with lab.conf(spark__sql__parquet__outputTimestampType="TIMESTAMP_MICROS"):
        lab.plain.sql(
            "CREATE TABLE times (k INT, ts TIMESTAMP, ntz TIMESTAMP_NTZ, d DATE, b BINARY, "
            "price DECIMAL(10,2), v BIGINT) USING delta"
        )
        lab.plain.sql(ROWS)
        more = ROWS.replace("'2024-01-01 00:00:00.123456'", "'2024-01-01 00:00:00.123457'")
    with lab.conf(**settings):
        lab.cache(
            "c AS SELECT k, ts, ntz, d, b, SUM(v) AS v, SUM(price) AS p, COUNT(*) AS n FROM times "
            "GROUP BY k, ts, ntz, d, b"
        )
        for query in QUERIES:
            lab.hit(query)
    with lab.conf(spark__sql__parquet__outputTimestampType="TIMESTAMP_MICROS"):
        lab.plain.sql(more)
    with lab.conf(**settings):
        lab.hit(QUERIES[0])  # beside the rows appended since
        lab.sql("REFRESH RELATIONAL CACHE c")
        for query in QUERIES:
            lab.hit(query)
