"""`python -m tests.tpc [--session] [h] [ds]`: write docs/tpc.md; with `--session` the queries run
in Spark without and with the caches, and one whose rows differ or are none is an error."""

from __future__ import annotations

import sys

from tests.tpc import report, suite


def main(arguments: list[str]) -> int:
    """Write the page; 1 if some query of a session went wrong."""
    names = [a for a in arguments if a in suite.SUITES] or list(suite.SUITES)
    session: dict[str, tuple[str, ...]] = {}
    wrong = 0
    if "--session" in arguments:
        from tests.tpc.spark_suite import run_all

        for outcome in run_all(names):
            session[outcome.name] = outcome.caches
            bad = outcome.differences or (outcome.caches and not outcome.rows)
            wrong += bool(bad)
            print(outcome.name, outcome.rows, "rows", *outcome.caches, *outcome.differences)
    report.PAGE.write_text(report.page(session))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
