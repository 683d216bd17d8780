"""What `make test` and `make test-long` ask of pytest.

`--choose` runs what the change asks for within a time, `--left` what such a run had no time for,
`--shard=7/24` one share and `--shard=all` every one, where those that have passed at this very
commit are left out, so that a run can be killed and goes on; `--record` notes what tests cover. A
shard that passed whole goes into the ledger, unless files are changed or only a part was asked for.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pytest

from cachemgr.sparks import MINORS, minor_of
from tests.gate import changes, covered, ledger
from tests.gate.choose import Item, Known, Tier, chosen
from tests.gate.history import History
from tests.gate.reached import imported
from tests.gate.recording import FOLDER, ROOT, Recorder, merged, unit

# of wall time, for a run of make test
SECONDS = 780.0
LEFT = FOLDER / "left.txt"
_SENT = "gate"
_RUN = pytest.StashKey["_Run"]()


@dataclass(frozen=True)
class Asked:
    """What a run is asked for, the same in all of its processes.

    Attributes:
        choose: Whether tests are chosen by what has changed.
        shards: Those that are to run whole.
        failed: The tests that failed last.
        done: The tests that have passed at this commit, and are not run again.
        oldest_first: The shards, the one that has not passed for the longest time first.
        changes: For each shard that passed at a commit known here what changed since then; for 0,
            what is changed and not committed.
        seconds: How long all processes together may run tests that need not run. All of them
            choose by the same number, or they would not run the same tests.
        until: When a test that need not run is no longer begun, in seconds since the epoch.
    """

    choose: bool
    shards: list[int]
    failed: list[str]
    done: list[str]
    oldest_first: list[int]
    changes: dict[int, list[str]]
    seconds: float
    until: float


class _Run:
    """One process's part, or all of a run that has no others."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.tiers: dict[str, Tier] = {}
        self.left_out: list[str] = []
        self.expected: defaultdict[int, set[str]] = defaultdict(set)


def add_options(parser: pytest.Parser) -> None:
    """Add the options of this module."""
    group = parser.getgroup("gate", "which tests run")
    group.addoption("--choose", action="store_true", help="choose tests by what has changed")
    group.addoption("--left", action="store_true", help="the tests that --choose had no time for")
    group.addoption("--shard", help="a whole share of the tests: 7/24, or all")
    group.addoption("--no-long", action="store_true", help="leave out those marked long")
    group.addoption("--record", action="store_true", help="note what each test covers")
    group.addoption(
        "--seconds", type=float, default=SECONDS, help="of --choose, in which tests are begun"
    )


def configure(config: pytest.Config) -> None:
    """Find out what is asked for, in the process that others are started by, and take it over in
    those."""
    sent = getattr(config, "workerinput", {}).get(_SENT)
    if sent is not None:
        data = json.loads(sent)
        data["changes"] = {int(shard): names for shard, names in data["changes"].items()}
        config.stash[_RUN] = _Run(Asked(**data))
    elif config.getoption("--choose") or config.getoption("--shard"):
        config.stash[_RUN] = _Run(_asked(config))
        config.pluginmanager.register(_Controller(config), "gate-controller")
    runs_tests = sent is not None or not config.getoption("numprocesses", default=None)
    if config.getoption("--record") and runs_tests:
        config.pluginmanager.register(Recorder(), "gate-recorder")


def shards_due(config: pytest.Config) -> list[int]:
    """The shards that run whole; with no option, none."""
    run = config.stash.get(_RUN, None)
    return run.asked.shards if run is not None else []


def _asked(config: pytest.Config) -> Asked:
    history = History(ROOT)
    passed = ledger.read()
    order = ledger.oldest_first(passed, history)
    choose = bool(config.getoption("--choose"))
    bases = {shard: each.commit for shard, each in passed.items()} | {0: history.head()}
    changed = {
        commit: changes.changes_since(history, commit)
        for commit in (set(bases.values()) if choose else ())
    }
    found = {shard: changed.get(commit) for shard, commit in bases.items()}
    cache = getattr(config, "cache", None)  # not with -p no:cacheprovider
    failed = cache.get("cache/lastfailed", {}) if cache is not None else {}
    shards = order[:1] if choose else _shards(config.getoption("--shard"), order)
    processes = int(config.getoption("numprocesses", default=None) or 1)
    return Asked(
        choose=choose,
        shards=shards,
        failed=sorted(failed),
        done=[] if choose else sorted(_Progress(history).passed()),
        oldest_first=order,
        changes={shard: sorted(names) for shard, names in found.items() if names is not None},
        seconds=processes * config.getoption("--seconds"),
        until=time.time() + config.getoption("--seconds"),
    )


