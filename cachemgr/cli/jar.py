"""`cachemgr jar`: where our Java classes are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def _to_be_found(coordinates: str | None) -> tuple[Path, ...]:
    """What is printed for jars that were never fetched on this machine."""
    _, module, version = (coordinates or "io.delta:delta-spark:").split(":")
    names = (module, "delta-storage")
    return tuple(Path("/path/of", f"{'-'.join(filter(None, (n, version)))}.jar") for n in names)


def jar(
    conf: Annotated[
        bool, typer.Option("--conf", help="Print the lines for spark-defaults.conf instead.")
    ] = False,
) -> None:
    """Print the path of the jar with our Java classes, for spark.driver.extraClassPath."""
    from cachemgr.jvm.jar import JAR

    if not conf:
        typer.echo(JAR)
        return
    from cachemgr.spark.delta_jars import delta_coordinates, jars_for_a_server

    coordinates = delta_coordinates()
    delta = jars_for_a_server(coordinates) if coordinates else ()
    delta = delta or _to_be_found(coordinates)
    lines = {
        "spark.driver.extraClassPath": ":".join(map(str, (JAR, *delta))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,relationalcache.Extension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.cachemgr.sidecar.python": sys.executable,
        "spark.cachemgr.metastore.url": "sqlite:////path/of/cachemgr.db",
        "spark.cachemgr.location": "/path/of/relational-caches",
    }
    typer.echo("# correct the paths that begin with /path/of; docs/doors.md says more")
    for key, value in lines.items():
        typer.echo(f"{key:<33}{value}")
