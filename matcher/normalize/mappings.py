"""Which occurrence of a table in a query is which occurrence of it in a cache.

A fact that joins `dates` twelve times has 12! ways to lay its dates over those of a cache. Most of
them need never be made: an occurrence is told from the others by what it is joined by. A cache
that joins `d.datekey = f.shipdate` needs an occurrence whose datekey the query, too, says is equal
to the shipdate. What is left (tables that nothing tells apart) is drawn one after another, and a
caller stops after `MAX_MAPPINGS`.

Occurrences of a query that the cache does not have are interchangeable: which of their new numbers
each gets does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from matcher.model.budget import Search, spend, within
from matcher.normalize.normal_query import NormalQuery
from matcher.normalize.prepared_plan import PreparedPlan
from matcher.normalize.relation_numbers import OCCURRENCE

MAX_MAPPINGS: Final = 24


def mappings(
    query: NormalQuery, view: PreparedPlan, *, partly: bool = False
) -> Iterator[NormalQuery]:
    """The query with its occurrences of repeated tables assigned to the view's in each way that
    their joins allow, lazily. Where these allow none, one way all the same, to say what differs.

    Args:
        query: the query.
        view: the cache.
        partly: where the view has fewer occurrences of a table than the query, let some stay
            without one, under numbers that the view does not have; else nothing is yielded then.
    """
    if not (query.repeats or view.repeats):
        if partly or query.tables <= view.tables:
            yield query
        return
    mine, theirs = _by_table(query.relations), _by_table(view.relations)
    lacks = any(len(theirs.get(table, ())) < len(own) for table, own in mine.items())
    if lacks and not partly:
        return
    if all(len(own) == 1 == len(theirs.get(table, own)) for table, own in mine.items()):
        yield query
        return
    search = _Assignment(query, view, mine, theirs)
    some = None
    while (images := within(Search.MAPPINGS, search.next, None)) is not None:
        some = images
        yield query.numbered(tuple(images[rel] for rel in query.relations))
    if some is None:
        some = search.any()
        yield query.numbered(tuple(some[rel] for rel in query.relations))


def _by_table(relations: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for rel in relations:
        found.setdefault(rel % OCCURRENCE, []).append(rel)
    return found


class _Assignment:
    """The ways to assign occurrences, one after another.

    For each table the fewer occurrences look for partners among the more: `theirs` of the view
    where the query has more, else `mine` of the query.
    """

    def __init__(
        self,
        query: NormalQuery,
        view: PreparedPlan,
        mine: dict[int, list[int]],
        theirs: dict[int, list[int]],
    ) -> None:
        self._mine, self._theirs = mine, theirs
        self._equal = query.may_be_equal
        self._links = view.linked
        # view occurrence → query occurrence
        self._found: dict[int, int] = {}
        self._open: list[tuple[int, list[int]]] = []
        for table, own in mine.items():
            have = theirs.get(table, [])
            if len(own) == 1 == len(have):
                self._found[have[0]] = own[0]
        for table, own in mine.items():
            have = theirs.get(table, [])
            if len(own) > 1 or len(have) > 1:
                self._open += self._choices(own, have)
        self._open.sort(key=lambda choice: len(choice[1]))
        self._ways = self._assign(0, set())

    def next(self) -> dict[int, int] | None:
        """The next way: the numbers that the query's occurrences get; None if there is no more."""
        found = next(self._ways, None)
        return None if found is None else self._numbers(found)

    def any(self) -> dict[int, int]:
        """Some way, whatever the joins say."""
        return self._numbers({})

    def _choices(self, own: list[int], have: list[int]) -> list[tuple[int, list[int]]]:
        """For each of the fewer occurrences its partners, as far as what is assigned already tells;
        query occurrences are written as -1 - rel."""
        if len(own) > len(have):
            return [(v, [q for q in own if self._fits(v, q)]) for v in have]
        return [(-1 - q, [v for v in have if self._fits(v, q)]) for q in own]

    def _fits(self, view_rel: int, query_rel: int) -> bool:
        """Whether the query says of an occurrence what the view's joins with assigned ones say."""
        spend()
        for column, other, other_column in self._links.get(view_rel, ()):
            image = query_rel if other == view_rel else self._found.get(other)
            if image is not None:
                one = self._equal.get((query_rel, column))
                if one is None or one != self._equal.get((image, other_column)):
                    return False
        return True

    def _assign(self, place: int, taken: set[int]) -> Iterator[dict[int, int]]:
        if place == len(self._open):
            yield dict(self._found)
            return
        wanted, partners = self._open[place]
        for partner in partners:
            spend()
            if partner in taken:
                continue
            v, q = (wanted, partner) if wanted >= 0 else (partner, -1 - wanted)
            if self._fits(v, q):
                self._found[v] = q
                yield from self._assign(place + 1, taken | {partner})
                del self._found[v]

    def _numbers(self, found: dict[int, int]) -> dict[int, int]:
        images = {q: v for v, q in found.items()}
        for table, own in self._mine.items():
            have = self._theirs.get(table, [])
            # the view's that are left, then numbers that it does not have
            free = [v for v in have if v not in found]
            free += [table + nth * OCCURRENCE for nth in range(len(have), len(have) + len(own))]
            left = iter(free)
            for q in own:
                if q not in images:
                    images[q] = next(left)
        return images
