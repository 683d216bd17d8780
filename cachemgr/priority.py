"""The processor's time between answers and refreshes: what refreshes gives way.

A refresh keeps every core busy for minutes, an answer needs one for milliseconds; with equal
priority each answer waits for its turn behind the refresh's threads. Linux keeps a nice value for
each thread, and a process begins with that of the thread which started it. So the JVM is started by
a thread that has lowered its own: all of the JVM's threads and children have it from the first, and
those that answer keep theirs. (`setpriority` on the JVM afterwards would reach one of its threads.)
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Final, TypeVar

from cachemgr.telemetry import logger

LOWEST: Final = 19
_AUTOGROUP: Final = Path("/proc/self/autogroup")
_Result = TypeVar("_Result")


def with_priority(nice: int, start: Callable[[], _Result]) -> _Result:
    """Carry `start` out so that the processes it starts have a lower priority than this one.

    Args:
        nice: What is added to this thread's nice value; 0 changes nothing. Only on Linux: elsewhere
            a nice value is the whole process's.
        start: What to do; in a thread of its own where there is something to change, since no
            thread may take its priority back.

    Returns:
        What `start` returned; what it raised is raised.
    """
    if nice == 0 or sys.platform != "linux":
        return start()
    done: Future[_Result] = Future()

    def run() -> None:
        try:
            thread = threading.get_native_id()
            now = os.getpriority(os.PRIO_PROCESS, thread)
            os.setpriority(os.PRIO_PROCESS, thread, min(LOWEST, now + nice))
            done.set_result(start())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="cachemgr-start", daemon=True).start()
    return done.result()


def lower_session(nice: int) -> None:
    """Lower the priority of this process's session, where Linux shares the processor out among
    sessions first (`autogroup`, see sched(7)): there a nice value counts within one session alone.

    Nothing is done where the session is not this process's own, such as that of somebody's shell.

    Args:
        nice: The session's nice value; 0 changes nothing.
    """
    if nice == 0 or os.getsid(0) != os.getpid():
        return
    try:
        if _in_a_group():
            _AUTOGROUP.write_text(str(nice))
    except OSError as error:  # refused, or asked too often: refreshes are only less out of the way
        logger.warning("the priority of this session stays as it is: %s", error)


def _in_a_group() -> bool:
    """Whether sessions have groups here: the file is there but empty in a control group of its own,
    as a container's processes are.
    """
    return _AUTOGROUP.exists() and _AUTOGROUP.read_text().strip() != ""
