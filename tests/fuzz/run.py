"""Generates pairs, decides them, and executes what is accepted: `make fuzz N=…` (docs/fuzz.md)."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.fuzz import ledger
from tests.fuzz.decide import (
    Accepted,
    Invalid,
    Prepared,
    Refusal,
    decide,
    decide_as_a_session,
    prepare_cache,
    together,
)
from tests.fuzz.oracle import Missed, could_hit
from tests.fuzz.queries import query, relit
from tests.fuzz.shrink import shrink
from tests.fuzz.spark_judge import Verdict
from tests.fuzz.world import World, world

CACHES = 10
QUERIES = 20


class Judge(Protocol):
    """Executes accepted pairs over a world's tables."""

    def load(self, world: World) -> None: ...

    def judge(self, world: World, accepted: list[Accepted]) -> list[Verdict]: ...


@dataclass
class Totals:
    """What a run has counted so far."""

    numbers: Counter[str] = field(default_factory=Counter)
    pairs: list[ledger.Pair] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    invalid: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    missed: list[Missed] = field(default_factory=list)
    oracle: dict[str, Counter[str]] = field(default_factory=dict)


def generate(made: World, caches: int, queries: int) -> Iterator[Accepted | Refusal | Invalid]:
    """The pairs of one world, decided."""
    rng = Random(f"pairs {made.seed}")
    for number in range(caches):
        pair = prepare_cache(rng, made, f"c{number}")
        if pair is None:
            continue
        for _ in range(queries):
            yield decide(pair, query(rng, made, pair.cache))


def run_world(
    seed: int, judge: Judge, totals: Totals, caches: int = CACHES, queries: int = QUERIES,
    oracle: int = 0,
) -> None:  # fmt: skip
    """Generate, decide and execute the pairs of one seed."""
    made = world(seed)
    accepted: list[Accepted] = []
    refused: list[Refusal] = []
    for found in generate(made, caches, queries):
        totals.numbers["generated"] += 1
        if isinstance(found, Accepted):
            accepted.append(found)
        elif isinstance(found, Refusal):
            refused.append(found)
            totals.reasons.update({code for code, _ in found.reasons})
        else:
            totals.invalid[found.message[:80]] += 1
    judge.load(made)
    filled = list(_templates(made, accepted, refused, totals))
    verdicts = judge.judge(made, accepted + filled)
    totals.numbers["accepted"] += len(accepted)
    for number, (pair, verdict) in enumerate(zip(accepted + filled, verdicts, strict=True)):
        own = number < len(accepted)
        if verdict.outcome == "skipped":
            totals.skipped[verdict.detail[:100]] += 1
        if not own:
            totals.numbers["templates"] += verdict.outcome == "equal"
        else:
            name = "skipped" if verdict.outcome == "skipped" else "executed"
            totals.numbers[name] += 1
        if verdict.outcome == "equal" and own:
            totals.pairs.append(ledger.Pair(pair.shape, pair.tags, pair.compensations))
        elif verdict.outcome == "wrong":
            totals.wrong.append(_wrong(made, judge, pair, verdict, own))
    if oracle:
        _ask_oracle(made, accepted, refused, totals, oracle)


def _templates(
    made: World, accepted: list[Accepted], refused: list[Refusal], totals: Totals
) -> Iterator[Accepted]:
    """The same queries and their next literals, decided as a session does over all caches."""
    pairs = {p.cache.cache.name: p.cache for p in [*accepted, *refused]}
    if not pairs:
        return
    workspace = together(made, list(pairs.values()))
    rng = Random(f"literals {made.seed}")
    for pair in accepted:
        found = decide_as_a_session(workspace, pairs, pair.spec)
        if not isinstance(found, Accepted):
            totals.lost.append(f"seed {made.seed}\n{pair.cache.cache.statement}\n{pair.query}")
        again = relit(rng, made, pair.spec)
        if again != pair.spec:
            next_one = decide_as_a_session(workspace, pairs, again)
            if isinstance(next_one, Accepted):
                yield next_one


