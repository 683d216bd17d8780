"""The hook: Spark's optimiser asks a decider about each query over known tables, and puts the
answer into the plan.

The Java rule refuses what needs no question (unknown tables, sessions that never asked for us, mode
`off`, writes of Spark's own caches, our own queries) without calling Python. What fails here, in
the decider or in Java leaves the original plan in place, counts, and logs once per cause; mode
`failFast` raises it to the user, `planOnly` decides and replaces nothing.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import logging
import re
import threading
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from cachemgr.access.asker import OWN_USER, Asker
from cachemgr.base_state import BaseState
from cachemgr.causes import cause_of, is_storage_trouble
from cachemgr.delta.tables import PinnedSet, TableRead, plan_of
from cachemgr.errors import CacheManagerError, ErrorCode
from cachemgr.jvm.classes import java_list, java_map
from cachemgr.jvm.loader import HookError, java_class, session_of
from cachemgr.serving.eligibility import unreadable
from cachemgr.serving.seen_tables import SeenTables, TableRef, Versions
from cachemgr.spark.hints import Hints, read_hints
from cachemgr.spark.plans import read_tables
from matcher.catalyst.split import Split
from matcher.catalyst.templates import PlanDocument, PlanShapes
from matcher.model.message import CacheName, Cause, Word
from matcher.model.reasons import Reason, ReasonCode
from matcher.render.placeholders import STORED

MODES: Final = ("rewrite", "planOnly", "failFast", "off")

_CHANGED_SINCE: Final = "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"

_log = logging.getLogger("cachemgr.hook")


class ChangedSinceAnalysis(Exception):
    """A table's columns are others than when the query was analysed, which Spark itself is about to
    refuse to read."""


class _Unreadable(Exception):
    """The table of a cache that was chosen cannot be read any more."""


@dataclass(frozen=True, slots=True)
class HookContext:
    """What a decision may depend on besides the plan.

    `number` is the hook's of this decision, by which it says what became of it (0: of none).
    `settings` are the explicitly set spark.sql.*, spark.cachemgr.* and spark.databricks.delta.* of
    the session, its time zone always among them. `is_kept`: Spark is to keep the rows (CACHE TABLE,
    persist()), nothing is put in place. `in_subquery`: the plan is that of a subquery
    expression, decided apart from its query. `hints` are the names of the cache hints found, upper
    case; `hinted_caches` those that RELATIONAL_CACHE(…) names, `hinted_steps` those of
    RELATIONAL_CACHE_STEPS(n). `versions` gives those that are
    looked up later; `schema` the catalog and schema that names without them mean. `asker` runs
    the query. `ask_again`, for a subquery: ask once more where it is that of EXISTS or IN, whose
    rows may be there once each. `is_awaited`: the query still waits for its answer.
    """

    session_key: str
    settings: Mapping[str, str]
    tables: tuple[TableRef, ...]
    is_write: bool
    hints: frozenset[str]
    hinted_caches: tuple[str, ...] = ()
    hinted_steps: int | None = None
    in_subquery: bool = False
    is_kept: bool = False
    mode: str = "rewrite"
    versions: Callable[[], Versions] = field(default=dict, compare=False, repr=False)
    asker: Asker = OWN_USER
    schema: Callable[[], tuple[str, str]] = field(
        default=lambda: ("spark_catalog", "default"), compare=False, repr=False
    )
    ask_again: Callable[[], None] = field(default=lambda: None, compare=False, repr=False)
    is_awaited: Callable[[], bool] = field(default=lambda: True, compare=False, repr=False)
    number: int = 0

    def seen(self) -> SeenTables:
        """The tables at the versions that the query sees, which are looked up when first read."""
        return SeenTables(self.tables, self.versions)


@dataclass(frozen=True, slots=True)
class QueryTable:
    """The table at `location` as the query itself reads it in the replaced subtree, held at the
    snapshot that the decision saw."""

    location: str


@dataclass(frozen=True, slots=True)
class Collapsed:
    """The rows of `sql` over a relation of the name `STORED`: partial rows as one row a group. It
    is analysed in the query's own session, whose settings are the cache's."""

    relation: object
    sql: str


@dataclass(frozen=True, slots=True)
class QueryFiles:
    """Some files of the table at `location`, as the query itself reads it: those that commits after
    version `since` added, by path and deletion vector."""

    location: str
    since: int
    keys: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LocalBounds:
    """What computing a query's rows in the thread that plans it may take: held rows to look at,
    groups and rows of the result, bytes of these, and so many at once. See `local.Bounds` in
    Java."""

    rows: int
    groups: int
    bytes: int
    at_once: int = 0

    def __str__(self) -> str:
        return f"{self.rows},{self.groups},{self.bytes},{self.at_once}"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Put the rows of `sql` over `relations` in place of the subtree at `path`.

    The relations are as in `tables.run_select`, a `pins.PinnedSet`, a `QueryTable` or `QueryFiles`.
    The columns of `sql` stand for the subtree's, by position, or for the parts of them that `split`
    names; their names do not matter. `scan` is what files without a name in a catalog are called in
    plans. `local`: the driver holds all that is read, and may compute the query's rows itself.
    """

    path: tuple[int, ...]
    sql: str
    relations: Mapping[str, object]
    cache: str
    split: Split | None = None
    scan: str = ""
    local: LocalBounds | None = None


