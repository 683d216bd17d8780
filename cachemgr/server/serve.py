"""A service or worker process from its settings: everything put together, and its orderly end."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import Final

import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from cachemgr.api.app import create_app
from cachemgr.api.dependencies import ApiState, StatementBounds
from cachemgr.api.metrics import CacheMetrics
from cachemgr.api.receive_timeout import ReceiveTimeoutProtocol
from cachemgr.config.service_settings import ServiceSettings
from cachemgr.config.session_settings import Settings
from cachemgr.config.setting_names import PREFIX
from cachemgr.delta.hadoop_files import HadoopFiles
from cachemgr.delta.head_lookup import Heads
from cachemgr.delta.places import is_local
from cachemgr.delta.spark_heads import SparkHeads
from cachemgr.delta.storage import Files, LocalFiles
from cachemgr.errors import ConfigurationError, ErrorCode, RefreshError
from cachemgr.journal.journal import Journal, keep_journal
from cachemgr.metastore import Metastore, open_metastore
from cachemgr.metastore.database import hidden, metastore_url
from cachemgr.metastore.tokens import Tokens
from cachemgr.priority import lower_session
from cachemgr.server.closed_mark import ClosedMark, settings_folder
from cachemgr.server.heap import SettledHeap
from cachemgr.server.logs import configure_logs
from cachemgr.server.result_folders import results_of
from cachemgr.serving.feed import acquire_feed, release_feed
from cachemgr.spark.host import SparkHost, host_of
from cachemgr.spark.refresher import SparkRefresher
from cachemgr.spark.scratch import roots_of, sweep
from cachemgr.telemetry import logger
from cachemgr.text.door import TextDoor
from cachemgr.text.settings import service_defaults
from cachemgr.worker.housekeeping import Housekeeping, forget_the_past
from cachemgr.worker.process import Process
from cachemgr.worker.single import sole_process
from cachemgr.worker.worker import Worker

_LOOK_FOR_SPARK_SECONDS: Final = 1.0
# Whoever waits for the interpreter's lock asks for it after so long: reading a new text would keep
# it for ten milliseconds, and each answer needs it three times on its way.
_SWITCH_SECONDS: Final = 0.0005


def serve(settings: ServiceSettings, *, scheduler: bool = True) -> None:
    """Serve REST until the process is told to stop; also schedule and refresh unless that is left
    to workers.

    Args:
        settings: What to do, and where.
        scheduler: Whether this process schedules and refreshes.

    Raises:
        ConfigurationError: It would be reachable from other machines without a token.
        MetastoreError: The metastore cannot be opened, or another process holds it.
    """
    configure_logs(settings.log_level, settings.log_format)
    with (
        sole_process(settings.metastore_url),
        open_metastore(settings.metastore_url, group=settings.sqlite_group) as metastore,
        listening(settings) as bound,
    ):
        check_tokens(settings, metastore.tokens)
        mark = ClosedMark(settings.metastore_url, settings_folder())
        open_to_all = partial(_is_open, settings, metastore.tokens, mark)
        _say_who_may_ask(settings, open_to_all(), None if metastore.tokens.had_any() else mark)
        host = host_of(settings)
        metrics = CollectorRegistry()
        metrics.register(CacheMetrics(metastore))
        heap = SettledHeap()
        sys.setswitchinterval(_SWITCH_SECONDS)
        with texts_of(settings, host, changed=heap.settle) as texts:
            state = ApiState(
                metastore,
                host,
                open_to_all,
                texts,
                lambda: host.state,
                lambda: host.trouble,
                results=results_of(settings),
                statement_bounds=StatementBounds(
                    settings.statement_seconds,
                    settings.result_keep_seconds,
                    settings.statements_waiting_each,
                ),
                stored=host.stored_values,
            )
            app = create_app(state, metrics=metrics, requests_a_second=settings.requests_a_second)
            process = _process(settings, metastore, host) if scheduler else None
            if process is None:  # what is not on this machine is left to processes with a Spark
                keep_journal(metastore, settings.location)
            app.router.lifespan_context = _lifespan(settings, process, host, heap)
            config = uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                http=ReceiveTimeoutProtocol,
                log_config=None,
            )
            with ends_without_spark(host):
                _Server(config, app.state.watches.close).run([bound])


@contextmanager
def listening(settings: ServiceSettings) -> Iterator[socket.socket]:
    """The address is taken before anything starts; nobody is answered yet."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. asyncio sets it on those alone that know their protocol, and an
        # answer of two writes waits 40 ms for the client's delayed acknowledgement of the first.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            bound.bind((settings.host, settings.port))
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            raise ConfigurationError(
                ErrorCode.PORT_IN_USE if taken else ErrorCode.CANNOT_LISTEN,
                f"cannot listen on {settings.host}:{settings.port} ({error.strerror}): "
                f"{'stop what listens there, or ' if taken else ''}give another --host or --port",
            ) from None
        yield bound


