"""Whether rows that one minor of Spark has computed are those that another one computes.

A cache's rows are what the Spark which refreshed it makes of its definition. Another minor may make
others of the same SQL: of letters (ICU), sketches, formats. What all minors make alike is listed
here by operator (tests/harness/sparks runs each of them on all); whatever is not serves the Spark
that computed it alone. So it is with a Spark of the same minor on another Java, which brings other
formats, and since 19 writes a DOUBLE as text in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cachemgr.config.judged.used_functions import expressions_of
from cachemgr.sparks import have_one_java, minor_of
from matcher.model.expr import OPAQUE_PREFIX, Agg, Call, Expr, walk
from matcher.model.ir import CachePlan
from matcher.model.message import CacheName, Word
from matcher.model.reasons import Reason, ReasonCode
from matcher.model.types import holds_floats

ALIKE: Final = frozenset(
    "and or not eq ne lt le gt ge nseq isnull isnotnull isnan in case coalesce "
    "add sub mul div idiv mod pmod neg abs sign round bround ceil floor sqrt exp ln log10 log2 "
    "power year quarter month day dayofweek weekday dayofyear weekofyear hour minute second "
    "last_day unix_date datediff date_add date_sub add_months months_between next_day trunc "
    "date_trunc length reverse concat substring left right replace trim ltrim rtrim lpad rpad "
    "repeat instr locate translate ascii substring_index startswith endswith contains like md5 "
    "crc32 cast count sum avg min max min_by max_by try_sum try_avg bit_and bit_or bit_xor "
    "stddev_samp stddev_pop var_samp var_pop covar_samp covar_pop corr skewness kurtosis "
    "collect_set percentile first last".split()
)
# Parts of types whose values are compared or shown by what a minor brings.
_UNLIKE_TYPES: Final = ("collate", "variant")
_PRINTED: Final = "a FLOAT or DOUBLE as a string"


def other_spark(name: str, written: frozenset[str], here: str | None, part: str) -> Reason:
    """Why a cache may not serve a Spark that has not computed its rows.

    Args:
        name: The cache.
        written: The minors that its rows were computed by.
        here: The minor that asks; None where nobody says which will run the query.
        part: What of its definition they may compute differently.
    """
    if here is None:
        return Reason(
            ReasonCode.OTHER_SPARK,
            "cache {cache} was computed by Spark {written}, another one may compute {part} "
            "otherwise, and the request does not say which Spark is to run the query",
            "say it in the request, as its spark",
            cache=CacheName(name),
            written=_minors(written),
            part=Word(part),
        )
    return Reason(
        ReasonCode.OTHER_SPARK,
        "cache {cache} was computed by Spark {written}, and this is Spark {here}, which may "
        "compute {part} otherwise",
        "REFRESH RELATIONAL CACHE {cache} FULL by a Spark {here}, or leave {part} out of its "
        "definition"
        if have_one_java([here])
        else "leave {part} out of its definition, or ask in a session, which knows its Java",
        cache=CacheName(name),
        written=_minors(written),
        here=Word(here),
        part=Word(part),
    )


def _minors(minors: Iterable[str]) -> Word:
    return Word(" and ".join(sorted(minors)))


def unlike(plan: CachePlan) -> str | None:
    """What of a cache's definition two minors may compute differently; None if nothing is known to.

    Args:
        plan: The cache.
    """
    return next(_unlike(expressions_of(plan)), None)


def printed(plan: CachePlan) -> str | None:
    """What of a cache's definition depends on how its Java writes a DOUBLE; None if nothing does.

    Args:
        plan: The cache.
    """
    nodes = (node for expr in expressions_of(plan) for node in walk(expr))
    return next((_PRINTED for node in nodes if _prints_floats(node)), None)


def differing(
    written: frozenset[str], here: str | None, unlike: str | None, printed: str | None
) -> str | None:
    """What of a cache's definition a Spark may compute otherwise than those that computed its rows;
    None if nothing.

    Args:
        written: The latter, as `sparks.on_java` gives them.
        here: The former; None where nobody says which it is.
        unlike: What minors may compute differently.
        printed: What depends on Java.
    """
    if here is None:
        return unlike or printed
    both = {*written, here}
    if len({minor_of(spark) for spark in both}) > 1 and unlike is not None:
        return unlike
    if have_one_java(both):
        return None
    return printed or (unlike if have_one_java(written) and have_one_java([here]) else None)


def _prints_floats(node: Expr) -> bool:
    if not isinstance(node, Call) or node.op not in ("cast", "try_cast"):
        return False
    return node.type.startswith("string") and holds_floats(node.args[0].type)


def _unlike(expressions: Iterable[Expr]) -> Iterator[str]:
    for expr in expressions:
        for node in walk(expr):
            for word in _UNLIKE_TYPES:
                if word in node.type.lower():
                    yield word
            name = node.op if isinstance(node, Call) else node.func if isinstance(node, Agg) else ""
            if name and name not in ALIKE:
                yield name.removeprefix(OPAQUE_PREFIX).lower()
