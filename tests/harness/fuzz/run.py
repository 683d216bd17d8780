"""Generates pairs, decides them, and executes what is accepted: `make fuzz N=…` (docs/fuzz.md)."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.harness.fuzz import ledger
from tests.harness.fuzz.capabilities import TAGS
from tests.harness.fuzz.worlds import (
    Generated,
    Judge,
    Totals,
    compare_doors,
    generated,
    settle,
    try_actions,
)

_TOLD = ("hits", "local_hits", "prepared_hits")  # of queries in sessions


@dataclass
class Run:
    """The judge, the doors if they are compared, and what stops both."""

    judge: Judge
    doors: Any = None
    actions: Any = None
    stop: Any = lambda: None


def main() -> int:
    """Run the seeds given on the command line; 1 if any pair was wrong."""
    chosen = _arguments()
    totals, began, commit = Totals(), time.monotonic(), _commit()
    run = start(chosen.judge, chosen.doors, chosen.pairs if chosen.actions else 0)
    seeds = range(chosen.start, chosen.start + chosen.n)
    done = chosen.start
    with ExitStack() as stack:
        stack.callback(run.stop)
        pool = stack.enter_context(ThreadPoolExecutor(1))
        ahead: Future[Generated] = pool.submit(generated, seeds[0])
        for seed in seeds:
            if chosen.minutes and time.monotonic() - began > 60 * chosen.minutes:
                break
            made = ahead.result()
            if chosen.only:
                made = only(made, chosen.only)
            if seed + 1 in seeds:  # decided here while Spark executes the last one's
                ahead = pool.submit(generated, seed + 1)
            wrong, differs = len(totals.wrong), len(totals.differs)
            settle(made, run.judge, totals, chosen.oracle)
            if run.doors is not None:
                compare_doors(made, run.doors, totals, chosen.doors)
            if run.actions is not None and seed % chosen.actions == 0:
                try_actions(made, run.actions, totals)
                totals.numbers |= {told: run.actions.done[told] for told in _TOLD}
            done = seed + 1
            _tell(seed, totals.wrong[wrong:], totals.differs[differs:], chosen.out)
            sys.stdout.write(_progress(seed, totals, time.monotonic() - began) + "\n")
            sys.stdout.flush()
    entry = summary(totals, [chosen.start, done], chosen.judge, time.monotonic() - began, commit)
    sys.stdout.write(report(totals))
    if chosen.ledger and not totals.wrong:
        written = ledger.append(entry, totals.pairs)
        sys.stdout.write(f"ledger: {written['distinct']} distinct pairs more\n")
    return 1 if totals.wrong or totals.lost or totals.differs else 0


def only(made: Generated, item: str) -> Generated:
    """The pairs of a world that exercise one item; the others are not counted."""
    kept = [p for p in made.accepted if item in p.tags]
    return replace(made, accepted=kept, again=[], repeated=0, refused=[], invalid=[])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--n", type=int, default=100, help="worlds, a few hundred pairs each")
    parser.add_argument("--judge", choices=["spark", "duckdb"], default="spark")
    parser.add_argument("--minutes", type=float, default=0, help="stop after so many")
    parser.add_argument("--oracle", type=int, default=0, help="ask it of one refusal in so many")
    parser.add_argument(
        "--doors", type=int, default=0, help="compare both doors for one query in so many (Spark)"
    )
    parser.add_argument(
        "--actions",
        type=int,
        default=0,
        help="in one world in so many, some pairs in a session with the hook on (Spark)",
    )
    parser.add_argument("--pairs", type=int, default=3, help="so many of such a world")
    parser.add_argument("--only", choices=TAGS, help="execute just the pairs of one item")
    parser.add_argument("--ledger", action="store_true", help="write an entry")
    parser.add_argument("--out", type=Path, help="folder for what was wrong")
    return parser.parse_args()


def _tell(seed: int, wrong: list[str], differs: list[str], out: Path | None) -> None:
    for number, text in enumerate(wrong):
        sys.stdout.write(f"WRONG\n{text}\n\n")
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"seed{seed}_{number}.md").write_text(text + "\n")
    for text in differs:
        sys.stdout.write(f"DOORS DIFFER\n{text}\n\n")


def start(judge: str, doors: int, pairs: int = 0) -> Run:
    """The judge of that name; with Spark the doors, and a session for so many pairs of a world,
    where they are asked for."""
    if judge == "duckdb":
        from tests.harness.fuzz.duck_judge import DuckJudge

        return Run(DuckJudge())
    from tests.harness.fuzz.spark_judge import SparkJudge, start_spark

    spark = start_spark(delta=doors + pairs > 0)
    made = None
    if doors:
        from tests.harness.fuzz.doors import SparkDoors

        made = SparkDoors(spark)
    tried = None
    if pairs:
        from tests.harness.fuzz.actions import SparkActions

        tried = SparkActions(spark, pairs)
    return Run(SparkJudge(spark), made, tried, spark.stop)


def _progress(seed: int, totals: Totals, seconds: float) -> str:
    n = totals.numbers
    return (
        f"seed {seed}: {n['generated']} generated, {n['accepted']} accepted, "
        f"{n['executed']} executed, {n['skipped']} skipped, {n['templates']} by remembered shapes, "
        f"{n['doors']} by both doors, {n['actions equal']} hits and "
        f"{n['actions missed']} misses by actions, {n['hits']} hits with other constants, "
        f"{n['local_hits']} of them computed here, {n['prepared_hits']} by kept decisions; "
        f"{len(totals.wrong)} wrong, {len(totals.lost)} lost, "
        f"{len(totals.differs)} differ, {seconds:.0f} s"
    )


def summary(
    totals: Totals, seeds: list[int], judge: str, seconds: float, commit: str
) -> dict[str, Any]:
    """The ledger entry of a run, but for what the ledger counts itself."""
    n = totals.numbers
    names = ("generated", "accepted", "executed", "skipped", "templates", "doors")
    return {
        **{name: n[name] for name in names},
        "commit": commit, "date": datetime.now(UTC).strftime("%Y-%m-%d"), "seeds": seeds,
        "judge": judge, "wrong": len(totals.wrong), "seconds": int(seconds), "found": [],
        "oracle": {tag: dict(c) for tag, c in sorted(totals.oracle.items())},
    }  # fmt: skip


def _commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()


def report(totals: Totals) -> str:
    """What people want to know after a run."""
    lines = ["refused for: " + ", ".join(f"{k} {v}" for k, v in totals.reasons.most_common(40))]
    lines += [f"invalid {n} times: {text}" for text, n in totals.invalid.most_common(8)]
    lines += [f"skipped {n} times: {text}" for text, n in totals.skipped.most_common(8)]
    lines += [f"the doors differ as listed {n} times: {t}" for t, n in totals.listed.most_common()]
    lines += [f"LOST by the index\n{text}" for text in totals.lost[:10]]
    if totals.numbers["oracle_asked"]:
        matched, missed = totals.numbers["oracle_matched"], totals.numbers["oracle_missed"]
        share = 100 * matched / max(1, matched + missed)
        lines.append(f"oracle: of what could hit {share:.1f} % does ({matched} and {missed} not)")
        for tag, c in sorted(totals.oracle.items()):
            part = 100 * c["matched"] / max(1, c["matched"] + c["missed"])
            lines.append(f"  {tag:36}{part:6.1f} %  {c['matched']} hit, {c['missed']} not")
        codes = Counter(m.code for m in totals.missed)
        for code, number in codes.most_common():
            lines.append(f"missed with {code}: {number}")
            for miss in [m for m in totals.missed if m.code == code][:4]:
                lines.append(f"    {miss.reason}\n    Q {miss.query}\n    C {miss.cache}"
                             f"\n    R {miss.rewrite}")  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
