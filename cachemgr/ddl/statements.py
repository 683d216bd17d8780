"""The statements as frozen data: one class a statement.

Constructors refuse what no text could have said, so a statement made in code is as sound as one
that was parsed. Positions (`SelectText.line` …) do not take part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from cachemgr.cache_spec import CacheSpec, Freshness, RefreshPolicy
from cachemgr.vocabulary import RefreshMode


@dataclass(frozen=True, slots=True)
class QualifiedName:
    """A name of one to three parts: `[catalog.][schema.]name`, unquoted, in its own case."""

    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.parts) <= 3 or not all(self.parts):
            raise ValueError(f"a name has one to three non-empty parts, not {self.parts!r}")

    @property
    def last(self) -> str:
        """The object's own name, without catalog and schema."""
        return self.parts[-1]

    @property
    def namespace(self) -> tuple[str, ...]:
        """The catalog and schema parts, empty for a bare name."""
        return self.parts[:-1]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class SelectText:
    """A query, verbatim, and where it begins in the parsed text (from 1; the offset from 0)."""

    text: str
    line: int = field(default=1, compare=False)
    column: int = field(default=1, compare=False)
    offset: int = field(default=0, compare=False)


Properties: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CreateRelationalCache:
    """CREATE [OR REPLACE] RELATIONAL CACHE [IF NOT EXISTS] name … AS select."""

    name: QualifiedName
    select: SelectText
    or_replace: bool = False
    if_not_exists: bool = False
    spec: CacheSpec = field(default_factory=CacheSpec)

    def __post_init__(self) -> None:
        if self.or_replace and self.if_not_exists:
            raise ValueError("OR REPLACE and IF NOT EXISTS exclude each other")
        if self.spec.partitioned_by and self.spec.cluster_by:
            raise ValueError("PARTITIONED BY and CLUSTER BY exclude each other")


@dataclass(frozen=True, slots=True)
class SetRewriteEnabled:
    """ENABLE REWRITE or DISABLE REWRITE."""

    enabled: bool


@dataclass(frozen=True, slots=True)
class SetPaused:
    """PAUSE or RESUME: whether refresh triggers fire."""

    paused: bool


@dataclass(frozen=True, slots=True)
class RenameTo:
    """RENAME TO name."""

    name: QualifiedName


@dataclass(frozen=True, slots=True)
class SetRefresh:
    """SET REFRESH …"""

    refresh: RefreshPolicy


@dataclass(frozen=True, slots=True)
class SetFreshness:
    """SET STRICT or SET MAX STALENESS …"""

    freshness: Freshness


@dataclass(frozen=True, slots=True)
class SetProperties:
    """SET TBLPROPERTIES (…)."""

    properties: Properties


AlterAction: TypeAlias = (
    SetRewriteEnabled | SetPaused | RenameTo | SetRefresh | SetFreshness | SetProperties
)


@dataclass(frozen=True, slots=True)
class AlterRelationalCache:
    """ALTER RELATIONAL CACHE name action."""

    name: QualifiedName
    action: AlterAction


@dataclass(frozen=True, slots=True)
class RefreshRelationalCache:
    """REFRESH RELATIONAL CACHE name [mode]; without a mode, the cache's own holds."""

    name: QualifiedName
    mode: RefreshMode | None = None


@dataclass(frozen=True, slots=True)
class DropRelationalCache:
    """DROP RELATIONAL CACHE [IF EXISTS] name."""

    name: QualifiedName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowRelationalCaches:
    """SHOW RELATIONAL CACHES [LIKE 'pattern']; the pattern is Spark's (`*` and `|`)."""

    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCreateRelationalCache:
    """SHOW CREATE RELATIONAL CACHE name."""

    name: QualifiedName


@dataclass(frozen=True, slots=True)
class DescribeRelationalCache:
    """DESCRIBE RELATIONAL CACHE [EXTENDED] name."""

    name: QualifiedName
    extended: bool = False


@dataclass(frozen=True, slots=True)
class ExplainRewrite:
    """EXPLAIN REWRITE [FILES] [FORMAT JSON] query."""

    query: SelectText
    format_json: bool = False
    files: bool = False


@dataclass(frozen=True, slots=True)
class ExplainRefresh:
    """EXPLAIN REFRESH name [FULL | INCREMENTAL]; without a mode, the cache's own holds."""

    name: QualifiedName
    mode: RefreshMode | None = None