@contextmanager
def texts_of(
    settings: ServiceSettings,
    host: SparkHost,
    *,
    wait_seconds: float = 0,
    changed: Callable[[], None] | None = None,
) -> Iterator[TextDoor]:
    """What decides queries by their text, over the process's caches.

    Args:
        settings: The metastore, and the settings of sessions.
        host: Reads the Delta logs that this process cannot read itself.
        wait_seconds: Wait so long for the caches to be loaded.
        changed: Called after each change of the caches.
    """
    feed = acquire_feed(settings.metastore_url)
    if changed is not None:
        feed.listen(changed)
    feed.wait_loaded(wait_seconds)
    try:
        yield TextDoor(feed, Heads(SparkHeads(host.spark)), service_defaults(settings.spark_conf))
    finally:
        if changed is not None:
            feed.unlisten(changed)
        release_feed(feed)


def work(settings: ServiceSettings) -> None:
    """Schedule and refresh until the process is told to stop, without REST.

    Args:
        settings: What to do, and where.

    Raises:
        MetastoreError: The metastore cannot be opened, or another process holds it.
    """
    configure_logs(settings.log_level, settings.log_format)
    lower_session(settings.spark_nice)
    with (
        sole_process(settings.metastore_url),
        open_metastore(settings.metastore_url, group=settings.sqlite_group) as metastore,
    ):
        host = host_of(settings)
        process = _process(settings, metastore, host)
        process.start()
        logger.info("worker %s takes refreshes", holder())
        with ends_without_spark(host):
            with told_to_stop() as told:
                told.wait()
            _end(settings, process, host)


def work_once(settings: ServiceSettings) -> int:
    """Take the refreshes that wait now, and return when they are over.

    Args:
        settings: What to do, and where.

    Returns:
        How many were taken.

    Raises:
        MetastoreError: The metastore cannot be opened, or another process holds it.
    """
    with (
        sole_process(settings.metastore_url),
        open_metastore(settings.metastore_url, group=settings.sqlite_group) as metastore,
    ):
        host = host_of(settings)
        _journal(settings, metastore, host, since=None)
        worker = _worker(settings, metastore, _refresher(settings, metastore, host))
        taken = worker.take()
        worker.stop(threading.TIMEOUT_MAX)
        host.stop()
        return taken


def check_tokens(settings: ServiceSettings, tokens: Tokens) -> None:
    """Refuse to listen beyond this machine while nobody needs a token.

    Raises:
        ConfigurationError: Says how to make one.
    """
    if not settings.is_loopback and not tokens.has_any():
        raise ConfigurationError(
            ErrorCode.NO_TOKENS,
            f"listening on {settings.host} would let every machine in without a token: make one "
            "with `cachemgr token create --role admin NAME`, or listen on 127.0.0.1",
        )


def _is_open(settings: ServiceSettings, tokens: Tokens, mark: ClosedMark | None = None) -> bool:
    if tokens.had_any():
        if mark is not None:
            mark.note()
        return False
    was_closed = mark is not None and bool(mark.found())
    return settings.is_loopback and settings.auth != "required" and not was_closed


def _say_who_may_ask(
    settings: ServiceSettings, is_open: bool, tokenless: ClosedMark | None = None
) -> None:
    """The first line of the log: an open service over the wrong metastore looks like any other.

    Args:
        settings: The address and the metastore.
        is_open: Whether everybody is let in.
        tokenless: The mark of a metastore that holds no token; None where it holds some.
    """
    where = f"{settings.host}:{settings.port}"
    shown = hidden(metastore_url(settings.metastore_url))
    if is_open:
        logger.warning(
            "the service on %s is open: no token was ever made in %s, so everybody on this machine "
            "is an admin; `cachemgr token create --role admin NAME` ends that",
            where,
            shown,
        )
        return
    if tokenless is None:
        logger.info("the service on %s asks for tokens, which are kept in %s", where, shown)
        return
    marks = " and ".join(map(str, tokenless.found()))
    why, otherwise = ", and auth is required", ""
    if marks:
        why = (
            f", though a service asked for tokens here before ({marks}): it was lost, emptied or "
            "put back from an old copy, and grants and restrictions may be gone with it"
        )
        otherwise = ", or restore the metastore first"
    if marks and settings.auth != "required":
        otherwise += f"; to open the service to everybody on this machine delete {marks}"
    logger.error(
        "the service on %s lets nobody in: %s holds no token%s; `cachemgr token create --role "
        "admin NAME` makes one%s",
        where,
        shown,
        why,
        otherwise,
    )


