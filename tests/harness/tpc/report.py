"""docs/tpc.md: which query is served by which caches, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.tpc import suite
from tests.harness.tpc.outcome import Outcome

PAGE = Path(__file__).parents[3] / "docs" / "tpc.md"
_ROW = re.compile(r"\| (h\d\d|ds\d\d)" + r" \| (.*?)" * 6 + r" \|")
# Reasons that name what stands elsewhere, not what is in the way.
_FAR = ("TABLE_NOT_IN_CACHE", "NO_CACHE_FOR_TABLES", "CACHE_IS_AGGREGATED")
_MOST = 160
_PROVEN = "equal"
_HEAD = """# TPC-H and TPC-DS

The 22 query shapes of TPC-H and the 99 of TPC-DS, with their default parameters, are plain SQL in
`tests/harness/tpc/queries`; all of them parse to blocks. `tests/harness/tpc/caches_h.sql` and
`caches_ds.sql` declare at most 15 caches each. The table says which of these serve at least one
block of a query, as text (offline) and in a session, where Catalyst has made joins of subqueries
and the caches are found below windows and unions too; for a query that is not served, the nearest
reasons.

`make tpc` runs every query on small generated data without and with the caches, and writes this
page: how many rows the answer has, and that names, types, rows and order are equal without caches,
with them, and as text, and which fact tables the session no longer reads. A query whose answer
differs, or that is served and has no rows, fails the run. Only queries whose answers were compared
count as served, and of TPC-DS only those that no longer read some fact table.
"""


@dataclass(frozen=True)
class Row:
    """One query: caches by either door, what a session found, why no cache serves it."""

    text: str
    session: str
    spared: str
    count: str
    proof: str
    reasons: str

    def is_served(self, facts: bool) -> bool:
        """Whether its answers were compared, and, with `facts`, are had without one of the tables
        that are to be spared."""
        return self.proof == _PROVEN and bool(self.spared or not facts)


def known_rows() -> dict[str, Row]:
    """The rows of the page as it stands."""
    if not PAGE.exists():
        return {}
    found = (m.groups() for m in map(_ROW.fullmatch, PAGE.read_text().splitlines()) if m)
    return {name: Row(*cells) for name, *cells in found}


def proven(suite_name: str) -> int:
    """How many queries of a suite are served, by the page, with answers that were compared."""
    rows = known_rows().items()
    facts = bool(suite.FACTS[suite_name])
    return sum(r.is_served(facts) for name, r in rows if name.rstrip("0123456789") == suite_name)


def page(session: Sequence[Outcome] = ()) -> str:
    """The page.

    Args:
        session: what a session found; the page's own for other queries.
    """
    known, fresh = known_rows(), {o.name: o for o in session}
    lines = [_HEAD]
    for name in suite.SUITES:
        rows: dict[str, Row] = {}
        for served in suite.served(name):
            old = known.get(served.name, Row("", "", "", "", "", ""))
            rows[served.name] = _row(name, served, old, fresh.get(served.name))
        lines.append(_table(name, rows))
    return "\n".join(lines)


def _row(name: str, served: suite.Served, old: Row, found: Outcome | None) -> Row:
    text, caches, spared = _cell(served.caches), old.session, old.spared
    count, proof = old.count, old.proof
    if found is not None:
        caches, count = _cell(found.caches), str(found.rows or "")
        spared = _cell(tuple(t for t in found.spared if t in suite.FACTS[name]))
        proof = _PROVEN if (text or caches) and found.rows and found.right else ""
    why = ""
    if not text and not caches:
        near = _nearest(found.reasons) if found else ""
        why = near or old.reasons or _nearest(served.reasons)
    return Row(text, caches, spared, count, proof, why)


def _table(name: str, rows: Mapping[str, Row]) -> str:
    hits = sum(r.is_served(bool(suite.FACTS[name])) for r in rows.values())
    count = len(suite.workspace(name).plans)
    lines = [
        f"## {suite.TITLES[name]}: {hits} of {len(rows)} served, {count} caches",
        "",
        "| query | as text | in a session | no longer read | rows | answers | why not |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {q} | {r.text} | {r.session} | {r.spared} | {r.count} | {r.proof} | {r.reasons} |"
        for q, r in rows.items()
    ]
    return "\n".join(lines) + "\n"


def _cell(caches: tuple[str, ...]) -> str:
    return ", ".join(sorted(caches))


def _nearest(reasons: tuple[str, ...]) -> str:
    near = [r for r in reasons if not r.startswith(_FAR)] or list(reasons)
    short = [r if len(r) <= _MOST else r[: _MOST - 2] + " …" for r in near[:2]]
    return "; ".join(short).replace("|", "/")
