"""A sidecar in which one thing goes wrong while a file is there; run in its place, see
`test_faulty_sidecars`."""

from __future__ import annotations

import itertools
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cachemgr.cli import main
from cachemgr.spark import hook

SLOW_SECONDS = 12.0
_NONSENSE: tuple[Callable[[Any], object], ...] = (
    lambda request: request.graft("7.7", None, "", "SELECT 1", None, ""),
    lambda request: request.graft("", None, "", "SELEKT nothing", None, ""),
    lambda request: request.graft("", "x", "y", "SELECT 1", None, ""),
    lambda request: 42,
    lambda request: "no answer " * 200_000,
)


def _slow(request: Any) -> object:
    time.sleep(SLOW_SECONDS)
    return None


def _out_of_memory(request: Any) -> object:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + (8 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    return [bytearray(1 << 20) for _ in itertools.count()]


def _install(fault: str, while_there: Path) -> None:
    answers = hook._Proxy.apply
    turns = itertools.cycle(_NONSENSE)

    def apply(proxy: Any, request: Any, text: str) -> Any:
        if request is None or not while_there.exists():
            return answers(proxy, request, text)
        if fault == "slow":
            return _slow(request) or answers(proxy, request, text)
        if fault == "out of memory":
            return _out_of_memory(request)
        return next(turns)(request)

    hook._Proxy.apply = apply  # type: ignore[method-assign]


if __name__ == "__main__":
    _install(sys.argv[1], Path(sys.argv[2]))
    sys.argv = ["cachemgr", "sidecar"]
    main()
