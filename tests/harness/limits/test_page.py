"""docs/limit.md says what each position of a LIMIT opens and runs, and its rows are right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.harness.limits import page
from tests.harness.limits.reads import ONE_FILE_A_TASK
from tests.worlds.lab_star import Lab, make_lab

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_MADE = Path(__file__).parents[3] / "build" / "limit.md"


@pytest.fixture(scope="module")
def lab(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("limits")
    settings = {
        "spark__cachemgr__pin__enabled": "false",
        "spark__cachemgr__local__enabled": "false",
    }
    for made in make_lab(spark, folder, f"sqlite:///{folder / 'metastore.db'}", **settings):
        for session in (made.spark, made.plain):
            session.conf.set(*ONE_FILE_A_TASK)
        page.make_tables(made)
        for session in (made.spark, made.plain):
            for key, value in page.ALWAYS_THE_SAME.items():
                session.conf.set(key, value)
        yield made


def test_the_page_says_what_was_read(lab: Lab) -> None:
    """Where it has changed, the page as it should be is written into build/."""
    written = page.PAGE.read_text("utf-8")
    head, _, rest = written.partition(page.BEGIN)
    tail = rest.partition(page.END)[2]
    found = head + page.generated(lab) + tail
    if found != written:
        _MADE.parent.mkdir(exist_ok=True)
        _MADE.write_text(found, "utf-8")
    assert found == written, "cp build/limit.md docs/limit.md, and look at the diff"
