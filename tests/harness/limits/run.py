"""`python -m tests.harness.limits.run --tables N`: LIMITs over any number of generated tables."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.harness.limits.generated import wrong_of
from tests.spark_session import spark_session
from tests.worlds.lab_star import make_lab


def main() -> int:
    """Exit status 1 where a row is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1, help="of the first table")
    asked = parser.parse_args()
    wrong: list[str] = []
    with spark_session() as spark, tempfile.TemporaryDirectory() as folder:
        spark.sparkContext.setLogLevel("OFF")
        for lab in make_lab(spark, Path(folder), f"sqlite:///{folder}/metastore.db"):
            for seed in range(asked.seed, asked.seed + asked.tables):
                found = wrong_of(lab.spark, lab.plain, f"generated{seed}", seed)
                wrong += found
                done = seed - asked.seed + 1
                if done % 20 == 0:
                    print(f"{done} tables, {len(wrong)} wrong", flush=True)
                for each in found:
                    print(f"seed {seed}: {each}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
