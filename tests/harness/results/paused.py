"""`cachemgr` whose statements wait at a step, for somebody who kills the process there: the step is
STATEMENT_STEP, and the file STATEMENT_MARK says that it is reached."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

from cachemgr.cli import main
from cachemgr.metastore.statements import Statements
from cachemgr.results.folders import Folder
from cachemgr.spark.results import writer
from cachemgr.spark.results.runner import StatementRunner

# The class, its method, and whether it waits before that or after it.
PAUSED: Final[dict[str, tuple[Any, str, bool]]] = {
    "taken": (StatementRunner, "run", True),
    "analysed": (Statements, "analysed", False),
    "writing": (writer.ResultWriter, "_written", True),
    "written": (Folder, "write_manifest", True),
    "named": (Folder, "write_manifest", False),
    "finished": (Statements, "finish", False),
}


def _wait() -> None:
    Path(os.environ["STATEMENT_MARK"]).touch()
    time.sleep(600)


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
    of, name, before = PAUSED[os.environ["STATEMENT_STEP"]]
    setattr(of, name, _paused(getattr(of, name), before))
    main()
