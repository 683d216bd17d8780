"""The command line: a thin door.

Each command imports what it needs when it runs, so that the light ones stay light.
"""

from __future__ import annotations

from typing import Annotated

import typer

from cachemgr import __version__
from cachemgr.cli import grants as _grants  # noqa: F401 - commands of `cachemgr cache`
from cachemgr.cli.cache import app as caches
from cachemgr.cli.database import app as database
from cachemgr.cli.demo import demo
from cachemgr.cli.doctor import doctor
from cachemgr.cli.document import apply, diff, export
from cachemgr.cli.explain import explain
from cachemgr.cli.failure import set_debug
from cachemgr.cli.jar import jar
from cachemgr.cli.join import app as joins
from cachemgr.cli.query import query
from cachemgr.cli.select import app as select
from cachemgr.cli.serve import serve, worker
from cachemgr.cli.sidecar import sidecar
from cachemgr.cli.sql import sql
from cachemgr.cli.table import app as tables
from cachemgr.cli.token import app as tokens

main = typer.Typer(
    name="cachemgr",
    help="Relational caches for Spark over Delta tables.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
main.command()(explain)
main.command()(demo)
main.command()(doctor)
main.command()(jar)
main.command(hidden=True)(sidecar)
main.command()(sql)
main.command()(query)
main.command()(export)
main.command()(diff)
main.command()(apply)
main.command()(serve)
main.command()(worker)
main.add_typer(caches, name="cache")
main.add_typer(joins, name="join")
main.add_typer(tables, name="table")
main.add_typer(select, name="select")
main.add_typer(tokens, name="token")
main.add_typer(database, name="db")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@main.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the trace of what goes wrong, without secrets.")
    ] = False,
) -> None:
    """Relational caches for Spark over Delta tables."""
    set_debug(debug)
