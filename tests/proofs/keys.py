"""The hash of all that a proof stands on: change any of it, and the case is executed again.

That is the judge's input, the sources of the judge (its module and all of ours that it imports),
and what is installed: Spark, Delta, the JDK, Python. A judge gets nothing but the input that was
hashed, so nothing else can make a difference.
"""

from __future__ import annotations

import ast
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.proofs.digests import digest

Judge = Callable[[Any, Any], str]
ROOT = Path(__file__).parents[2]
# Every proof's: the session in which it is executed.
SESSION = "tests.spark_session"
# Imported by a judge's modules, but nothing of it runs in a judge: what starts processes, and the
# metastore as a whole, of which a table's reference is one record.
_ASIDE = frozenset({"tests.processes", "cachemgr.metastore"})
_PACKAGES = ("tests", "cachemgr", "matcher", "scheduler", "migrations")
# What a module loads that is no module.
_DATA = {"cachemgr.jvm.loader": ("java/*.java", "shims/*/*.java")}


def key(judge: Judge, inputs: Any) -> str:
    """The hash under which the judge's verdict on these inputs is kept.

    Args:
        judge: A module's function.
        inputs: Plain data, all that the judge is given of the case.
    """
    return digest(
        _text([environment(), judge_sources(judge.__module__), judge.__qualname__, inputs])
    )


def _text(parts: Any) -> str:
    return json.dumps(parts, sort_keys=True, ensure_ascii=False)


@cache
def judge_sources(module: str) -> str:
    """A digest of the sources of a judge's module."""
    return digest(_text(sources(module, SESSION)))


@cache
def environment() -> Mapping[str, str]:
    """What is installed, as far as rows and plans depend on it."""
    from pyspark.find_spark_home import _find_spark_home

    home = Path(_find_spark_home())
    return {
        "spark": " ".join(sorted(jar.name for jar in (home / "jars").glob("*.jar"))),
        "pyspark": version("pyspark"),
        "delta": version("delta-spark"),
        "jdk": _jdk(),
        "python": ".".join(map(str, sys.version_info[:2])),
        "machine": platform.machine(),
        # moments come to Python as local ones
        "zone": " ".join(time.tzname),
    }


def _jdk() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "([^"]*)"', said)
    return found[1] if found else said


def sources(*modules: str, root: Path = ROOT) -> dict[str, str]:
    """The files of modules, and of all of ours that they import: path to digest.

    Args:
        modules: Their names.
        root: Where the packages are.
    """
    found: dict[str, str] = {}
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = None if name in seen or name in _ASIDE else _file(name, root)
        seen.add(name)
        if path is None:
            continue
        more = sorted(f for pattern in _DATA.get(name, ()) for f in path.parent.glob(pattern))
        for each in (path, *more):
            found[str(each.relative_to(root))] = digest(each.read_text("utf-8"))
        parts = name.split(".")
        waiting += [".".join(parts[:end]) for end in range(1, len(parts))]
        # packages import lazily what their modules do not need
        waiting += _imported(path, lazily=path.name != "__init__.py")
    return found


def _file(module: str, root: Path) -> Path | None:
    place = root.joinpath(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next((file for file in files if file.exists()), None)


def _imported(path: Path, lazily: bool) -> Iterator[str]:
    for node in _nodes(ast.parse(path.read_text("utf-8")), lazily):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in _PACKAGES)


def _nodes(tree: ast.AST, lazily: bool) -> Iterator[ast.AST]:
    """All nodes but those for the type checker, and on demand those inside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if not lazily and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        yield node
        yield from _nodes(node, lazily)
