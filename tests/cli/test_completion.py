"""Completion by the shell: what docs/cli.md says, in a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CACHEMGR = Path(sys.executable).parent / "cachemgr"


@pytest.fixture
def bash(tmp_path):
    def run(script: str, **more: str) -> str:
        ours = {
            "HOME": str(tmp_path),
            "PATH": f"{CACHEMGR.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        done = subprocess.run(
            ["bash", "-c", f"{script}\nexit $?"],  # a shell of its own, which is looked for
            env={**os.environ, **ours, **more}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_script_that_is_shown_completes(bash):
    words = """COMP_WORDS=(cachemgr cache h); COMP_CWORD=2
    eval "$(cachemgr --show-completion)"; _cachemgr_completion cachemgr; echo "${COMPREPLY[@]}" """
    assert bash(words).strip() == "history"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("--mode inc", ["incremental", "incremental_only"]),
        ("--mode INC", ["INCREMENTAL", "INCREMENTAL_ONLY"]),
        ("--output j", ["json"]),
    ],
)
def test_the_words_of_an_option_are_completed(bash, typed, offered):
    words = (
        f"COMP_WORDS=(cachemgr cache refresh x {typed}); COMP_CWORD=5\n"
        + """
    eval "$(cachemgr --show-completion)"; _cachemgr_completion cachemgr; echo "${COMPREPLY[@]}" """
    )
    assert bash(words).split() == offered


def test_it_is_installed(bash, tmp_path):
    bash("cachemgr --install-completion")
    assert "cachemgr" in (tmp_path / ".bashrc").read_text()