@dataclass(frozen=True, slots=True)
class ExplainCreate:
    """EXPLAIN CREATE RELATIONAL CACHE …: what the CREATE would do."""

    statement: CreateRelationalCache


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table of a record-preserving join, with its alias if it has one."""

    name: QualifiedName
    alias: str | None = None


class Side(Enum):
    """A side of a record-preserving join, as written."""

    LEFT = "LEFT"
    RIGHT = "RIGHT"


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column as written: its qualifier's parts (alias or table name, maybe none) and its name."""

    qualifier: tuple[str, ...]
    column: str

    def __str__(self) -> str:
        return ".".join((*self.qualifier, self.column))


@dataclass(frozen=True, slots=True)
class JoinKey:
    """One equality. `resolved` says that qualifiers told the sides; else they are as written and
    whoever knows the columns must tell them."""

    left: ColumnRef
    right: ColumnRef
    resolved: bool


@dataclass(frozen=True, slots=True)
class CreateRecordPreservingJoin:
    """CREATE RECORD PRESERVING JOIN [IF NOT EXISTS] name AS a {INNER | LEFT} JOIN b ON …
    PRESERVES a; LEFT does not say that a row of a finds one of b (`finds_each`)."""

    name: QualifiedName
    left: TableRef
    right: TableRef
    keys: tuple[JoinKey, ...]
    preserves: Side = Side.LEFT
    if_not_exists: bool = False
    validated: bool = True
    finds_each: bool = True

    @property
    def preserved(self) -> TableRef:
        """The table each of whose rows the join keeps exactly once."""
        return self.left if self.preserves is Side.LEFT else self.right


@dataclass(frozen=True, slots=True)
class DropRecordPreservingJoin:
    """DROP RECORD PRESERVING JOIN [IF EXISTS] name."""

    name: QualifiedName
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowRecordPreservingJoins:
    """SHOW RECORD PRESERVING JOINS."""


@dataclass(frozen=True, slots=True)
class ValidateRecordPreservingJoin:
    """VALIDATE RECORD PRESERVING JOIN name."""

    name: QualifiedName


@dataclass(frozen=True, slots=True)
class GrantUse:
    """GRANT USE ON RELATIONAL CACHE name TO principal."""

    name: QualifiedName
    principal: str


@dataclass(frozen=True, slots=True)
class RevokeUse:
    """REVOKE USE ON RELATIONAL CACHE name FROM principal."""

    name: QualifiedName
    principal: str


@dataclass(frozen=True, slots=True)
class RestrictBaseTable:
    """RESTRICT BASE TABLE name."""

    name: QualifiedName


@dataclass(frozen=True, slots=True)
class UnrestrictBaseTable:
    """UNRESTRICT BASE TABLE name."""

    name: QualifiedName


@dataclass(frozen=True, slots=True)
class ShowRestrictedBaseTables:
    """SHOW RESTRICTED BASE TABLES."""


@dataclass(frozen=True, slots=True)
class GrantSelect:
    """GRANT SELECT ON BASE TABLE name TO principal."""

    name: QualifiedName
    principal: str


@dataclass(frozen=True, slots=True)
class RevokeSelect:
    """REVOKE SELECT ON BASE TABLE name FROM principal."""

    name: QualifiedName
    principal: str


@dataclass(frozen=True, slots=True)
class ShowSelectGrants:
    """SHOW SELECT GRANTS [ON BASE TABLE name | TO principal]; at most one of the two is given."""

    name: QualifiedName | None = None
    principal: str | None = None


# Those that change nothing, and those that do.
Reading: TypeAlias = (
    ShowRelationalCaches
    | ShowCreateRelationalCache
    | DescribeRelationalCache
    | ShowRecordPreservingJoins
    | ShowRestrictedBaseTables
    | ShowSelectGrants
    | ExplainRewrite
    | ExplainRefresh
    | ExplainCreate
)
Changing: TypeAlias = (
    CreateRelationalCache
    | AlterRelationalCache
    | RefreshRelationalCache
    | DropRelationalCache
    | CreateRecordPreservingJoin
    | DropRecordPreservingJoin
    | ValidateRecordPreservingJoin
    | GrantUse
    | RevokeUse
    | RestrictBaseTable
    | UnrestrictBaseTable
    | GrantSelect
    | RevokeSelect
)
Statement: TypeAlias = Reading | Changing
