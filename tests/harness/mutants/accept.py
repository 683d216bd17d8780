"""What each `Noop -` case would become without a guard, as JSON.

`python -m tests.harness.mutants.accept` prints it.

A process of its own, because guards are compiled in before the matcher is imported. A case that
names its guard (`# guard: module.function`, or two of them with a plus where each refuses) is tried
without the checks of that function, one at a time. With `--all` each case is tried without each
guard that refuses in it, and where that changes nothing without each two of them.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from tests.harness.mutants.instrument import STATE, install, place

FOUND = install()

from cachemgr.text import offline  # noqa: E402
from tests.harness.mutants.run import forget, limited, stop  # noqa: E402
from tests.matcher.fixture_cases import Case, load_all  # noqa: E402

Off = tuple[int, ...]  # in the order in which they were found to refuse


def _explain(case: Case, off: Off) -> dict[str, Any] | None:
    forget()
    STATE.off = frozenset(off)
    STATE.refused.clear()
    try:
        with limited():
            return offline.explain(case.schema, case.caches, case.query, case.conf)
    except Exception:  # a guard that keeps the matcher from failing
        return None
    finally:
        STATE.off = frozenset()


def _one_more(case: Case, off: Off, wanted: str = "") -> list[Off]:
    """`off` and one more of the guards that refuse without it, of the place that is wanted."""
    _explain(case, off)
    more = sorted(STATE.refused.difference(off))
    return [(*off, n) for n in more if not wanted or place(FOUND[n]) == wanted]


def _rewrites(case: Case, guard: str, tried: list[Off]) -> list[dict[str, Any]]:
    found = []
    for off in {frozenset(off): off for off in tried}.values():
        result = _explain(case, off)
        if result is not None and result["hit"]:
            row = {"case": case.id, "guard": guard or " + ".join(place(FOUND[n]) for n in off)}
            row["off"] = [FOUND[n].name for n in off]
            found.append({**row, "sql": result["rewrittenSql"], "stored": result["stored"]})
    return found


def named(case: Case) -> list[dict[str, Any]]:
    """The rewrites that the guards which the case names keep it from."""
    found = []
    for guard in case.all("guard"):
        tried: list[Off] = [()]
        for part in guard.split(" + "):
            tried = [more for off in tried for more in _one_more(case, off, part)]
        found += _rewrites(case, guard, tried)
    return found


def any_guard(case: Case) -> list[dict[str, Any]]:
    """The rewrites that one guard keeps the case from, or else two."""
    single = _one_more(case, ())
    found = _rewrites(case, "", single)
    return found or _rewrites(case, "", [two for one in single for two in _one_more(case, one)])


def main() -> None:
    """Print the list."""
    signal.signal(signal.SIGALRM, stop)
    files = [a for a in sys.argv[1:] if not a.startswith("-")]
    cases = [c for c in load_all() if c.reasons and (not files or c.file.stem in files)]
    look = any_guard if "--all" in sys.argv else named
    print(json.dumps([row for case in cases for row in look(case)]))


if __name__ == "__main__":
    main()
