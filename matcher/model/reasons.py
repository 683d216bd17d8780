"""The closed enum of miss reasons. Every refusal anywhere is one of these codes with a detail and,
where one exists, a remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from matcher.model.message import Arg, Kind, Message, render


class ReasonCode(StrEnum):
    """Why a query block, or one candidate for it, is not answered from a cache. Codes are stable;
    texts are free."""

    # The query or block itself
    NO_CACHE_FOR_TABLES = "NO_CACHE_FOR_TABLES"
    UNSUPPORTED_OPERATOR = "UNSUPPORTED_OPERATOR"
    UNSUPPORTED_EXPRESSION = "UNSUPPORTED_EXPRESSION"
    UNSUPPORTED_RELATION = "UNSUPPORTED_RELATION"
    NON_DETERMINISTIC = "NON_DETERMINISTIC"
    OUTPUT_NAME_UNKNOWN = "OUTPUT_NAME_UNKNOWN"
    HINT = "HINT"
    QUERY_TOO_LARGE = "QUERY_TOO_LARGE"
    TOO_MANY_STEPS = "TOO_MANY_STEPS"
    OUT_OF_TIME = "OUT_OF_TIME"
    # Relations and joins
    TABLE_NOT_IN_CACHE = "TABLE_NOT_IN_CACHE"
    EXTRA_TABLE_NOT_PRESERVING = "EXTRA_TABLE_NOT_PRESERVING"
    EXTRA_TABLE_FILTERED = "EXTRA_TABLE_FILTERED"
    JOIN_CONDITION_DIFFERS = "JOIN_CONDITION_DIFFERS"
    OUTER_JOIN_DIFFERS = "OUTER_JOIN_DIFFERS"
    TOO_MANY_MAPPINGS = "TOO_MANY_MAPPINGS"
    # Predicates
    PREDICATE_NOT_CONTAINED = "PREDICATE_NOT_CONTAINED"
    PREDICATE_COLUMN_MISSING = "PREDICATE_COLUMN_MISSING"
    # Outputs and groups
    COLUMN_NOT_IN_CACHE = "COLUMN_NOT_IN_CACHE"
    COLUMN_NOT_IN_GROUPING_SET = "COLUMN_NOT_IN_GROUPING_SET"
    GROUPING_SETS_IN_QUERY = "GROUPING_SETS_IN_QUERY"
    CACHE_IS_AGGREGATED = "CACHE_IS_AGGREGATED"
    GLOBAL_AGGREGATE_ON_EMPTY = "GLOBAL_AGGREGATE_ON_EMPTY"
    HAVING_NOT_CONTAINED = "HAVING_NOT_CONTAINED"
    LIMIT_NOT_CONTAINED = "LIMIT_NOT_CONTAINED"
    BASE_IS_CHEAPER = "BASE_IS_CHEAPER"
    # Aggregates
    AGG_NOT_DERIVABLE = "AGG_NOT_DERIVABLE"
    DISTINCT_NOT_DERIVABLE = "DISTINCT_NOT_DERIVABLE"
    AVG_NOT_EXACT = "AVG_NOT_EXACT"
    FLOAT_NOT_EXACT = "FLOAT_NOT_EXACT"
    MAY_BE_NULL = "MAY_BE_NULL"
    MAY_OVERFLOW = "MAY_OVERFLOW"
    NOT_MERGEABLE = "NOT_MERGEABLE"
    DELTA_NOT_LINEAR = "DELTA_NOT_LINEAR"
    # Rows appended since the cache was refreshed
    DIMENSION_CHANGED = "DIMENSION_CHANGED"
    RANGE_REWRITTEN = "RANGE_REWRITTEN"
    TOO_MUCH_APPENDED = "TOO_MUCH_APPENDED"
    FRESH_IN_SPARK_ONLY = "FRESH_IN_SPARK_ONLY"
    # The session and the cache's state
    CACHE_DISABLED = "CACHE_DISABLED"
    CACHE_NOT_REFRESHED = "CACHE_NOT_REFRESHED"
    CACHE_DAMAGED = "CACHE_DAMAGED"
    CACHE_UNREADABLE = "CACHE_UNREADABLE"
    SETTINGS_DIFFER = "SETTINGS_DIFFER"
    OTHER_SPARK = "OTHER_SPARK"
    STALE = "STALE"
    TABLE_RECREATED = "TABLE_RECREATED"
    COLUMNS_CHANGED = "COLUMNS_CHANGED"
    FRESHNESS_UNKNOWN = "FRESHNESS_UNKNOWN"
    MIXED_SNAPSHOTS = "MIXED_SNAPSHOTS"
    NOT_STRICT_FOR_WRITE = "NOT_STRICT_FOR_WRITE"
    KEPT_BY_SPARK = "KEPT_BY_SPARK"
    NOT_GRANTED = "NOT_GRANTED"
    NOT_AUTHENTICATED = "NOT_AUTHENTICATED"
    TABLE_RESTRICTED = "TABLE_RESTRICTED"
    DECIDED_TOO_LATE = "DECIDED_TOO_LATE"
    REGISTRY_LOADING = "REGISTRY_LOADING"
    SCHEMA_WOULD_DIFFER = "SCHEMA_WOULD_DIFFER"
    INTERNAL_ERROR = "INTERNAL_ERROR"


@dataclass(frozen=True, slots=True, init=False)
class Reason:
    """A code, what exactly was at fault, and the smallest change that would help (empty where
    there is none).

    Args:
        code: The code.
        template: What was at fault: a constant, in which `{name}` stands for an argument.
        remedy: What would help, likewise.
        args: The arguments of both by their names, each of a kind of `matcher.model.message`.

    >>> from matcher.model.message import CacheName, TableName
    >>> Reason(
    ...     ReasonCode.STALE,
    ...     "{table} is newer than {cache}",
    ...     "REFRESH RELATIONAL CACHE {cache}",
    ...     cache=CacheName("c"),
    ...     table=TableName("sales"),
    ... ).detail
    'sales is newer than c'
    """

    code: ReasonCode
    template: str
    remedy: str
    args: tuple[tuple[str, Arg], ...]

    def __init__(self, code: ReasonCode, template: str, remedy: str = "", /, **args: Arg) -> None:
        set_field = object.__setattr__
        set_field(self, "code", code)
        set_field(self, "template", template)
        set_field(self, "remedy", remedy)
        set_field(self, "args", tuple(args.items()))

    @property
    def detail(self) -> str:
        """What exactly was at fault, for people."""
        return render(self.template, self.args)

    @property
    def suggestion(self) -> str:
        """The smallest change that would help, for people; empty where there is none."""
        return render(self.remedy, self.args)

    @property
    def fault(self) -> Message:
        """What was at fault, as a part of another text."""
        return Message(self.template, **dict(self.args))

    @property
    def cure(self) -> Message:
        """What would help, as a part of another text."""
        return Message(self.remedy, **dict(self.args))

    def without(self, kinds: tuple[Kind, ...]) -> Reason:
        """The same for those who may not see arguments of some kinds."""
        args = dict(self.fault.without(kinds).args)
        return Reason(self.code, self.template, self.remedy, **args)


_REMEDIES: Final[dict[ReasonCode, str]] = {
    ReasonCode.UNSUPPORTED_OPERATOR: "the blocks below it are tried on their own: cache one of "
    "them, or write the query without it",
    ReasonCode.UNSUPPORTED_EXPRESSION: "write it with built-in functions of plain columns, or "
    "leave it to the SELECT around the block",
    ReasonCode.UNSUPPORTED_RELATION: "read a table by its name, as it is now",
    ReasonCode.NON_DETERMINISTIC: "put a constant in its place",
    ReasonCode.QUERY_TOO_LARGE: "join a table of the constants instead of listing them, or split "
    "the query",
}


def not_taken(code: ReasonCode, template: str, /, **args: Arg) -> Reason:
    """Why a door makes no block of a part of a query, with what to do about such parts.

    Args:
        code: The code.
        template: What the part is; see `Reason`.
        args: The arguments of the template.
    """
    return Reason(code, template, _REMEDIES.get(code, ""), **args)