def _wrong(made: World, judge: Judge, pair: Accepted, verdict: Verdict, own: bool) -> str:
    small, told = (shrink(made, judge, pair), "") if own else (pair, " (by a remembered shape)")
    detail = judge.judge(made, [small])[0].detail if own else verdict.detail
    used = "\n".join(
        f"-- {t.name}: {t.rows}" for t in made.tables.values() if t.name in small.query
    )
    return (
        f"-- seed {made.seed}{told}\n{made.ddl}\n{made.joins}{small.cache.cache.statement}\n"
        f"-- query\n{small.query};\n-- rewritten\n{small.rewritten};\n"
        f"-- conf {made.conf}\n{used}\n-- {detail or verdict.detail}"
    )


def _ask_oracle(
    made: World, accepted: list[Accepted], refused: list[Refusal], totals: Totals, share: int
) -> None:
    """Which refused pairs could have hit; one in `share` is asked, and counted `share` times."""
    for pair in accepted:
        for tag in pair.tags:
            totals.oracle.setdefault(tag, Counter())["matched"] += 1
        totals.numbers["oracle_matched"] += 1
    rng = Random(f"oracle {made.seed}")
    for refusal in refused:
        if rng.random() * share >= 1:
            continue
        totals.numbers["oracle_asked"] += 1
        missed = could_hit(made, refusal)
        if missed is not None:
            totals.missed.append(missed)
            totals.numbers["oracle_missed"] += share
            for tag in missed.tags:
                totals.oracle.setdefault(tag, Counter())["missed"] += share


def main() -> int:
    """Run the seeds given on the command line; 1 if any pair was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--n", type=int, default=100, help="worlds, a few hundred pairs each")
    parser.add_argument("--judge", choices=["spark", "duckdb"], default="spark")
    parser.add_argument("--minutes", type=float, default=0, help="stop after so many")
    parser.add_argument("--oracle", type=int, default=0, help="ask it of one refusal in so many")
    parser.add_argument("--ledger", action="store_true", help="write an entry")
    parser.add_argument("--out", type=Path, help="folder for what was wrong")
    chosen = parser.parse_args()
    totals, began, commit = Totals(), time.monotonic(), _commit()
    judge, stop = make_judge(chosen.judge)
    done = chosen.start
    try:
        for seed in range(chosen.start, chosen.start + chosen.n):
            if chosen.minutes and time.monotonic() - began > 60 * chosen.minutes:
                break
            before = len(totals.wrong)
            run_world(seed, judge, totals, oracle=chosen.oracle)
            done = seed + 1
            for number, text in enumerate(totals.wrong[before:]):
                sys.stdout.write(f"WRONG\n{text}\n\n")
                if chosen.out is not None:
                    chosen.out.mkdir(parents=True, exist_ok=True)
                    (chosen.out / f"seed{seed}_{number}.md").write_text(text + "\n")
            sys.stdout.write(_progress(seed, totals, time.monotonic() - began) + "\n")
            sys.stdout.flush()
    finally:
        stop()
    entry = summary(totals, [chosen.start, done], chosen.judge, time.monotonic() - began, commit)
    sys.stdout.write(report(totals))
    if chosen.ledger and not totals.wrong:
        written = ledger.append(entry, totals.pairs)
        sys.stdout.write(f"ledger: {written['distinct']} distinct pairs more\n")
    return 1 if totals.wrong or totals.lost else 0


def make_judge(name: str) -> tuple[Judge, Any]:
    """The judge of that name and what stops it."""
    if name == "duckdb":
        from tests.fuzz.duck_judge import DuckJudge

        return DuckJudge(), lambda: None
    from tests.fuzz.spark_judge import SparkJudge, start_spark

    spark = start_spark()
    return SparkJudge(spark), spark.stop


def _progress(seed: int, totals: Totals, seconds: float) -> str:
    n = totals.numbers
    return (
        f"seed {seed}: {n['generated']} generated, {n['accepted']} accepted, "
        f"{n['executed']} executed, {n['skipped']} skipped, {n['templates']} by remembered shapes, "
        f"{len(totals.wrong)} wrong, {len(totals.lost)} lost, {seconds:.0f} s"
    )


def summary(
    totals: Totals, seeds: list[int], judge: str, seconds: float, commit: str
) -> dict[str, Any]:
    """The ledger entry of a run, but for what the ledger counts itself."""
    n = totals.numbers
    names = ("generated", "accepted", "executed", "skipped", "templates")
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


__all__ = ["Prepared", "main", "run_world"]

if __name__ == "__main__":
    sys.exit(main())
