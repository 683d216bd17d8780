"""`python -m tests.tpc [--plan | --session] [h] [ds]`: write docs/tpc.md.

With `--plan` Spark plans the queries with the caches over empty tables; with `--session` it runs
them without and with the caches, and one whose rows differ or are none is an error.
"""

from __future__ import annotations

import sys

from tests.tpc import report, suite


def main(arguments: list[str]) -> int:
    """Write the page; 1 if some query of a session went wrong."""
    names = [a for a in arguments if a in suite.SUITES] or list(suite.SUITES)
    session: dict[str, tuple[str, ...]] = {}
    wrong = 0
    filled = "--session" in arguments
    if filled or "--plan" in arguments:
        from tests.tpc.spark_suite import run_all

        for outcome in run_all(names, filled=filled):
            session[outcome.name] = outcome.caches
            bad = outcome.differences or (filled and outcome.caches and not outcome.rows)
            wrong += bool(bad)
            print(
                outcome.name,
                outcome.rows,
                "rows",
                *outcome.caches,
                *outcome.differences,
                flush=True,
            )
    report.PAGE.write_text(report.page(session))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
