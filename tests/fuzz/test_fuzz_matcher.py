"""Generated pairs of cache and query: whatever the matcher accepts returns the original's rows.

`FUZZ_N=20000 FUZZ_START=1000 pytest tests/fuzz` runs more of them, or others. A failure prints the
seed and both texts.
"""

from __future__ import annotations

import os
from random import Random

import pytest
from fuzz_cases import case
from fuzz_judge import accepted, differing_rows

COUNT = int(os.environ.get("FUZZ_N", "600"))
START = int(os.environ.get("FUZZ_START", "0"))
CHUNK = 100
DATA_SETS = 2
LEAST_SHARE = 0.15  # fewer hits would mean that the test proves little


@pytest.mark.parametrize("start", range(START, START + COUNT, CHUNK))
def test_no_accepted_pair_changes_a_row(start: int) -> None:
    hits = 0
    for seed in range(start, min(start + CHUNK, START + COUNT)):
        pair = case(Random(seed))
        result = accepted(pair)
        if result is None:
            continue
        hits += 1
        for data_seed in range(DATA_SETS):
            wrong = differing_rows(pair, result, seed * DATA_SETS + data_seed)
            assert wrong is None, (
                f"seed {seed}\n{pair.cache}\n{pair.query}\n{result['rewritten_sql']}\n{wrong}"
            )
    assert hits >= LEAST_SHARE * CHUNK, f"only {hits} of {CHUNK} pairs were accepted"
