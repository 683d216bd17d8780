"""One module knows how plan documents are written, and the version that Java writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cachemgr
import matcher
from matcher.catalyst import document as doc
from matcher.catalyst.reader import definition_block, walk_blocks

SOURCES = [
    path
    for package in (matcher, cachemgr)
    for path in sorted(Path(package.__file__).parent.rglob("*.py"))
]
WRITERS = Path(cachemgr.__file__).parent / "jvm" / "java"
# `node["n"]`, `entry[0] == "a"` and their like
INDEXED = re.compile(
    r"\b(node|below|plan|child|query|document|structure)(\[\"[a-z_]+\"\]|\.get\(\"[a-z]\")"
    r"|\b(entry|item|inner)\[0\]"
)


def test_no_other_module_indexes_a_document() -> None:
    places = [p for p in SOURCES if "catalyst" in p.parts or "serving" in p.parts]
    others = [p for p in places if p.name != "document.py"]
    assert len(others) > 15
    found = {p.name: [m[0] for m in INDEXED.finditer(p.read_text())] for p in others}
    assert {name: hits for name, hits in found.items() if hits} == {}
    assert INDEXED.search(Path(str(doc.__file__)).read_text())


def test_java_writes_this_version() -> None:
    written = re.findall(r'\\"v\\":(\d+)', (WRITERS / "PlanWriter.java").read_text())
    assert written == [str(doc.VERSION)]


@pytest.mark.parametrize("version", [None, 0, doc.VERSION - 1, doc.VERSION + 1, str(doc.VERSION)])
def test_documents_of_other_versions_are_refused(version: object) -> None:
    document = {"v": version, "plan": {"n": "Project"}}
    with pytest.raises(ValueError, match="plan document has version"):
        walk_blocks(document, lambda located: False)
    with pytest.raises(ValueError, match="plan document has version"):
        definition_block(document)
