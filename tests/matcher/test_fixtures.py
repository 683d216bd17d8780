"""The matcher's text cases: decision and SQL offline, then each hit executed in Spark, unless it is
known already what comes out of that SQL (docs/testing.md).

`python -m tests.matcher.complete_fixtures` writes the SQL that comes out into the files: review the
difference.
"""

from __future__ import annotations

import pytest

from cachemgr.errors import CacheManagerError
from cachemgr.text import offline
from matcher.model.errors import MatcherError
from tests.matcher import spark_cases
from tests.matcher.case_inputs import case_inputs
from tests.matcher.fixture_cases import Case, load, load_all
from tests.proofs.plugin import Executed

CASES = load_all()
INVALID = load_all(invalid=True)
HITS = [c for c in CASES if c.rules and c.all("execute") != ["false"]]


def ids(case: Case) -> str:
    return case.id


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_decision_and_sql(case: Case) -> None:
    workspace = offline.prepare(case.schema, case.caches, case.conf)
    result = offline.explain_query(workspace, case.query)
    reasons = [r for c in result["candidates"] for r in c["reasons"]]
    if case.reasons:
        assert not result["hit"], result["rewrittenSql"]
        codes = {r["code"] for r in reasons}
        assert set(case.reasons) <= codes, reasons
        for fragment in case.all("message"):
            assert any(fragment in r["detail"] for r in reasons), reasons
        assert words(case.expected) in (words(case.query), "?")
        return
    assert result["hit"], reasons
    answer = offline.answer(workspace, case.query)
    steps = {step for rewrite in answer.rewrites for step in rewrite.steps}
    wanted = set(case.rules) - {"none"}
    assert wanted <= steps and ("none" not in case.rules or not steps), steps
    assert words(result["rewrittenSql"]) == words(case.expected)


@pytest.mark.parametrize("case", INVALID, ids=ids)
def test_input_at_fault(case: Case) -> None:
    with pytest.raises((MatcherError, CacheManagerError)) as caught:
        offline.explain(case.schema, case.caches, case.query, case.conf)
    assert caught.value.code == case.all("error")[0], caught.value
    for fragment in case.all("message"):
        assert fragment in str(caught.value)


def test_a_case_without_rule_and_reason_is_refused(tmp_path) -> None:
    path = tmp_path / "x.sql"
    path.write_text("# title: a\nSELECT 1;\nSELECT 1;\n")
    with pytest.raises(ValueError, match="give one of # rule and # reason"):
        load(path)
    path.write_text("# title: Noop - a\n# rule: none\nSELECT 1;\nSELECT 1;\n")
    with pytest.raises(ValueError, match="needs a # reason"):
        load(path)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("", "name its # guard"),
        ("# guard: a.b\n# unguarded: asked for\n", "name its # guard"),
        ("# unguarded: no idea\n", "# unguarded is one of nothing stored, "),
    ],
)
def test_a_refused_case_names_its_guard_or_says_why_not(more: str, words: str, tmp_path) -> None:
    path = tmp_path / "x.sql"
    path.write_text(f"# title: Noop - a\n# reason: HINT\n{more}SELECT 1;\nSELECT 1;\n")
    with pytest.raises(ValueError, match=words):
        load(path)


@pytest.mark.spark
@pytest.mark.parametrize("case", HITS, ids=ids)
def test_rows_names_and_types(case: Case, proofs: Executed) -> None:
    result = offline.explain(case.schema, case.caches, case.query, case.conf)
    assert result["hit"]
    stored = list(result["stored"].items())
    inputs = case_inputs(case, rewritten=result["rewrittenSql"], stored=stored)
    proofs.outcome(spark_cases.same_rows, inputs, "case_tables")
