"""The fixture `proofs`: executes what is not proved yet, and each known proof when it is its turn.

`--execute-proofs` executes all; `--write-proofs` adds what the run proved to the ledger, which no
other run touches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests import rotation
from tests.proofs import keys, ledger

# Of what is known, one in so many is executed again: all of it in so many commits.
SHARES = 16
FOLDER = ledger.FOLDER
_HOW = pytest.StashKey["Run"]()


class ProofDiffers(AssertionError):
    """The ledger says something else than what was executed now."""


class Run:
    """What one process knows and finds out.

    Args:
        known: The ledger.
        every: Whether known proofs are executed as well.
    """

    def __init__(self, known: ledger.Proofs, every: bool) -> None:
        self.known = known
        self.every = every
        self.found = ledger.Proofs()
        self.asked: set[str] = set()
        self.executed = 0
        # whether tests were left out, which would have asked for more
        self.partial = False

    def is_due(self, key: str) -> bool:
        """Whether a known proof is executed in this run."""
        return self.every or rotation.is_due(int(key, 16), SHARES)


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


def pytest_addoption(parser: pytest.Parser) -> None:
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


def pytest_configure(config: pytest.Config) -> None:
    rotation.turn()  # before processes are started, which all have the same one
    config.stash[_HOW] = Run(ledger.read(FOLDER), bool(config.getoption("--execute-proofs")))


def is_proof(item: pytest.Item) -> bool:
    """Whether a test asks the ledger."""
    return "proofs" in getattr(item, "fixturenames", ())


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_testnodedown(node: Any, error: object) -> None:
    """A process of several has ended: what it proved is its controller's."""
    sent = getattr(node, "workeroutput", {}).get("proofs")
    if sent is not None:
        _take(node.config.stash[_HOW], sent)


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


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        item.config.stash[_HOW].partial = True


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    run = config.stash[_HOW]
    output = getattr(config, "workeroutput", None)
    if output is not None:
        output["proofs"] = _sent(run)
        return
    if config.getoption("--write-proofs"):
        forget = config.getoption("--forget-proofs") and exitstatus == 0 and not run.partial
        ledger.add(run.found, run.asked if forget else None, FOLDER)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    run = config.stash[_HOW]
    if run.asked:
        new = len(run.found.outcomes.keys() - run.known.outcomes.keys())
        terminalreporter.write_line(
            f"proofs: {len(run.asked)} asked for, {run.executed} executed, {new} of them new"
        )
