"""The figures of README's first screen: the table in it and docs/ssb.svg, from a run of the demo.

    cachemgr demo --report build/ssb.html
    python -m bench.readme build/ssb-figures.json

The run's figures are kept as bench/demo.json. A test holds table and chart against them, so nobody
can change a number by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from pathlib import Path
from typing import Any

from cachemgr.demo.chart import Bars, bar_chart

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_name("demo.json")
README = ROOT / "README.md"
CHART = ROOT / "docs" / "ssb.svg"
# The demo alone has all cores at work.
_BUSY = 2
_PLACE = re.compile(r"(?<=<!-- bench.readme: begin -->\n).*?(?=<!-- bench.readme: end -->)", re.S)


def table(run: dict[str, Any]) -> str:
    """The table of a run in Markdown, with a line that says what was measured on what."""
    machine = run["machine"]
    rows = [
        f"| {q['query']} | {q['secondsWithout']:.2f} s | {q['secondsWith']:.2f} s "
        f"| {q['ratio']:.1f} x |"
        for q in run["queries"]
    ]
    queries = len(run["queries"])
    note = (
        f"Scale {run['scale']:g} ({round(6_000_000 * run['scale']):,} rows of `lineorder`), "
        f"{machine['cpus']} CPUs, {machine['memoryGiB']} GiB of memory, "
        f"Spark {run['settings']['Spark']} with a driver of "
        f"{run['settings']['spark.driver.memory'].upper()}B. Each figure is the median over five "
        f"sets of parameters{_unseen(run)}, both sides warm, taking turns in one session. "
        f"{run['hits']} of {queries} were answered from the cube, "
        f"{run['equal']} of {queries} with equal rows."
    )
    note += _load(machine)
    lines = [
        "| query | without | with | ratio |",
        "|---|--:|--:|--:|",
        *rows,
        f"| **geometric mean** | | | **{run['geometricMean']:.1f} x** |",
        "",
        textwrap.fill(note, 100, break_long_words=False, break_on_hyphens=False),
    ]
    return "\n".join(lines) + "\n"


def _unseen(run: dict[str, Any]) -> str:
    """Where the parameters come from; empty for runs of older releases, which repeated them."""
    seed = run.get("querySeed")
    return "" if seed is None else f" that the session had not seen before (seed {seed})"


def _load(machine: dict[str, Any]) -> str:
    """What else the machine did."""
    before = machine.get("loadBefore")
    if before is not None and before <= 1:
        return f" Nothing else ran (load {before:g} in the minute before)."
    if before is not None:
        busy = f"load {before:g} in the minute before"
    elif machine.get("load5min", 0) > _BUSY * machine["cpus"]:
        busy = f"load {machine['load5min']:.0f}"
    else:
        return ""
    return (
        f" The machine was busy with other work meanwhile ({busy}), which makes all seconds longer."
    )


def chart(run: dict[str, Any]) -> str:
    """The bar chart of a run as a file of its own."""
    bars = [Bars(q["query"], q["secondsWithout"], q["secondsWith"]) for q in run["queries"]]
    return bar_chart(bars, standalone=True) + "\n"


def with_table(readme: str, run: dict[str, Any]) -> str:
    """README's text with the table of a run in its place."""
    return _PLACE.sub(lambda _: table(run), readme, count=1)


def main() -> None:
    """Write the three files."""
    parser = argparse.ArgumentParser(prog="bench.readme", description=__doc__.splitlines()[0])
    parser.add_argument("figures", type=Path, nargs="?", default=KEPT, help="of a demo's run")
    run = json.loads(parser.parse_args().figures.read_text(encoding="utf-8"))
    if run["failures"]:
        raise SystemExit(f"this run failed: {run['failures'][0]}")
    KEPT.write_text(json.dumps(run, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    CHART.write_text(chart(run), encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8"), run), encoding="utf-8")


if __name__ == "__main__":
    main()
