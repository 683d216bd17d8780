"""`cachemgr db`: the metastore's schema, and the metastore made again after it was lost."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cachemgr.cli.failure import handled
from cachemgr.cli.input import confirm
from cachemgr.cli.output import Format, Output, say, show, show_one
from cachemgr.errors import ConfigurationError, ErrorCode, MetastoreError

if TYPE_CHECKING:
    from cachemgr.config.service_settings import ServiceSettings
    from cachemgr.metastore import Metastore

app = typer.Typer(
    help="The metastore: its schema version, and rebuilding it.", no_args_is_help=True
)
Url = Annotated[
    str | None,
    typer.Option(
        "--metastore",
        envvar="CACHEMGR_METASTORE_URL",
        help="sqlite:///file or postgresql://user@host/database; else that of the settings, as for "
        "`serve`.",
    ),
]
Location = Annotated[
    list[str] | None,
    typer.Option(help="Root folder of the caches' tables; repeatable. Else the setting's."),
]
TakeOver = Annotated[
    bool,
    typer.Option("--take-over", help="The records may be another metastore's: do not ask."),
]
_LINES = ("name", "state", "version", "note")


def metastore_of(url: str | None) -> str:
    """The metastore that a command works on: that which `cachemgr serve` would open here.

    Args:
        url: What the command line or the environment says; None takes the settings file's.

    Raises:
        ConfigurationError: The settings cannot be read.
    """
    return _settings(url).metastore_url


def opened(url: str | None) -> Metastore:
    """The metastore of `metastore_of`, made where there is none.

    Raises:
        CacheManagerError: The settings cannot be read, or it cannot be opened.
    """
    from cachemgr.metastore import open_metastore

    settings = _settings(url)
    return open_metastore(settings.metastore_url, group=settings.sqlite_group)


def _settings(url: str | None) -> ServiceSettings:
    from cachemgr.config.service_settings import service_settings

    return service_settings(metastore_url=url)


@app.command()
def upgrade(metastore: Url = None, revision: str = "head") -> None:
    """Bring the metastore to the newest schema version, or to REVISION."""
    from cachemgr.journal.journal import write_missing
    from cachemgr.metastore import migrate, open_metastore

    with handled():
        settings = _settings(metastore)
        url, group = settings.metastore_url, settings.sqlite_group
        reached = migrate.upgrade(url, revision, group=group)
        if reached == migrate.expected():
            with open_metastore(url, create=False) as store:
                write_missing(store, settings.location)
                _warn_of_secrets(store)
        typer.echo(f"metastore is at {reached}")


@app.command()
def current(metastore: Url = None, output: Output = Format.TABLE) -> None:
    """Print the metastore's schema version and the one this program needs."""
    from cachemgr.metastore import migrate

    with handled():
        found = migrate.current(metastore_of(metastore))
        if output is Format.JSON:
            show_one({"current": found, "needed": migrate.expected()}, output)
            return
        typer.echo(
            f"metastore is at {found or 'no version'}, this program needs {migrate.expected()}"
        )


@app.command()
def check(metastore: Url = None, location: Location = None, output: Output = Format.TABLE) -> None:
    """Compare the metastore's tables with what this program describes, and its caches with the
    records and Delta logs beside their tables; exit code 1 if they differ."""
    from cachemgr.cli.storage import storage
    from cachemgr.journal.rebuild import differences, remedies
    from cachemgr.metastore import migrate, open_metastore

    with handled():
        url = metastore_of(metastore)
        migrate.check(url)
        with (
            open_metastore(url, create=False) as store,
            storage(url, location) as (roots, files_of),
        ):
            found = differences(store, roots, files_of)
        if found:
            show([asdict(line) for line in found], _LINES, output)
            say("the records and logs beside the tables are not as the metastore says")
            for remedy in remedies(found):
                say(remedy)
            raise typer.Exit(1)
        say("metastore is as described, and the records and logs agree with it")


