"""`make fuzz-api MINUTES=…`: what comes from outside, wrong on purpose: the DDL parser and the text
door in a process of their own, garbage and mutated SQL against a running service on PostgreSQL,
and the OpenAPI document against it by schemathesis.

Exit code 1 if anything was found. Everything follows from the seed: `--only ddl:17` tries one
input again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cachemgr.metastore import open_metastore
from tests.harness.fuzz_api import parsers
from tests.harness.fuzz_api.asking import Asking, told
from tests.harness.fuzz_api.findings import Finding, Findings
from tests.processes import ROOT, Service, exit_on_sigterm, postgres_server, rest_service
from tests.worlds.secret_rows import secret_world

CACHES = 20
# how the time is divided
PARSERS, GARBAGE, TEXTS, CONTRACT = 0.3, 0.25, 0.2, 0.25
_EXAMPLES_A_MINUTE = 4


@contextmanager
def running_service() -> Iterator[Service]:
    """A service with some caches over the tables that the queries name, whose rows none of its
    clients may hear of."""
    with tempfile.TemporaryDirectory(prefix="cachemgr-fuzz-") as name, postgres_server() as url:
        folder = Path(name)
        folder.chmod(0o755)
        with open_metastore(url) as store:
            secret_world(store, folder, CACHES)
        with rest_service(url, folder) as service:
            yield service


def fuzz(minutes: float, seed: int, findings: Findings, *, contract: bool = True) -> dict[str, Any]:
    """Try everything for a time.

    Args:
        minutes: How long, starting of processes not counted.
        seed: Of all that is random.
        findings: Where to tell.
        contract: Whether schemathesis takes part.

    Returns:
        What was tried.
    """
    seconds = 60 * minutes
    tried: dict[str, Any] = {"seed": seed, "minutes": minutes}
    tried |= parsers.fuzz(seed, PARSERS * seconds, findings)
    _say(tried)
    with running_service() as service:
        asking = Asking(service, seed, findings)
        tried["garbage"] = asking.garbage(GARBAGE * seconds)
        tried["texts"] = asking.texts(TEXTS * seconds)
        asking.all_places()
        asking.judge_memory()
        asking.judge_log()
        tried["statuses"] = told(asking.statuses)
        tried["slowest_seconds"] = round(asking.slowest, 2)
        tried["rss_mb"] = [round(asking.rss[0]), round(asking.rss[-1])]
    _say(tried)
    if contract:
        tried["contract_examples"] = _contract(minutes, seed, findings)
    return tried


def _say(tried: dict[str, Any]) -> None:
    sys.stdout.write(f"{tried}\n")
    sys.stdout.flush()


def _contract(minutes: float, seed: int, findings: Findings) -> int:
    """The tests of the contract with many examples."""
    examples = max(2, round(_EXAMPLES_A_MINUTE * minutes * CONTRACT / 0.25))
    given = {"CACHEMGR_CONTRACT_EXAMPLES": str(examples), "CACHEMGR_CONTRACT_SEED": str(seed)}
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    ended = subprocess.run(
        [*command, f"--hypothesis-seed={seed}", "tests/contract/test_schemathesis.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **given},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode != 0:
        shown = "\n".join(line[:500] for line in ended.stdout.splitlines())
        findings.add(Finding("contract", seed, "schemathesis is not content", shown[-20_000:]))
    return examples


def again(seed: int, kind: str, number: int, findings: Findings) -> None:
    """Try one input again."""
    if kind in parsers.KINDS:
        text = parsers.made(seed, kind, number)
        with parsers.reader() as reads:
            wrong = reads.read(kind, text)
        if wrong is not None:
            findings.add(Finding(kind, number, wrong, repr(text)))
        return
    with running_service() as service:
        asking = Asking(service, seed, findings)
        asking.one(kind, number) if kind in ("garbage", "texts") else asking.all_places()


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**6)
    parser.add_argument("--only", help="KIND:NUMBER of a finding, to try it again")
    parser.add_argument("--no-contract", action="store_true", help="leave schemathesis out")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz_api")
    chosen = parser.parse_args()
    exit_on_sigterm()
    sys.stdout.write(f"seed {chosen.seed}\n")
    findings = Findings(chosen.out)
    if chosen.only is not None:
        kind, _, number = chosen.only.partition(":")
        again(chosen.seed, kind, int(number), findings)
        tried: dict[str, Any] = {"seed": chosen.seed, "only": chosen.only}
    else:
        tried = fuzz(chosen.minutes, chosen.seed, findings, contract=not chosen.no_contract)
    report = {**tried, "findings": [asdict(f) for f in findings.first.values()]}
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    _say(tried)
    sys.stdout.write(findings.text() + "\n" if findings.first else "nothing was found\n")
    return 1 if findings.first else 0


if __name__ == "__main__":
    sys.exit(main())
