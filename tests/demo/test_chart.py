"""The chart as a file, and the figures beside the report."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from cachemgr.demo.chart import Bars, bar_chart
from cachemgr.demo.figures import figures
from cachemgr.demo.options import DemoOptions
from tests.demo.test_report import RESULT

_SVG = "{http://www.w3.org/2000/svg}"
BARS = [Bars("Q1.1", 2.0, 0.1), Bars("Q4 <1>", 0.5, 0.25)]


def test_chart_as_a_file_is_whole_and_brings_its_colours() -> None:
    text = bar_chart(BARS, standalone=True)
    root = ElementTree.fromstring(text)
    assert root.tag == f"{_SVG}svg" and root.find(f"{_SVG}title") is not None
    bars = [r for r in root.iter(f"{_SVG}rect") if r.get("x") == "50" and r.get("height") == "15"]
    assert [bar.get("class") for bar in bars] == ["without", "with"] * 2
    assert "prefers-color-scheme: dark" in text and 'class="page"' in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_bars_are_longer_where_seconds_are_more() -> None:
    root = ElementTree.fromstring(bar_chart(BARS, standalone=True))
    widths = [float(r.attrib["width"]) for r in root.iter(f"{_SVG}rect") if r.get("height") == "15"]
    assert widths[0] > widths[2] > widths[3] > widths[1]


def test_figures_are_json_and_say_what_they_were_measured_on() -> None:
    found = json.loads(json.dumps(figures(RESULT)))
    assert [q["ratio"] for q in found["queries"]] == [20.0, 2.5]
    assert found["machine"]["cpus"] and found["scale"] == 1.0 and found["failures"] == []


def test_figures_lie_beside_the_report(tmp_path: Path) -> None:
    options = DemoOptions(workdir=tmp_path, report=tmp_path / "ssb.html")
    assert options.figures_path == (tmp_path / "ssb-figures.json").resolve()