@app.command()
def records(metastore: Url = None, location: Location = None, take_over: TakeOver = False) -> None:
    """Write the records of all caches anew, as this metastore has them; exit code 1 if the records
    still say something else."""
    from cachemgr.cli.storage import storage
    from cachemgr.journal import rebuild as rebuilding
    from cachemgr.journal.journal import Journal
    from cachemgr.metastore import open_metastore

    with handled():
        url = metastore_of(metastore)
        with (
            open_metastore(url, create=False) as store,
            storage(url, location) as (roots, files_of),
        ):
            if rebuilding.is_taken_over(store, roots, files_of):
                confirm(f"{_others(roots)} Make them this metastore's?", take_over, "--take-over")
            rebuilding.outdo(store, roots, files_of)
            Journal(store, roots[0], lambda: files_of(roots[0]), since=0).catch_up()
            found = rebuilding.differences(store, roots, files_of)
        if found:
            say(f"{len(found)} differ still: `cachemgr db check` shows them")
            raise typer.Exit(1)
        say("the records are as this metastore says")


def _warn_of_secrets(store: Metastore) -> None:
    from cachemgr.metastore.masked import held_secrets

    for line in held_secrets(store.caches.all()):
        say(
            f"warning: {line} holds what looks like a password or key, which is masked wherever it "
            "is shown: create the cache again without it, and change that password or key"
        )


def _refuse_filled(url: str) -> None:
    """Before anybody is asked; the database is not made yet where there is none."""
    from cachemgr.metastore import open_metastore
    from cachemgr.metastore.dumps import not_empty

    try:
        with open_metastore(url, create=False) as store:
            filled = bool(store.caches.all(include_dropped=True))
    except MetastoreError as error:
        if error.code != ErrorCode.METASTORE_MISSING:
            raise
        return
    if filled:
        raise not_empty()


def _others(roots: list[str]) -> str:
    return (
        f"The records under {', '.join(roots)} are another metastore's. Once they are taken over, "
        "that one writes none any more, and what it does to the caches is lost with it; both would "
        "write the same tables: end its processes first, if it is still in use."
    )


@app.command()
def rebuild(
    metastore: Url = None,
    location: Location = None,
    take_over: TakeOver = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be restored, and change nothing.")
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Restore caches, refreshes and published versions into an empty metastore, from the records
    and Delta logs beside the caches' tables; exit code 1 if a cache could not be restored as it
    was."""
    from cachemgr.cli.storage import storage
    from cachemgr.journal import rebuild as rebuilding
    from cachemgr.journal.journal import Journal
    from cachemgr.metastore import open_metastore
    from cachemgr.worker.single import sole_process

    with handled():
        url = metastore_of(metastore)
        with storage(url, location) as (roots, files_of):
            found = rebuilding.look(roots, files_of)
            if not found.restored:
                raise ConfigurationError(
                    ErrorCode.NOTHING_TO_REBUILD,
                    f"there are no records of caches under {', '.join(roots)}: name the caches' "
                    "root folder with --location",
                )
            if dry_run:
                say(f"{_others(roots)} Without --dry-run they would become this metastore's.")
            else:
                _refuse_filled(url)
                confirm(f"{_others(roots)} Take them over?", take_over, "--take-over")
                group = _settings(metastore).sqlite_group
                with sole_process(url), open_metastore(url, group=group) as store:
                    rebuilding.rebuild(store, found)
                    # the records are of this metastore from now on
                    Journal(store, roots[0], lambda: files_of(roots[0]), since=0).catch_up()
                    _warn_of_secrets(store)
        show([asdict(line) for line in found.restored], _LINES, output)
        say("nothing was changed" if dry_run else "tokens are not kept: make new ones")
        if not found.has_shared:
            say(
                "no record of joins and restricted tables was found: name the root folder of the "
                "service with --location too, or declare and restrict them again"
            )
        if not found.has_shared or any(line.is_lost for line in found.restored):
            raise typer.Exit(1)
