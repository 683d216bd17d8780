"""`cachemgr` whose statements wait at a step, for somebody who kills a process there: the step is
STATEMENT_STEP, the file STATEMENT_MARK says that it is reached, STATEMENT_MARK.go lets it go on.
Housekeeping is done each second."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

from cachemgr.cli import main
from cachemgr.metastore.statements import Statements
from cachemgr.results.folders import Folder, Results
from cachemgr.spark.results import writer
from cachemgr.spark.results.runner import StatementRunner
from cachemgr.spark.results.targets import Write
from cachemgr.worker import statement_process
from tests.processes import until

# The class, its method, and whether it waits before that or after it.
PAUSED: Final[dict[str, tuple[Any, str, bool]]] = {
    "taken": (StatementRunner, "run", True),
    "analysed": (Statements, "analysed", False),
    "writing": (writer.ResultWriter, "_written", True),
    "written": (Folder, "write_manifest", True),
    "named": (Folder, "write_manifest", False),
    "finished": (Statements, "finish", False),
    "expiring": (Results, "delete", True),
}
# The same of statements that write.
WRITES: Final[dict[str, tuple[Any, str, bool]]] = {
    "taken": PAUSED["taken"],
    "analysed": PAUSED["analysed"],
    "handed_over": (Statements, "handed_over", False),
    "committed": (Write, "carried_out", False),
    "named": PAUSED["named"],
    "finished": PAUSED["finished"],
}


def _wait() -> None:
    mark = Path(os.environ["STATEMENT_MARK"])
    mark.touch()
    until(mark.with_name(f"{mark.name}.go").exists, 600, "it may go on")


def _paused(work: Callable[..., Any], before: bool) -> Callable[..., Any]:
    @wraps(work)
    def waiting(*args: Any, **kwargs: Any) -> Any:
        if before:
            _wait()
        found = work(*args, **kwargs)
        if not before:
            _wait()
        return found

    return waiting


if __name__ == "__main__":
    of, name, before = {**PAUSED, **WRITES}[os.environ["STATEMENT_STEP"]]
    setattr(of, name, _paused(getattr(of, name), before))
    statement_process.HOUSEKEEPING_SECONDS = 1
    main()
