"""The report: whole, escaped, without the network, and the demo's folder and clock."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from cachemgr.demo.errors import DemoError
from cachemgr.demo.figures import figures
from cachemgr.demo.growing import Growth
from cachemgr.demo.measure import QueryResult, Run
from cachemgr.demo.options import (
    DemoOptions,
    definition_hash,
    open_folder,
    store_definition,
    stored_definition,
)
from cachemgr.demo.progress import Step, Steps, duration
from cachemgr.demo.published import Coverage
from cachemgr.demo.report import render_report
from cachemgr.demo.result import DemoResult

RUN = Run(0, 2.0, 0.1, 3, 3, hit=True, empty=False)
QUERY = QueryResult(
    "Q4.1", "select a < b", (RUN,), ("ssb_cube",), "(d_year)", "SELECT `x` WHERE 1 < 2"
)
RESULT = DemoResult(
    scale=1.0,
    seed=42,
    settings=(("spark.master", "local[*]"),),
    timings=(("Refresh <the> cube", 61.2),),
    queries=(QUERY, replace(QUERY, name="Q4.2", runs=(replace(RUN, seconds_with=0.8),))),
    coverage=(Coverage("Q1.1", True, "(d_year)", ""), Coverage("example", False, None, "a & b")),
    failures=(),
    growth=Growth(60_000, 2.0, 0.4, 3.5, "PARTIALS", 60.0, 0.1),
)
VOID = {"meta"}


class Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.headings += tag == "h1"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("rect", "line")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_report_is_whole_and_self_contained() -> None:
    html = render_report(RESULT)
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert parser.open == [] and parser.headings == 1
    assert not re.search(r"https?://|src=|@import|url\(|<script", html)
    assert '<html lang="en">' in html and "prefers-color-scheme: dark" in html
    assert "<svg viewBox=" in html and 'role="img"' in html and "<desc" in html


def test_report_and_figures_tell_of_the_growing_table() -> None:
    html = render_report(RESULT)
    assert "While the table grows" in html and "60,000 rows appended" in html
    assert "refreshed by PARTIALS in 3.5 s; everything takes 60.0 s" in html
    assert figures(RESULT)["growth"]["secondsAtOnce"] == 0.4
    bare = replace(RESULT, growth=None)
    assert "While the table grows" not in render_report(bare) and figures(bare)["growth"] is None


def test_report_holds_what_was_measured_and_escapes_it() -> None:
    html = render_report(RESULT)
    assert "select a &lt; b" in html and "SELECT `x` WHERE 1 &lt; 2" in html
    assert "Refresh &lt;the&gt; cube" in html and "a &amp; b" in html
    assert "20.0 times" in html and "2.5 times" in html and "2.00 s" in html
    assert f"<strong>{RESULT.mean_ratio:.1f} times</strong>" in html
    assert "not met" in html and "all answers equal" in html


def test_report_of_a_failed_run() -> None:
    broken = replace(QUERY, name="Q1.1", runs=(), caches=(), error="boom", rewritten_sql=None)
    html = render_report(replace(RESULT, queries=(broken,), failures=("Q1.1 failed: <boom>",)))
    Balanced().feed(html)
    assert "Q1.1 failed: &lt;boom&gt;" in html and "No query ran." in html and "miss" in html


def test_budgets() -> None:
    assert [met for _, _, met in RESULT.budgets()] == [False, False, False]
    quick = replace(RESULT, queries=(QUERY,))
    assert [met for _, _, met in quick.budgets()] == [True, True, True]
    assert replace(RESULT, scale=0.5).budgets() == ()


def test_folder_is_kept_refused_or_made_afresh(tmp_path: Path) -> None:
    options = DemoOptions(scale=0.5, seed=3, workdir=tmp_path)
    assert options.folder.name == "sf0.5-seed3"
    assert open_folder(options) is False
    assert stored_definition(options) is None
    store_definition(options, "CREATE …")
    assert open_folder(options) is True
    assert stored_definition(options) == definition_hash("CREATE …")
    (options.folder / "data").mkdir()
    assert open_folder(replace(options, fresh=True)) is False
    assert not (options.folder / "data").exists()


def test_a_folder_that_is_not_the_demos_is_not_touched(tmp_path: Path) -> None:
    options = DemoOptions(workdir=tmp_path, fresh=True)
    options.folder.mkdir(parents=True)
    mine = options.folder / "thesis.txt"
    mine.write_text("years of work")
    with pytest.raises(DemoError, match="--workdir"):
        open_folder(options)
    assert mine.read_text() == "years of work"


def test_steps_say_what_is_left() -> None:
    out = io.StringIO()
    steps = Steps(Console(file=out, width=120), [Step("one", 30), Step("two", 90)])
    with steps.step():
        assert steps.left() == 120
    assert steps.timings[0][0] == "one"
    with steps.step():
        assert steps.left() < 90  # the first step took no time, so less is expected of the second
    text = out.getvalue()
    assert "Step 1 of 2 one" in text and "about 2 min 00 s left" in text


def test_duration() -> None:
    assert [duration(s) for s in (0.84, 42.2, 185)] == ["0.8 s", "42 s", "3 min 05 s"]
