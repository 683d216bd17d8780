"""`cachemgr doctor`: whether all that a service needs works, and how to fix what does not."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
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
    from cachemgr.extras import missing
    from cachemgr.server.doctor import FAILED, SKIPPED, Finding, examine

    with handled():
        settings = service_settings(
            metastore_url=metastore, spark_master=spark_master, location=location, host=host
        )
        left_out = "--no-spark" if not spark else "it needs packages" if missing("spark") else ""
        console = Console(stderr=True)
        found: list[Finding] = []
        with closing(_checks(settings, with_spark=not left_out)) as checks:
            for finding in examine(checks, settings.metastore_url):
                found.append(finding)
                if console.is_terminal:
                    console.print(f"{finding.check}: {finding.state}")
        if left_out:
            names = ("spark", *(["spark_init"] if settings.spark_init else []), "delta")
            found += [Finding(name, SKIPPED, left_out) for name in names]
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


def _checks(settings: ServiceSettings, *, with_spark: bool) -> Generator[Check, None, None]:
    from cachemgr.delta.places import is_local
    from cachemgr.delta.storage import LocalFiles
    from cachemgr.server import doctor as checks

    yield from checks.light_checks(settings)
    if is_local(settings.location):
        yield "storage", lambda: checks.storage(settings, LocalFiles())
    if with_spark:
        yield from _checks_of_spark(settings)
    else:
        yield "log store", lambda: checks.log_store(settings, settings.spark_conf)


def _checks_of_spark(settings: ServiceSettings) -> Generator[Check, None, None]:
    from cachemgr.delta.hadoop_files import HadoopFiles
    from cachemgr.delta.places import is_local
    from cachemgr.server import doctor as checks
    from cachemgr.spark.host import host_of
    from cachemgr.spark.process import doctor_checks

    say(STARTING)
    application = host_of(settings)
    try:
        yield "spark", lambda: doctor_checks.spark(application.plain())
        yield (
            "log store",
            lambda: checks.log_store(settings, doctor_checks.settings_of(application.plain())),
        )
        if settings.spark_init:
            yield "spark_init", application.initialised
        yield "delta", lambda: doctor_checks.delta(application.plain(), settings.location)
        if not is_local(settings.location):
            yield "storage", lambda: checks.storage(settings, HadoopFiles(application.plain()))
    finally:
        with suppress(Exception):  # a Spark that never started has nothing to stop
            application.stop()
