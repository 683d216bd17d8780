"""Caches over the star of `refresh_star`, one for each way of adding what came to what is stored,
and what must hold of them whatever happened before.

`FEW` tells large sets from small ones: with it each cache takes its way, on a dozen rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from cachemgr.delta.storage import LocalFiles
from cachemgr.delta.tables import TableRead, run_select
from cachemgr.metastore.records import CacheRecord, RefreshRunRecord, new_id
from cachemgr.refresh.by_change import incremental
from cachemgr.statements.tidy import Tidy
from matcher.model.codec import decode_plan
from matcher.model.expr import Agg
from matcher.model.ir import GROUPING_ID_COLUMN, Block, CachePlan, MatchOptions, Output
from matcher.normalize.stored_plan import plan_definition
from matcher.partials.collapse import render_collapsed
from matcher.render.select import quote, render_stored
from tests.worlds.refresh_star import (
    AMOUNT,
    CITY,
    DAY,
    ITEM,
    JOIN_ON,
    PRICE,
    REGION,
    Star,
    cube_plan,
    flat_plan,
    rows_of,
    total,
)

FEW: Final = 3
_MEASURES: Final = (
    Output("total", total(AMOUNT)),
    Output("worth", total(PRICE, "decimal(20,2)")),
    Output("mean", Agg("avg", (PRICE,), "decimal(14,6)")),
    Output("most", Agg("max", (PRICE,), "decimal(10,2)")),
)


def region_plan(star: Star) -> CachePlan:
    """Three groups, however many rows come."""
    block = Block(
        relations=(star.relation("sales"), star.relation("shops")),
        predicates=(JOIN_ON,),
        outputs=(Output("region", REGION), *_MEASURES),
        group_keys=(REGION,),
    )
    return plan_definition("by_region", block)


def day_plan(star: Star) -> CachePlan:
    """More groups than `FEW`."""
    block = Block(
        relations=(star.relation("sales"), star.relation("shops")),
        predicates=(JOIN_ON,),
        outputs=(Output("item", ITEM), Output("day", DAY), Output("city", CITY), *_MEASURES),
        group_keys=(ITEM, DAY, CITY),
    )
    return plan_definition("by_day", block)


PLANS: Final = {
    "APPEND": flat_plan,
    "REPLACE": region_plan,
    "PARTIALS": day_plan,
    # sets written anew and sets appended to in one commit
    "MIXED": cube_plan,
}
MODES: Final = {
    "APPEND": "APPEND",
    "REPLACE": "REPLACE",
    "PARTIALS": "PARTIALS",
    "MIXED": "PARTIALS",
}


@contextmanager
def sets_are_large() -> Iterator[None]:
    """Sets of more than `FEW` rows count as large, and may hold any number of partial rows."""
    before = incremental.FEW_ROWS, incremental.MOST_PARTIALS
    incremental.FEW_ROWS, incremental.MOST_PARTIALS = FEW, 1e9  # type: ignore[misc]
    try:
        yield
    finally:
        incremental.FEW_ROWS, incremental.MOST_PARTIALS = before  # type: ignore[misc]


@dataclass
class Made:
    """A cache that takes one way.

    Args:
        star: Its base tables.
        way: A key of `PLANS`.
    """

    star: Star
    way: str

    def __post_init__(self) -> None:
        self.plan: CachePlan = PLANS[self.way](self.star)
        cache_id = new_id()
        place = str(self.star.folder / "caches" / cache_id)
        self.cache: CacheRecord = self.star.cache(self.plan, id=cache_id, location=place)

    @property
    def mode(self) -> str:
        """What its runs say."""
        return MODES[self.way]

    def refresh(self, mode: str = "INCREMENTAL", **options: Any) -> RefreshRunRecord:
        return self.star.refresh(self.cache, mode=mode, **options)

    def served(self) -> list[tuple[Any, ...]]:
        """The rows of the published version, one row a group."""
        run = self.star.store.snapshots.published(self.cache.id).run
        plan = decode_plan(dict(run.plan))
        read = {"__c": TableRead(self.star.key_of(self.cache), run.cache_version)}
        raw = "SELECT * FROM __c"
        text = render_collapsed(plan, "__c", MatchOptions()) if plan.partials else raw
        return rows_of(run_select(self.star.spark, text, read))

    def computed(self) -> list[tuple[Any, ...]]:
        """What the definition gives at the versions that the snapshot names."""
        snapshot = self.star.store.snapshots.published(self.cache.id)
        versions = {t.location: t.version for t in snapshot.tables}
        names = [f"__t{i}" for i in range(len(self.plan.relations))]
        reads = {
            name: TableRead(relation.key, versions[relation.key])
            for name, relation in zip(names, self.plan.relations, strict=True)
        }
        text = render_stored(self.plan, [quote(n) for n in names])
        return rows_of(run_select(self.star.spark, text, reads))

    def is_current(self) -> bool:
        """Whether what serves was made from the base tables of now."""
        tables = self.star.store.snapshots.published(self.cache.id).tables
        return all(t.version == self.star.version(t.location) for t in tables)

    def check(self) -> None:
        """What serves is what its definition gives, and what is said of it is so."""
        assert self.served() == self.computed()
        run = self.star.store.snapshots.published(self.cache.id).run
        stored = self._stored_rows(run)
        plan = decode_plan(dict(run.plan))
        assert run.rows == plan.rows == len(stored)
        assert run.bytes == plan.bytes == sum(Path(p).stat().st_size for p in self.live(run))
        if plan.is_cube:
            counts = Counter(row[GROUPING_ID_COLUMN] for row in stored)
            sizes = {s.grouping_id: s.rows for s in plan.grouping_sets}
            assert sizes == {number: counts[number] for number in sizes}
        if plan.keys is None:
            return
        groups = run.facts["groups"]
        assert {int(number) for number in groups} == plan.partials
        for number in {s.grouping_id for s in plan.grouping_sets} or {0}:
            of_set = [r for r in stored if not plan.is_cube or r[GROUPING_ID_COLUMN] == number]
            keys = {tuple(r[c.name] for c in plan.keys) for r in of_set}
            if number in plan.partials:
                assert groups[str(number)] <= len(of_set)
            else:
                assert len(keys) == len(of_set), f"set {number} has one row a group"
            for name, count in run.facts["totals"].items():
                assert sum(r[name] or 0 for r in of_set) == count, (number, name)

    def check_as_full(self) -> None:
        """What is said of it is what a full refresh of the same versions says. Ends with one."""
        run = self.star.store.snapshots.published(self.cache.id).run
        rows = self.served()
        full = self.refresh("FULL")
        assert full.mode == "FULL" and self.served() == rows
        for fact in ("totals", "base_rows", "joins"):
            assert full.facts[fact] == run.facts[fact], fact
        for fact in ("non_null", "exact_sums"):
            # what is only loosened until all is computed again
            assert set(run.facts[fact]) <= set(full.facts[fact]), fact
        wide = {tuple(b[:2]): b[2:] for b in run.facts["bounds"]}
        for rel, name, low, high in full.facts["bounds"]:
            if (rel, name) in wide:
                assert wide[rel, name][0] <= low and high <= wide[rel, name][1]

    def tidy(self) -> None:
        """Housekeeping, a day later and without a grace, by a process that has seen nothing."""
        later = datetime.now(UTC) + timedelta(days=1)
        local = LocalFiles()
        Tidy(self.star.store, lambda place: local, lambda: 0, lambda: later).cache(self.cache.id)

    def check_files(self) -> None:
        """After housekeeping the folder holds the files of what serves, and no other one."""
        self.tidy()
        run = self.star.store.snapshots.published(self.cache.id).run
        assert self.data_files() == self.live(run)

    def data_files(self) -> set[str]:
        """The files in its folder that are not its log's."""
        place = Path(self.cache.location)
        found = {p for p in place.rglob("*") if p.is_file() and "_delta_log" not in p.parts}
        sums = {p for p in found if p.suffix == ".crc"}
        owners = {str(p.with_name(p.name[1:-4])) for p in sums}
        data = {str(p) for p in found - sums}
        assert owners <= data, "no checksum is left without its file"
        return data

    def live(self, run: RefreshRunRecord) -> set[str]:
        """The files of a version."""
        reader = self.star.spark.read.format("delta").option("versionAsOf", run.cache_version)
        return {unquote(urlsplit(f).path) for f in reader.load(self.cache.location).inputFiles()}

    def _stored_rows(self, run: RefreshRunRecord) -> list[Mapping[str, Any]]:
        reader = self.star.spark.read.format("delta").option("versionAsOf", run.cache_version)
        return [row.asDict() for row in reader.load(self.cache.location).collect()]


def sale(number: int) -> tuple[Any, ...]:
    """A sale like no other one, to shops, on days and of items old and new."""
    amount = None if number % 5 == 0 else number * 3 - 20
    price = None if number % 7 == 3 else f"{number % 50}.25"
    item = (None, "pen", "ink", "cup", f"new{number}")[number % 5]
    return (number % 3 + 1, item, number % 6, amount, price)
