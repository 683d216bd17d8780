"""The table of docs/pruning.md says what was read, its rows are right, and EXPLAIN REWRITE FILES
says the same beforehand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.harness.pruning import page
from tests.worlds.lab_star import Lab, make_lab

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_MADE = Path(__file__).parents[3] / "build" / "pruning.md"


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("pruning")
    settings = {"spark__cachemgr__pin__maxBytes": "0"}
    for made in make_lab(spark, folder, f"sqlite:///{folder / 'metastore.db'}", **settings):
        page.make_tables(made)
        yield made


def test_the_page_says_what_was_read(lab: Lab) -> None:
    """Where it has changed, the page as it should be is written into build/."""
    written = page.PAGE.read_text("utf-8")
    head, _, rest = written.partition(page.BEGIN)
    tail = rest.partition(page.END)[2]
    table = page.generated(lab)
    found = head + table + tail
    if found != written:
        _MADE.parent.mkdir(exist_ok=True)
        _MADE.write_text(found, "utf-8")
    assert found == written, "cp build/pruning.md docs/pruning.md, and look at the diff"
    months = [line for line in table.splitlines() if "month(x) = 2" in line]
    assert len(months) == 3
    for line in months:
        base = line.split("|")[3]
        assert int(re.findall(r"\d+", base)[-1]) <= 5 and "73 →" in base
