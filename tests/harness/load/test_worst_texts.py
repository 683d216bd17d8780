"""Viewers who post the texts that cost most, for seconds: others are answered, and memory stays."""

from __future__ import annotations

import pytest

from tests.harness.load.worst import VIEWERS, Worst

pytestmark = pytest.mark.slow


def test_nobody_waits_for_the_worst_texts():
    worst = Worst(12.0, caches=50)
    worst.run()
    assert set(worst.statuses) == {200} and sum(worst.statuses.values()) > VIEWERS
    assert {sent.status for sent in worst.usual} == {200}
    assert all(sent.hit is sent.asked.hits for sent in worst.usual)
    assert max(worst.rss) < 1.5 * worst.rss[0]
