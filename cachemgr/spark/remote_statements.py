"""Our statements in a session that follows the service.

EXPLAIN REWRITE is answered here, by what the session knows. Everything else is the service's: it
would resolve names and settings by its own catalog and session, and not by the user's, so nothing
is sent there behind his back; the error names the command that does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cachemgr.access.visitor import Visitor
from cachemgr.ddl.statements import (
    AlterRelationalCache,
    CreateRecordPreservingJoin,
    CreateRelationalCache,
    DescribeRelationalCache,
    DropRecordPreservingJoin,
    DropRelationalCache,
    ExplainRewrite,
    RefreshRelationalCache,
    ShowCreateRelationalCache,
    ShowRecordPreservingJoins,
    ShowRelationalCaches,
    Statement,
    ValidateRecordPreservingJoin,
)
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.serving.explain import Explanation
from cachemgr.statements.results import ResultRows

_COMMANDS: Final[Mapping[type, str]] = {
    CreateRelationalCache: "cachemgr cache create, or POST /api/v1/caches",
    AlterRelationalCache: "cachemgr cache enable, disable, pause or resume, or PATCH "
    "/api/v1/caches/{name}",
    RefreshRelationalCache: "cachemgr cache refresh, or POST /api/v1/caches/{name}/refreshes",
    DropRelationalCache: "cachemgr cache drop, or DELETE /api/v1/caches/{name}",
    ShowRelationalCaches: "cachemgr cache list, or GET /api/v1/caches",
    DescribeRelationalCache: "cachemgr cache show, or GET /api/v1/caches/{name}",
    ShowCreateRelationalCache: "cachemgr cache show, or GET /api/v1/caches/{name}",
    CreateRecordPreservingJoin: "cachemgr join create, or POST /api/v1/joins",
    DropRecordPreservingJoin: "cachemgr join drop, or DELETE /api/v1/joins/{name}",
    ShowRecordPreservingJoins: "cachemgr join list, or GET /api/v1/joins",
    ValidateRecordPreservingJoin: "cachemgr join validate, or POST /api/v1/joins/{name}/validate",
}


class RemoteStatements:
    """Carries statements out where that is possible without a metastore.

    Args:
        service: What the session follows, for messages.
        explain: EXPLAIN REWRITE of a text, with the files or without.
    """

    def __init__(self, service: str, explain: Callable[[str, bool], Explanation]) -> None:
        self._service = service
        self._explain = explain

    def execute(
        self,
        statement: Statement,
        *,
        principal: str | None = None,
        vouched: bool = True,
        visitor: Visitor | None = None,
    ) -> ResultRows:
        """Carry a statement out.

        Args:
            statement: What to do.
            principal: Not used, as `vouched` and `visitor` are not: the service takes the token's.

        Raises:
            ConfigurationError: It is to be run at the service; says how.
        """
        if isinstance(statement, ExplainRewrite):
            explanation = self._explain(statement.query.text, statement.files)
            return explanation.json() if statement.format_json else explanation.rows()
        how = _COMMANDS.get(type(statement), "the REST interface, or a session on the metastore")
        raise ConfigurationError(
            ErrorCode.REMOTE_SESSION,
            f"this session follows {self._service} and carries out no statement but EXPLAIN "
            f"REWRITE, since names would be resolved by the service's catalog: use {how}",
        )
