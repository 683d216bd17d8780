"""Run the benchmarks and print the table; all of them write bench/results.json and the plot too."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import match_latency, registry_changes, spark_overhead, start_up
from bench.plot import latency_plot
from bench.results import table, write


def main() -> None:
    """Exit status is 0 whatever the figures: a noisy machine must not fail a build, the table says
    what was missed."""
    modules = {
        "match": match_latency,
        "registry": registry_changes,
        "start-up": start_up,
        "spark": spark_overhead,
    }
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", choices=modules, help="run this part, and write nothing")
    only = parser.parse_args().only
    chosen = modules.values() if only is None else [modules[only]]
    figures = [figure for module in chosen for figure in module.run()]
    print(table(figures))
    if only is not None:
        return
    here = Path(__file__).parent
    write(figures, here / "results.json")
    (here.parent / "docs" / "match_latency.svg").write_text(latency_plot(figures))


if __name__ == "__main__":
    main()
