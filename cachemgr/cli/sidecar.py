"""`cachemgr sidecar`: started by Spark, not by people."""

from __future__ import annotations

import logging
import sys

from cachemgr.cli.failure import handled
from cachemgr.extras import require


def sidecar() -> None:
    """Serve the Spark application that started this process (relationalcache.Extension does)."""
    with handled():
        require("cachemgr sidecar", "spark")
        from cachemgr.spark.process.sidecar import run

        # the driver's log, which has a level and the time for each line, gets it all
        logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
        logging.getLogger("cachemgr").setLevel(logging.INFO)
        run()
