"""docs/reasons.md has each code once, and its examples give the codes that they are said to."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from cachemgr.text import offline
from matcher.model.reasons import ReasonCode

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reasons.md").read_text()
SCHEMA = PAGE.split("```sql\n", 1)[1].split("```", 1)[0]
SECTIONS = re.findall(r"^## ([A-Z_]+)\n(.*?)```(sql[a-z ]*)\n(.*?)```", PAGE, re.M | re.S)
RUN = [(code, sql) for code, _, kind, sql in SECTIONS if kind == "sql"]
IN_A_SESSION = [code for code, _, kind, _ in SECTIONS if kind != "sql"]


def test_each_code_has_one_section() -> None:
    assert [code for code, *_ in SECTIONS] == [code.value for code in ReasonCode]


@pytest.mark.parametrize(("code", "sql"), RUN, ids=[code for code, _ in RUN])
def test_the_example_gives_its_code(code: str, sql: str) -> None:
    statements = [s.strip() for s in sql.split(";\n") if s.strip()]
    settings = [s.removeprefix("SET ").split("=", 1) for s in statements if s.startswith("SET ")]
    caches = [s for s in statements if s.startswith("CREATE ")]
    query = statements[-1].rstrip(";")
    found = offline.explain(SCHEMA, ";\n".join(caches), query, dict(settings))
    assert not found["hit"], found["rewrittenSql"]
    reasons = [*found["reasons"], *(r for c in found["candidates"] for r in c["reasons"])]
    assert code in {r["code"] for r in reasons}, reasons
    assert all(len(r["detail"]) > 5 and r["suggestion"] for r in reasons)


def test_every_refusal_says_what_would_help() -> None:
    """A `Reason` is made with a code, a detail and a suggestion; doors use `not_taken`."""
    places = [*(ROOT / "matcher").rglob("*.py"), *(ROOT / "cachemgr").rglob("*.py")]
    bare = [
        f"{path.name}:{node.lineno}"
        for path in places
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Reason"
        and len(node.args) + len(node.keywords) < 3
    ]
    assert bare == []


def test_codes_of_a_session_are_held_by_other_tests() -> None:
    texts = "".join(
        p.read_text() for p in (ROOT / "tests").rglob("*.py") if p.name != Path(__file__).name
    )
    assert [code for code in IN_A_SESSION if code not in texts] == []
