"""The documentation cannot drift: reasons, settings, layers, links, and the figures of README."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from bench import readme
from cachemgr.config.setting_table import SETTINGS
from matcher.model.reasons import ReasonCode

DOCS = Path(__file__).parent.parent / "docs"


def _first_cells(page: str, pattern: str) -> list[str]:
    return re.findall(rf"^\| `({pattern})` \|", (DOCS / page).read_text(), flags=re.MULTILINE)


def test_every_miss_reason_is_documented_once() -> None:
    listed = _first_cells("matching.md", "[A-Z_]+")
    assert sorted(listed) == sorted(code.value for code in ReasonCode)


def test_every_setting_is_documented_once() -> None:
    listed = _first_cells("settings.md", r"spark\.cachemgr\.[A-Za-z.]+")
    assert sorted(listed) == sorted(setting.key for setting in SETTINGS)


def test_links_of_the_readme_lead_somewhere() -> None:
    readme = DOCS.parent / "README.md"
    targets = re.findall(r"\]\((docs/[^)#]+)\)", readme.read_text())
    assert targets
    assert [t for t in targets if not (DOCS.parent / t).exists()] == []


def test_links_of_the_docs_lead_somewhere() -> None:
    pages = [*DOCS.glob("*.md"), *(DOCS.parent / n for n in ("README.md", "CONTRIBUTING.md"))]
    for page in pages:
        targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        assert [t for t in targets if not (page.parent / t).exists()] == [], page.name


def test_the_index_has_every_page() -> None:
    linked = re.findall(r"\]\(([^)#/]+\.md)\)", (DOCS / "index.md").read_text())
    assert set(linked) == {page.name for page in DOCS.glob("*.md")} - {"index.md"}


@pytest.mark.parametrize("tree", ["matcher", "cachemgr"])
def test_the_layers_of_the_architecture_are_the_contracts(tree: str) -> None:
    text = (DOCS / "architecture.md").read_text()
    told = re.search(rf"^```layers {tree}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    contracts = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["tool"]["importlinter"]
    [layers] = [c["layers"] for c in contracts["contracts"] if c.get("containers") == [tree]]
    assert told is not None and told[1].splitlines() == layers


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/architecture.md"])
def test_files_that_are_named_are_there(page: str) -> None:
    root = DOCS.parent
    named = re.findall(r"`([a-z_]+(?:/\w+)+\.(?:py|java|json))`", (root / page).read_text())
    below = ("", "cachemgr", "matcher")
    assert [n for n in named if not any((root / b / n).exists() for b in below)] == []
    assert len(named) > 10


def test_figures_of_the_readme_are_those_of_a_run() -> None:
    run = json.loads(readme.KEPT.read_text())
    text = readme.README.read_text()
    assert readme.with_table(text, run) == text and f"**{run['geometricMean']:.1f} x**" in text
    assert readme.CHART.read_text() == readme.chart(run)
