"""The documentation cannot drift: it lists every miss reason and every setting, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from cachemgr.config.session_settings import SETTINGS
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
