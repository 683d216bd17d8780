"""`python -m tests.harness.tpc [--plan | --session] [h] [ds] [ds05 …]`: write docs/tpc.md.

With `--plan` Spark plans the queries with the caches over empty tables; with `--session` it runs
them without and with the caches, and one whose rows differ or are none is an error.
"""

from __future__ import annotations

import sys

from tests.harness.tpc import report, suite


def main(arguments: list[str]) -> int:
    """Write the page; 1 if some query of a session went wrong."""
    names = [a for a in arguments if not a.startswith("--")] or list(suite.SUITES)
    session = []
    filled = "--session" in arguments
    if filled or "--plan" in arguments:
        from tests.harness.tpc.spark_suite import run_all

        for outcome in run_all(names, filled=filled):
            session.append(outcome)
            print(
                f"{outcome.name}  {outcome.seconds:5.1f} s  {outcome.rows:3} rows ",
                f"{outcome.blocks} served by",
                *outcome.caches or ("none",),
                "which spare",
                *outcome.spared or ("no table",),
                *outcome.differences,
                flush=True,
            )
    report.PAGE.write_text(report.page(session))
    return 0 if all(o.right for o in session) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