def _shards(text: str, order: Sequence[int]) -> list[int]:
    if text == "all":
        return list(order)
    number, _, count = text.partition("/")
    if not number.isdigit() or count != str(ledger.SHARDS) or int(number) not in order:
        raise pytest.UsageError(
            f"--shard={text}: name one of 1/{ledger.SHARDS} to {ledger.SHARDS}/{ledger.SHARDS}, "
            "or all"
        )
    return [int(number)]


# ---- which tests


def choose_items(
    config: pytest.Config, items: list[pytest.Item], name: Callable[[str], str]
) -> None:
    """Leave out and order the tests of a run.

    Args:
        config: Of the run.
        items: The collection, changed in place.
        name: What a test is dealt out to the shards by.
    """
    if config.getoption("--left"):
        _keep(config, items, set(LEFT.read_text().split("\n")) if LEFT.exists() else set())
        return
    run = config.stash.get(_RUN, None)
    if run is None:
        return
    asked = run.asked
    if asked.choose or config.getoption("--no-long"):  # minutes each
        _keep(config, items, [i.nodeid for i in items if i.get_closest_marker("long") is None])
    shards = {item.nodeid: ledger.shard_of(name(item.nodeid)) for item in items}
    for nodeid, shard in shards.items():
        if shard in asked.shards:
            run.expected[shard].add(nodeid)
    if asked.choose:
        tests = [_test(item, shards[item.nodeid]) for item in items]
        run.tiers = chosen(tests, _known(asked))
        run.left_out = [nodeid for nodeid, tier in run.tiers.items() if tier is Tier.LEFT]
        order = {
            nodeid: n for n, (nodeid, tier) in enumerate(run.tiers.items()) if tier < Tier.LEFT
        }
    else:
        wanted = {shard: n for n, shard in enumerate(asked.shards)}
        done = set(asked.done)
        ids = [i.nodeid for i in items if shards[i.nodeid] in wanted and i.nodeid not in done]
        order = {
            each: n for n, each in enumerate(sorted(ids, key=lambda each: wanted[shards[each]]))
        }
    _keep(config, items, order)
    items.sort(key=lambda item: order[item.nodeid])


def _keep(config: pytest.Config, items: list[pytest.Item], wanted: Iterable[str]) -> None:
    kept = set(wanted)
    out = [item for item in items if item.nodeid not in kept]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item.nodeid in kept]


def _test(item: pytest.Item, shard: int) -> Item:
    marks = {mark.name for mark in item.iter_markers()}
    quick = marks.isdisjoint({"spark", "postgres", "slow"})
    return Item(item.nodeid, unit(item.nodeid), shard, quick, "spark" in marks)


def _known(asked: Asked) -> Known:
    return Known(
        failed=frozenset(asked.failed),
        oldest_first=asked.oldest_first,
        changes={shard: frozenset(names) for shard, names in asked.changes.items()},
        record=covered.read(),
        imported=imported,
        seconds=asked.seconds,
    )


