"""`cachemgr jar`: where our Java classes are."""

from __future__ import annotations

import typer


def jar() -> None:
    """Print the path of the jar with our Java classes, for spark.driver.extraClassPath."""
    from cachemgr.jvm.jar import JAR

    typer.echo(JAR)
