"""Moves modules, and mends whatever names them: imports, dotted names, paths.

    python .ci/moves/move_modules.py .ci/moves/house.txt [PACKAGE …]

The file lists `old new` pairs of dotted module names (or, with a slash in them, of paths), in a
section for each package: `[package] docstring of the package`. Without PACKAGE all sections are
replayed, so that a branch which began before the moves can be brought behind them: replay, commit,
rebase. What is moved already, or never was there, is passed over.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_TEXT = {".py", ".md", ".toml", ".txt", ".yml", ".java", ".sql", ".json", ""}


def main(listing: str, *wanted: str) -> None:
    """Replay the sections that are asked for, in their order."""
    for package, (docstring, pairs) in _sections(Path(listing)).items():
        if wanted and package not in wanted:
            continue
        moved = {old: new for old, new in pairs.items() if _moves(old, new)}
        if "/" not in package:
            _make_packages(package, docstring)
        _mend(pairs)
        print(f"{package}: {len(moved)} of {len(pairs)} moved")
    _run(".venv/bin/ruff", "check", "--quiet", "--select", "I", "--fix", ".")
    _run(".venv/bin/ruff", "format", "--quiet", ".")


def _sections(listing: Path) -> dict[str, tuple[str, dict[str, str]]]:
    found: dict[str, tuple[str, dict[str, str]]] = {}
    pairs: dict[str, str] = {}
    for line in listing.read_text().splitlines():
        if line.startswith("["):
            package, _, docstring = line[1:].partition("] ")
            pairs = {}
            found[package.rstrip("]")] = (docstring, pairs)
        elif line.strip() and not line.startswith("#"):
            old, new = line.split()
            pairs[old] = new
    return found


def _path(name: str) -> Path:
    """Where a module, a package or a file lies."""
    if "/" in name:
        return Path(name)
    plain = Path(name.replace(".", "/"))
    return (
        plain if plain.is_dir() and not plain.with_suffix(".py").exists() else Path(f"{plain}.py")
    )


def _moves(old: str, new: str) -> bool:
    source = _path(old)
    if not source.exists():
        return False
    is_folder = source.is_dir()
    target = Path(new) if "/" in new else Path(new.replace(".", "/") + ("" if is_folder else ".py"))
    if target.exists():
        return False
    # a module may become a package of its own name
    target.parent.mkdir(parents=True, exist_ok=True)
    _run("git", "mv", str(source), str(target))
    return True


def _make_packages(package: str, docstring: str) -> None:
    folder = Path(package.replace(".", "/"))
    init = folder / "__init__.py"
    if docstring and not init.exists():
        init.write_text(f'"""{docstring}"""\n')
        _run("git", "add", str(init))


def _mend(pairs: Mapping[str, str]) -> None:
    modules = {old: new for old, new in pairs.items() if "/" not in old}
    paths = {old: new for old, new in pairs.items() if "/" in old}
    for old, new in modules.items():
        paths[old.replace(".", "/") + ".py"] = new.replace(".", "/") + ".py"
    dotted = _dotted(modules)
    plain = re.compile(
        r"(?<![\w/])(?:" + "|".join(map(re.escape, _longest_first(paths))) + r")(?!\w)"
    )
    for path in _tracked():
        text = before = path.read_text()
        if path.suffix == ".py":
            text = _imports_mended(text, modules)
        text = dotted.sub(lambda match: modules[match[0]], text) if modules else text
        text = plain.sub(lambda match: paths[match[0]], text)
        if text != before:
            path.write_text(text)


def _dotted(modules: Mapping[str, str]) -> re.Pattern[str]:
    """A module's name, not as a part of a longer one, nor as the package that it became."""
    options = []
    for old in _longest_first(modules):
        inside = [new[len(old) + 1 :] for new in modules.values() if new.startswith(f"{old}.")]
        kept = rf"(?!\.(?:{'|'.join(map(re.escape, inside))})\b)" if inside else ""
        options.append(rf"{re.escape(old)}(?!\w){kept}")
    return re.compile(r"(?<![\w.])(?:" + "|".join(options) + ")")


def _imports_mended(text: str, modules: Mapping[str, str]) -> str:
    """`from package import module` of a module that moved."""
    lines = text.splitlines(keepends=True)
    for node in reversed([n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.ImportFrom)]):
        went = [a for a in node.names if f"{node.module}.{a.name}" in modules]
        if not went:
            continue
        indent = " " * node.col_offset
        made = []
        for alias in went:
            package, _, name = modules[f"{node.module}.{alias.name}"].rpartition(".")
            local = alias.asname or alias.name
            made.append(
                f"{indent}from {package} import {name}{'' if name == local else f' as {local}'}\n"
            )
        rest = [a for a in node.names if a not in went]
        if rest:
            names = ", ".join(a.name + (f" as {a.asname}" if a.asname else "") for a in rest)
            made.append(f"{indent}from {node.module} import {names}\n")
        last = lines[(node.end_lineno or node.lineno) - 1].rstrip("\n")
        comment = last[node.end_col_offset or len(last) :]
        made = [f"{line.rstrip()}{comment}\n" for line in made]
        lines[node.lineno - 1 : node.end_lineno] = made
    return "".join(lines)


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout
    here = Path(__file__).resolve().parent
    paths = [Path(line) for line in listed.splitlines()]
    return [
        p
        for p in paths
        if p.is_file()
        and p.suffix in _TEXT
        and here not in p.resolve().parents
        and p.name != "CHANGELOG.md"
    ]


def _longest_first(names: Mapping[str, str]) -> list[str]:
    return sorted(names, key=len, reverse=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
