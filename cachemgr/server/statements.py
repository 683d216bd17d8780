"""A process that runs statements, from its settings: everything put together, and its end."""

from __future__ import annotations

import os

from cachemgr.config.service_settings import ServiceSettings
from cachemgr.delta.places import absolute_location
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.metastore import open_metastore
from cachemgr.priority import lower_session
from cachemgr.server.logs import configure_logs
from cachemgr.server.result_folders import results_of
from cachemgr.server.serve import ends_without_spark, holder, told_to_stop
from cachemgr.spark.host import host_of_statements
from cachemgr.spark.results.runner import StatementRunner
from cachemgr.telemetry import logger
from cachemgr.worker.expiry import Expiry
from cachemgr.worker.single import sole_process
from cachemgr.worker.statement_process import StatementProcess
from cachemgr.worker.statements import Limits, StatementWorker


def work_statements(settings: ServiceSettings) -> None:
    """Run statements until the process is told to stop: in a process of their own, so that one
    that takes all memory costs no refresh and no answer of REST.

    Args:
        settings: What to do, and where.

    Raises:
        ConfigurationError: The settings name no place for results.
        MetastoreError: The metastore cannot be opened, or another such process holds it.
    """
    configure_logs(settings.log_level, settings.log_format)
    lower_session(settings.spark_nice)
    results = results_of(settings)
    if results is None:
        raise ConfigurationError(
            ErrorCode.STATEMENTS_OFF,
            "statements need a place for their rows: set results_location (CACHEMGR_RESULTS_"
            "LOCATION), for this process and for `cachemgr serve`",
        )
    results.check()
    os.umask(0o077)  # what Spark writes here is for nobody else
    with (
        sole_process(settings.metastore_url, "statements"),
        open_metastore(settings.metastore_url, group=settings.sqlite_group) as metastore,
    ):
        host = host_of_statements(settings)
        worker = StatementWorker(
            metastore,
            results,
            StatementRunner(
                host,
                metastore,
                results,
                writers=settings.writers,
                location=absolute_location(settings.location),
            ),
            holder=holder(),
            lease_seconds=settings.lease_seconds,
            limits=Limits(
                settings.statements_at_once,
                settings.statements_each,
                settings.statement_result_bytes,
                settings.statement_kept_bytes,
            ),
        )
        expiry = Expiry(metastore, results, settings.history_days)
        process = StatementProcess(worker, settings.lease_seconds, expiry.look)
        process.start()
        logger.info("worker %s runs statements; their rows go to %s", holder(), results.location)
        who = ", ".join(sorted(settings.writers)) or "nobody (statement_writers is empty)"
        logger.info("statements that write are run for %s", who)
        with ends_without_spark(host):
            with told_to_stop() as told:
                told.wait()
            process.stop(settings.stop_grace_seconds)
            host.stop()
