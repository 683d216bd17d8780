"""`cachemgr sql`: a shell on Spark with the caches in use; after each query it says hit or miss,
which cache, and how long."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cachemgr.cli.failure import handled
from cachemgr.cli.output import Format, Output, say, show_rows
from cachemgr.cli.prompt import statements, typed
from cachemgr.cli.serve import Location, Master, Metastore
from cachemgr.cli.starting import STARTING
from cachemgr.printable import plural
from cachemgr.secrets import masked

if TYPE_CHECKING:
    from cachemgr.spark.process.shell import Answer

_WELCOME = "Statements end with `;`. help shows more, exit leaves."


def sql(
    execute: Annotated[
        list[str] | None, typer.Option("-e", "--execute", help="Run this and end; repeatable.")
    ] = None,
    metastore: Metastore = None,
    spark_master: Master = None,
    location: Location = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows shown of a query at most.")] = 1000,
    output: Output = Format.TABLE,
) -> None:
    """Run SQL, Spark's and ours, with the caches in use. Statements end with `;`.

    Without -e they are read from stdin: on a terminal with editing and history. With -o json a
    line for each statement. More settings: CACHEMGR_* and cachemgr.toml, as for `serve`. Exit code
    1 if a statement given by -e or a pipe fails, 130 if Ctrl-C cancels it; those behind it are not
    run."""
    from cachemgr.config.service_settings import service_settings
    from cachemgr.extras import require

    asked = execute is None and sys.stdin.isatty()
    with handled():
        require("`cachemgr sql`", "spark")
        from cachemgr.spark.configure import refuse_java
        from cachemgr.spark.host import host_of
        from cachemgr.spark.process.shell import Statements

        texts = [] if asked else statements("\n;".join(execute) if execute else sys.stdin.read())
        settings = service_settings(
            metastore_url=metastore, spark_master=spark_master, location=location
        )
        refuse_java()
        host = host_of(settings)
        try:
            say(STARTING)
            running = Statements(host.spark())
            if asked:
                say(_WELCOME)
            for number, text in enumerate(typed() if asked else texts, 1):
                try:
                    _tell(running.run(text, limit), output)
                except (Exception, KeyboardInterrupt) as error:
                    if asked:
                        say(f"error: {_first_line(error)}")
                        continue
                    is_cancelled = isinstance(error, KeyboardInterrupt)
                    if len(texts) > 1:
                        say(_which(number, texts, "cancelled" if is_cancelled else "failed"))
                    elif is_cancelled:
                        say(f"error: {_first_line(error)}")
                    raise
        finally:
            host.stop()


def _tell(answer: Answer, output: Format) -> None:
    if output is Format.JSON:
        typer.echo(json.dumps(asdict(answer)))
        return
    if answer.columns:
        show_rows(answer.columns, [[_shown(value) for value in row] for row in answer.rows])
    more = ", and more: --limit shows more" if answer.more else ""
    verdict = "" if answer.verdict is None else f"{answer.verdict}; "
    say(f"{verdict}{plural(len(answer.rows), 'row')}{more}, {answer.seconds:.3f} s")


def _shown(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _which(number: int, statements: Sequence[str], what: str) -> str:
    """Which statement of a script failed or was cancelled, and what of it was not run."""
    text = masked(" ".join(statements[number - 1].split()))
    shown = text if len(text) <= 100 else f"{text[:100]}…"
    left = len(statements) - number
    rest = f"; {plural(left, 'statement')} after it not run" if left else ""
    return f"statement {number} of {len(statements)} {what}{rest}: {shown}"


def _first_line(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "the statement was cancelled"
    return (str(error).strip() or type(error).__name__).splitlines()[0]
