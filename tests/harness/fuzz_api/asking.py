"""Garbage and mutated queries sent to a running service: each is answered below 500, or its
connection ended, within a time; the service stays alive and does not grow, and nothing that it
answers or logs has a value or a number of rows of the restricted table."""

from __future__ import annotations

import json
import random
import re
import socket
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from cachemgr.metastore import open_metastore
from tests.harness.fuzz_api.costly import costly
from tests.harness.fuzz_api.findings import Finding, Findings
from tests.harness.fuzz_api.garbage import request
from tests.harness.fuzz_api.texts import mutated, queries
from tests.processes import Service
from tests.worlds.secret_rows import leaks, places

ANSWER_SECONDS: Final = 30.0
_PATIENCE: Final = 0.3
_HEALTH_EVERY: Final = 100
_COSTLY: Final = 0.25  # of the queries are right and ask for much
# What may be there beside twice what was there after a third of the time.
_GROWN_MB: Final = 150
_STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")


@dataclass
class Asking:
    """A run against one service.

    Args:
        service: What is asked.
        seed: Of all that is random.
        findings: Where to tell.
    """

    service: Service
    seed: int
    findings: Findings
    statuses: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    rss: list[float] = field(default_factory=list)

    def garbage(self, seconds: float) -> int:
        """Send what is no request for a time; how many connections that were."""
        return self._for(seconds, "garbage")

    def texts(self, seconds: float) -> int:
        """Ask /rewrite and /explain about mutated SQL for a time; how many times."""
        return self._for(seconds, "texts")

    def all_places(self) -> int:
        """Ask for all that can be had with GET, in each role; how much that was."""
        asked = 0
        with open_metastore(self.service.metastore_url) as store:
            found = [*places(store)]
        for token in self.service.tokens.values():
            for place in found:
                head = f"GET /api/v1{place} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                data = f"{head}Authorization: Bearer {token}\r\n\r\n".encode()
                self._judge("places", asked, data, *self._exchange(data))
                asked += 1
        self._hear("metrics", 0, self.service.replica.client.get("/metrics").text)
        return asked

    def _hear(self, kind: str, number: int, told: str) -> None:
        for sentinel in sorted(leaks(told)):
            self.findings.add(Finding(kind, number, f"it tells {sentinel}", told[-3000:]))

    def one(self, kind: str, number: int) -> None:
        """Send the input of a number again."""
        data = self.made(kind, number)
        self._judge(kind, number, data, *self._exchange(data))

    def made(self, kind: str, number: int) -> bytes:
        """The bytes of a number."""
        choose = random.Random(f"{self.seed}:{kind}:{number}")
        roles = ("operator",) if kind == "texts" else ("admin", "operator", "operator", "viewer")
        token = self.service.tokens[choose.choice(roles)]
        return request(choose, token) if kind == "garbage" else _query(choose, token)

    def _for(self, seconds: float, kind: str) -> int:
        end, number = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            self.one(kind, number)
            number += 1
            if number % _HEALTH_EVERY == 0:
                self._healthy(kind, number)
        self._healthy(kind, number)
        return number

    def _exchange(self, data: bytes) -> tuple[bytes, float]:
        """What came back, and after how many seconds its end."""
        started = time.monotonic()
        parts: list[bytes] = []
        # one that says so is whole, and waited for; the others may wait for us
        whole = b"Connection: close\r\n" in data
        with socket.create_connection(("127.0.0.1", self.service.replica.port), 5) as connection:
            connection.settimeout(ANSWER_SECONDS)
            with suppress(OSError):  # it had enough; its answer may still be there
                connection.sendall(data)
            for limit in (ANSWER_SECONDS,) if whole else (_PATIENCE, ANSWER_SECONDS):
                connection.settimeout(limit)
                try:
                    while part := connection.recv(65536):
                        parts.append(part)
                except TimeoutError:
                    if limit == ANSWER_SECONDS:
                        return b"".join(parts), float("inf")
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_WR)
                except OSError:
                    break
        return b"".join(parts), time.monotonic() - started

    def _judge(self, kind: str, number: int, data: bytes, answer: bytes, took: float) -> None:
        self.slowest = max(self.slowest, took)
        statuses = [s.decode() for s in _STATUS.findall(answer)] or ["closed"]
        self.statuses.update(statuses)

        def wrong(what: str) -> None:
            self.findings.add(Finding(kind, number, what, f"{data[:2000]!r} -> {answer[-1500:]!r}"))

        if took > ANSWER_SECONDS:
            wrong(f"no end of the answer after {ANSWER_SECONDS:g} s")
        for status in statuses:
            # a service without a Spark that it could start says 503
            if status.startswith("5") and not (status == "503" and b"SPARK_" in answer):
                wrong(f"status {status}")
        if b"INTERNAL_ERROR" in answer and "500" not in statuses:
            wrong("an internal error among the reasons")
        if b"Traceback" in answer or b".py\\" in answer:
            wrong("a stack trace")
        self._hear(kind, number, answer.decode("utf-8", "replace"))

    def _healthy(self, kind: str, number: int) -> None:
        replica = self.service.replica
        if not replica.started.alive:
            raise AssertionError(f"the service died: {replica.started.text()[-3000:]}")
        started = time.monotonic()
        status = replica.client.get("/healthz", timeout=ANSWER_SECONDS).status_code
        took = time.monotonic() - started
        self.rss.append(replica.rss_mb())
        if status != 200 or took > ANSWER_SECONDS / 2:
            self.findings.add(Finding(kind, number, f"/healthz: {status} after {took:.1f} s", ""))

    def judge_memory(self) -> None:
        """Find that the service grows without an end."""
        begun, least = self.rss[: len(self.rss) // 3 + 1], max(self.rss[-2:])
        if least > 2 * max(begun) + _GROWN_MB:
            text = ", ".join(f"{r:.0f}" for r in self.rss)
            self.findings.add(Finding("memory", len(self.rss), "it grows", f"MB: {text}"))

    def judge_log(self) -> None:
        """Find errors that no client was told of; of a Spark that does not start, 503 tells him."""
        lines = self.service.replica.started.text().splitlines()
        for number, line in enumerate(lines):
            error = '"level": "error"' in line and _NO_SPARK not in line
            if error or "Traceback" in line:
                self.findings.add(Finding("log", number, _event(line), line[:3000]))
            self._hear("log", number, line)


_NO_SPARK = "Spark does not start: "
_SEEDS: list[str] = []


def _query(choose: random.Random, token: str) -> bytes:
    if not _SEEDS:
        _SEEDS.extend(queries())
    path = choose.choice(("rewrite", "explain"))
    text = costly(choose) if choose.random() < _COSTLY else mutated(choose, _SEEDS)
    body = json.dumps({"sql": text}).encode()
    head = (
        f"POST /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _event(line: str) -> str:
    try:
        found = json.loads(line)
    except ValueError:
        return line[:200]
    last = str(found.get("exception", "")).strip().splitlines()[-1:]
    return f"{re.sub(r'[0-9a-f]{32}', '…', str(found.get('event')))[:150]} {' '.join(last)[:200]}"


def told(statuses: Counter[str]) -> str:
    """Statuses for people."""
    return ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
