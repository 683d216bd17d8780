"""Run the benchmarks and print a table of each; all of them write bench/results.json and the plot
too."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from bench import (
    change_sizes,
    concurrency,
    fresh_hits,
    hit_stages,
    incremental_cost,
    match_latency,
    memories,
    preview,
    pruning,
    refresh_cost,
    registry_changes,
    scheduler_look,
    server_doors,
    spark_overhead,
    start_up,
    statements,
    thrift_results,
)
from bench.plot import latency_plot
from bench.results import Figure, table, write
from bench.ssb import SCALE

_PARTS: dict[str, Callable[[float], list[Figure]]] = {
    "match": lambda scale: match_latency.run(),
    "memories": lambda scale: memories.run(),
    "registry": lambda scale: registry_changes.run(),
    "scheduler": lambda scale: scheduler_look.run(),
    "start-up": lambda scale: start_up.run(),
    "spark": lambda scale: spark_overhead.run(),
    "hit-stages": hit_stages.run,
    "concurrency": concurrency.run,
    "refresh": refresh_cost.run,
    "incremental": incremental_cost.run,
    "fresh-hits": fresh_hits.run,
    "server-doors": server_doors.run,
}
# They take long: only where they are asked for.
_APART: dict[str, Callable[[float], list[Figure]]] = {
    "change-sizes": change_sizes.run,
    "preview": lambda scale: preview.run(),
    "pruning": lambda scale: pruning.run(),
    "statements": statements.run,
    "thrift-results": thrift_results.run,
}


def main() -> None:
    """Exit status is 0 whatever the figures: a noisy machine must not fail a build, the table says
    what was missed."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "--only", choices=[*_PARTS, *_APART], help="run this part, and write no results"
    )
    parser.add_argument(
        "--scale",
        type=float,
        default=SCALE,
        help=f"SSB scale factor of what takes a scale ({SCALE:g})",
    )
    asked = parser.parse_args()
    chosen = _PARTS.values() if asked.only is None else [(_PARTS | _APART)[asked.only]]
    figures: list[Figure] = []
    for part in chosen:
        found = part(asked.scale)
        print(table(found), flush=True)
        figures += found
    if asked.only is not None:
        return
    here = Path(__file__).parent
    write(figures, here / "results.json")
    (here.parent / "docs" / "match_latency.svg").write_text(latency_plot(figures))


if __name__ == "__main__":
    main()
