"""`cachemgr serve` as a process: what keeps it from starting is one line."""

from __future__ import annotations

import os
import socket
import subprocess

from cachemgr.config.service_settings import ServiceSettings
from cachemgr.server.serve import listening
from tests.processes import CACHEMGR


def test_a_port_in_use(tmp_path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = subprocess.run(
            [*CACHEMGR, "serve", "--no-scheduler", "--port", str(port)],
            cwd=tmp_path,
            env={**os.environ, "CACHEMGR_HOST": "127.0.0.1"},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1, done.stderr
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("error"))
    assert f"[PORT_IN_USE] cannot listen on 127.0.0.1:{port}" in said
    assert "give another --host or --port" in said
    assert "Traceback" not in done.stderr


def test_an_answer_of_two_writes_does_not_wait_for_an_acknowledgement() -> None:
    settings = ServiceSettings(host="127.0.0.1", port=0)
    with listening(settings) as bound:
        bound.listen()
        with socket.create_connection(bound.getsockname()):
            accepted, _ = bound.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
