"""`make mutations`: does `make test` choose the tests that notice a change?

Draws N mutations of the program by SEED: ten at least of the Java classes, ten of modules that
tests with Spark alone reach. Each is put into a clone of the newest commit, where the tests that
`make test` would choose run until one fails: of Python, those that cover the function by the
record; of Java, all, until the time of `make test` is up. What is not noticed so is tried with the
tests that cover it and had no time. Results are kept in build/mutations/, by commit and seed, so
that a run can be ended and goes on; the last lines say what came out.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.gate import covered
from tests.gate.plugin import SECONDS
from tests.gate.recording import PRODUCT, ROOT, unit
from tests.harness.mutations.points import JAVA, Mutation, drawn, java_mutations, python_mutations

FOLDER: Final = ROOT / "build" / "mutations"
_QUICK: Final = "not spark and not postgres and not slow"
_SHARE: Final = 10  # of Java, and of what Spark tests alone reach
_OPTIONS: Final = ("-q", "--no-header", "-p", "no:cacheprovider")
_TWO: Final = ("-n", "2", "--dist", "loadfile")


class Clone:
    """A clone of the newest commit with an environment of its own.

    Args:
        path: Where it is, or will be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            subprocess.run(["git", "clone", "-q", str(ROOT), str(path)], check=True)
        self._git("fetch", "-q", "origin", "HEAD")
        self._git("checkout", "-q", "--force", "FETCH_HEAD")
        self._git("clean", "-q", "-fd")
        self._run(["make", "setup", ".venv/.spark-prepared"])
        self.commit = self._git("rev-parse", "HEAD").strip()
        self.record = covered.read(path / covered.PATH.relative_to(ROOT))

    def put(self, mutation: Mutation) -> str:
        """Make one change, and say it in a line."""
        file = self.path / mutation.path
        source = file.read_text()
        file.write_text(mutation.applied(source))
        return mutation.told(source)

    def take_back(self) -> None:
        """As it was committed, the jar included."""
        self._git("checkout", "-q", "--force", "HEAD", "--", ".")

    def makes_jar(self) -> bool:
        """The Java classes anew; False if they do not compile."""
        return self._run(["make", "jar"]).returncode == 0

    def collected(self, *options: str) -> list[str]:
        """The names of the tests of a run, in its order."""
        told = self._pytest("--collect-only", *options).stdout
        # pytest's warnings name tests, too, further in
        return [line for line in told.splitlines() if "::" in line and line.startswith("tests/")]

    def failing(self, tests: Sequence[str], seconds: float) -> tuple[str, bool]:
        """The first of these tests that fails, or nothing; and whether the time was up before.

        Args:
            tests: Their names.
            seconds: When to end, which counts as not noticed.
        """
        listed = self.path / "build" / "asked.txt"
        listed.parent.mkdir(exist_ok=True)
        listed.write_text("\n".join(tests))
        shared = _TWO if len(tests) > 20 else ()
        try:
            done = self._pytest("-x", *shared, f"@{listed}", timeout=seconds)
        except subprocess.TimeoutExpired:
            return "", True
        named = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if done.returncode == 0:
            return "", False
        if done.returncode == 5:
            raise SystemExit(f"none of the {len(tests)} tests was found: {listed}")
        return (
            named[0].split(" - ")[0] if named else f"pytest ended with {done.returncode}"
        ), False

    def _pytest(self, *words: str, timeout: float | None = None) -> Any:
        return self._run([".venv/bin/python", "-m", "pytest", *_OPTIONS, *words], timeout)

    def _git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.path), *words], check=True, capture_output=True, text=True
        )
        return done.stdout

    def _run(self, words: Sequence[str], timeout: float | None = None) -> Any:
        with subprocess.Popen(
            words,
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, _ = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # with its workers and their Sparks
                raise
        return subprocess.CompletedProcess(words, process.returncode, out)


def mutations(clone: Clone, count: int, seed: int) -> list[Mutation]:
    """Those that are drawn of the clone's program.

    Args:
        clone: What they are made of.
        count: How many.
        seed: They are drawn by.
    """
    found = {}
    for package in PRODUCT:
        for path in sorted((clone.path / package).rglob("*.py")):
            name = path.relative_to(clone.path).as_posix()
            found[name] = list(python_mutations(name, path.read_text()))
    for path in sorted((clone.path / JAVA).rglob("*.java")):
        name = path.relative_to(clone.path).as_posix()
        found[name] = list(java_mutations(name, path.read_text()))
    quick = {unit(test) for test in clone.collected("-m", _QUICK)}
    record = covered.read()
    reached = {
        name.partition(":")[0] for test in quick & set(record) for name in record[test].covers
    }
    java = frozenset(path for path in found if path.startswith(JAVA))
    by_spark = frozenset(found) - java - reached
    rest = frozenset(found) - java - by_spark
    shares = [(java, _SHARE), (by_spark, _SHARE), (rest, count - 2 * _SHARE)]
    return drawn(found, seed, shares)


def tried(clone: Clone, mutation: Mutation) -> dict[str, Any]:
    """What came of one: by which test it was noticed, and whether `make test` would have run it."""
    began = time.monotonic()
    is_java = mutation.path.startswith(JAVA)
    told = clone.put(mutation)
    result: dict[str, Any] = {"at": f"{mutation.name}:{mutation.line}", "change": told}
    try:
        if is_java and not clone.makes_jar():
            return result | {"by": "the compiler", "chosen": True}
        # as the two processes of make test choose
        chosen, late = clone.collected("--choose", f"--seconds={2 * SECONDS}"), list[str]()
        if not is_java:
            covers = {name for name, each in clone.record.items() if mutation.name in each.covers}
            chosen = [test for test in chosen if unit(test) in covers]
            kept = set(chosen)
            late = [t for t in clone.collected() if unit(t) in covers and t not in kept]
        result |= {"tests": len(chosen), "late": len(late), "by": "", "chosen": False}
        for tests, is_chosen in ((chosen, True), (late, False)):
            if tests and not result["by"]:
                by, is_late = clone.failing(tests, SECONDS)
                result |= {"by": by, "chosen": bool(by) and is_chosen, "out_of_time": is_late}
    finally:
        clone.take_back()
    return result | {"seconds": round(time.monotonic() - began)}


def _kept(path: Path) -> Iterator[dict[str, Any]]:
    if path.exists():
        yield from map(json.loads, path.read_text().splitlines())


def main(arguments: Sequence[str] | None = None) -> int:
    """Try those that have not been tried, and say what came out."""
    parser = argparse.ArgumentParser(description="does make test notice a change?")
    parser.add_argument("--n", type=int, default=40, help="how many (40)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["python", "java"], help="those of one language")
    parser.add_argument("--minutes", type=float, default=600.0, help="when to begin no other")
    asked = parser.parse_args(arguments)
    until = time.monotonic() + 60 * asked.minutes
    FOLDER.mkdir(parents=True, exist_ok=True)
    clone = Clone(FOLDER / "clone")
    path = FOLDER / f"{clone.commit[:12]}-{asked.seed}.jsonl"
    results = {each["at"]: each for each in _kept(path)}
    for mutation in mutations(clone, asked.n, asked.seed):
        language = "java" if mutation.path.endswith(".java") else "python"
        is_done = f"{mutation.name}:{mutation.line}" in results
        if is_done or time.monotonic() > until or asked.only not in (None, language):
            continue
        result = tried(clone, mutation)
        results[result["at"]] = result
        with path.open("a") as file:
            file.write(json.dumps(result) + "\n")
        print(f"{result['at']}  {result['change']}: {result['by'] or 'NOT NOTICED'}", flush=True)
    noticed = [each for each in results.values() if each["by"]]
    chosen = sum(each["chosen"] for each in noticed)
    print(
        f"{len(results)} tried, {len(noticed)} noticed, {chosen} of them by what make test chooses"
    )
    for each in results.values():
        if not each["by"]:
            print(f"nothing notices {each['at']}: {each['change']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
