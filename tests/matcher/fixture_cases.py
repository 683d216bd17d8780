"""Reads the text cases of `fixtures/`: what they look like is said in docs/offline-explain.md."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "fixtures"
_HEADER = re.compile(r"# ([a-z]+): ?(.*)")
_KNOWN = frozenset(
    {
        "title",
        "cache",
        "join",
        "conf",
        "schema",
        "data",
        "rule",
        "guard",
        "unguarded",
        "reason",
        "error",
        "message",
        "execute",
    }
)

# Why no check can be named without which a refused case returns wrong rows.
UNGUARDED = {
    "nothing stored": "there is no rule by which it could be derived, so no check stands between",
    "more than three": "so many checks refuse it, each for itself",
    "right anyway": "the check refuses with care what would return the same rows",
    "by Spark's order": "rows depend on the order in which Spark adds, which is the same in tests",
    "beyond a test's data": "it takes millions of rows, or data on which the query itself fails",
    "Spark refuses": "without the check Spark would not analyse what comes out",
    "no block": "that part of a query is in no block: it is not read",
    "asked for": "somebody said that the cache is not to answer",
}


@dataclass
class Case:
    """One case: its headers, its query, and the SQL that it should become."""

    file: Path
    title: str
    headers: dict[str, list[str]] = field(default_factory=dict)
    query: str = ""
    expected: str = ""

    @property
    def id(self) -> str:
        return f"{self.file.stem}: {self.title}"

    def all(self, name: str) -> list[str]:
        return self.headers.get(name, [])

    @property
    def rules(self) -> list[str]:
        return [r.strip() for text in self.all("rule") for r in text.split(",")]

    @property
    def reasons(self) -> list[str]:
        return [r.strip() for text in self.all("reason") for r in text.split(",")]

    @property
    def is_ordered(self) -> bool:
        """True if the query's own rows come in an order, not only those of a part of it."""
        return "ORDER BY" in re.split(r"\)", self.query)[-1].upper()

    @property
    def schema(self) -> str:
        shared = (FOLDER / "_schema.sql").read_text()
        return shared + "".join(f"\n{text};" for text in self.all("schema"))

    @property
    def conf(self) -> dict[str, str]:
        return dict(text.split("=", 1) for text in self.all("conf"))

    @property
    def caches(self) -> str:
        joins = [f"CREATE RECORD PRESERVING JOIN {text};" for text in self.all("join")]
        caches = []
        for text in self.all("cache"):
            name, select = text.split(" = ", 1)
            caches.append(f"CREATE RELATIONAL CACHE {name} AS {select};")
        return "\n".join(joins + caches)


def load(path: Path) -> list[Case]:
    """The cases of one file. Raises ValueError for one that is not as it should be."""
    cases: list[Case] = []
    invalid = path.stem.endswith("__invalid")
    blocks = re.split(r"\n\s*\n(?=# title:)", path.read_text().strip())
    for block in blocks:
        lines = block.split("\n")
        headers: dict[str, list[str]] = {}
        name = ""
        while lines and lines[0].startswith("#"):
            line = lines.pop(0)
            found = _HEADER.fullmatch(line)
            if found and found[1] in _KNOWN:
                name = found[1]
                headers.setdefault(name, []).append(found[2].strip())
            elif name and line.startswith("#   "):
                headers[name][-1] += " " + line[1:].strip()
            else:
                raise ValueError(f"{path.name}: {line!r} is no header")
        title = "".join(headers.get("title", []))
        case = Case(path, title, headers)
        body = "\n".join(lines).strip()
        if invalid:
            case.query = body.removesuffix(";")
        else:
            parts = [p.strip() for p in re.split(r";[ \t]*(?:\n|\Z)", body) if p.strip()]
            if len(parts) != 2:
                raise ValueError(
                    f"{case.id}: {len(parts)} statements, a query and its rewrite are needed"
                )
            case.query, case.expected = parts
        _check(case, invalid)
        cases.append(case)
    return cases


def _check(case: Case, invalid: bool) -> None:
    if not case.title:
        raise ValueError(f"{case.file.name}: a case has no title")
    wanted = ["error"] if invalid else ["rule", "reason"]
    if sum(bool(case.all(name)) for name in wanted) != 1:
        raise ValueError(f"{case.id}: give one of {' and '.join('# ' + w for w in wanted)}")
    if case.title.startswith("Noop -") and not case.reasons:
        raise ValueError(f"{case.id}: a Noop case needs a # reason")
    unguarded = case.all("unguarded")
    refused = case.title.startswith("Noop -")
    if refused and bool(case.all("guard")) == bool(unguarded):
        raise ValueError(f"{case.id}: name its # guard, or say why there is none: # unguarded")
    if not UNGUARDED.keys() >= set(unguarded):
        raise ValueError(f"{case.id}: # unguarded is one of {', '.join(UNGUARDED)}")


def load_all(invalid: bool = False) -> list[Case]:
    """All cases, of the files that end in `__invalid` or of the others."""
    files = sorted(FOLDER.glob("*.sql"))
    chosen = [f for f in files if not f.name.startswith("_")]
    cases = [c for f in chosen if f.stem.endswith("__invalid") == invalid for c in load(f)]
    titles = [c.id for c in cases]
    twice = {t for t in titles if titles.count(t) > 1}
    if twice:
        raise ValueError(f"titles used twice: {sorted(twice)}")
    return cases


def complete(path: Path, results: dict[str, str]) -> None:
    """Write `results` (case title → rewritten SQL, or the query itself) into a file's cases."""
    blocks = []
    for case, block in zip(
        load(path), re.split(r"\n\s*\n(?=# title:)", path.read_text().strip()), strict=True
    ):
        new = results.get(case.title, case.expected)
        head = "\n".join(line for line in block.split("\n") if line.startswith("#"))
        blocks.append(f"{head}\n{case.query};\n{new};")
    path.write_text("\n\n".join(blocks) + "\n")
