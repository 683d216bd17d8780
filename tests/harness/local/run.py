"""`make fuzz-local`: random queries over held rows, computed by us and by Spark, for MINUTES.

Each world is a table of edge values and settings; queries, rows and settings are drawn by its seed.
What differs is printed with its seed, settings and text, and makes the run fail.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from random import Random

from pyspark.sql import SparkSession

from tests.harness.local.grammar import Grammar
from tests.harness.local.judge import Judge
from tests.spark_session import spark_session

_QUERIES = 100


def fuzz(
    spark: SparkSession, seed: int, queries: int, told: Counter[str], until: float | None = None
) -> list[str]:
    """What differs in one world.

    Args:
        spark: A session of our own.
        seed: The world's.
        queries: So many are asked.
        told: Counted up: what became of them.
        until: When to end, as `time.monotonic`.
    """
    rng = Random(seed)
    judge = Judge(spark, seed)
    found = []
    try:
        for number in range(queries):
            if until is not None and time.monotonic() > until:
                break
            if number % 10 == 0:
                settings = judge.settings(rng)
            text = Grammar(rng).query()
            judged = judge.judge(text)
            if judged is None:
                told["not accepted"] += 1
                continue
            told["asked"] += 1
            told["local"] += judged.local
            told["raised"] += judged.raised
            told["raised, but not by Spark without code and with blocks"] += judged.spared
            if judged.refused is not None:
                told[f"refused: {judged.refused}"] += 1
            if judged.wrong is not None:
                found.append(f"seed {seed}, {settings}\n  {text}\n  {judged.wrong}")
    finally:
        judge.close()
    return found


def main() -> int:
    """Exit status 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1, help="of the first world")
    asked = parser.parse_args()
    end = time.monotonic() + asked.minutes * 60
    told: Counter[str] = Counter()
    wrong: list[str] = []
    seed = asked.seed
    with spark_session() as spark:
        spark.sparkContext.setLogLevel("OFF")
        while time.monotonic() < end:
            found = fuzz(spark.newSession(), seed, _QUERIES, told, end)
            for each in found:
                print(each, flush=True)
            wrong += found
            seed += 1
    for what, count in told.most_common(40):
        print(f"{count:7,} {what}")
    print(f"{len(wrong)} differ; the next seed is {seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
