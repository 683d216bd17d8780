"""Run all benchmarks, print the table and write bench/results.json."""

from __future__ import annotations

from pathlib import Path

from bench import match_latency, registry_changes, spark_overhead, start_up
from bench.plot import latency_plot
from bench.results import table, write


def main() -> None:
    """Exit status is 0 whatever the figures: a noisy machine must not fail a build, the table says
    what was missed."""
    modules = (match_latency, registry_changes, start_up, spark_overhead)
    figures = [figure for module in modules for figure in module.run()]
    here = Path(__file__).parent
    write(figures, here / "results.json")
    (here.parent / "docs" / "match_latency.svg").write_text(latency_plot(figures))
    print(table(figures))


if __name__ == "__main__":
    main()