def is_out_of_time(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Leave out a test that need not run, where the time is up."""
    run = item.config.stash.get(_RUN, None)
    tier = run.tiers.get(item.nodeid, Tier.FIRST) if run is not None else Tier.FIRST
    if run is None or tier <= Tier.QUICK or time.time() < run.asked.until:
        return False
    if tier is Tier.CHOSEN:
        run.left_out.append(item.nodeid)
    # what tests of the same file share is ended as if this one had run
    item.session._setupstate.teardown_exact(nextitem)
    return True


def scopes(config: pytest.Config, log: Any) -> Any:
    """A scheduler that hands out neighbours of one file together; None without these options."""
    if config.stash.get(_RUN, None) is None:
        return None
    from xdist.scheduler import LoadFileScheduling

    class Neighbours(LoadFileScheduling):  # type: ignore[misc]
        """A file's tests come in more than one piece, where some of them run later."""

        def __init__(self) -> None:
            super().__init__(config, log)
            self._scopes: dict[str, str] = {}
            self._last = ("", 0)

        def _split_scope(self, nodeid: str) -> str:
            scope = self._scopes.get(nodeid)
            if scope is None:  # asked for in the order of the collection at first
                file, number = self._last
                if nodeid.partition("::")[0] != file:
                    file, number = nodeid.partition("::")[0], number + 1
                self._last = file, number
                scope = self._scopes[nodeid] = f"{number}:{file}"
            return scope

    return Neighbours()


# ---- what came out


def _minor() -> str:
    return minor_of(version("pyspark"))


class _Progress:
    """The tests that passed at a commit: what a long run need not do again."""

    def __init__(self, history: History) -> None:
        self.commit = history.head() if history.is_clean() else ""
        # what passes with one Spark says nothing of another
        self._path = FOLDER / f"passed-{self.commit[:12]}-{_minor()}.txt"

    def passed(self) -> set[str]:
        if not self.commit or not self._path.exists():
            return set()
        return set(self._path.read_text().split("\n")) - {""}

    def add(self, nodeid: str) -> None:
        if self.commit:
            FOLDER.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(f"{nodeid}\n")


class _Controller:
    """The process that hears of all tests' outcomes."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._history = History(ROOT)
        self._progress = _Progress(self._history)
        self._run = config.stash[_RUN]
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._passed: set[str] = set(self._run.asked.done)
        self._whole: list[int] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_SENT] = json.dumps(vars(self._run.asked))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        sent = getattr(node, "workeroutput", {}).get(_SENT)
        if sent is not None:
            left_out, expected = json.loads(sent)
            self._run.left_out = sorted({*self._run.left_out, *left_out})
            for shard, names in expected.items():
                self._run.expected[int(shard)] |= set(names)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "teardown" and report.nodeid not in self._failed:
            self._passed.add(report.nodeid)
            self._progress.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        options = self._config.option
        if options.record:
            covered.write(covered.merged(covered.read(), merged()))
        LEFT.parent.mkdir(parents=True, exist_ok=True)
        LEFT.write_text("\n".join(self._run.left_out))

    def write_ledger(self) -> None:
        """Note the shards that have passed whole."""
        same = self._progress.commit and self._progress.commit == self._history.head()
        if _minor() != MINORS[-1]:  # what passes there is another thing
            return
        if not same or not self._asks_for_all() or not self._history.is_clean():
            return
        today = datetime.now(UTC).date()
        for shard in self._run.asked.shards:
            names = self._run.expected[shard]
            if names and names <= self._passed:
                seconds = round(sum(self._seconds[name] for name in names))
                passed = ledger.Passed(shard, self._progress.commit, today, len(names), seconds)
                ledger.write([passed])
                self._whole.append(shard)

    def _asks_for_all(self) -> bool:
        option = self._config.option
        by_name = self._config.args_source is not pytest.Config.ArgsSource.TESTPATHS
        return not (by_name or option.keyword or option.markexpr or option.deselect)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        self.write_ledger()
        for line in self._told():
            terminalreporter.write_line(line)

    def _told(self) -> Iterator[str]:
        if self._whole:
            named = ", ".join(map(str, self._whole))
            yield f"passed whole, and noted in tests/passed.txt: shard {named} of {ledger.SHARDS}"
        complaint = ledger.complaint(ledger.read(), self._history)
        if complaint:
            yield f"warning: {complaint}"
        if self._run.asked.choose:
            left = len(self._run.left_out)
            files = len({name.partition("::")[0] for name in self._run.left_out})
            yield (
                f"left out, though they cover a change: {left} tests in {files} files; "
                "make test-left runs them"
                if left
                else "every test that covers a change has run"
            )


def send(config: pytest.Config) -> None:
    """Tell the process that started this one what it has left out."""
    run = config.stash.get(_RUN, None)
    output = getattr(config, "workeroutput", None)
    if run is not None and output is not None:
        expected = {shard: sorted(names) for shard, names in run.expected.items()}
        output[_SENT] = json.dumps((run.left_out, expected))
