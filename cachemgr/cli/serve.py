"""`cachemgr serve` and `cachemgr worker`: the long-running processes."""

from __future__ import annotations

from typing import Annotated

import typer

from cachemgr.cli.failure import handled

Metastore = Annotated[
    str | None,
    typer.Option("--metastore", help="sqlite:///file or postgresql://user@host/database."),
]
Master = Annotated[
    str | None, typer.Option("--spark-master", help="The Spark master that refreshes run on.")
]
Location = Annotated[
    str | None, typer.Option("--location", help="Root folder of the caches' Delta tables.")
]


def serve(
    metastore: Metastore = None,
    spark_master: Master = None,
    location: Location = None,
    host: Annotated[str | None, typer.Option(help="Where to listen.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on.")] = None,
    scheduler: Annotated[
        bool, typer.Option(help="Schedule and refresh here; else workers have to.")
    ] = True,
    results: Annotated[
        str | None,
        typer.Option(
            "--results-location",
            help="Where the rows of statements are, which `cachemgr worker --statements` runs.",
        ),
    ] = None,
) -> None:
    """Serve REST, schedule, and refresh. More settings: CACHEMGR_* and cachemgr.toml."""
    from cachemgr.config.service_settings import service_settings
    from cachemgr.extras import require

    with handled():
        require("`cachemgr serve`", "server", "spark")
        from cachemgr.server.serve import serve as run

        settings = service_settings(
            metastore_url=metastore,
            spark_master=spark_master,
            location=location,
            host=host,
            port=port,
            results_location=results,
        )
        run(settings, scheduler=scheduler)


def worker(
    metastore: Metastore = None,
    spark_master: Master = None,
    location: Location = None,
    statements: Annotated[
        bool, typer.Option("--statements", help="Run statements, and no refreshes.")
    ] = False,
    results: Annotated[
        str | None, typer.Option("--results-location", help="Where the rows of statements go.")
    ] = None,
) -> None:
    """Schedule and refresh, without REST. More settings: CACHEMGR_* and cachemgr.toml."""
    from cachemgr.config.service_settings import service_settings
    from cachemgr.extras import require

    with handled():
        what = "`cachemgr worker --statements`" if statements else "`cachemgr worker`"
        require(what, "server", "spark", *(("results",) if statements else ()))
        from cachemgr.server.serve import work
        from cachemgr.server.statements import work_statements

        settings = service_settings(
            metastore_url=metastore,
            spark_master=spark_master,
            location=location,
            results_location=results,
        )
        (work_statements if statements else work)(settings)
