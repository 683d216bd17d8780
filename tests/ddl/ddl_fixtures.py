"""Loads the fixture files, and writes a statement as compact data: what differs from a default.

`python tests/ddl/ddl_fixtures.py` writes the expected lines of the `.sql` files anew; review the
difference before it is committed.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

FIXTURES = Path(__file__).parent / "fixtures"


class Case(NamedTuple):
    title: str
    text: str
    expected: str


class BadCase(NamedTuple):
    title: str
    text: str
    line: int
    column: int
    fragments: tuple[str, ...]


def load(path: Path) -> list[Case]:
    cases = []
    for title, body in _blocks(path):
        text, mark, expected = body.partition("\n=>\n")
        assert mark, f"{path.name}: '{title}' expects nothing"
        cases.append(Case(title, text.strip("\n"), expected.strip()))
    return cases


def load_invalid(path: Path) -> list[BadCase]:
    cases = []
    for title, body in _blocks(path):
        found = re.match(r"# error: (\d+):(\d+) (.+)\n", body)
        assert found, f"{path.name}: '{title}' has no '# error: line:column fragment'"
        fragments = tuple(found[3].split(" && "))
        text = body[found.end() :].strip("\n")
        cases.append(BadCase(title, text, int(found[1]), int(found[2]), fragments))
    return cases


def _blocks(path: Path) -> list[tuple[str, str]]:
    pieces = re.split(r"^# title: (.+)\n", path.read_text("utf-8"), flags=re.MULTILINE)
    assert not pieces[0].strip(), f"{path.name} begins without a title"
    blocks = list(zip(pieces[1::2], pieces[2::2], strict=True))
    assert len({title for title, _ in blocks}) == len(blocks), f"{path.name}: a title twice"
    return blocks


def compact(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return [list(pair) for pair in value.items()]
    if isinstance(value, tuple):
        return [compact(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    name = type(value).__name__
    if name == "QualifiedName":
        return ".".join(f"`{part}`" if "." in part else part for part in value.parts)
    if name == "SelectText":
        return f"{value.line}:{value.column} {value.text}"
    if name == "ColumnRef":
        return str(value)
    held = {
        field.name: compact(getattr(value, field.name))
        for field in dataclasses.fields(value)
        if getattr(value, field.name) != _default(field)
    }
    # the clauses beside the name and the SELECT, as they are written
    held |= held.pop("spec", {}).get("CacheSpec", {})
    return {name: held} if held else name


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def shown(statement: Any) -> str:
    return json.dumps(compact(statement), ensure_ascii=False)


def _complete() -> None:
    from cachemgr.ddl import parse

    for path in sorted(FIXTURES.glob("*.sql")):
        if path.stem.endswith("__invalid"):
            continue
        blocks = []
        for title, body in _blocks(path):
            text = body.partition("\n=>\n")[0].strip("\n")
            blocks.append(f"# title: {title}\n{text}\n=>\n{shown(parse(text))}\n")
        path.write_text("\n".join(blocks), "utf-8")


if __name__ == "__main__":
    _complete()
