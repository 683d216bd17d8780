"""The fixture `proofs`: executes what is not proved yet, and what is known with its shard.

`--execute-proofs` executes all; `--write-proofs` adds what the run proved to the ledger, which no
other run touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.gate.ledger import shard_of
from tests.proofs import keys, ledger

FOLDER = ledger.FOLDER
_HOW = pytest.StashKey["Run"]()


class ProofDiffers(AssertionError):
    """The ledger says something else than what was executed now."""


class Run:
    """What one process knows and finds out.

    Args:
        known: The ledger.
        every: Whether known proofs are executed as well.
        shards: Those of which known proofs are executed as well.
    """

    def __init__(
        self, known: ledger.Proofs, every: bool = False, shards: Iterable[int] = ()
    ) -> None:
        self.known = known
        self.every = every
        self.shards = frozenset(shards)
        self.found = ledger.Proofs()
        self.asked: set[str] = set()
        self.executed = 0
        # whether tests were left out, which would have asked for more
        self.partial = False

    def is_due(self, key: str) -> bool:
        """Whether a known proof is executed in this run."""
        return self.every or shard_of(key) in self.shards


class Executed:
    """Judges a case in Spark, unless it is known what comes out.

    Args:
        run: What the process knows.
        fixture: Gives a fixture's value, which a judge needs to execute anything.
    """

    def __init__(self, run: Run, fixture: Callable[[str], Any]) -> None:
        self._run = run
        self._fixture = fixture

    def outcome(self, judge: keys.Judge, inputs: Any, fixture: str) -> str:
        """What the judge says of the inputs, one word.

        Args:
            judge: Executes, and raises AssertionError unless what comes out is right.
            inputs: All that it is given of the case, plain data.
            fixture: The name of the fixture in which it executes.

        Raises:
            AssertionError: It was executed, and is wrong.
            ProofDiffers: It was executed, and is another outcome than the ledger's.
        """
        key = keys.key(judge, inputs)
        known = self._run.known.outcomes.get(key)
        return self._checked(key, known, lambda: judge(self._fixture(fixture), inputs))

    def text(self, judge: keys.Judge, inputs: Any, fixture: str, *, lasts: bool = True) -> str:
        """`outcome` of a judge that gives a text, which is kept whole to be read again; or
        executed in every run, where it does not last (as what is of the moment)."""
        if not lasts:
            return judge(self._fixture(fixture), inputs)
        key = keys.key(judge, inputs)
        known = self._run.known.outcomes.get(key)
        kept = None if known is None else self._run.known.text(known)
        made: list[str] = []

        def execute() -> str:
            made.append(judge(self._fixture(fixture), inputs))
            return self._run.found.put_text(made[0])

        self._checked(key, None if kept is None else known, execute)
        text = made[0] if made else kept
        assert text is not None
        return text

    def _checked(self, key: str, known: str | None, execute: Callable[[], str]) -> str:
        self._run.asked.add(key)
        if known is not None and not self._run.is_due(key):
            return known
        found = execute()
        self._run.executed += 1
        if known is not None and found != known:
            raise ProofDiffers(
                f"{ledger.LEDGER} says {known} for {key}, executed it is {found}: the proof "
                "is wrong, or depends on something that is not hashed"
            )
        self._run.found.outcomes[key] = found
        return found


@pytest.fixture
def proofs(request: pytest.FixtureRequest) -> Executed:
    """Judges cases in Spark, unless it is known what comes out."""
    return Executed(request.config.stash[_HOW], request.getfixturevalue)


def add_options(parser: pytest.Parser) -> None:
    """Add the options of this module."""
    group = parser.getgroup("proofs")
    group.addoption(
        "--execute-proofs", action="store_true", help="execute what the ledger of proofs knows too"
    )
    group.addoption(
        "--write-proofs", action="store_true", help="add what this run proves to the ledger"
    )
    group.addoption(
        "--forget-proofs",
        action="store_true",
        help="with --write-proofs: forget what no test of this run asked for, unless one failed "
        "or was left out",
    )


def configure(config: pytest.Config, shards: Iterable[int]) -> None:
    """Read the ledger.

    Args:
        config: Of the run.
        shards: Those whose known proofs are executed too.
    """
    every = bool(config.getoption("--execute-proofs"))
    run = config.stash[_HOW] = Run(ledger.read(FOLDER), every, shards)
    config.pluginmanager.register(_Reports(config, run), "proofs-reports")


def is_proof(item: pytest.Item) -> bool:
    """Whether a test asks the ledger."""
    return "proofs" in getattr(item, "fixturenames", ())


class _Reports:
    """Gathers what processes proved, writes it and tells of it."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config = config
        self._run = run

    @pytest.hookimpl(optionalhook=True)  # of pytest-xdist
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A process of several has ended: what it proved is its controller's."""
        sent = getattr(node, "workeroutput", {}).get("proofs")
        if sent is not None:
            _take(self._run, sent)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._run.partial = self._run.partial or bool(items)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        option, run = self._config.getoption, self._run
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["proofs"] = _sent(run)
        elif option("--write-proofs"):
            forget = option("--forget-proofs") and exitstatus == 0 and not run.partial
            ledger.add(run.found, run.asked if forget else None, FOLDER)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        run = self._run
        if run.asked:
            new = len(run.found.outcomes.keys() - run.known.outcomes.keys())
            terminalreporter.write_line(
                f"proofs: {len(run.asked)} asked for, {run.executed} executed, {new} of them new"
            )


def _sent(run: Run) -> tuple[Any, ...]:
    found = run.found
    return found.outcomes, found.packed, sorted(run.asked), run.executed, run.partial


def _take(run: Run, sent: tuple[Any, ...]) -> None:
    outcomes, packed, asked, executed, partial = sent
    run.found.outcomes.update(outcomes)
    run.found.packed.update(packed)
    run.asked.update(asked)
    run.executed += executed
    run.partial |= partial
