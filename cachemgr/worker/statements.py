"""Takes statements that wait, has Spark run them, and ends those that are cancelled, late or too
large.

Spark's half is a protocol, so that nothing here needs it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from cachemgr.errors import CacheManagerError, ErrorCode, LeaseLostError
from cachemgr.metastore.statement_records import StatementRecord
from cachemgr.metastore.store import Metastore
from cachemgr.results.folders import Results
from cachemgr.secrets import masked
from cachemgr.telemetry import logger
from cachemgr.vocabulary import StatementState
from cachemgr.worker.settling import Settling, without_rows

MOST_ATTEMPTS: Final = 2
_PATIENCE_SECONDS: Final = 5.0
# A commit that has begun is waited for: until it is over nobody can tell how it ends.
_COMMIT_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Stop:
    """Why a statement that runs is to end.

    Args:
        code: The code of its error.
        error: What is told of it.
        canceled: Whether somebody wanted that.
    """

    code: str
    error: str
    canceled: bool = False


@dataclass
class Running:
    """A statement that runs here.

    Args:
        statement: As it was taken.
        stop: Why it is to end; None while it is to go on.
        into: What it writes to, from the moment when Spark has it; None for one that reads.
        stopped_at: Since when it is to end, in monotonic seconds.
        is_given_up: Its end is noted, though its thread has not come to it.
        ended: Set at its end.
    """

    statement: StatementRecord
    into: Mapping[str, Any] | None = None
    stop: Stop | None = None
    stopped_at: float = 0.0
    is_given_up: bool = False
    ended: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Limits:
    """What statements may take.

    Args:
        at_once: Statements of this process at the same time.
        each_at_once: Statements of one principal at the same time, on all processes together.
        result_bytes: Size of one result.
        kept_bytes_each: Size of all results that are kept for one principal.
    """

    at_once: int = 4
    each_at_once: int = 2
    result_bytes: int = 50 << 30
    kept_bytes_each: int = 200 << 30


class Noted(Protocol):
    """How far a statement is, for whoever finds it after a crash."""

    def analysed(self, *, reads_only: bool) -> None:
        """Nothing of it ran yet, and this is what it does."""
        ...

    def handed_over(self, into: Mapping[str, Any]) -> None:
        """Spark is about to write: it is not run again from here on."""
        ...


@dataclass(frozen=True)
class Finished:
    """What a statement has come to.

    Args:
        result: What its readers need.
        hits: The caches that answered it.
    """

    result: Mapping[str, Any]
    hits: tuple[str, ...] = ()


class Runner(Protocol):
    """Spark, as far as statements need it."""

    def prepare(self) -> None:
        """Be ready: called before a statement is taken, so that no lease runs meanwhile."""
        ...

    def run(self, statement: StatementRecord, noted: Noted) -> Finished:
        """Run a statement and write its result; raises CacheManagerError."""
        ...

    def interrupt(self, statement_id: str) -> None:
        """Have Spark end what it does for a statement."""
        ...

    def written(self, statement_id: str, into: Mapping[str, Any]) -> int | None:
        """The version that a statement has made of what it writes to; None if it has made none, as
        far as the table's log goes. Raises CacheManagerError where that cannot be told."""
        ...

    def is_lost(self) -> bool:
        """Whether its Spark is gone, and with it all that ran."""
        ...


