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


def _no_having(original: Any) -> Any:
    """Groups are read whatever their counts say."""

    def select(plan: Any, items: Any, source: str, having: str) -> str:
        return str(original(plan, items, source, "true"))

    return select


def _dead_in_hits(original: Any) -> Any:
    """The SELECT that hits read partial rows by keeps groups without rows; others read it right."""
    from matcher.partials import collapse

    def render(*args: Any, **kwargs: Any) -> str:
        right = collapse._select
        collapse._select = _no_having(right)
        try:
            return str(original(*args, **kwargs))
        finally:
            collapse._select = right

    return render


def _whole_files(original: Any) -> Any:
    """Files with a deletion vector are read past Delta, where that can be done."""
    from pyspark.errors import PySparkException

    from cachemgr.delta.tables import TableRead, plan_of, run_select

    def plan(self: Any, spark: Any) -> Any:
        if not any(file.vector for file in self.files):
            return original(self, spark)
        paths = [f"{self.location}/{file.path}" for file in self.files]
        read = TableRead(self.location, self.version)
        try:
            rows = spark.read.option("basePath", self.location).parquet(*paths)
            none = run_select(spark, "SELECT * FROM __t", {"__t": read}).where("false")
            return plan_of(none.unionByName(rows, allowMissingColumns=True))
        except PySparkException:  # mapped or widened columns
            return original(self, spark)

    return plan


def _path_alone(original: Any) -> Any:
    return property(lambda self: (self.path, ""))


def _first_change_alone(original: Any) -> Any:
    """Of several tables that changed, the fact's change is added and the others' forgotten."""
    from cachemgr.delta.changes import NO_CHANGE, ChangeKind

    def find(plan: Any, stored: Any, then: Any, tables: Any, changes: Any, *rest: Any) -> Any:
        moved = [place for place, found in changes.items() if found.kind is not ChangeKind.SAME]
        fact = next((p for p in moved if p.rstrip("/").endswith("/sales")), None)
        if fact is not None:
            changes = {p: c if p == fact else NO_CHANGE for p, c in changes.items()}
        return original(plan, stored, then, tables, changes, *rest)

    return find


def _moves_count(original: Any) -> Any:
    """What a compaction writes counts as appended."""
    from dataclasses import replace

    def add(self: Any, commit: Any, table_id: str) -> None:
        added = tuple(replace(action, data_change=True) for action in commit.added)
        original(self, replace(commit, added=added), table_id)

    return add


def _never_partial(original: Any) -> Any:
    return lambda plan, grouping_set: False


def _all_found_theirs(original: Any) -> Any:
    """No appended row is looked at, as if the counts had told."""

    def check(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **(kwargs | {"kept": [join.as_fact() for join in args[1]]}))

    return check


def _all_told(original: Any) -> Any:
    def kept(plan: Any, held: Any, *rest: Any) -> Any:
        return tuple(held) if original(plan, held, *rest) else ()

    return kept


def _parents_facts(original: Any) -> Any:
    from dataclasses import replace

    def measure(session: Any, plan: Any, stored: Any, *rest: Any) -> Any:
        found = original(session, plan, stored, *rest)
        kept = replace(found.plan, non_null=stored.plan.non_null, exact_sums=stored.plan.exact_sums)
        return replace(found, plan=kept)

    return measure


def _any_tail(original: Any) -> Any:
    def find(self: Any, cache: Any, grouping_set: Any, appended: Any, wait: Any) -> Any:
        states = [s for at, s in self._states.items() if at.pin.cache_id == cache.id]
        made = next((state.made for state in states if state.made is not None), None)
        return original(self, cache, grouping_set, appended, wait) if made is None else made.tail

    return find


def _always_new(original: Any) -> Any:
    return lambda self, table, since, changes, columns: True


def _in_two_commits(original: Any) -> Any:
    """Sets that are written anew first, partial rows of the others in a second commit."""
    from dataclasses import replace

    from pyspark.sql import functions as F

    from cachemgr.refresh.write import Target
    from matcher.model.ir import GROUPING_ID_COLUMN

    def write(session: Any, rows: Any, spec: Any, *, target: Any, **options: Any) -> None:
        if not target.replaced or GROUPING_ID_COLUMN not in rows.columns:
            original(session, rows, spec, target=target, **options)
            return
        anew = F.col(GROUPING_ID_COLUMN).isin(list(target.replaced))
        original(session, rows.where(anew), spec, target=target, **options)
        appended = replace(target, replaced=(), is_append=True)
        assert isinstance(appended, Target)
        later = options | {"commit_number": options["commit_number"] + 1_000_000}
        original(session, rows.where(~anew), spec, target=appended, **later)

    return write


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
        {"cachemgr.refresh.planning.planner:why_stale": _first_table_alone},
    ),
    # those of incremental refreshes and of hits between refreshes
    "no count guard": Bug(
        "a group whose rows are all deleted stays, with SUM 0",
        {"matcher.partials.collapse:_select": _no_having},
    ),
    "vector ignored": Bug(
        "a file is read whole where a deletion vector hides rows",
        {"cachemgr.delta.changed_files:ChangedFiles.plan": _whole_files},
    ),
    "add by path alone": Bug(
        "changes are netted by path, not by path and vector",
        {"cachemgr.delta.changes:DataFile.key": _path_alone},
    ),
    "facts not loosened": Bug(
        "bounds and never-NULL of the parent stand after an append",
        {"cachemgr.refresh.stages:measure_delta": _parents_facts},
    ),
    "dead keys": Bug(
        "MIN, DISTINCT and roll-ups of keys see groups without rows",
        {"cachemgr.serving.served_cache:render_collapsed": _dead_in_hits},
    ),
    "stale dimension": Bug(
        "a dimension that changed counts as one that did not",
        {"cachemgr.refresh.planning.since_published:find_delta": _first_change_alone},
    ),
    "OPTIMIZE counted": Bug(
        "rows that were only moved count as appended",
        {"cachemgr.delta.netting:_Sums.add": _moves_count},
    ),
    "two ways in two commits": Bug(
        "sets are rewritten and appended to in two commits",
        {"cachemgr.refresh.stages:write_commit": _in_two_commits},
    ),
    "partial read raw": Bug(
        "partial rows are read without being added up",
        {"cachemgr.serving.served_cache:holds_partials": _never_partial},
    ),
    "tail of other files": Bug(
        "a tail serves though some of its files are not the table's any more",
        {"cachemgr.spark.held.tails:TailStore.find": _any_tail},
    ),
    "keys not looked at": Bug(
        "a dimension that was appended to counts as one with new keys alone",
        {"cachemgr.spark.held.new_keys:NewKeyChecks.are_new": _always_new},
    ),
    "all joins told by counts": Bug(
        "the counts of a definition's joins prove every declared join of its tables",
        {"cachemgr.refresh.stages:joins_that_kept_all_rows": _all_told},
    ),
    "join not re-checked": Bug(
        "a join counts as held for rows that came since",
        {"cachemgr.refresh.stages:check_joins_on_delta": _all_found_theirs},
    ),
}