class Decider(Protocol):
    """Decides which parts of a query are answered from caches."""

    def known_locations(self) -> frozenset[str]:
        """The places of all tables that some cache reads; queries over none of them are never asked
        about."""
        ...

    def decide(self, document: PlanDocument, context: HookContext) -> Sequence[Replacement]:
        """The replacements for one query plan; none of their paths inside another."""
        ...


@dataclass(frozen=True, slots=True)
class Explained:
    """What became of the decisions of a query that was optimised to be explained.

    Args:
        stands: The numbers of those whose plans were left at the end.
        failed: Those that could not be put in place, with the cause in a line.
        left_alone: Why the query itself was left alone without a decision, if it was.
        computed: Of a query over held rows: why its rows are not computed while it is planned, ""
            if they are. None of any other.
    """

    stands: frozenset[int]
    failed: Mapping[int, str]
    left_alone: str | None
    computed: str | None = None


_lock = threading.Lock()
_logged: set[str] = set()
_OBJECT: Final = re.compile(r"\bo\d+\.")
# A document says all that its reading depends on, so all sessions share what is remembered.
_shapes: Final = PlanShapes()


class _Proxy:
    """The py4j face of a decider; called in the user's thread, with the JVM's thread waiting."""

    class Java:
        implements: Final = ["java.util.function.BiFunction"]

    def __init__(self, decider: Decider) -> None:
        self._decider = decider

    def apply(self, request: Any, text: str) -> str:
        """Answers one request, given with what it asks; "" or what went wrong. Without a request it
        is there to open the thread's connection, see `Wire`."""
        if request is None:
            return ""
        try:
            _answer(self._decider, request, text)
        except BaseException as error:
            # All of them: one that leaves here kills the thread that the JVM waits for.
            if isinstance(error, KeyboardInterrupt):
                _thread.interrupt_main()
            _log_once(error)
            return "".join(traceback.format_exception_only(error)).strip()
        return ""


def _answer(decider: Decider, request: Any, text: str) -> None:
    about, plan = text.split("\n", 1)
    data = json.loads(about)
    document = _shapes.read(plan)
    hints: Hints = read_hints(data["texts"], data["tags"])
    context = HookContext(
        session_key=data["session"],
        settings=data["settings"],
        tables=read_tables(document.structure),
        is_write=data["write"],
        hints=hints.names,
        hinted_caches=hints.caches,
        hinted_steps=hints.steps,
        in_subquery=data["subquery"],
        is_kept=data["kept"],
        asker=Asker(data["user"], data["vouched"]),
        mode=next((m for m in MODES if m.lower() == data["mode"]), "rewrite"),
        versions=lambda: _versions(request),
        schema=lambda: tuple(json.loads(request.currentSchema())),
        ask_again=request.askAgain,
        is_awaited=request.isAwaited,
        number=data["id"],
    )
    replacements = decider.decide(document, context)
    dropped: Reason | None = None
    for replacement in () if context.is_kept else replacements:
        dropped = _put_in(request, replacement)
        # a decider may be told; where that raises, nothing of the answer is put in
        listener = getattr(decider, "refused", None)
        if dropped is not None and listener is not None:
            listener(context, replacement, dropped)
    if data["preparable"] and len(replacements) == 1 and dropped is None:
        _offer(decider, request, document, context, replacements[0])


