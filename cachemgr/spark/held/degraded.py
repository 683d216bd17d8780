"""What is said where something cannot be held in memory and queries do without it."""

from __future__ import annotations

import logging

from cachemgr.causes import cause_of


def warn(log: logging.Logger, message: str, error: BaseException) -> None:
    """Warn in one line; who logs at DEBUG gets the trace as well.

    Args:
        log: The logger.
        message: What queries do without.
        error: Why.
    """
    log.warning("%s: %s", message, cause_of(error), exc_info=log.isEnabledFor(logging.DEBUG))
