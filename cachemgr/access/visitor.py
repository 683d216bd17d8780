"""What a user of a Thrift or Connect server may change and is shown there.

Such a server carries statements out with its own rights on the metastore, for users who are not
its own: whoever reaches its port may send any, and without authentication under any name. The rules
come from the server's start-up configuration alone; no setting of a session counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cachemgr.access.asker import Asker
from cachemgr.access.grants import role_needed
from cachemgr.config.session_settings import DDL, Settings
from cachemgr.config.setting import Ddl
from cachemgr.ddl.statements import Reading, Statement
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.metastore.records import CacheRecord
from cachemgr.roles import Role

CLAIMED: Final = "owner_claimed"
"""In the context of a cache: nobody had authenticated the name of its owner when it was made."""

_ELSEWHERE: Final = "or use the service, or a session on the metastore"
_AUTHENTICATE: Final = (
    "let the server authenticate its users (hive.server2.authentication), or set "
    "spark.cachemgr.trustUserNames=true in its configuration if something before it does"
)


@dataclass(frozen=True, slots=True)
class Visitor:
    """A user of a server who is not the server's own user.

    Args:
        name: His name; empty where nobody can tell.
        authenticated: Somebody has authenticated the name, or the server's configuration says so.
        is_admin: He is authenticated, and `spark.cachemgr.admins` names him.
        ddl: Who may change caches and joins there.
    """

    name: str
    authenticated: bool
    is_admin: bool
    ddl: Ddl

    def refuse(self, statement: Statement) -> None:
        """Refuse a statement that he may carry out on no cache at all.

        Args:
            statement: What is to be carried out.

        Raises:
            ConfigurationError: He may not; says who may.
        """
        if self.is_admin:
            return
        if role_needed(statement) is Role.ADMIN:
            self._forbid(
                "may not do this here: it is for those whom the server authenticates and its "
                "spark.cachemgr.admins names",
            )
        if isinstance(statement, Reading):
            return
        if self.ddl is Ddl.ADMINS:
            self._forbid(
                f"may not change caches or joins here: {DDL}=admins leaves that to those whom the "
                "server authenticates and its spark.cachemgr.admins names",
            )
        if self.ddl is Ddl.AUTHENTICATED and not self.authenticated:
            self._forbid(
                f"may not change caches or joins here, since nobody has authenticated that name: "
                f"{DDL} is authenticated; {_AUTHENTICATE}",
            )

    def refuse_change(self, cache: CacheRecord, *, may_use: bool) -> None:
        """Refuse to alter, drop or replace a cache that is not his.

        A name that is only claimed makes nobody the owner of what was made under an authenticated
        one, nor of what answers authenticated users alone.

        Args:
            cache: The cache.
            may_use: He may be answered from it.

        Raises:
            ConfigurationError: He may not; says who may.
        """
        if self._changes_all or (may_use and self._is_his(cache)):
            return
        self._forbid(
            f"may not change cache {cache.qualified_name} here: another principal made it, or it "
            "answers none but authenticated users, and nobody has authenticated that name; "
            f"{_AUTHENTICATE}; or set {DDL}=all there to let everybody change every cache",
        )

    def refuse_join_drop(self, name: str) -> None:
        """Refuse to drop a record-preserving join, which is nobody's own.

        Args:
            name: The join's.

        Raises:
            ConfigurationError: He may not; says who may.
        """
        if not self._changes_all:
            self._forbid(
                f"may not drop record-preserving join {name} here, since joins serve everybody and "
                f"nobody has authenticated that name; {_AUTHENTICATE}; or set {DDL}=all there",
            )

    def sees(self, cache: CacheRecord, *, may_use: bool) -> bool:
        """Whether he is shown what a cache holds: its definition, columns, comment and place.

        Args:
            cache: The cache.
            may_use: He may be answered from it.
        """
        wrote_it = self.authenticated and self.name != "" and cache.owner == self.name
        return may_use or self.is_admin or wrote_it

    def sees_grant(self, principal: str) -> bool:
        """Whether he is told which tables the service may read for somebody.

        Args:
            principal: For whom.
        """
        return self.is_admin or (self.authenticated and self.name == principal)

    def refuse_to_show(self, cache: CacheRecord) -> None:
        """Say that he is not shown what a cache holds.

        Raises:
            ConfigurationError: Always; says what helps.
        """
        raise ConfigurationError(
            ErrorCode.FORBIDDEN,
            f"{self._who} is not shown the definition of cache {cache.qualified_name}: it is "
            "granted to others, or reads a restricted table; an admin's GRANT USE ON RELATIONAL "
            f"CACHE {cache.qualified_name} shows it to an authenticated user",
        )

    @property
    def _changes_all(self) -> bool:
        return self.is_admin or self.authenticated or self.ddl is not Ddl.OWNERS

    def _is_his(self, cache: CacheRecord) -> bool:
        # clients that give no name are one user, as those that give the same are
        return cache.owner == self.name and bool(cache.context.get(CLAIMED))

    @property
    def _who(self) -> str:
        return self.name or "a client without a name"

    def _forbid(self, why: str) -> None:
        raise ConfigurationError(ErrorCode.FORBIDDEN, f"{self._who} {why}; {_ELSEWHERE}")


def visitor_of(asker: Asker, settings: Settings) -> Visitor | None:
    """Who asks, where a server's users are others than its own.

    Args:
        asker: Who runs a statement.
        settings: The server's.

    Returns:
        None for the server's own user, who has all rights that the database gives him.
    """
    if asker.name is None:
        return None
    admins = {name.strip() for name in settings.admins.split(",")} - {""}
    authenticated = bool(asker.name) and asker.believed(settings.trust_user_names).vouched
    return Visitor(asker.name, authenticated, authenticated and asker.name in admins, settings.ddl)
