"""The columns of each statement's rows, known before it is carried out.

A server has to tell a client the columns once a text is parsed (`sidecar/Statement.java`), so they
depend on the kind of the statement alone.
"""

from __future__ import annotations

from typing import Final

from cachemgr.ddl.statements import (
    DescribeRelationalCache,
    ExplainCreate,
    ExplainRefresh,
    ExplainRewrite,
    GrantSelect,
    RefreshRelationalCache,
    ShowCreateRelationalCache,
    ShowRecordPreservingJoins,
    ShowRelationalCaches,
    ShowRestrictedBaseTables,
    ShowSelectGrants,
    Statement,
    ValidateRecordPreservingJoin,
)
from cachemgr.statements.results import DONE, ResultRows, table

# Each as `results.table` takes it.
REFRESHED: Final = (
    "name", "result", "mode", "reason", "rows bigint", "bytes bigint", "version bigint",
    "seconds double",
)  # fmt: skip
VALIDATED: Final = ("name", "state", "message")
CACHES: Final = (
    "namespace", "name", "status", "refresh", "freshness", "rewrite", "rows bigint", "bytes bigint",
    "refreshed_at timestamp", "comment",
)  # fmt: skip
DESCRIBED: Final = ("col_name", "data_type", "comment")
CREATE_TEXT: Final = ("createtab_stmt",)
JOINS: Final = (
    "name", "preserved", "joined", "kind", "keys", "state", "message", "validated_at timestamp",
)  # fmt: skip
RESTRICTED: Final = ("name", "location", "table_id", "restricted_by", "restricted_at")
SELECT_GRANTED: Final = ("name", "result", "location")
SELECT_GRANTS: Final = ("principal", "table", "location", "granted_at timestamp")
STEPS: Final = ("step int", "stage", "detail")
ITEMS: Final = ("item", "value")
JSON: Final = ("json",)

_BY_KIND: Final[dict[type, tuple[str, ...]]] = {
    RefreshRelationalCache: REFRESHED,
    ValidateRecordPreservingJoin: VALIDATED,
    ShowRelationalCaches: CACHES,
    DescribeRelationalCache: DESCRIBED,
    ShowCreateRelationalCache: CREATE_TEXT,
    ShowRecordPreservingJoins: JOINS,
    ShowRestrictedBaseTables: RESTRICTED,
    GrantSelect: SELECT_GRANTED,
    ShowSelectGrants: SELECT_GRANTS,
    ExplainRefresh: STEPS,
    ExplainCreate: ITEMS,
    ExplainRewrite: ITEMS,
}


def columns_of(statement: Statement) -> ResultRows:
    """The rows of a statement, without a row.

    Args:
        statement: Any.
    """
    if isinstance(statement, ExplainRewrite) and statement.format_json:
        return table(JSON)
    return table(_BY_KIND.get(type(statement), DONE))
