"""`python -m tests.mutants.accept`: what each `Noop -` case would become without a guard, as JSON.

A process of its own, because guards are compiled in before the matcher is imported. A case that
names its guard (`# guard: module.function`) is tried without the guards of that function, one at a
time; with `--all` each case is tried without each guard that refuses in it.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from tests.mutants.instrument import STATE, install, place

FOUND = install()

from cachemgr import offline  # noqa: E402
from tests.matcher.fixture_cases import Case, load_all  # noqa: E402
from tests.mutants.run import forget, limited, stop  # noqa: E402


def _explain(case: Case) -> dict[str, Any] | None:
    forget()
    try:
        with limited():
            return offline.explain(case.schema, case.caches, case.query, case.conf)
    except Exception:  # a guard that keeps the matcher from failing
        return None


def accepted(case: Case, everything: bool) -> list[dict[str, Any]]:
    """The rewrites that a guard keeps the case from."""
    STATE.refused.clear()
    _explain(case)
    found = []
    for mutant in [FOUND[number] for number in sorted(STATE.refused)]:
        if not everything and place(mutant) not in case.all("guard"):
            continue
        STATE.off = mutant.number
        result = _explain(case)
        STATE.off = -1
        if result is not None and result["hit"]:
            found.append(
                {
                    "case": case.id,
                    "guard": place(mutant),
                    "name": mutant.name,
                    "sql": result["rewritten_sql"],
                    "stored": result["stored"],
                }
            )
    return found


def main() -> None:
    """Print the list."""
    signal.signal(signal.SIGALRM, stop)
    everything = "--all" in sys.argv
    files = [a for a in sys.argv[1:] if not a.startswith("-")]
    cases = [c for c in load_all() if c.reasons and (not files or c.file.stem in files)]
    wanted = [c for c in cases if everything or c.all("guard")]
    print(json.dumps([row for case in wanted for row in accepted(case, everything)]))


if __name__ == "__main__":
    main()