def _offer(
    decider: Decider,
    request: Any,
    document: PlanDocument,
    context: HookContext,
    replacement: Replacement,
) -> None:
    """Have what was put in place kept, where the decider says that it may be."""
    prepare = getattr(decider, "prepare", None)
    if prepare is None:
        return
    try:
        offer = prepare(document, context, replacement)
        if offer is not None:
            request.prepare(offer.sql, offer.marks, offer.number)
    except Exception as error:  # the query has its answer
        _log_once(error, "keeping the decision on a query failed")


def _put_in(request: Any, replacement: Replacement) -> Reason | None:
    """Why a replacement could not be put in place, if so."""
    try:
        wrong = _graft(request, replacement)
    except _Unreadable as error:
        if error.__cause__ is not None and is_storage_trouble(error.__cause__):
            return unreadable(replacement.cache, cause_of(error.__cause__))
        return Reason(
            ReasonCode.CACHE_DAMAGED,
            "{cause}: REFRESH RELATIONAL CACHE {cache}",
            "REFRESH RELATIONAL CACHE {cache}",
            cause=Cause(str(error)),
            cache=CacheName(replacement.cache),
        )
    if not wrong:
        return None
    remedy = "report it: this is a bug in cachemgr"
    return Reason(ReasonCode.SCHEMA_WOULD_DIFFER, "{wrong}", remedy, wrong=Word(wrong))


def _versions(request: Any) -> Versions:
    try:
        found = json.loads(request.versions())
    except AnalysisException as error:
        if error.getCondition() != _CHANGED_SINCE:
            raise
        raise ChangedSinceAnalysis from error
    return {place: BaseState(*state) for place, state in found.items()}


def _graft(request: Any, replacement: Replacement) -> str:
    context = SparkContext._active_spark_context
    if context is None:
        raise HookError(ErrorCode.SPARK_STOPPED, "the Spark application is gone: start a new one")
    path = ".".join(map(str, replacement.path))
    plans = java_map(
        context._jvm,
        {
            name: _plan(request, context, path, relation, replacement.scan)
            for name, relation in replacement.relations.items()
        },
    )
    split = replacement.split
    wrong: str = request.graft(
        path,
        None if split is None else ".".join(map(str, split.node)),
        "" if split is None else ",".join(".".join(map(str, part)) for part in split.parts),
        replacement.sql,
        plans,
        "" if replacement.local is None else str(replacement.local),
    )
    return wrong


def _plan(request: Any, context: SparkContext, path: str, relation: object, scan: str) -> Any:
    """The logical plan that stands for a relation of a replacement."""
    if isinstance(relation, QueryTable):
        return request.table(path, relation.location)
    if isinstance(relation, QueryFiles):
        keys = java_list(context._jvm, ("\n".join(key) for key in relation.keys))
        return request.added(path, relation.location, relation.since, keys)
    if isinstance(relation, Collapsed):
        stored = _plan(request, context, path, relation.relation, scan)
        return request.over(STORED, stored, relation.sql)
    if isinstance(relation, TableRead):
        try:
            return request.atVersion(relation.location, relation.version, scan)
        except (Py4JJavaError, PySparkException) as error:
            raise _Unreadable(f"version {relation.version} of its table cannot be read") from error
    found = plan_of(relation)
    # what is held in memory has its name already
    return found if isinstance(relation, PinnedSet) or not scan else request.named(found, scan)


def _log_once(
    error: BaseException, what: str = "the original query runs, since deciding on it failed"
) -> None:
    # py4j numbers the objects that are called
    said = _OBJECT.sub("", str(error))
    cause = f"{type(error).__name__}: {said[:160]}"
    with _lock:
        if cause in _logged or len(_logged) >= 100:
            return
        _logged.add(cause)
    # ours say what is wrong and what to do; of others it takes the trace to find that out
    trace = None if isinstance(error, CacheManagerError) else error
    _log.warning("%s: %s", what, cause, exc_info=trace)


def install(spark: SparkSession, decider: Decider) -> None:
    """Ask `decider` about the queries of `spark` from now on. Other sessions of the application are
    left alone.

    Args:
        spark: A classic session; a registered one gets the new decider.
        decider: Called in the threads that plan queries, several at once.

    Raises:
        ConfigurationError: A Spark Connect session.
        HookError: The jar is built for another Spark or Delta.
    """
    register(spark, decider)
    set_known_locations(spark, decider.known_locations())


