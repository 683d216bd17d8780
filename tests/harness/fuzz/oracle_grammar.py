"""The oracle's grammar: texts over a cache's stored table in place of the query's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from tests.harness.fuzz.decide import Prepared
from tests.harness.fuzz.spec import Spec
from tests.harness.fuzz.world import FLOATS

_REFERENCE = re.compile(r"\b[a-z]\w*(?:\.[a-z]\w*){1,2}\b")
_CALL = re.compile(
    r"\b(SUM|COUNT|MIN|MAX|AVG|BOOL_AND|BOOL_OR|EVERY|SOME|BIT_AND|BIT_OR|BIT_XOR|STDDEV|"
    r"STDDEV_POP|VAR_SAMP|VAR_POP|COVAR_POP|COVAR_SAMP|CORR|COLLECT_SET|PERCENTILE|ANY_VALUE|"
    r"FIRST|LAST|APPROX_COUNT_DISTINCT|HLL_SKETCH_AGG)\("
)
_CASE = re.compile(r"CASE WHEN (.*) THEN (\S+)( ELSE 0| ELSE NULL)? END")
_TOTALS = {"SUM": "SUM", "COUNT": "SUM", "MIN": "MIN", "MAX": "MAX", "BOOL_AND": "BOOL_AND",
           "BOOL_OR": "BOOL_OR", "EVERY": "BOOL_AND", "SOME": "BOOL_OR", "BIT_AND": "BIT_AND",
           "BIT_OR": "BIT_OR", "BIT_XOR": "BIT_XOR"}  # fmt: skip
_REPEATABLE = frozenset({"MIN", "MAX", "BOOL_AND", "BOOL_OR", "EVERY", "SOME", "BIT_AND", "BIT_OR"})


class Stored:
    """What a cache's table has, by the text that it stands for."""

    def __init__(self, pair: Prepared) -> None:
        cache = pair.cache
        plan = pair.workspace.plans[cache.name]
        self.pair = pair
        self.aggregated = cache.spec.keys is not None
        self.floats = {c.ref for c in cache.columns if c.type in FLOATS}
        self.columns: dict[str, str] = {}
        self.measures: dict[str, str] = {}
        self.sets = [(s.grouping_id, [plan.keys[i].name for i in s.keys])
                     for s in plan.grouping_sets] if plan.keys else []  # fmt: skip
        for item in cache.spec.items:
            if self.aggregated and item.key is None:
                self.measures[item.piece.text] = item.name
            else:
                self.columns[item.piece.text] = item.name
        for join in cache.spec.joins:
            for on in join.on if join.kind == "INNER" else ():
                sides = on.text.split(" = ")
                for one, two in (sides, sides[::-1]) if len(sides) == 2 else ():
                    if one in self.columns:
                        self.columns.setdefault(two, self.columns[one])
        self.extra: set[str] = set()

    def rewritten(self, text: str) -> str | None:
        """`text` over stored columns; None if some column is not stored."""
        parts = re.split(r"('(?:[^'])*')", text)  # literals stay as they are
        whole = sorted((k for k in self.columns if not _REFERENCE.fullmatch(k)), key=len)
        for expression in reversed(whole):
            if expression in text:
                return self.rewritten(text.replace(expression, self.columns[expression]))
        for i in range(0, len(parts), 2):
            for reference in set(_REFERENCE.findall(parts[i])):
                name = self._stored_as(reference)
                if name is None and reference.split(".")[0] in self.extra:
                    continue
                if name is None:
                    return None
                parts[i] = re.sub(rf"\b{re.escape(reference)}\b", name, parts[i])
        return "".join(parts)

    def _stored_as(self, reference: str) -> str | None:
        """The stored column, or the field of one, that a reference stands for."""
        struct, _, field = reference.rpartition(".")
        whole = self.columns.get(struct)
        return self.columns.get(reference) or (whole and f"{whole}.{field}")

    def compensating(self, spec: Spec) -> str | None:
        """FROM: the cache, and the query's tables that it lacks; None if no stored key joins
        them."""
        name = self.pair.cache.name
        have = self.pair.cache.spec.aliases
        text = name
        for join in spec.joins:
            needed = join.alias not in have or (
                join.kind == "INNER" and f"{join.alias}.{join.alias}_id" in self.columns
                and any(join.alias in p.reads and self.rewritten(p.text) is None
                        for p in (*spec.where, *(spec.keys or ()), *(i.piece for i in spec.items)))
            )  # fmt: skip
            if not needed:
                continue
            if join.kind not in ("INNER", "LEFT") or len(join.on) != 1:
                return None
            left, _, right = join.on[0].text.partition(" = ")
            anchor = self.rewritten(left)
            if anchor is None or not right.startswith(join.alias):
                return None
            self.extra.add(join.alias)
            text += f" {join.kind} JOIN {join.source} ON {anchor} = {right}"
        return text

    def views(self, texts: list[str]) -> Iterator[list[str]]:
        """The filters that pick one grouping set of a cube; one empty list without sets."""
        if not self.sets:
            yield []
            return
        words = {w for t in texts for w in re.findall(r"\w+", t)}
        keys = {n for _, names in self.sets for n in names}
        for number, names in sorted(self.sets, key=lambda s: len(s[1]))[:4]:
            if words & keys <= set(names):
                yield [f"__grouping_id = {number}"]


