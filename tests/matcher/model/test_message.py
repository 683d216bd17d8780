"""A text in its parts, and the one place that puts them together."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from matcher.model.message import (
    NOTHING,
    SECRET,
    Arg,
    CacheName,
    Cause,
    Count,
    Message,
    Number,
    Several,
    Sql,
    TableName,
    Value,
    Word,
    bounded,
    joined,
    listed,
    literal,
    names_in,
)
from matcher.model.reasons import Reason, ReasonCode

ROOT = Path(__file__).parents[3]
# what takes a template, and which of its positional arguments are templates
TEMPLATES = {
    "Message": (0,),
    "Reason": (1, 2),
    "NotSupported": (1,),
    "not_taken": (1,),
    "not_mergeable": (0, 1),
    "unsupported": (0, 1),
    "_refuse": (1,),
}


@pytest.mark.parametrize(
    ("arg", "shown", "hidden"),
    [
        (Sql("(a > 1)"), "(a > 1)", "(a > 1)"),
        (CacheName("c"), "c", "c"),
        (Number(1234), "1234", "1234"),
        (Number(1234, ","), "1,234", "1,234"),
        (Number(2, noun="commit"), "2 commits", "2 commits"),
        (Number(None), "unknown", "unknown"),
        (Count(1234), "1234", "…"),
        (Count(0.444, form=".0%"), "44%", "…"),
        (Count(12.6), "13", "…"),
        (Count(1, "row"), "1 row", "some rows"),
        (Count(1234, "row"), "1234 rows", "some rows"),
        (Count(None, "row"), "rows", "some rows"),
        (Value("Alice"), "Alice", "…"),
        (Cause("no such file"), "no such file", "…"),
        (listed(Value, ["a", "b"], " and "), "a and b", "… and …"),
        (Message("{n}{who}", n=Count(2, "row"), who=Value("x")), "2 rowsx", "some rows…"),
    ],
)  # fmt: skip
def test_each_kind_is_shown_and_hidden(arg: Arg, shown: str, hidden: str) -> None:
    text = Message("<{arg}>", arg=arg)
    assert str(text) == f"<{shown}>"
    assert str(text.without(SECRET)) == f"<{hidden}>"
    assert str(text.without(())) == f"<{shown}>"


def test_what_is_hidden_is_nowhere_in_what_is_left() -> None:
    inner = Message("{rows}, {value}", rows=Count(4711, "row"), value=Value("Eve"))
    reason = Reason(ReasonCode.STALE, "{a}", "{b}", a=Several((inner, Cause("Eve"))), b=inner)
    assert "4711" in repr(reason) and "Eve" in repr(reason)
    left = repr(reason.without(SECRET))
    assert "4711" not in left and "Eve" not in left


def test_braces_that_no_argument_fills_are_text() -> None:
    assert str(Message("${…} and {x} and {y}", y=Sql("{z}"))) == "${…} and {x} and {z}"
    assert str(Message("{x}")) == "{x}"


def test_texts_are_put_in_a_row() -> None:
    one, two = Message("one"), Message("two")
    assert str(joined((one, NOTHING, two))) == "one; two"
    assert joined((one, NOTHING)) is one
    assert joined(()) is NOTHING and not NOTHING


def test_the_names_of_a_kind() -> None:
    inner = Message("{a}{t}", a=CacheName("c1"), t=TableName("t"))
    text = Message("{many}{inner}", many=listed(CacheName, ["c2", "c3"]), inner=inner)
    assert names_in(text, CacheName) == ("c2", "c3", "c1")
    assert names_in(text, TableName) == ("t",)


def test_of_a_text_alone_everything_is_hidden() -> None:
    assert str(literal("12 rows {x}")) == "12 rows {x}"
    assert str(literal("12 rows {x}").without(SECRET)) == "…"
    assert literal("") is NOTHING


def test_a_message_is_no_longer_than_people_read() -> None:
    short = Message("{sql}", sql=Sql("a"))
    assert bounded(short) is short
    assert str(bounded(Message("{sql}", sql=Sql("a" * 5_000)))) == "a" * 1_000 + "…"


def test_reasons_are_equal_by_what_they_say() -> None:
    def reason(name: str) -> Reason:
        return Reason(ReasonCode.STALE, "{cache} is old", "", cache=CacheName(name))

    assert reason("a") == reason("a") and hash(reason("a")) == hash(reason("a"))
    assert reason("a") != reason("b")
    assert Reason(ReasonCode.STALE, "{x}", x=Word("a")) != Reason(
        ReasonCode.STALE, "{x}", x=Sql("a")
    )


def _calls() -> list[tuple[str, ast.Call, list[ast.expr]]]:
    """Each call in the program that takes a template."""
    found = []
    for path in sorted([*(ROOT / "matcher").rglob("*.py"), *(ROOT / "cachemgr").rglob("*.py")]):
        source = path.read_text(encoding="utf-8")
        if "matcher.model." not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            templates = [node.args[i] for i in TEMPLATES.get(name, ()) if i < len(node.args)]
            if templates:
                found.append((f"{path.relative_to(ROOT)}:{node.lineno}", node, templates))
    return found


def test_templates_are_constants_with_an_argument_for_each_place() -> None:
    calls = _calls()
    assert len(calls) > 200
    for where, call, templates in calls:
        parts = [part for template in templates for part in ast.walk(template)]
        assert not any(isinstance(part, ast.JoinedStr) for part in parts), f"{where}: an f-string"
        texts = [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]
        places = {name for text in texts for name in re.findall(r"\{(\w+)\}", text)}
        given = {keyword.arg for keyword in call.keywords}
        if None not in given:
            assert places <= given, f"{where}: nothing is given for {places - given}"