def register(spark: SparkSession, decider: Decider) -> None:
    """As `install`, without a word about what tables are known: those that were told stay.

    The decider is let go of once the session is uninstalled, or `gone`.
    """
    java_class(spark, "Hook").register(session_of(spark), _asked(spark, decider))


def share(spark: SparkSession, decider: Decider) -> None:
    """Ask `decider` about each session that was never installed but has spark.cachemgr.enabled=true
    (the builder's, say). The tables that are known stay those that were told."""
    hook = java_class(spark, "Hook")
    hook.inject(session_of(spark))
    hook.share(_asked(spark, decider))


def uninstall(spark: SparkSession) -> None:
    """Leave the queries of `spark` alone from now on. Nothing happens if it was not installed."""
    java_class(spark, "Hook").unregister(session_of(spark))


def uninstall_shared(spark: SparkSession) -> None:
    """Undo `share`."""
    java_class(spark, "Hook").share(None)


def gone(spark: SparkSession) -> frozenset[str]:
    """The keys of registered sessions that nobody holds any more, or whose application ended; they
    are unregistered.

    Args:
        spark: Any session of this JVM.
    """
    return frozenset(json.loads(java_class(spark, "Hook").gone()))


def explain(spark: SparkSession, plan: Any, decider: Decider) -> Explained:
    """Have a query optimised as it would be, `decider` asked in place of the session's own, about
    all of its plans; nothing is counted, no job is run, and the result is thrown away.

    Args:
        spark: The session whose settings hold.
        plan: The JVM's analysed plan, Spark's own kept data in its place; it stays as it is.
        decider: What is asked.
    """
    hook = java_class(spark, "Hook")
    found = json.loads(hook.explain(session_of(spark), plan, proxy(spark, decider)))
    failed = {int(number): cause for number, cause in found["failed"].items()}
    computed = None if found["computed"] is None else found["computed"][0] or ""
    return Explained(frozenset(found["stands"]), failed, found["left"], computed)


def set_known_locations(spark: SparkSession, locations: Collection[str]) -> None:
    """Tell Java which places are known, for all sessions. Queries over none of them never reach
    Python."""
    java_class(spark, "Hook").setKnown(java_list(spark._jvm, locations))


def counters(spark: SparkSession) -> dict[str, int]:
    """How often the rule was called, asked, replaced, refused and failed in this application, all
    sessions together."""
    values: dict[str, int] = json.loads(java_class(spark, "Counters").json())
    return values


def measured(spark: SparkSession, *, asked: bool) -> int:
    """How many plans the rule was timed on so far, in all sessions; `asked` as in `durations`."""
    return int(java_class(spark, "Counters").measured(asked))


def durations(spark: SparkSession, *, asked: bool, last: int = 1024) -> tuple[float, ...]:
    """What the rule added to plans, in milliseconds, oldest first.

    Args:
        spark: Any session of the application; all are counted together.
        asked: Plans that the decider was asked about, or else those that Java passed over.
        last: So many of them at most; 1,024 are kept.
    """
    nanos: list[int] = json.loads(java_class(spark, "Counters").durations(asked, last))
    return tuple(each / 1e6 for each in nanos)


@contextlib.contextmanager
def suspended(spark: SparkSession) -> Iterator[None]:
    """Queries planned in this thread inside the block are left as they are: refreshes, validations,
    our own reads."""
    hook = java_class(spark, "Hook")
    hook.enter()
    try:
        yield
    finally:
        hook.leave()


def _asked(spark: SparkSession, decider: Decider) -> Any:
    """What the hook asks: the decider, behind what it has prepared, if it does so."""
    prepared = getattr(decider, "prepared", None)
    python = proxy(spark, decider)
    return python if prepared is None else prepared.java.before(python)


def proxy(spark: SparkSession, decider: Decider) -> Any:
    """The JVM holds it by name, and py4j for as long as the JVM does."""
    # Threads of the JVM's own (a Thrift server's, say) reach Python through the callback server, on
    # a loopback port of its own.
    gateway = spark.sparkContext._gateway
    if gateway is None:
        raise HookError(ErrorCode.NO_GATEWAY, "this Spark application has no Python gateway")
    with _lock:
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    return _Proxy(decider)
