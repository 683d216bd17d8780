"""EXPLAIN REWRITE in a session: Spark optimises the query, and the rule itself asks about it.

So what is told is what would run: the same plans, subqueries that Spark drops, caches that cannot
be put in place. Only the decider is another one, which also looks at the caches that were not
chosen, has nothing made or counted, and puts its answers into a plan that is thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from cachemgr.access.asker import OWN_USER, Asker
from cachemgr.config.session_settings import Settings
from cachemgr.config.setting import Mode
from cachemgr.config.setting_names import PREFIX
from cachemgr.delta.tables import PinnedSet
from cachemgr.jvm.session_conf import explicit_settings
from cachemgr.serving.decision import Decision, refused
from cachemgr.serving.explain import Explanation, explanation_of
from cachemgr.serving.hidden import without_hidden
from cachemgr.spark import hook
from cachemgr.spark.files_opened import files_planned
from cachemgr.spark.held.pins import PinStore
from cachemgr.spark.hints import Hints, read_hints
from cachemgr.spark.hook import ChangedSinceAnalysis, HookContext, QueryFiles, Replacement
from cachemgr.spark.outcomes import not_put_in
from cachemgr.spark.plans import execution_of
from cachemgr.spark.replacements import why_never_pinned
from cachemgr.spark.session import CHANGED_SINCE_ANALYSIS, CacheSession
from matcher.catalyst.templates import PlanDocument
from matcher.model.message import Word
from matcher.model.reasons import Reason, ReasonCode
from matcher.render.placeholders import TAIL

_LOCAL: Final = f"{PREFIX}local.enabled"
_NOT_YET: Final = "the set is not in memory yet, where some queries more bring it"
_STREAM: Final = Reason(
    ReasonCode.UNSUPPORTED_OPERATOR,
    "the query is a stream, and a cache is what was read once",
    "read the tables without readStream",
)


def explain_query(
    spark: SparkSession,
    session: CacheSession,
    query: str | DataFrame,
    asker: Asker = OWN_USER,
    *,
    files: bool = False,
) -> Explanation:
    """Which cache would answer a query now, which grouping set, or why not. Runs no job.

    Args:
        spark: The session in which names are resolved and whose settings hold.
        session: What decides.
        query: One SELECT, substituted already where that is to be; or a DataFrame.
        asker: Who runs it.
        files: Also tell which files would be opened, with caches and without. The query is planned
            both ways for that, as Spark's EXPLAIN plans it: Delta looks for files by jobs.

    Raises:
        ConfigurationError: A setting of ours is not accepted.
        DefinitionError: The text is a statement.
        pyspark.errors.AnalysisException: The query does not analyse.
        pyspark.errors.ParseException: The text does not parse.
    """
    explicit = explicit_settings(spark)
    settings = session.settings(explicit)
    notes = session.notes(explicit, settings)
    with hook.suspended(spark):
        execution = execution_of(spark, query)
        analysed = execution.analyzed()
        if analysed.isStreaming():
            return explanation_of(refused(_STREAM), notes=notes)
        read = execution.withCachedData()
    hints = read_hints([query]) if isinstance(query, str) else Hints()
    decider = _ExplainingDecider(session, hints, asker)
    outcome = hook.explain(spark, read, decider)
    found = decider.decision(outcome)
    if asker.name is not None:
        found = without_hidden(found, lambda name: session.why_not(asker, settings, name))
    told = explanation_of(found, notes=notes)
    plan_only = settings.mode is Mode.PLAN_ONLY  # its notes say that it runs on its tables
    if not plan_only:
        why_not = outcome.computed if outcome.computed is not None else decider.not_held
        told = replace(told, computed=_computed(why_not))
    if not files:
        return told
    without = files_planned(spark, read, None)
    if plan_only or not found.hits:
        return replace(told, files=without)
    again = _ExplainingDecider(session, hints, asker)
    return replace(told, files=files_planned(spark, read, again), files_without=without)


def _not_held(
    made: Sequence[Replacement], never_pinned: str | None, settings: Settings, pins: PinStore
) -> str | None:
    """Why nobody tries to compute a query that reads caches; None where that is tried."""
    if not settings.local_enabled:
        return f"{_LOCAL} is false"
    if len(made) == 1 and made[0].local is not None:
        return None
    if not any(isinstance(r, PinnedSet) for one in made for r in one.relations.values()):
        return never_pinned or _NOT_YET
    if not pins.holds_rows:
        return f"{_LOCAL} was false in each session of the application when it was enabled"
    read = made[0].relations
    if len(made) == 1 and (TAIL in read or any(isinstance(r, QueryFiles) for r in read.values())):
        return "rows that were appended since the refresh are read beside the set"
    if len(made) > 1 or len(read) > 1:
        return "it reads more than one set"
    return (
        "the driver holds no copy of the set, which has a type that is not held, or does not fit "
        "into spark.cachemgr.local.maxHeldBytes"
    )


def _computed(why_not: str | None) -> str | None:
    if why_not is None:
        return None
    return f"by a Spark job: {why_not}" if why_not else "while it is planned, without a Spark job"


class _ExplainingDecider:
    """Asked by the rule in place of the session that it decides as."""

    def __init__(self, session: CacheSession, hints: Hints, asker: Asker) -> None:
        self._session = session
        self._hints = hints
        self._asker = asker
        self._own: set[int] = set()
        self.not_held: str | None = None
        self._found: dict[int, Decision] = {}

    def known_locations(self) -> frozenset[str]:
        """See `hook.Decider`."""
        return self._session.known_locations()

    def decide(self, document: PlanDocument, context: HookContext) -> Sequence[Replacement]:
        """See `hook.Decider`."""
        context = replace(
            context,
            hints=context.hints | self._hints.names,
            hinted_caches=(*context.hinted_caches, *self._hints.caches),
            hinted_steps=self._hints.steps or context.hinted_steps,
            asker=self._asker,
        )
        if not context.in_subquery:
            self._own.add(context.number)
        settings = self._session.settings(context.settings)
        try:
            found = self._session.explained(document, context, settings)
            made = self._session.replacements(found, document, settings, explain=True)
        except ChangedSinceAnalysis:
            found, made = refused(CHANGED_SINCE_ANALYSIS), []
        if context.in_subquery and not found.hits:
            context.ask_again()  # what is wanted of EXISTS and IN, the expression around it tells
        self._found[context.number] = found
        if made and not context.in_subquery:
            never = why_never_pinned(found.hits[0], settings)
            self.not_held = _not_held(made, never, settings, self._session.application.pins)
        return made

    def refused(self, context: HookContext, replacement: Replacement, reason: Reason) -> None:
        """Take back what was not put in; see `CacheSession.refused`."""
        found = self._found[context.number]
        self._found[context.number] = found.without_hits(reason, replacement.path)
        self._session.refuse_alone(replacement, reason)

    def decision(self, outcome: hook.Explained) -> Decision:
        """What is decided of the whole query, its subqueries apart.

        Args:
            outcome: What became of the decisions.
        """
        own, apart = Decision(), []
        if outcome.left_alone is not None:
            own = refused(
                Reason(
                    ReasonCode.UNSUPPORTED_OPERATOR,
                    "{what}",
                    "run it in a session without that extension",
                    what=Word(outcome.left_alone),
                )
            )
        for number in sorted(outcome.stands | outcome.failed.keys()):
            found = self._found.get(number, Decision())
            if number in outcome.failed:
                reason = not_put_in(outcome.failed[number])
                found = found.without_hits(reason) if found.hits else found
                found = found if found.outcomes else refused(reason)
            if number in self._own:
                own = found
            else:
                apart.append(found)
        return replace(own, apart=tuple(apart))
