"""`cachemgr explain`: which cache would answer a query: offline, without Spark and without a
database; or on a service or a metastore."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cachemgr.cli.client import Client
from cachemgr.cli.connected import connected
from cachemgr.cli.input import text_of
from cachemgr.cli.output import Format
from cachemgr.cli.reasons import show_candidates, show_reasons
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.printable import printable_data


@connected
def explain(
    client: Client,
    sql: Annotated[
        str | None,
        typer.Argument(help="A query, explained on the service or metastore; - reads stdin."),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="CREATE SCHEMA, TABLE and VIEW statements."),
    ] = None,
    caches: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="CREATE RECORD PRESERVING JOIN and CREATE RELATIONAL CACHE statements.",
        ),
    ] = None,
    query: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="One query.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    conf: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A session setting; repeatable.")
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="A JSON list of {id, schema, caches, query, conf}; prints the list of results.",
        ),
    ] = None,
) -> None:
    """Say which cache would answer a query, with what SQL, and why the others would not.

    With --schema and --caches offline, by those files alone. Else on the service (--server), or on
    a metastore, by what it knows of the caches and their tables.

    Exit code 0 for a hit and for a miss, 1 for input at fault, 2 for wrong usage.
    """
    settings = _settings(conf or [])
    if batch is not None:
        if schema or caches or query or sql:
            raise typer.BadParameter("--batch takes the place of a query and its files")
        _run_batch(batch, settings)
        return
    if schema is None and caches is None:
        result = _online(client, sql, query, settings)
    elif schema is None or caches is None or query is None or sql is not None:
        raise typer.BadParameter("give --schema, --caches and --query, or --batch, or a query")
    else:
        from cachemgr.text.offline import explain as explain_offline

        texts = [p.read_text(encoding="utf-8-sig") for p in (schema, caches, query)]
        result = explain_offline(texts[0], texts[1], texts[2], settings)
    if as_json or client.output is Format.JSON:
        typer.echo(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        _print(result)


def _online(
    client: Client, sql: str | None, query: Path | None, settings: Mapping[str, str]
) -> dict[str, Any]:
    if (sql is None) == (query is None):
        raise typer.BadParameter("give one query: as the argument or by --query")
    text = text_of(sql) if sql is not None else query.read_text("utf-8-sig") if query else ""
    body = {"sql": text, "settings": dict(settings)}
    found: dict[str, Any] = client.call("POST", "/explain", json=body)
    return found


def _settings(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"--conf {pair}: write it as key=value")
        found[key.strip()] = value.strip()
    return found


def _run_batch(path: Path, settings: Mapping[str, str]) -> None:
    from cachemgr.text.offline import run_batch

    try:
        cases = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise ConfigurationError(ErrorCode.BAD_BATCH, f"{path} is not JSON: {error}") from error
    if not isinstance(cases, list) or not all(isinstance(c, dict) for c in cases):
        raise ConfigurationError(
            ErrorCode.BAD_BATCH,
            f"{path} holds no list of objects: give [{{id, schema, caches, query}}, …]",
        )
    typer.echo(json.dumps(run_batch(cases, settings), indent=2, ensure_ascii=False))


def _print(result: Mapping[str, Any]) -> None:
    """For people; the SQL last and as it is, so that it can be copied from any terminal."""
    result = printable_data(result)
    caches = ", ".join(result["caches"])
    colour = typer.colors.GREEN if result["hit"] else typer.colors.YELLOW
    verdict = typer.style("hit" if result["hit"] else "miss", fg=colour, bold=True)
    typer.echo(f"{verdict}: {caches}" if result["hit"] else verdict)
    for behind in result.get("behind", ()):
        typer.echo(f"behind its tables: {behind['detail']}")
    reasons = result.get("reasons", ())  # offline the candidates alone have some
    show_reasons(reasons)
    if result["candidates"]:
        show_candidates(result["candidates"], reasons)
    elif not result["hit"] and not reasons:
        typer.echo("no cache reads any of the query's tables")
    if result["rewrittenSql"]:
        typer.echo(f"\n{result['rewrittenSql']}")
