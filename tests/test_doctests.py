"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import cachemgr
import matcher
import scheduler
from matcher.rules import PLAN_RULES, VIEW_RULES


def modules() -> list[str]:
    found = [
        name
        for package in (cachemgr, matcher, scheduler)
        for _, name, _ in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return [name for name in found if not name.endswith("__main__")]


@pytest.mark.parametrize("name", modules())
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("rule", [*PLAN_RULES, *VIEW_RULES], ids=lambda rule: rule.__name__)
def test_each_rule_shows_what_it_does(rule) -> None:
    doc = rule.__doc__ or ""
    assert "Args:" in doc and ">>> answer(" in doc, rule.__name__
