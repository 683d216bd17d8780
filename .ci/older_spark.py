"""An environment with an older Spark in front of all else that this one has.

python .ci/older_spark.py FOLDER VERSION
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import distribution
from pathlib import Path


def main(folder: str, version: str) -> None:
    """Make the environment, or put another version into it."""
    if not Path(folder, "bin", "python").exists():
        venv.create(folder, symlinks=True, with_pip=False)
    python = str(Path(folder, "bin", "python").absolute())
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet",
         "--disable-pip-version-check", "--no-deps", "--no-compile", f"pyspark=={version}"],
        check=True,
    )  # fmt: skip
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    # after its own packages, and with the .pth files of ours, where this checkout is named
    ours = sysconfig.get_path("purelib")
    line = f"import site; site.addsitedir({ours!r})\n"
    Path(found.stdout.strip(), "the-rest.pth").write_text(line, "utf-8")
    _commands(Path(python))


def _commands(python: Path) -> None:
    """Our commands in front of all others, run by this Python."""
    for entry in distribution("relational-cache").entry_points.select(group="console_scripts"):
        _, _, text = Path(sys.executable).with_name(entry.name).read_text("utf-8").partition("\n")
        command = python.with_name(entry.name)
        command.write_text(f"#!{python}\n{text}", "utf-8")
        command.chmod(0o755)


if __name__ == "__main__":
    main(*sys.argv[1:])
