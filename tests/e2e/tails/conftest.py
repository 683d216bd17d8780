"""Tails are made without pauses; a comparison that fails shows the rows of both sides."""

from __future__ import annotations

import pytest

from cachemgr.spark import api
from cachemgr.spark.held.tail_pace import Tempo

pytest.register_assert_rewrite("tests.e2e.tails.tail_queries")


@pytest.fixture(autouse=True)
def without_pauses(lab):
    """The next tail is made at once, and no query waits for it."""
    tails = api._of(lab.spark).session.application.tails
    tempo, tails.tempo = tails.tempo, Tempo(rest=0.0, most=0.0, pause=0.0, keep=0.0)
    yield tails
    tails.tempo = tempo
