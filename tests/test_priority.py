"""Who gives way to whom for the processor: what is started has its priority in all threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cachemgr import priority
from cachemgr.priority import LOWEST, with_priority

_SHOW = """
import os, threading
found = []
thread = threading.Thread(target=lambda: found.append(os.getpriority(os.PRIO_PROCESS, 0)))
thread.start(); thread.join()
print(os.getpriority(os.PRIO_PROCESS, 0), *found)
"""
_LOWER = """
from cachemgr.priority import lower_session
from tests.test_priority import group_nice
before = group_nice()
lower_session({nice})
print(before, group_nice())
"""
_AUTOGROUP = Path("/proc/self/autogroup")
_NO_GROUP = "none"


def group_nice() -> str:
    """The nice value of this session's group; the file is empty in a container's first session,
    whose group belongs to the world outside, and not in those that are begun in there."""
    fields = _AUTOGROUP.read_text().split() if _AUTOGROUP.exists() else []
    return fields[-1] if fields else _NO_GROUP


def _run(code: str, **options: object) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, **options
    )
    return done.stdout.split()


def _own() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.parametrize("nice", [0, 3, LOWEST])
def test_a_process_that_is_started_has_it_and_this_one_not(nice):
    before = _own()
    wanted = str(min(LOWEST, before + nice))
    assert with_priority(nice, lambda: _run(_SHOW)) == [wanted, wanted]
    assert _own() == before


def test_what_is_returned_and_raised_passes_through():
    assert with_priority(1, lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        with_priority(1, lambda: 1 // 0)


@pytest.mark.parametrize(("own_session", "nice"), [(True, 7), (True, 0), (False, 7)])
def test_a_session_is_lowered_by_the_process_that_leads_it_alone(own_session, nice):
    before, after = _run(_LOWER.format(nice=nice), start_new_session=own_session)
    assert after == (str(nice) if own_session and before != _NO_GROUP else before)


@pytest.mark.parametrize(("content", "written"), [("", ""), ("/autogroup-5 nice 0\n", "7")])
def test_a_session_without_a_group_has_nothing_to_lower(tmp_path, monkeypatch, content, written):
    file = tmp_path / "autogroup"
    file.write_text(content)
    monkeypatch.setattr(priority, "_AUTOGROUP", file)
    monkeypatch.setattr(os, "getsid", lambda _: os.getpid())
    priority.lower_session(7)
    assert file.read_text() == written
