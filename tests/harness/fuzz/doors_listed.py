"""Where the doors may differ for a generated query, each with the reason why that is right.

The same reasons as in tests/matcher/test_two_doors.py, told here from the texts of the query, of
the differences and of Catalyst's plans.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from matcher.model.expr import FALSE
from matcher.model.ir import Block
from matcher.predicates.context import PredicateContext


@dataclass(frozen=True)
class Compared:
    """What tells the doors apart, and the reason where that is listed as right."""

    differences: list[str]
    listed: str = ""


@dataclass(frozen=True)
class Listed:
    """`why` the doors may differ where the query, every difference and the plans look so."""

    why: str
    query: str = ""
    told: str = ""
    plans: str = ""


NO_ROW: Final = "Catalyst sees that no row can pass and reads no table"
_LISTED: Final = (
    Listed(NO_ROW, plans='"n":"LocalRelation"'),
    Listed(
        "Catalyst makes a filter, a join or one union of a set operation",
        query=r"\b(EXCEPT|INTERSECT)\b",
    ),
    Listed(
        "Catalyst has one filter of a view's condition and one that holds a subquery",
        query=r"\bvf AS \w+ .*(IN|EXISTS) ?\(SELECT",
        told="^view vf: only the text has",
    ),
    Listed(NO_ROW, told=r"only Catalyst has (None|False):boolean"),
    Listed(
        "Catalyst has merged a SELECT that sorts, cuts or has several sets into the one around it, "
        "which chooses the same",
        told="^only Catalyst takes the whole query",
    ),
    Listed(
        "Catalyst puts a filter below the ORDER BY of a subquery; the text keeps the two apart",
        query=r"ORDER BY .*\) (AS q|SELECT \* FROM q) WHERE",
        told=r"^(CTE|subquery) q: only Catalyst has (isnotnull|eq\(.*outer joins)|^the text chose",
    ),
    Listed(
        "Catalyst has a HAVING above the groups still, which the text has below",
        query=r"HAVING .* IS NOT NULL",
        told=r"^[\w ]+: (only the text has isnotnull\(.*\)(; |$))+(outputs .*)?$",
    ),
    Listed(
        "Catalyst sees what a HAVING asks to be so for all groups, or for those of the filter, and "
        "forgets it, or computes for nothing what it asked about",
        query=r"HAVING .*(COUNT|SUM)\(",
        told=r"Catalyst puts out (count|sum)\(",
    ),
    Listed(
        "Catalyst sees that a count is never NULL, and keeps nothing of what a HAVING asks",
        query=r"HAVING COUNT\(.*\) IS NOT NULL",
        told=r"^the text chose \{.*\}, Catalyst set\(\)$",
    ),
    Listed(
        "the text is refused as it is read, where two keys of its grouping sets are one column",
        query=r"\b(CUBE|ROLLUP|GROUPING SETS) ?\(",
        told=r"GROUPING_SETS_IN_QUERY: two keys of the grouping sets are always equal",
    ),
    Listed(
        "Catalyst counts without DISTINCT where groups below have each value once",
        query=r"COUNT\(DISTINCT .*FROM \(SELECT .*GROUP BY .*\) AS g\b",
        told=r"^[\w ,]+: outputs .*count\(distinct ",
    ),
    Listed(
        "Catalyst leaves out of groups below what nobody reads, which chooses the same",
        query=r"GROUP BY",
        told=r"^[\w ,]+: (tables|outer joins) .*\bgroups:\w+",
    ),
    Listed(
        "Catalyst leaves an outer join out where the values of its kept side are wanted once each",
        query=r"SELECT (DISTINCT|((BIT|BOOL)_(OR|AND)|MAX|MIN)\(|COUNT\(DISTINCT)"
        r".* (LEFT|RIGHT) JOIN|"
        r"(COUNT\(DISTINCT|MAX\(|MIN\(|(BIT|BOOL)_(OR|AND)\().* (LEFT|RIGHT) JOIN .*GROUP BY",
        told="tables |^the text chose",
    ),
    Listed(
        "Catalyst keeps groups that are sorted though only the greatest value is asked for",
        query=r"SELECT MAX\(q\.\w+\).* ORDER BY",
        told=r"group keys \(\) and|^the text chose|^only Catalyst takes the whole query",
    ),
    Listed(
        "Catalyst gives the operand of BETWEEN a place of its own, and computes above the groups "
        "what is made of aggregates",
        query=r"(FILTER \(WHERE|CASE WHEN) \S+ BETWEEN",
        told=r"^(query|CTE q|subquery q): outputs",
    ),
    Listed(
        "Catalyst has put a constant in place of one of two equal columns of a table, which a "
        "cache's condition that they are equal is not held to be implied by",
        query=r"(?=.*\b(\w+)\.\w+ = \1\.\w+)(?=.*(=|<=>) -?[\d']|.*[\d'] = )",
        told=r"^the text chose \{.*\}, Catalyst set\(\)$",
    ),
    Listed(
        "Catalyst has put a condition of IN's query on the other of two equal columns",
        query=r" IN \(SELECT .* JOIN ",
        told="^[\\w ]+: outer joins ",
    ),
    Listed(
        "Catalyst compares whole numbers as such in a list of several types, where all else is the "
        "same; of a SEMI or ANTI join's condition the text has it as it is written",
        query=r" IN \(SELECT .* IN \(",
        told=r"^[\w ]+: outer joins .*in\(cast\(",
    ),
    Listed(
        "Catalyst has worked out a condition on a column that another says is one constant",
        query=r"(\w+\.\w+) = (TIMESTAMP|DATE|'|-?\d)",
        told=r"^[\w ]+: only the text has \w+\(\w+\(.*\)$",
    ),
    Listed(
        "Catalyst has worked out a CASE on a column that another condition says is one constant",
        query=r"(?=.*CASE WHEN )(?=.*(\w+\.\w+) = (TIMESTAMP|DATE|'|-?\d|CAST\('))",
        told=r"^the text chose set\(\), Catalyst \{|^[\w ]+: only the text has ",
    ),
    Listed(
        "Catalyst compares in the outer one of CASEs in each other what the text compares with all",
        query=r"CASE WHEN .* CASE WHEN ",
        told=r"^([\w ,]+: )?only (Catalyst|the text) has .*\bcase\(|^the text chose",
    ),
    Listed(
        "Catalyst has the copies of a table in another order; their joins tell them apart",
        query=r"\b(\w+) AS \w+\b.*\b\1 AS \w+\b",
        told=r"^([\w ]+: )?(columns|measures|group keys|outputs|only (Catalyst|the text) has)",
    ),
    Listed(
        "Catalyst has folded letters outside of ASCII",
        query=r"[^\x00-\x7f]",
        told="^the text chose",
    ),
    Listed(
        "Catalyst leaves aggregates out that nobody reads, so that a smaller set will do",
        query=r"^WITH q AS .*\) SELECT q\.o0 AS a, COUNT\(\*\) AS n FROM q GROUP BY 1$",
        told="^the text chose",
    ),
    Listed(
        "Catalyst leaves groups out of which only the greatest value is asked for",
        query=r"SELECT MAX\(q\.\w+\)",
        told=r"group keys .* and \(\)|only one aggregates|tables |^the text chose"
        r"|^only Catalyst takes the whole query",
    ),
)


def no_row(block: Block) -> bool:
    """True if the block's predicates contradict one another."""
    context = PredicateContext(block.predicates)
    return FALSE in context.residuals or any(
        not allowed.intervals and not allowed.null for allowed in context.domains.values()
    )


def differs_as_listed(query: str, differences: Sequence[str], plans: str) -> str:
    """The reason why the doors may differ so; an empty text if none is listed.

    Args:
        query: the query's text.
        differences: what tells the doors apart.
        plans: Catalyst's plans of the query, as the hook writes them.
    """
    for listed in _LISTED if differences else ():
        seen = re.search(listed.query, query) and re.search(listed.plans, plans)
        if seen and all(re.search(listed.told, d) for d in differences):
            return listed.why
    return ""
