"""What pip is told to install: what is true for a wheel, a checkout, a repository and an index."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

from cachemgr import installation
from cachemgr.installation import install_command, words_for

ROOT = Path(__file__).parents[1]
COMMIT = "9e095e5"


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (None, "install relational-cache[spark,server]==0.1.0"),
        (
            {"url": "file:///work/rc", "dir_info": {"editable": True}},
            "install -e /work/rc[spark,server]",
        ),
        ({"url": "file:///work/rc", "dir_info": {}}, "install /work/rc[spark,server]"),
        (
            {"url": "file:///my%20wheels/rc-0.1.0-py3-none-any.whl", "archive_info": {}},
            "install '/my wheels/rc-0.1.0-py3-none-any.whl[spark,server]'",
        ),
        (
            {"url": "https://files.example/rc.whl", "archive_info": {}},
            "install 'relational-cache[spark,server] @ https://files.example/rc.whl'",
        ),
        (
            {"url": "https://g.example/rc", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"install 'relational-cache[spark,server] @ git+https://g.example/rc@{COMMIT}'",
        ),
    ],
)
def test_it_is_installed_from_where_it_came(origin, words):
    assert list(words_for(("spark", "server"), "0.1.0", origin)) == shlex.split(words)


def test_here_it_is_the_checkout():
    assert install_command("spark") == f"pip install -e '{ROOT}[spark]'"
    assert install_command() == f"pip install -e {ROOT}"


def test_what_was_never_installed_is_a_checkout_too(monkeypatch):
    def none(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation.metadata, "distribution", none)
    assert install_command("spark") == f"pip install -e '{ROOT}[spark]'"


@pytest.mark.slow
def test_a_wheel_names_its_own_file(tmp_path: Path):
    """A real wheel in a real environment."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(ROOT)]
    done = subprocess.run(built, capture_output=True, text=True)
    if done.returncode:  # without the build's own packages
        built.remove("--no-build-isolation")
        subprocess.run(built, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "env", with_pip=False)
    python = str(tmp_path / "env" / "bin" / "python")
    subprocess.run([*pip, "--python", python, "install", "--no-deps", str(wheel)], check=True)
    code = "from cachemgr.installation import install_words; import json; "
    code += "print(json.dumps(install_words('spark')))"
    told = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert json.loads(told.stdout) == ["install", f"{wheel}[spark]"], told.stderr
