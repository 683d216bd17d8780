"""Where a LIMIT may stand in a query, and what it has to return there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Position:
    """A query with a LIMIT.

    Attributes:
        name: In docs/limit.md.
        query: `{t}` stands for a table with the columns a, p and v.
        whole: What its rows are some of; empty where they are those of Spark over the same table.
        rows: How many it has.
        why: What a LIMIT may leave unread there.
        keys: The columns of its ORDER BY, which are the same place by place; ties may be any.
    """

    name: str
    query: str
    whole: str
    rows: int
    why: str
    keys: tuple[str, ...] = ()


_ANY: Final = "any rows will do"
_ALL: Final = "needs all rows"

POSITIONS: Final = (
    Position("plain", "SELECT a, p FROM {t} LIMIT 10", "SELECT a, p FROM {t}", 10, _ANY),
    Position(
        "more than a file has", "SELECT a FROM {t} LIMIT 1500", "SELECT a FROM {t}", 1500, _ANY
    ),
    Position(
        "with OFFSET",
        "SELECT a FROM {t} LIMIT 10 OFFSET 5",
        "SELECT a FROM {t}",
        10,
        "as many rows as both say",
    ),
    Position("OFFSET alone", "SELECT a FROM {t} OFFSET 19990", "SELECT a FROM {t}", 10, _ALL),
    Position(
        "over a projection",
        "SELECT a + 1 AS b FROM {t} LIMIT 10",
        "SELECT a + 1 AS b FROM {t}",
        10,
        _ANY,
    ),
    Position(
        "over a filter of partitions",
        "SELECT a FROM {t} WHERE p BETWEEN 3 AND 7 LIMIT 10",
        "SELECT a FROM {t} WHERE p BETWEEN 3 AND 7",
        10,
        "the filter is exact: a file has only rows that it keeps, or none",
    ),
    Position(
        "over another filter",
        "SELECT a FROM {t} WHERE v = 5 LIMIT 10",
        "SELECT a FROM {t} WHERE v = 5",
        10,
        "no file is known to have a row that it keeps; tasks stop when there are enough",
    ),
    Position(
        "over a filter that statistics tell files by",
        "SELECT a FROM {t} WHERE a >= 17000 LIMIT 10",
        "SELECT a FROM {t} WHERE a >= 17000",
        10,
        "files that cannot have such rows are left out, as without LIMIT",
    ),
    Position(
        "below a filter",
        "SELECT a FROM (SELECT a FROM {t} LIMIT 10) WHERE a >= 0",
        "SELECT a FROM {t}",
        10,
        "the filter is over the rows that the LIMIT has taken",
    ),
    Position(
        "below COUNT(*)",
        "SELECT COUNT(*) AS n FROM (SELECT a FROM {t} LIMIT 10)",
        "SELECT 10L AS n",
        1,
        _ANY,
    ),
    Position(
        "below GROUP BY",
        "SELECT a, COUNT(*) AS n FROM (SELECT a FROM {t} LIMIT 10) GROUP BY a",
        "SELECT a, 1L AS n FROM {t}",
        10,
        _ANY,
    ),
    Position(
        "over GROUP BY",
        "SELECT v, COUNT(*) AS n FROM {t} GROUP BY v LIMIT 10",
        "SELECT v, COUNT(*) AS n FROM {t} GROUP BY v",
        10,
        "a group needs all of its rows",
    ),
    Position(
        "over ORDER BY",
        "SELECT a, v FROM {t} ORDER BY v DESC LIMIT 10",
        "SELECT a, v FROM {t}",
        10,
        "the first rows may be in any file",
        ("v",),
    ),
    Position(
        "below ORDER BY",
        "SELECT a FROM (SELECT a FROM {t} LIMIT 10) ORDER BY a",
        "SELECT a FROM {t}",
        10,
        _ANY,
    ),
    Position(
        "over UNION ALL",
        "SELECT a FROM {t} UNION ALL SELECT a + 1 FROM {t} LIMIT 10",
        "SELECT a FROM {t} UNION ALL SELECT a + 1 FROM {t}",
        10,
        "as many rows of each side",
    ),
    Position(
        "over LEFT JOIN",
        "SELECT a, k FROM {t} LEFT JOIN few ON v = k LIMIT 10",
        "SELECT a, k FROM {t} LEFT JOIN few ON v = k",
        10,
        "each row of the kept side is in the result",
    ),
    Position(
        "over RIGHT JOIN",
        "SELECT a, k FROM few RIGHT JOIN {t} ON v = k LIMIT 10",
        "SELECT a, k FROM few RIGHT JOIN {t} ON v = k",
        10,
        "each row of the kept side is in the result",
    ),
    Position(
        "over LEFT JOIN, the other side",
        "SELECT k, a FROM few LEFT JOIN {t} ON v = k LIMIT 10",
        "SELECT k, a FROM few LEFT JOIN {t} ON v = k",
        10,
        "any row may be the one that a row of the kept side needs",
    ),
    Position(
        "over FULL JOIN",
        "SELECT a, k FROM {t} FULL JOIN few ON v = k LIMIT 10",
        "SELECT a, k FROM {t} FULL JOIN few ON v = k",
        10,
        "whether a row has none beside it needs all",
    ),
    Position(
        "over INNER JOIN",
        "SELECT a, k FROM {t} JOIN few ON v = k LIMIT 10",
        "SELECT a, k FROM {t} JOIN few ON v = k",
        10,
        "rows may have none beside them; tasks stop when there are enough",
    ),
    Position(
        "under LEFT JOIN",
        "SELECT a, k FROM (SELECT a, v FROM {t} LIMIT 10) LEFT JOIN ones ON v = k",
        "SELECT a, k FROM {t} LEFT JOIN ones ON v = k",
        10,
        _ANY,
    ),
    Position(
        "under FULL JOIN",
        "SELECT a FROM (SELECT a FROM {t} LIMIT 10) FULL JOIN none ON a = k",
        "SELECT a FROM {t}",
        10,
        _ANY,
    ),
    Position(
        "over DISTINCT",
        "SELECT DISTINCT p FROM {t} LIMIT 10",
        "SELECT DISTINCT p FROM {t}",
        10,
        "rows may be equal",
    ),
    Position(
        "below DISTINCT",
        "SELECT DISTINCT a FROM (SELECT a FROM {t} LIMIT 10)",
        "SELECT a FROM {t}",
        10,
        _ANY,
    ),
    Position(
        "over a window",
        "SELECT a, ROW_NUMBER() OVER (ORDER BY a) AS r FROM {t} LIMIT 10",
        "SELECT a, a + 1 AS r FROM {t}",
        10,
        "a row's number needs those before it",
    ),
    Position(
        "below a window",
        "SELECT a, COUNT(*) OVER () AS n FROM (SELECT a FROM {t} LIMIT 10)",
        "SELECT a, 10L AS n FROM {t}",
        10,
        _ANY,
    ),
    Position(
        "TABLESAMPLE (10 ROWS)",
        "SELECT a FROM {t} TABLESAMPLE (10 ROWS)",
        "SELECT a FROM {t}",
        10,
        "is a LIMIT",
    ),
    Position(
        "over TABLESAMPLE (90 PERCENT)",
        "SELECT a FROM {t} TABLESAMPLE (90 PERCENT) LIMIT 10",
        "SELECT a FROM {t}",
        10,
        "as over a filter",
    ),
    Position(
        "in a subquery with IN",
        "SELECT k FROM few WHERE k NOT IN (SELECT a + 1000000 FROM {t} LIMIT 10)",
        "SELECT k FROM few",
        3,
        _ANY,
    ),
    Position("LIMIT 0", "SELECT a FROM {t} LIMIT 0", "SELECT a FROM {t}", 0, "nothing is read"),
)
"""`few` has the values 3, 4 and 5 of v, `ones` one row, `none` no row; each table 20,000 rows."""