def _process(settings: ServiceSettings, metastore: Metastore, host: SparkHost) -> Process:
    refresher = _refresher(settings, metastore, host)
    journal = _journal(settings, metastore, host, since=0)
    worker = _worker(settings, metastore, refresher)
    local = LocalFiles()
    files = Housekeeping(
        metastore,
        lambda place: local if is_local(place) else HadoopFiles(host.spark()),
        drop_grace(settings),
    )

    def housekeeping() -> None:
        forget_the_past(metastore, settings.history_days)
        files.look()
        sweep(roots_of(settings.spark_conf))

    return Process(
        metastore, refresher, worker, journal=journal.catch_up, housekeeping=housekeeping
    )


def drop_grace(settings: ServiceSettings) -> int:
    """How many seconds files stay for queries that were planned before."""
    ours = {k: v for k, v in settings.spark_conf.items() if k.startswith(PREFIX)}
    return Settings.from_mapping(ours).drop_grace_seconds


def _journal(
    settings: ServiceSettings, metastore: Metastore, host: SparkHost, *, since: int | None
) -> Journal:
    def others() -> Files:
        return HadoopFiles(host.spark())

    return keep_journal(metastore, settings.location, others, since=since)


def _refresher(settings: ServiceSettings, metastore: Metastore, host: SparkHost) -> SparkRefresher:
    return SparkRefresher(
        host.spark,
        metastore,
        lease_seconds=settings.lease_seconds,
        drop_grace_seconds=drop_grace(settings),
    )


def _worker(settings: ServiceSettings, metastore: Metastore, refresher: SparkRefresher) -> Worker:
    return Worker(
        metastore,
        refresher,
        holder=holder(),
        slots=settings.refreshes_at_once,
        lease_seconds=settings.lease_seconds,
        most_running=settings.refreshes_in_all,
        lost_table_seconds=settings.lost_table_seconds,
    )


def holder() -> str:
    """Who this process is, in leases and messages."""
    return f"{socket.gethostname()}:{os.getpid()}"


@contextmanager
def ends_without_spark(host: SparkHost) -> Iterator[None]:
    """Stop the process when its JVM has died: Python cannot start a second one, and what starts
    this process again starts a whole one. Its refreshes are handed over meanwhile.

    Raises:
        RefreshError: The JVM died, so that the exit code tells.
    """
    over, lost = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_FOR_SPARK_SECONDS):
            if host.lost():
                lost.set()
                os.kill(os.getpid(), signal.SIGTERM)
                return

    thread = threading.Thread(target=watch, name="cachemgr-spark-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if lost.is_set():
        raise RefreshError(
            ErrorCode.SPARK_LOST,
            "the JVM of this process has ended (killed, or out of memory): start the process "
            "again; its refreshes were handed over",
        )


def _lifespan(
    settings: ServiceSettings, process: Process | None, host: SparkHost, heap: SettledHeap
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if process is not None:
            process.start()
        settling = asyncio.create_task(heap.keep())
        yield
        settling.cancel()
        _end(settings, process, host)

    return lifespan


def _end(settings: ServiceSettings, process: Process | None, host: SparkHost) -> None:
    if process is not None:
        handed = process.stop(settings.stop_grace_seconds)
        if handed:
            logger.warning("handed over: %s", ", ".join(handed))
    host.stop()


class _Server(uvicorn.Server):
    """Ends with exit code 0 when told to stop; its own class kills the process once more.

    Args:
        config: What to serve.
        stopping: Lets those requests go that wait for something to happen.
    """

    def __init__(self, config: uvicorn.Config, stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._stopping = stopping

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let the server finish on SIGTERM and SIGINT."""
        with _on_stop(self._stop):
            yield

    def _stop(self) -> None:
        self._stopping()
        self.should_exit = True


@contextmanager
def told_to_stop() -> Iterator[threading.Event]:
    told = threading.Event()
    with _on_stop(told.set):
        yield told


@contextmanager
def _on_stop(action: Callable[[], None]) -> Iterator[None]:
    before = {
        number: signal.signal(number, lambda *_: action())
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
