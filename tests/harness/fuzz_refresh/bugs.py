"""Bugs to plant: a run with one of them must find a difference.

A bug replaces things of the product by name while it is planted. A replacement is made from the
original, so that it can call it. A bug without patches waits for the code that it is to break.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Patch = Callable[[Any], Any]


@dataclass(frozen=True)
class Bug:
    """A bug.

    Args:
        told: What is wrong with it.
        patches: Dotted name (`package.module:Class.attribute`) to what makes the replacement from
            the original.
    """

    told: str
    patches: Mapping[str, Patch] = field(default_factory=dict)


class NotPlantable(Exception):
    """The code that the bug would break is not there yet."""


@contextlib.contextmanager
def planted(name: str) -> Iterator[None]:
    """The product with a bug.

    Args:
        name: Which; empty for none.

    Raises:
        NotPlantable: Its code is not there yet, or no longer has that name.
    """
    if not name:
        yield
        return
    bug = BUGS[name]
    if not bug.patches:
        raise NotPlantable(f"{name} waits for its code: {bug.told}")
    with contextlib.ExitStack() as undo:
        for target, make in bug.patches.items():
            holder, attribute = _resolve(target)
            original = vars(holder)[attribute]
            undo.callback(setattr, holder, attribute, original)
            setattr(holder, attribute, make(original))
        yield


def _resolve(target: str) -> tuple[Any, str]:
    module, _, path = target.partition(":")
    *outer, attribute = path.split(".")
    try:
        holder: Any = importlib.import_module(module)
        for each in outer:
            holder = getattr(holder, each)
        getattr(holder, attribute)
    except (ImportError, AttributeError) as error:
        raise NotPlantable(f"there is no {target}: {error}") from error
    return holder, attribute


def _number_alone(original: Any) -> Any:
    """States are told apart by table id and version, not by their commit."""
    return lambda self, now: self._of_one_number(now)


def _one_version_before(original: Any) -> Any:
    """The last table of a join is read one version before the one that was pinned."""
    from cachemgr.delta.tables import TableRead

    def reads(self: Any) -> list[TableRead]:
        found = list(original.fget(self))
        last = found[-1]
        return [*found[:-1], TableRead(last.location, max(0, last.version - 1))]

    return property(reads)


def _always_exact(original: Any) -> Any:
    """A cache serves as exact whatever moved since."""
    from cachemgr.serving.freshness import Verdict

    def check(*args: Any, **kwargs: Any) -> Verdict:
        found: Verdict = original(*args, **kwargs)
        stale = found.reason is not None and found.reason.code.value == "STALE"
        return Verdict(None, exact=True) if stale else found

    return check


def _first_table_alone(original: Any) -> Any:
    """Whether anything moved is asked of the first base table only."""
    from dataclasses import replace

    def why(request: Any) -> Any:
        first = request.tables[:1]
        published = request.published
        if published is not None:
            places = {t.location for t in first}
            kept = tuple(t for t in published.tables if t.location in places)
            published = replace(published, tables=kept)
        return original(replace(request, tables=first, published=published))

    return why


BUGS: Final[Mapping[str, Bug]] = {
    "commit ignored": Bug(
        "a table put back from a copy passes for the one that was read",
        {"cachemgr.base_state:BaseState.is_same": _number_alone},
    ),
    "other version": Bug(
        "a refresh reads one table at another version than it says",
        {"cachemgr.refresh.job:Job.reads": _one_version_before},
    ),
    "stale as exact": Bug(
        "a STRICT cache answers after its tables moved",
        {"cachemgr.serving.eligibility:check_freshness": _always_exact},
    ),
    "first table alone": Bug(
        "a refresh does not see that a dimension moved",
        {"cachemgr.refresh.plan:_why_stale": _first_table_alone},
    ),
    # those of incremental refreshes and of hits between refreshes
    "no count guard": Bug("a group whose rows are all deleted stays, with SUM 0"),
    "vector ignored": Bug("a file is read whole where a deletion vector hides rows"),
    "add by path alone": Bug("changes are netted by path, not by path and vector"),
    "facts not loosened": Bug("bounds and never-NULL of the parent stand after an append"),
    "dead keys": Bug("MIN, DISTINCT and roll-ups of keys see groups without rows"),
    "stale dimension": Bug("a dimension that changed counts as one that did not"),
    "OPTIMIZE counted": Bug("rows that were only moved count as appended"),
    "two ways in two commits": Bug("sets are rewritten and appended to in two commits"),
    "partial read raw": Bug("partial rows are read without being added up"),
    "join not re-checked": Bug("a join counts as held for rows that came since"),
}
