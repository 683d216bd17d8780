"""`cachemgr sql` and `cachemgr doctor` as processes with a Spark of their own."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import SMALL_SPARK, until

pytestmark = pytest.mark.spark
TOTALS = "SELECT k, SUM(v) AS s FROM t GROUP BY k"
SETUP = f"""
CREATE TABLE t (k STRING, v INT) USING delta;
INSERT INTO t VALUES ('a;b', 1), ('a;b', 2), (NULL, 3);
CREATE RELATIONAL CACHE totals STRICT AS {TOTALS};
REFRESH RELATIONAL CACHE totals"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    conf = {**SMALL_SPARK, "spark.sql.warehouse.dir": str(tmp_path / "warehouse")}
    return {
        **{k: v for k, v in os.environ.items() if not k.startswith("CACHEMGR_")},
        "HOME": str(tmp_path),
        "CACHEMGR_METASTORE_URL": f"sqlite:///{tmp_path / 'metastore.db'}",
        "CACHEMGR_LOCATION": str(tmp_path / "caches"),
        "CACHEMGR_SPARK_MASTER": "local[1]",
        "CACHEMGR_SPARK_CONF": json.dumps(conf),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


COMMAND = (sys.executable, "-c", "from cachemgr.cli import main; main()")


def test_a_script_then_the_doctor(environment, tmp_path):
    modes = f"SET spark.cachemgr.mode = planOnly; {TOTALS}; SET spark.cachemgr.mode = off; {TOTALS}"
    script = f"{SETUP};\n{TOTALS} ORDER BY k; SELECT MAX(v) FROM t; {modes};"
    script += f"RESET spark.cachemgr.mode; CREATE TABLE w USING delta AS {TOTALS};"
    script += "SET spark.cachemgr.mod = off; SELEC; SELECT 2"
    done = subprocess.run(
        [*COMMAND, "sql", "-o", "json"],
        input=script, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert done.stderr.count("[PARSE_SYNTAX_ERROR]") == 1 and "Starting Spark" in done.stderr
    assert '"level"' not in done.stderr  # PySpark's own log of it, with a stack trace
    assert "escapedStringLiterals" not in done.stderr and "deprecated" not in done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 13  # what is behind the wrong one is not run
    assert [a["verdict"] for a in answers[:4]] == [None] * 4
    assert "statement 14 of 15 failed; 1 statement after it not run: SELEC" in done.stderr
    assert answers[4]["verdict"].startswith("hit totals") and answers[4]["seconds"] > 0
    assert answers[4]["rows"] == [[None, 3], ["a;b", 3]]
    assert answers[5]["verdict"].startswith("miss: ") and answers[5]["rows"] == [[3]]
    assert answers[7]["verdict"].startswith("planned only, the original ran: hit totals")
    off = "SETTINGS_DIFFER: spark.cachemgr.mode is off (set it otherwise, or RESET it)"
    assert answers[9]["verdict"] == f"miss: {off}"
    assert answers[11]["verdict"] == "hit of the query whose rows it writes"
    assert "did you mean spark.cachemgr.mode?" in done.stderr

    environment["CACHEMGR_LOCATION"] = str(tmp_path / "other")
    done = subprocess.run(
        [*COMMAND, "doctor", "-o", "json"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = {line["check"]: line["state"] for line in json.loads(done.stdout)}
    assert found["spark"] == found["delta"] == found["storage"] == "OK"


# some minutes of one task, unless somebody cancels it; a write, since those are logged at length
LONG = (
    "CREATE TABLE endless USING delta AS SELECT a.id AS x, b.id AS y "
    "FROM range(1000000) a CROSS JOIN range(1000000) b;\n"
)


def test_on_a_terminal(environment, tmp_path):
    ours, theirs = pty.openpty()
    log = tmp_path / "log"
    with log.open("wb") as out:
        running = subprocess.Popen(
            [*COMMAND, "sql"],
            stdin=theirs, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=tmp_path,
            start_new_session=True,
        )  # fmt: skip
    try:
        os.write(ours, b"SELECT 1 AS one,\n 'x;y' AS two;\nSELEC;\nhelp\n")
        os.write(ours, b"SET spark.cachemgr.mode = foo;\n")
        os.write(ours, b"SELECT 1 AS x,\n\\?\n NULL AS y, true AS z;\n")
        until(lambda: "Ctrl-C" in log.read_text() and "NULL" in log.read_text(), 240, "the answers")
        os.write(ours, LONG.encode())
        time.sleep(5)  # it is planned, or runs
        running.send_signal(signal.SIGINT)
        until(lambda: "was cancelled" in log.read_text(), 60, "the statement is cancelled")
        os.write(ours, b"SELECT 40 + 2 AS n;\nSELECT\n\\q\n")
        assert running.wait(240) == 0, log.read_text()
    finally:
        with contextlib.suppress(ProcessLookupError):  # with its JVM, where it has not ended
            os.killpg(running.pid, signal.SIGKILL)
    os.close(ours)
    os.close(theirs)
    text = log.read_text()
    assert "Starting Spark" in text and "42" in text and "endless" not in text
    assert text.count("Ctrl-C") == 2 and "1 row, " in text
    assert (
        "x;y" in text
        and text.count("[BAD_SETTING]") == 1
        and text.count("[PARSE_SYNTAX_ERROR]") == 1
    )
    assert "Traceback" not in text and '"level"' not in text
    assert "SparkException" not in text and "Lost task" not in text
    assert (tmp_path / ".cachemgr_history").exists()
