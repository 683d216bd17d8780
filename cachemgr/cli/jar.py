"""`cachemgr jar`: where our Java classes are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def _to_be_found(coordinates: str) -> tuple[Path, ...]:
    """What is printed for jars that were never fetched on this machine."""
    _, module, release = coordinates.split(":")
    return tuple(Path("/path/of", f"{name}-{release}.jar") for name in (module, "delta-storage"))


def jar(
    conf: Annotated[
        bool, typer.Option("--conf", help="Print the lines for spark-defaults.conf instead.")
    ] = False,
    spark: Annotated[
        str | None,
        typer.Option("--spark", help="The minor of your Spark, as 4.1; that of PySpark here."),
    ] = None,
) -> None:
    """Print the path of the jar with our Java classes, for spark.driver.extraClassPath."""
    from cachemgr.jvm.jar import jar_for
    from cachemgr.spark.delta_jars import delta_coordinates, installed_spark, jars_for_a_server
    from cachemgr.sparks import MINORS, minor_of

    minor = minor_of(spark or installed_spark())
    if minor not in MINORS:
        told = f"there is no jar for Spark {spark or minor}" if minor else "no PySpark is installed"
        raise typer.BadParameter(f"{told}: say one of {', '.join(MINORS)}", param_hint="--spark")
    if not conf:
        typer.echo(jar_for(minor))
        return
    coordinates = delta_coordinates(minor)
    delta = jars_for_a_server(coordinates) or _to_be_found(coordinates)
    lines = {
        "spark.driver.extraClassPath": ":".join(map(str, (jar_for(minor), *delta))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,relationalcache.Extension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.cachemgr.sidecar.python": sys.executable,
        "spark.cachemgr.metastore.url": "sqlite:////path/of/cachemgr.db",
        "spark.cachemgr.location": "/path/of/relational-caches",
    }
    typer.echo("# correct the paths that begin with /path/of; docs/doors.md says more")
    for key, value in lines.items():
        typer.echo(f"{key:<33}{value}")