def roll_ups(stored: Stored, text: str) -> Iterator[str]:
    """An expression over aggregates, each of them from stored columns in every way known."""
    calls = list(_calls(text))
    ways = []
    for call, func, args, condition in calls:
        found = list(_one(stored, func, args, condition))
        if not found:
            return
        ways.append((call, found))
    for chosen in product(*(found for _, found in ways)):
        made = text
        for (call, _), replacement in zip(ways, chosen, strict=True):
            made = made.replace(call, f"({replacement})")
        yield made


def _calls(text: str) -> Iterator[tuple[str, str, str, str]]:
    position = 0
    while found := _CALL.search(text, position):
        end = _closing(text, found.end() - 1)
        args, condition = text[found.end() : end], ""
        whole = end + 1
        if text.startswith(" FILTER (WHERE ", whole):
            close = _closing(text, whole + 8)
            condition = text[whole + 15 : close]
            whole = close + 1
        yield text[found.start() : whole], found[1], args, condition
        position = whole


def _closing(text: str, start: int) -> int:
    depth, quoted = 0, False
    for i in range(start, len(text)):
        if text[i] == "'":
            quoted = not quoted
        elif not quoted:
            depth += (text[i] == "(") - (text[i] == ")")
            if depth == 0:
                return i
    return len(text)


def _one(stored: Stored, func: str, args: str, condition: str) -> Iterator[str]:
    tail = ""
    if condition:
        kept = stored.rewritten(condition)
        direct = stored.measures.get(f"{func}({args}) FILTER (WHERE {condition})")
        if direct is not None and func in _TOTALS:
            yield _zero(func, f"{_TOTALS[func]}({direct})")
        if kept is None:
            return
        tail = f" FILTER (WHERE {kept})"
    if not stored.aggregated:
        over = args if args == "*" else stored.rewritten(args.removeprefix("DISTINCT "))
        if over is not None:
            distinct = "DISTINCT " if args.startswith("DISTINCT ") else ""
            yield f"{func}({distinct}{over}){tail}"
        return
    direct = stored.measures.get(f"{func}({args})")
    if direct is not None:
        if func in _TOTALS:
            yield _zero(func, f"{_TOTALS[func]}({direct}){tail}")
        if not tail:
            yield f"MAX({direct})"
    if args == "*":
        yield f"coalesce(SUM(__rows){tail}, 0)"
        return
    yield from _of_keys(stored, func, args, tail)
    yield from _of_sums(stored, func, args, tail)


def _zero(func: str, text: str) -> str:
    return f"coalesce({text}, 0)" if func == "COUNT" else text


def _of_keys(stored: Stored, func: str, args: str, tail: str) -> Iterator[str]:
    distinct = args.startswith("DISTINCT ")
    over = stored.rewritten(args.removeprefix("DISTINCT "))
    if over is None:
        return
    if args in stored.floats and (func in _REPEATABLE or func == "COLLECT_SET"):
        return  # Spark groups -0.0 with 0.0: the key is not the value that a row has
    if distinct or func == "COLLECT_SET":
        yield f"{func}({'DISTINCT ' if distinct else ''}{over}){tail}"
    elif func in _REPEATABLE:
        yield f"{func}({over}){tail}"
    elif func == "SUM":
        yield f"SUM(({over}) * __rows){tail}"
    elif func == "COUNT":
        yield f"coalesce(SUM(CASE WHEN ({over}) IS NOT NULL THEN __rows ELSE 0 END){tail}, 0)"


def _of_sums(stored: Stored, func: str, args: str, tail: str) -> Iterator[str]:
    found = re.fullmatch(r"(\S+) ([+-]) (\S+)", args)
    if func == "SUM" and found:
        one = stored.measures.get(f"SUM({found[1]})")
        two = stored.measures.get(f"SUM({found[3]})")
        if one and two:
            yield f"SUM({one}){tail} {found[2]} SUM({two}){tail}"
    case = _CASE.fullmatch(args)
    if func in ("SUM", "COUNT", "MAX") and case:
        kept = stored.rewritten(case[1])
        inner = stored.measures.get(f"{func}({case[2]})")
        if case[2] == "1":
            inner = "__rows" if func != "MAX" else None
        if kept is not None and inner is not None:
            total = f"{_TOTALS[func]}(CASE WHEN {kept} THEN {inner}{case[3] or ''} END){tail}"
            yield _zero(func, total)