class StatementWorker:
    """Runs statements, so many at once.

    Args:
        metastore: Where they are.
        results: Where their rows go.
        runner: Spark.
        holder: Who this is, in leases and messages.
        lease_seconds: How long a lease lasts without being renewed: what a crash costs.
        limits: What statements may take.
    """

    def __init__(
        self,
        metastore: Metastore,
        results: Results,
        runner: Runner,
        *,
        holder: str,
        lease_seconds: float = 20.0,
        limits: Limits = Limits(),
    ) -> None:
        self._statements = metastore.statements
        self._settling = Settling(metastore, runner.written)
        self._results = results
        self._runner = runner
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._limits = limits
        self._pool = ThreadPoolExecutor(limits.at_once, thread_name_prefix="cachemgr-statement")
        self._lock = threading.Lock()
        self._running: dict[str, Running] = {}
        self._stopping = False

    def prepare(self) -> None:
        """Have Spark started, so that the first statement does not wait for it."""
        self._runner.prepare()

    def recover(self) -> None:
        """Have statements of processes that are gone run again, or end them; and look whether those
        of which nobody could tell have written."""
        gone = self._statements.recover(most_attempts=MOST_ATTEMPTS)
        for statement in gone:
            logger.warning("statement %s, whose process is gone: %s", statement.id, statement.state)
        if not self._stopping:
            self._settling.look(at_once=any(s.state is StatementState.UNKNOWN for s in gone))

    def take(self) -> int:
        """Take as many statements as there are free slots.

        Returns:
            How many were taken.
        """
        taken = 0
        # a look that changes nothing first: it comes often, and claiming locks
        if self._stopping or not self._is_any_waiting():
            return 0
        self._runner.prepare()
        while not self._stopping and len(self._running) < self._limits.at_once:
            statement = self._statements.claim(
                self._holder,
                lease_seconds=self._lease_seconds,
                most_running_each=self._limits.each_at_once,
            )
            if statement is None:
                break
            running = Running(statement)
            with self._lock:
                self._running[statement.id] = running
                self._pool.submit(self._carry_out, running)
            taken += 1
        return taken

    def keep(self) -> None:
        """Renew the leases of what runs here, and interrupt what is to end."""
        for running in self._now():
            if running.is_given_up:
                continue
            try:
                self._look_at(running)
            except CacheManagerError as error:
                if error.code != ErrorCode.LEASE_LOST:
                    raise  # of the metastore, which the next look may reach
                running.stop = Stop(ErrorCode.LEASE_LOST, str(error))
            if running.stop is not None and not running.ended.is_set():
                self._interrupt(running)

    def _interrupt(self, running: Running) -> None:
        """End the jobs of a statement; one that Spark still plans, which nothing interrupts, is
        given up: it takes its slot until that is over, and whoever asked hears of its end."""
        now = time.monotonic()
        running.stopped_at = running.stopped_at or now
        patience = _PATIENCE_SECONDS if running.into is None else _COMMIT_SECONDS
        if now - running.stopped_at < patience:
            self._runner.interrupt(running.statement.id)
        elif not running.is_given_up and running.stop is not None:
            running.is_given_up = True
            if running.into is None:
                self._note_end(running.statement, running.stop)
            else:
                self._lose(running, f"{running.stop.error}, and Spark still executes it")

    def take_no_more(self) -> None:
        """Take nothing more; what runs goes on."""
        self._stopping = True

    def stop(self, grace_seconds: float) -> tuple[str, ...]:
        """Take nothing more, and wait for what runs.

        Args:
            grace_seconds: At most so long.

        Returns:
            Ids of those that others are to run.
        """
        self.take_no_more()
        for running in self._now():
            if not running.ended.wait(grace_seconds):
                grace_seconds = 0
        self._end_writes()
        left = [running for running in self._now() if not running.ended.is_set()]
        for running in left:
            statement = running.statement
            try:
                self._statements.release(statement.id, statement.fencing_token)
            except CacheManagerError as error:
                logger.warning("statement %s cannot be given back: %s", statement.id, error)
            running.stop = Stop(ErrorCode.LEASE_LOST, "given back")
            self._runner.interrupt(statement.id)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return tuple(running.statement.id for running in left)

    def _end_writes(self) -> None:
        """Have those that write come to an end of which can be told what it is."""
        writing = [running for running in self._now() if running.into is not None]
        for running in writing:
            running.stop = running.stop or Stop(
                ErrorCode.OWNER_LOST,
                "the process that ran it was stopped, and nothing of it was written: submit it "
                "again, under another key if it had one",
            )
            self._runner.interrupt(running.statement.id)
        until = time.monotonic() + _PATIENCE_SECONDS
        for running in writing:
            running.ended.wait(max(0.0, until - time.monotonic()))

    def _is_any_waiting(self) -> bool:
        return bool(self._statements.of(None, state=StatementState.PENDING, limit=1))

    def _now(self) -> list[Running]:
        with self._lock:
            return list(self._running.values())

    def _look_at(self, running: Running) -> None:
        statement = running.statement
        renewed = self._statements.renew(
            statement.id, statement.fencing_token, lease_seconds=self._lease_seconds
        )
        if running.stop is not None:
            return
        if renewed.cancel_requested:
            by = renewed.statement.cancel_requested_by
            running.stop = Stop(ErrorCode.STATEMENT_CANCELED, f"cancelled by {by}", canceled=True)
        elif renewed.is_timed_out:
            seconds = statement.asked.timeout_seconds
            running.stop = Stop(
                ErrorCode.STATEMENT_TIMED_OUT,
                f"it ran for {seconds:g} s, which is as long as it may: give it more seconds, or "
                "have it read less",
            )
        elif self._results.bytes(statement.id, statement.fencing_token) > self._limits.result_bytes:
            running.stop = Stop(
                ErrorCode.RESULT_TOO_LARGE,
                f"its result is larger than {self._limits.result_bytes:,} bytes "
                "(statement_result_bytes): ask for fewer rows or columns",
            )

    def _carry_out(self, running: Running) -> None:
        statement = running.statement
        at = (statement.id, statement.fencing_token)
        logger.info("statement %s of %s begins", statement.id, statement.principal)
        try:
            self._check_space(statement)
            finished = self._runner.run(statement, _Notes(self._statements, at, running))
            self._statements.finish(*at, result=finished.result, hits=list(finished.hits))
            logger.info("statement %s: FINISHED", statement.id)
        except Exception as error:
            if running.into is None:
                self._failed(running, self._why(running, error))
            else:
                self._settle(running, self._why(running, error))
        finally:
            with self._lock:
                running.ended.set()
                self._running.pop(statement.id, None)

    def _check_space(self, statement: StatementRecord) -> None:
        kept, most = self._statements.bytes_of(statement.principal), self._limits.kept_bytes_each
        if kept >= most:
            raise CacheManagerError(
                ErrorCode.RESULTS_TOO_LARGE,
                f"the results that are kept for {statement.principal} take {kept:,} bytes of "
                f"{most:,} (statement_kept_bytes): delete some, or wait for them to expire",
            )

    def _why(self, running: Running, error: Exception) -> Stop:
        """Why a statement ends without a result."""
        stop = running.stop
        if stop is None and self._runner.is_lost():
            stop = Stop(
                ErrorCode.SPARK_LOST,
                "the Spark that ran it has ended (killed, or out of memory): have it read less, or "
                "give the process that runs statements more memory",
            )
        if stop is None and isinstance(error, CacheManagerError):
            stop = Stop(error.code, error.message)
        if stop is None:
            logger.error("statement %s failed by a %s", running.statement.id, type(error).__name__)
            stop = Stop(ErrorCode.STATEMENT_FAILED, f"{type(error).__name__}: {error}")
        return stop

    def _failed(self, running: Running, stop: Stop) -> None:
        if not running.is_given_up:
            self._note_end(running.statement, stop)

    def _settle(self, running: Running, stop: Stop) -> None:
        """End a statement that Spark had, and that writes: what its table's log says is its end."""
        statement, into = running.statement, running.into
        assert into is not None
        try:
            if stop.code == ErrorCode.SPARK_LOST:  # and perhaps not at once
                raise CacheManagerError(stop.code, "it may have written before")
            version = self._runner.written(statement.id, into)
        except CacheManagerError as trouble:
            self._lose(running, f"{stop.error}; whether it has written is not known: {trouble}")
            return
        if version is None:
            self._failed(running, stop)
            return
        logger.warning(
            "statement %s wrote version %d, and then: %s", statement.id, version, stop.code
        )
        result = without_rows(statement.fencing_token, into, version)
        try:
            self._statements.finish(statement.id, statement.fencing_token, result=result)
        except LeaseLostError:
            self._statements.settle(statement.id, result=result)
        except CacheManagerError as trouble:  # its lease ends, and then its table is looked at
            logger.warning("the end of statement %s cannot be noted: %s", statement.id, trouble)

    def _lose(self, running: Running, why: str) -> None:
        statement = running.statement
        logger.warning("statement %s may have written, or not", statement.id)
        try:
            self._statements.lose(statement.id, statement.fencing_token, why=masked(why))
        except CacheManagerError as trouble:
            logger.warning("the end of statement %s cannot be noted: %s", statement.id, trouble)

    def _note_end(self, statement: StatementRecord, stop: Stop) -> None:
        # what it says quotes values of rows, which are no business of who reads logs
        logger.warning("statement %s: %s", statement.id, stop.code)
        if stop.code == ErrorCode.LEASE_LOST:
            return  # it is another's by now
        try:
            self._statements.fail(
                statement.id, statement.fencing_token,
                code=stop.code, error=masked(stop.error), canceled=stop.canceled,
            )  # fmt: skip
        except CacheManagerError as trouble:
            logger.warning("the end of statement %s cannot be noted: %s", statement.id, trouble)


@dataclass(frozen=True)
class _Notes:
    """See `Noted`; whoever was told to stop meanwhile stops here."""

    statements: Any
    at: tuple[str, int]
    running: Running

    def analysed(self, *, reads_only: bool) -> None:
        self._check()
        self.statements.analysed(*self.at, reads_only=reads_only)

    def handed_over(self, into: Mapping[str, Any]) -> None:
        self._check()
        self.statements.handed_over(*self.at, into=into)
        self.running.into = into
        self._check()

    def _check(self) -> None:
        stop = self.running.stop
        if stop is not None:
            raise CacheManagerError(stop.code, stop.error)
