"""Whatever a proof stands on, change it and the proof is another one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.matcher import captures, spark_cases
from tests.matcher.case_inputs import case_inputs
from tests.matcher.fixture_cases import FOLDER, load_all
from tests.matcher.two_doors import capture_inputs
from tests.proofs import keys

CASES = [case for case in load_all() if case.rules]
OWN = next(c for c in CASES if c.all("schema") and c.all("data") and "spark.sql." in str(c.conf))
SHARED = next(case for case in load_all() if not case.all("schema") and case.all("data"))
INPUTS = case_inputs(SHARED, rewritten="SELECT 1", stored=[("c", "SELECT 2")])
OWN_INPUTS = case_inputs(OWN, guarded=[[("SELECT 1", [("c", "SELECT 2")])]])


def changed(data: Any) -> Iterator[Any]:
    """`data` with one of its values another one, for each of them, and with one left out."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from ({**data, name: other} for other in changed(value))
    elif isinstance(data, (list, tuple)):
        for place, value in enumerate(data):
            yield [*data[:place], *data[place + 1 :]]
            yield from ([*data[:place], other, *data[place + 1 :]] for other in changed(value))
    else:
        yield not data if isinstance(data, bool) else f"{data} "


@pytest.mark.parametrize("inputs", [INPUTS, OWN_INPUTS, capture_inputs(OWN)])
def test_each_value_of_the_inputs_counts(inputs: dict[str, Any]) -> None:
    found = [keys.key(spark_cases.same_rows, each) for each in (inputs, *changed(inputs))]
    assert len(set(found)) == len(found) > 10


def test_the_order_in_which_names_are_given_does_not() -> None:
    turned = dict(reversed(INPUTS.items()))
    assert keys.key(spark_cases.same_rows, turned) == keys.key(spark_cases.same_rows, INPUTS)


def test_all_that_a_case_says_is_in_its_inputs() -> None:
    said = str(case_inputs(OWN)) + str(capture_inputs(OWN))
    settings = [text for text in OWN.conf.items() if text[0].startswith("spark.sql.")]
    for text in (*sum(settings, ()), OWN.query):
        assert repr(text)[1:-1] in said
    for case in (OWN, SHARED):
        for row in case.all("data"):
            values = row.partition("VALUES ")[2]
            assert repr(values)[1:-1] in str(case_inputs(case))


def test_shared_rows_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tests.matcher import case_inputs as module

    for name in ("_schema.sql", "_data.sql"):
        (tmp_path / name).write_text((FOLDER / name).read_text())
    more = (tmp_path / "_data.sql").read_text().replace("VALUES", "VALUES  /* other */", 1)
    (tmp_path / "_data.sql").write_text(more)
    before = keys.key(spark_cases.same_rows, module.case_inputs(SHARED))
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    module._shared.cache_clear()
    module._shared_rows.cache_clear()
    try:
        assert keys.key(spark_cases.same_rows, module.case_inputs(SHARED)) != before
    finally:
        module._shared.cache_clear()
        module._shared_rows.cache_clear()


def test_judges_have_proofs_of_their_own() -> None:
    judges = (spark_cases.same_rows, spark_cases.wrong_rows, captures.plans)
    assert len({keys.key(judge, INPUTS) for judge in judges}) == 3


@pytest.mark.parametrize("name", ["spark", "pyspark", "delta", "jdk", "python", "machine", "zone"])
def test_what_is_installed_counts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, installed = keys.key(spark_cases.same_rows, INPUTS), keys.environment()
    assert installed[name]
    monkeypatch.setattr(keys, "environment", lambda: {**installed, name: "another one"})
    assert keys.key(spark_cases.same_rows, INPUTS) != before


JUDGED = ["tests/spark_session.py", "tests/spark_start.py"]
CAPTURED = [
    "tests/matcher/captures.py",
    "cachemgr/spark/plans.py",
    "cachemgr/spark/texts.py",
    "cachemgr/jvm/loader.py",
    "cachemgr/jvm/jar.py",
    *(str(path.relative_to(keys.ROOT)) for path in keys.ROOT.glob("cachemgr/jvm/java/*.java")),
    "cachemgr/jvm/shims/4.2-4.3/TableOfFiles.java",
]


@pytest.mark.parametrize(
    ("module", "needed"),
    [("tests.matcher.spark_cases", ["tests/matcher/spark_cases.py"]),
     ("tests.matcher.captures", CAPTURED)],
)  # fmt: skip
def test_the_sources_of_judges(module: str, needed: list[str]) -> None:
    found = keys.sources(module, keys.SESSION)
    assert found.keys() >= {*JUDGED, *needed}
    assert not [path for path in found if path.startswith("matcher/")], "they change daily"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "tests/judge.py": "from tests.inside import a\ndef f():\n    import tests.late\n",
        "tests/inside/__init__.py": "def f():\n    import tests.lazy\n",
        "tests/inside/a.py": "import os\nif TYPE_CHECKING:\n    import tests.typed\n",
        "tests/late.py": "x = 1\n",
        "tests/lazy.py": "x = 1\n",
        "tests/typed.py": "x = 1\n",
        "cachemgr/jvm/loader.py": "x = 1\n",
        "cachemgr/jvm/java/A.java": "class A {}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    ["tests/judge.py", "tests/inside/__init__.py", "tests/inside/a.py", "tests/late.py",
     "cachemgr/jvm/loader.py", "cachemgr/jvm/java/A.java"],
)  # fmt: skip
def test_a_change_of_any_source_shows(name: str, tree: Path) -> None:
    before = keys.sources("tests.judge", "cachemgr.jvm.loader", root=tree)
    (tree / name).write_text((tree / name).read_text() + "\n")
    after = keys.sources("tests.judge", "cachemgr.jvm.loader", root=tree)
    assert [path for path in before if before[path] != after[path]] == [name]


def test_what_a_judge_does_not_run_is_none_of_its_sources(tree: Path) -> None:
    found = keys.sources("tests.judge", root=tree)
    assert not {"tests/lazy.py", "tests/typed.py"} & found.keys()


def test_no_case_hides_what_others_read() -> None:
    """Cases share sessions, so a name that two of them read must mean the same or be made anew."""
    shared = case_inputs(SHARED)["shared"]
    names = {name for kind in ("tables", "views", "real") for name, _ in shared[kind]}
    tables, views = set(), set()
    for case in load_all():
        own = case_inputs(case)["own"]
        tables |= {name for name, _ in own["tables"]}
        views |= {name for name, _ in own["views"]}
        caches = {text.split()[0] for text in case.all("cache")}
        assert not names & (caches | tables | views), case.id
    assert not tables & views
