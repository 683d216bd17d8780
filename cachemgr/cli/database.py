"""`cachemgr db`: bring the metastore's schema up to date, and look at it."""

from __future__ import annotations

from typing import Annotated

import typer

from cachemgr.cli.failure import handled
from cachemgr.settings import Settings

app = typer.Typer(help="The metastore's schema version.", no_args_is_help=True)
Url = Annotated[
    str,
    typer.Option(
        "--metastore",
        envvar="CACHEMGR_METASTORE_URL",
        help="sqlite:///file or postgresql://user@host/database.",
    ),
]
_DEFAULT = Settings().metastore_url


@app.command()
def upgrade(metastore: Url = _DEFAULT, revision: str = "head") -> None:
    """Bring the metastore to the newest schema version, or to REVISION."""
    from cachemgr.metastore import migrate

    with handled():
        typer.echo(f"metastore is at {migrate.upgrade(metastore, revision)}")


@app.command()
def current(metastore: Url = _DEFAULT) -> None:
    """Print the metastore's schema version and the one this program needs."""
    from cachemgr.metastore import migrate

    with handled():
        found = migrate.current(metastore)
        typer.echo(
            f"metastore is at {found or 'no version'}, this program needs {migrate.expected()}"
        )


@app.command()
def check(metastore: Url = _DEFAULT) -> None:
    """Compare the metastore's tables with what this program describes; exit code 1 if they
    differ."""
    from cachemgr.metastore import migrate

    with handled():
        migrate.check(metastore)
        typer.echo("metastore is as described")
