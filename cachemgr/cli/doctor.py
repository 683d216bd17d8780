"""`cachemgr doctor`: whether all that a service needs works, and how to fix what does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from cachemgr.cli.failure import handled
from cachemgr.cli.output import Format, Output, say, show
from cachemgr.cli.serve import Location, Master, Metastore
from cachemgr.cli.starting import STARTING
from cachemgr.secrets import masked

if TYPE_CHECKING:
    from cachemgr.config.service_settings import ServiceSettings
    from cachemgr.server.doctor import Check, Finding
    from cachemgr.spark.host import SparkHost

_COLUMNS = ("check", "state", "found")


def doctor(
    metastore: Metastore = None,
    spark_master: Master = None,
    location: Location = None,
    host: Annotated[str | None, typer.Option(help="Where the service is to listen.")] = None,
    spark: Annotated[bool, typer.Option(help="Also start Spark, and write a Delta table.")] = True,
    output: Output = Format.TABLE,
) -> None:
    """Check Java, Spark, Delta, metastore, migrations, clock, tokens and storage; say how to fix
    each. Exit code 1 if something fails."""
    from cachemgr.config.service_settings import service_settings
    from cachemgr.server.doctor import FAILED, SKIPPED, Finding, examine
    from cachemgr.spark.host import host_of

    with handled():
        settings = service_settings(
            metastore_url=metastore, spark_master=spark_master, location=location, host=host
        )
        application = host_of(settings)
        console = Console(stderr=True)
        found: list[Finding] = []
        try:
            checks = _checks(settings, application, with_spark=spark)
            for finding in examine(checks, settings.metastore_url):
                found.append(finding)
                if console.is_terminal:
                    console.print(f"{finding.check}: {finding.state}")
        finally:
            with suppress(Exception):  # a Spark that never started has nothing to stop
                application.stop()
        if not spark:
            left_out = ("spark", *(["spark_init"] if settings.spark_init else []), "delta")
            found += [Finding(n, SKIPPED, "--no-spark") for n in left_out]
        rows = [{k: masked(v) for k, v in asdict(finding).items()} for finding in found]
        show(rows, _COLUMNS, output)
        if output is Format.TABLE:
            _show_remedies(rows)
        if any(finding.state == FAILED for finding in found):
            raise typer.Exit(1)


def _show_remedies(rows: Sequence[Mapping[str, str]]) -> None:
    """Each on a line of its own, which no table folds: to be pasted as it stands."""
    for row in rows:
        if row["fix"]:
            typer.echo(f"\nTo fix {row['check']}:\n  {row['fix']}")


def _checks(
    settings: ServiceSettings, application: SparkHost, *, with_spark: bool
) -> Iterator[Check]:
    from cachemgr.delta.hadoop_files import HadoopFiles
    from cachemgr.delta.places import is_local
    from cachemgr.delta.storage import LocalFiles
    from cachemgr.server import doctor as checks
    from cachemgr.spark import doctor_checks

    yield from checks.light_checks(settings)
    local = is_local(settings.location)
    if local:
        yield "storage", lambda: checks.storage(settings, LocalFiles())
    if with_spark:
        say(STARTING)
        yield "spark", lambda: doctor_checks.spark(application.plain())
        if settings.spark_init:
            yield "spark_init", application.initialised
        yield "delta", lambda: doctor_checks.delta(application.plain(), settings.location)
        if not local:
            yield "storage", lambda: checks.storage(settings, HadoopFiles(application.plain()))
