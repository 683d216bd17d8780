"""Random queries whose rows are written as results, with what is asked besides."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

# Each is a value of the row `id`, and sometimes NULL.
_EXPRESSIONS: Final = (
    "id",
    "CAST(id % 100 AS TINYINT)",
    "CAST(-id % 30000 AS SMALLINT)",
    "CAST(id % 7 AS INT)",
    "CAST(id / 3 AS FLOAT)",
    "IF(id % 5 = 0, CAST('NaN' AS DOUBLE), id / 7)",
    "IF(id % 3 = 0, -0.0D, CAST('-Infinity' AS DOUBLE))",
    "id % 2 = 0",
    "CAST(id % 100000 / 100 AS DECIMAL(10,2))",
    "CAST(id AS DECIMAL(38,0)) * 1000000000000000000",
    "CAST(CAST(id AS STRING) AS DECIMAL(38,18))",
    "date_add(DATE'0001-01-01', CAST(id AS INT))",
    "date_add(DATE'1582-10-01', CAST(id % 20 AS INT))",
    "timestamp_micros(id * 1000003)",
    "TIMESTAMP'1500-03-01 00:00:00' + make_dt_interval(CAST(id % 9999 AS INT))",
    "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999' - make_dt_interval(CAST(id % 9999 AS INT))",
    "concat('n', id % 11)",
    "IF(id % 4 = 0, '', concat('ä\\u0000\\n日', id))",
    "concat('x', id) COLLATE UNICODE",
    "CAST(CAST(id AS STRING) AS BINARY)",
    "make_dt_interval(0, CAST(id % 50 AS INT), 1, 0.000001)",
    "array(id, NULL, id + 1)",
    "map('k', id, concat('v', id), NULL)",
    "named_struct('a', id, 'b', concat('s', id), 'c', array(named_struct('d', id % 3)))",
    "NULL",
)
_NAMES: Final = ("a", "A", "a", "", "x y", "`", ".", "ä", "c0", "c1", "日本", ",;{}()=")
_ROWS: Final = (0, 1, 2, 999, 9_999, 10_000, 10_001, 24_000)
_NULLED: Final = 0.4
_SETTINGS: Final = {
    "spark.sql.session.timeZone": ("UTC", "Asia/Tokyo", "America/New_York"),
    "spark.sql.shuffle.partitions": ("1", "3", "7"),
    "spark.sql.adaptive.enabled": ("true", "false"),
    "spark.sql.files.maxRecordsPerFile": ("0", "500", "3000"),
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.parquet.outputTimestampType": ("INT96", "TIMESTAMP_MILLIS"),
}


@dataclass(frozen=True)
class Case:
    """A query, and how its rows are asked for.

    Args:
        query: The query.
        is_total: Whether it says the place of each row.
        keys: How many of its first columns it is ordered by, where that is not total.
        most_rows: No more rows than that.
        page_rows: Rows of a page.
        settings: Of its session.
    """

    query: str
    is_total: bool
    keys: int
    most_rows: int | None
    page_rows: int
    settings: dict[str, str] = field(default_factory=dict)


def drawn(rng: Random) -> Case:
    """A case.

    Args:
        rng: What is random.
    """
    outputs = [_output(rng) for _ in range(rng.randint(1, 6))]
    rows = rng.choice(_ROWS)
    order = rng.choice(("none", "keys", "total"))
    keys = 0
    if order == "keys":
        keys = rng.randint(1, 2)
        outputs = [f"id % {rng.choice((3, 5, 100))} AS k{n}" for n in range(keys)] + outputs
    text = f"SELECT {', '.join(outputs)} FROM range(0, {rows}, 1, {rng.choice((1, 3, 8))})"
    if rng.random() < 0.3:
        text += f" WHERE id % {rng.choice((2, 9, 100_000))} <> 1"
    if order == "keys":
        text += f" ORDER BY {', '.join(f'k{n}' for n in range(keys))}"
    if order == "total":
        text += f" ORDER BY id % 4 DESC, id{rng.choice(('', ' DESC'))}"
        if rng.random() < 0.4:
            text += f" LIMIT {rng.choice((0, 1, 50, 10_000, 20_000))}"
            text += rng.choice(("", " OFFSET 3"))
    chosen = {key: rng.choice(values) for key, values in _SETTINGS.items() if rng.random() < 0.4}
    most = rng.choice((None, None, 1, 700, 10_000, 23_999, 30_000))
    return Case(text, order == "total", keys, most, rng.choice((1_000, 4_999, 30_000)), chosen)


def _output(rng: Random) -> str:
    text = rng.choice(_EXPRESSIONS)
    if rng.random() < _NULLED and text != "NULL":
        text = f"IF(id % {rng.choice((2, 6, 13))} = 0, NULL, {text})"
    return f"{text} AS `{rng.choice(_NAMES).replace('`', '``')}`"
