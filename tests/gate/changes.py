"""What has changed since a commit: functions of Python modules, and other files."""

from __future__ import annotations

from functools import cache
from typing import Final

from tests.gate.functions import REST, functions
from tests.gate.history import History

# with another one of these, any test may have another outcome
ALL: Final = ("pyproject.toml", "constraints.txt", "tests/conftest.py", "tests/spark_session.py")


def changes_since(history: History, commit: str) -> frozenset[str] | None:
    """The names of what differs from a commit: `path:function` of Python modules, `path:` for the
    rest of a module and for all of one that cannot be read, and the paths of other files.

    Args:
        history: The checkout's.
        commit: The commit to compare with.

    Returns:
        None if the commit is not known here.
    """
    paths = history.changed_paths(commit)
    if paths is None:
        return None
    modules = [path for path in paths if path.endswith(".py")]
    before = history.texts_at(commit, modules)
    changed = {path for path in paths if not path.endswith(".py")}
    for path in modules:
        file = history.root / path
        now = file.read_text(errors="replace") if file.is_file() else ""
        changed |= {f"{path}:{name}" for name in _different(before.get(path, ""), now)}
    return frozenset(changed)


def _different(before: str, now: str) -> set[str]:
    """The names of functions that are not the same, or not in both."""
    try:
        old, new = _digests(before), _digests(now)
    except SyntaxError:
        return {REST}
    return {name for name, _ in old ^ new}


@cache
def _digests(source: str) -> frozenset[tuple[str, str]]:
    return frozenset((each.name, each.digest) for each in functions(source))
