"""`cachemgr export`, `diff` and `apply`: all definitions as one YAML or JSON document."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cachemgr.cache_spec import SPEC_FIELDS
from cachemgr.cli.client import Client
from cachemgr.cli.connected import connected
from cachemgr.cli.input import Yes, confirm
from cachemgr.cli.output import Format, say, show
from cachemgr.errors import ConfigurationError, ErrorCode
from cachemgr.printable import plural, printable
from cachemgr.secrets import secret_places

_DIFFERENT = 2
_COLUMNS = ("action", "kind", "name", "fields", "outcome", "message")
File = Annotated[str, typer.Option("-f", "--file", help="YAML or JSON; - reads it from stdin.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Also drop caches and joins that the file does not name.")
]


@connected
def export(
    client: Client,
    file: Annotated[
        Path | None, typer.Option("-f", "--file", help="Write there instead of to stdout.")
    ] = None,
) -> None:
    """Write all definitions down: every clause of each cache, joins and grants, no state.

    YAML, or JSON with -o json or a file named .json."""
    found = client.call("GET", "/definitions")
    as_json = client.output is Format.JSON or (file is not None and file.suffix == ".json")
    text = json.dumps(found, indent=2) + "\n" if as_json else _yaml(found)
    if file is None:
        typer.echo(text, nl=False)
        return
    file.write_text(text, encoding="utf-8")
    caches, joins = plural(len(found["caches"]), "cache"), plural(len(found["joins"]), "join")
    say(f"{caches} and {joins} written to {file}")


@connected
def diff(client: Client, file: File, prune: Prune = False) -> None:
    """Say what `apply` would change. Exit code 0 if nothing, 2 if something, 1 if it fails."""
    changes = _plan(client, _document(file), prune)
    _show(changes, client.output)
    if changes:
        raise typer.Exit(_DIFFERENT)


@connected
def apply(
    client: Client,
    file: File,
    prune: Prune = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing.")] = False,
    yes: Yes = False,
) -> None:
    """Make the definitions of a file true. A second time there is nothing to change.

    Exit code 1 if a change failed; those before it are made, those behind it not tried."""
    document = _document(file)
    changes = _plan(client, document, prune)
    if dry_run or not changes:
        _show(changes, client.output)
        say("nothing to change" if not changes else "nothing was changed")
        return
    losing = [c for c in changes if c["action"] in ("REPLACE", "DROP")]
    if losing:
        names = ", ".join(f"{c['action']} {c['kind']} {c['name']}" for c in losing)
        confirm(f"This takes away what is stored: {names}. Go on?", yes)
    done = client.call("POST", "/definitions/apply", json=_wanted(document, prune))["changes"]
    _show(done, client.output)
    if any(c["outcome"] != "DONE" for c in done):
        raise typer.Exit(1)


def _plan(client: Client, document: dict[str, Any], prune: bool) -> list[dict[str, Any]]:
    _warn_of_secrets(document)
    answer = client.call("POST", "/definitions/plan", json=_wanted(document, prune))
    changes: list[dict[str, Any]] = answer["changes"]
    return changes


def _warn_of_secrets(document: dict[str, Any]) -> None:
    caches = document.get("caches")
    for cache in caches if isinstance(caches, list) else ():
        places = places_of_secrets(cache) if isinstance(cache, dict) else ()
        if places:
            say(
                f"warning: cache {printable(str(cache.get('name')))}: {', '.join(places)} holds "
                "what looks like a password or key: leave it out; a new cache is refused with it, "
                "and where a cache holds it already it stays, masked wherever it is shown"
            )


def places_of_secrets(cache: dict[str, Any]) -> tuple[str, ...]:
    """Where the definition of a cache in a document holds credentials; never what stands there.

    Args:
        cache: As the document has it, of whatever types.
    """
    texts = {"the SELECT": "definition", **{name.upper(): name for name in SPEC_FIELDS}}
    found = {place: cache.get(key) for place, key in texts.items()}
    properties = cache.get("properties")
    return secret_places(
        {place: text for place, text in found.items() if isinstance(text, str)},
        {str(k): str(v) for k, v in properties.items()} if isinstance(properties, dict) else {},
    )


def _wanted(document: dict[str, Any], prune: bool) -> dict[str, Any]:
    return {"definitions": document, "prune": prune}


def _document(file: str) -> dict[str, Any]:
    import yaml

    name = "stdin" if file == "-" else file
    text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    try:
        found = yaml.safe_load(text)  # JSON is YAML
    except (yaml.YAMLError, RecursionError) as error:
        first = str(error).replace("\n", " ")[:300]
        raise ConfigurationError(
            ErrorCode.BAD_DOCUMENT, f"{name} is neither YAML nor JSON: {first}"
        ) from None
    if not isinstance(found, dict):
        raise ConfigurationError(
            ErrorCode.BAD_DOCUMENT,
            f"{name} holds no definitions: `cachemgr export` shows how they look",
        )
    return found


def _yaml(found: dict[str, Any]) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        # what would not be seen as it is written out below, which quotes alone can say
        style = '"' if printable(value) != value else "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    written: str = yaml.dump(found, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    return printable(written)


def _show(changes: list[dict[str, Any]], output: Format) -> None:
    if output is Format.JSON:
        show(changes, _COLUMNS, output)
        return
    for change in changes:
        outcome = "" if change["outcome"] in ("PLANNED", "DONE") else f"  {change['outcome']}"
        message = "" if change["message"] is None else f": {change['message']}"
        line = f"{change['action']:<8}{change['kind']} {change['name']}{outcome}{message}"
        typer.echo(printable(line))
        for field in change["fields"]:
            before, after = json.dumps(field["before"]), json.dumps(field["after"])
            typer.echo(f"          {field['field']}: {before} -> {after}")
