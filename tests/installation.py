"""Commands in a Python that lacks packages of this one: `python -m tests.installation`.

What is hidden is neither found by an import nor known to `importlib.metadata`, as if pip had never
installed it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Those that bring packages of their own to whoever uses a release.
EXTRAS = {e: r for e, r in PROJECT["optional-dependencies"].items() if e not in ("all", "dev")}


@dataclass(frozen=True)
class Done:
    """What a command did.

    Args:
        code: Its exit code.
        stdout: What it printed.
        stderr: What it said.
        trace: Of an exception that a command let through; else empty.
    """

    code: int
    stdout: str
    stderr: str
    trace: str


def installed_by(requirements: Iterable[str]) -> frozenset[str]:
    """The distributions that pip installs for requirements, by their canonical names."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found: set[tuple[str, str]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        for extra in {"", *wanted.extras}:
            if (name, extra) in found:
                continue
            found.add((name, extra))
            try:
                more = [Requirement(text) for text in metadata.requires(name) or ()]
            except metadata.PackageNotFoundError:  # of another platform
                continue
            waiting += [r for r in more if r.marker is None or r.marker.evaluate({"extra": extra})]
    return frozenset(name for name, _ in found)


@cache
def modules_of() -> Mapping[str, frozenset[str]]:
    """The top-level modules of each distribution that is installed here, by its canonical name."""
    from packaging.utils import canonicalize_name

    found: dict[str, set[str]] = {}
    for module, names in metadata.packages_distributions().items():
        if module.startswith("__"):  # of pyarrow's wheel: no module of a program
            continue
        for name in names:
            found.setdefault(canonicalize_name(name), set()).add(module)
    return {name: frozenset(modules) for name, modules in found.items()}


def run_with(
    extras: Sequence[str], commands: Sequence[Sequence[str] | str], folder: Path
) -> list[Done]:
    """Run commands in one new Python with the base and these extras, and nothing of `dev`.

    Args:
        extras: The extras that are installed.
        commands: The words after `cachemgr`; or Python code, whose error goes to `stderr`.
        folder: Where they run.
    """
    wanted = [*PROJECT["dependencies"], *(r for extra in extras for r in EXTRAS[extra])]
    kept = installed_by(wanted) | {PROJECT["name"]}
    staying = {m for name in kept for m in modules_of().get(name, ())}
    hidden = {m for modules in modules_of().values() for m in modules} - staying
    asked = {"kept": sorted(kept), "hidden": sorted(hidden), "commands": commands}
    env = {k: v for k, v in os.environ.items() if not k.startswith("CACHEMGR_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.installation"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**env, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", "COLUMNS": "200"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [Done(**found) for found in json.loads(done.stdout)]


class _Installed(PathFinder):
    """Finds what is not hidden."""

    kept: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in cls.hidden:
            return None
        return super().find_spec(fullname, path, target)

    @classmethod
    def find_distributions(cls, context: Any = None) -> Iterator[metadata.Distribution]:
        for found in super().find_distributions(context or metadata.DistributionFinder.Context()):
            if found.name.lower().replace("_", "-").replace(".", "-") in cls.kept:
                yield found


def _run(command: list[str] | str) -> Done:
    if isinstance(command, str):
        try:
            exec(command, {})
        except Exception as error:
            return Done(1, "", str(error), "")
        return Done(0, "", "", "")
    from typer.testing import CliRunner

    from cachemgr.cli import main

    done = CliRunner().invoke(main, command)
    wild = done.exc_info if isinstance(done.exception, Exception) else None
    trace = "".join(traceback.format_exception(*wild)) if wild else ""
    return Done(done.exit_code, done.stdout, done.stderr, trace)


def _main() -> None:
    asked = json.load(sys.stdin)
    _Installed.kept, _Installed.hidden = frozenset(asked["kept"]), frozenset(asked["hidden"])
    sys.meta_path[sys.meta_path.index(PathFinder)] = _Installed
    json.dump([vars(_run(command)) for command in asked["commands"]], sys.stdout)


if __name__ == "__main__":
    _main()
