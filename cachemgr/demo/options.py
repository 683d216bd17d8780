"""What the demo is asked to do, and the folder that it works in."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from cachemgr.demo.errors import DemoError

_STATE = "demo.json"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The options of `cachemgr demo`.

    Args:
        scale: SSB scale factor; 1 is 6,000,000 lineorder rows.
        seed: Seed of the data.
        query_seed: Seed of the queries' parameters.
        workdir: Folder for data, caches and metastore, kept for the next run.
        report: Where the HTML report is written, or None for `report.html` in the run's folder.
        fresh: Whether the data and caches of an earlier run are made again.
    """

    scale: float = 1.0
    seed: int = 42
    query_seed: int = 0
    workdir: Path = Path("demo-data")
    report: Path | None = None
    fresh: bool = False

    @property
    def folder(self) -> Path:
        """The folder of this scale and seed: another scale never touches it."""
        return self.workdir.resolve() / f"sf{self.scale:g}-seed{self.seed}"

    @property
    def report_path(self) -> Path:
        """Where the report goes."""
        return (self.report or self.folder / "report.html").resolve()

    @property
    def figures_path(self) -> Path:
        """Where the figures go, as JSON: beside the report."""
        return self.report_path.with_name(f"{self.report_path.stem}-figures.json")


def open_folder(options: DemoOptions) -> bool:
    """Makes the run's folder, emptied first if a fresh start is asked for.

    Args:
        options: The options.

    Returns:
        Whether an earlier run was found and kept.

    Raises:
        DemoError: The folder exists and is not the demo's: nothing in it is touched.
    """
    folder = options.folder
    state = folder / _STATE
    if folder.exists() and not state.exists() and any(folder.iterdir()):
        raise DemoError(
            f"folder {folder} was not made by the demo (it has no {_STATE}); "
            "nothing was touched: give another one with --workdir"
        )
    if options.fresh and folder.exists():
        shutil.rmtree(folder)
    kept = state.exists()
    folder.mkdir(parents=True, exist_ok=True)
    if not kept:
        state.write_text(json.dumps({"cube": None}), encoding="utf-8")
    return kept


def stored_definition(options: DemoOptions) -> str | None:
    """The hash of the cube definition that an earlier run created.

    Args:
        options: The options.

    Returns:
        The hash, or None if no cube was created yet.
    """
    state = json.loads((options.folder / _STATE).read_text(encoding="utf-8"))
    found: str | None = state.get("cube")
    return found


def store_definition(options: DemoOptions, ddl: str) -> None:
    """Remembers which cube definition was created.

    Args:
        options: The options.
        ddl: The statement.
    """
    text = json.dumps({"cube": definition_hash(ddl)})
    (options.folder / _STATE).write_text(text, encoding="utf-8")


def definition_hash(ddl: str) -> str:
    """A short hash of a statement.

    Args:
        ddl: The statement.

    Returns:
        Hex digits.
    """
    return hashlib.sha256(ddl.encode()).hexdigest()[:16]
