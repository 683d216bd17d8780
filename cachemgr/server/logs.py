"""Logs of the service: one JSON object a line, or text for people."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

from cachemgr.printable import printable
from cachemgr.secrets import masked


def configure_logs(level: str, log_format: str) -> None:
    """Send all logs of the process to stderr, one event a line.

    Args:
        level: The least level.
        log_format: `json`, `text`, or `auto`: text where stderr is a terminal, else JSON.
    """
    for_people = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: Any = (
        structlog.dev.ConsoleRenderer(colors=False)
        if for_people
        else structlog.processors.JSONRenderer()
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _mask,
                *([_printable] if for_people else []),
                last,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for noisy in ("py4j", "uvicorn.access", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    # it warns of each look that is skipped while a long one lasts, which is meant
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    # it quotes texts that it cannot read whole, which are users' own
    logging.getLogger("sqlglot").setLevel(logging.ERROR)


def _printable(
    logger: Any, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """One event stays one line, whatever a name or an error holds; JSON writes it out by itself."""
    return {
        k: printable(v, one_line=k != "exception") if isinstance(v, str) else v
        for k, v in event.items()
    }


def _mask(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Whatever wrote it, the driver of a database or a library: no password gets into the logs."""
    return {k: masked(v) if isinstance(v, str) else v for k, v in event.items()}
