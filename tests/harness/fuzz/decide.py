"""What the text door decides of a generated pair, and how pairs are told apart."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

from cachemgr.errors import CacheManagerError
from cachemgr.text.offline import Answer, Workspace, answer, prepare
from matcher.model.errors import MatcherError
from tests.harness.fuzz.as_written import as_written
from tests.harness.fuzz.caches import Cache, cache, sibling
from tests.harness.fuzz.capabilities import tags
from tests.harness.fuzz.spec import Spec
from tests.harness.fuzz.world import World

_STRING = re.compile(r"'(?:[^'\\]|\\.)*'")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?L?(?![\w.])")
_LIST = re.compile(r"\(\?(?:, \?)+\)")


@dataclass(frozen=True)
class Prepared:
    """A cache that the matcher takes, ready to be asked; `base` is the one that it is over."""

    cache: Cache
    workspace: Workspace
    stored: str
    base: str | None = None


@dataclass(frozen=True)
class Accepted:
    """A pair that the matcher says is a hit."""

    cache: Prepared
    spec: Spec
    query: str
    rewritten: str
    steps: tuple[str, ...]
    tags: frozenset[str]
    more: tuple[Prepared, ...] = ()
    nested: str = ""

    @property
    def caches(self) -> tuple[Prepared, ...]:
        """The caches that the rewritten text reads."""
        return self.more or (self.cache,)

    @property
    def compensations(self) -> int:
        return len(set(self.steps))

    @property
    def shape(self) -> str:
        """The pair with its literals lifted: what makes it count once."""
        whole = lifted(self.query) + " <- " + lifted(self.cache.cache.spec.sql())
        return f"{whole} <- {self.nested}" if self.nested else whole


@dataclass
class Refusal:
    """A pair that the matcher refuses, and the codes and details it gives."""

    cache: Prepared
    spec: Spec
    query: str
    reasons: list[tuple[str, str]] = field(default_factory=list)


@dataclass
class Invalid:
    """A query that the text door says is at fault; its text is checked on Spark now and then."""

    query: str
    message: str


def prepare_cache(
    rng: Random, world: World, name: str, near: Cache | None = None, tries: int = 6
) -> Prepared | None:
    """A random cache whose definition the matcher takes; one like `near` if that is given."""
    for _ in range(tries):
        made = cache(rng, world, name) if near is None else sibling(rng, near, name)
        made = as_written(made)
        found = prepared(world, made)
        if found is not None:
            return found
    return None


def prepared(world: World, made: Cache) -> Prepared | None:
    """A cache, if the matcher takes its definition."""
    try:
        workspace = prepare(world.ddl, world.joins + made.statement, world.conf)
    except (CacheManagerError, MatcherError):
        return None
    return Prepared(made, workspace, workspace.stored[made.name])


def decide(pair: Prepared, spec: Spec) -> Accepted | Refusal | Invalid:
    """The text door's answer."""
    query = spec.sql()
    try:
        found = answer(pair.workspace, query)
    except (CacheManagerError, MatcherError) as error:
        return Invalid(query, str(error))
    if not found.rewrites:
        reasons = [(r.code.value, r.detail) for c in found.candidates for r in c.reasons]
        return Refusal(pair, spec, query, reasons)
    rewritten = found.sql
    steps = max((r.steps for r in found.rewrites), key=lambda s: len(set(s)))
    return Accepted(pair, spec, query, rewritten, steps, spec.all_tags() | _seen(pair, found))


def _seen(pair: Prepared, found: Answer) -> frozenset[str]:
    """Tags of what the rewrites rely on."""
    names = []
    for rewrite in found.rewrites:
        if rewrite.grouping_set is not None:
            names.append("key.cube_view")
        if pair.cache.spec.keys is not None and rewrite.group_keys is None:
            names.append("rollup.same_groups")
        for join in rewrite.joins_used:
            names.append("whole.constraint" if join.endswith("_fk") else "whole.declared_join")
    return tags(*names)


def lifted(text: str) -> str:
    """SQL with its literals replaced, lists of them collapsed.

    >>> lifted("SELECT a FROM f WHERE b IN (1, 2) AND c = 'x'")
    'SELECT a FROM f WHERE b IN (?) AND c = ?'
    """
    text = _STRING.sub("?", text)
    text = _NUMBER.sub("?", text)
    return _LIST.sub("(?)", text)


def together(world: World, pairs: list[Prepared]) -> Workspace:
    """All of a world's caches in one registry, as a session has them."""
    statements = "\n".join(p.cache.statement for p in pairs)
    return prepare(world.ddl, world.joins + statements, world.conf)


def decide_as_a_session(
    workspace: Workspace, pairs: dict[str, Prepared], spec: Spec
) -> Accepted | None:
    """What the index and the remembered shapes answer; None for a miss."""
    query = spec.sql()
    found = answer(workspace, query, explain=False)
    if not found.rewrites:
        return None
    first = found.rewrites[0]
    needed = tuple(pairs[r.cache] for r in found.rewrites)
    return Accepted(pairs[first.cache], spec, query, found.sql, first.steps, frozenset(), needed)
