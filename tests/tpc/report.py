"""docs/tpc.md: which query is served by which caches, and why the others are not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.tpc import suite

PAGE = Path(__file__).parents[2] / "docs" / "tpc.md"
_ROW = re.compile(r"\| (h\d\d|ds\d\d) \| (.*?) \| (.*?) \| (.*?) \|")
# Reasons that name what stands elsewhere, not what is in the way.
_FAR = ("TABLE_NOT_IN_CACHE", "NO_CACHE_FOR_TABLES", "CACHE_IS_AGGREGATED")
_MOST = 160
_HEAD = """# TPC-H and TPC-DS

The 22 query shapes of TPC-H and the 99 of TPC-DS, with their default parameters, are plain SQL in
`tests/tpc/queries`; all of them parse to blocks. `tests/tpc/caches_h.sql` and `caches_ds.sql`
declare at most 15 caches each. The table says which of these serve at least one block of a query,
as text (offline) and in a session, where Catalyst has made joins of subqueries and the caches are
found below windows and unions too; for a query that is not served, the nearest reasons.

`make tpc` runs every query on small generated data without and with the caches, compares the rows,
and writes this page.
"""


@dataclass(frozen=True)
class Row:
    """One query: caches by either door, and the reasons of a query that no cache serves."""

    text: str
    session: str
    reasons: str


def known_rows() -> dict[str, Row]:
    """The rows of the page as it stands."""
    if not PAGE.exists():
        return {}
    found = (m.groups() for m in map(_ROW.fullmatch, PAGE.read_text().splitlines()) if m)
    return {name: Row(text, session, why) for name, text, session, why in found}


def page(
    session: Mapping[str, tuple[str, ...]] | None = None,
    reasons: Mapping[str, tuple[str, ...]] | None = None,
) -> str:
    """The page.

    Args:
        session: caches by query as a session found them; the page's own where not given.
        reasons: what the session said of queries that it did not serve.
    """
    known = known_rows()
    lines = [_HEAD]
    for name in suite.SUITES:
        rows: dict[str, Row] = {}
        for served in suite.served(name):
            old = known.get(served.name, Row("", "", ""))
            text = _cell(served.caches)
            found = (
                _cell(session[served.name]) if session and served.name in session else old.session
            )
            why = ""
            if not text and not found:
                why = _nearest(served.reasons) or old.reasons
            rows[served.name] = Row(text, found, why)
        lines.append(_table(name, rows))
    return "\n".join(lines)


def _table(name: str, rows: Mapping[str, Row]) -> str:
    hits = sum(bool(r.text or r.session) for r in rows.values())
    count = len(suite.workspace(name).plans)
    lines = [
        f"## {suite.TITLES[name]}: {hits} of {len(rows)} served, {count} caches",
        "",
        "| query | as text | in a session | why not |",
        "|---|---|---|---|",
    ]
    lines += [f"| {q} | {r.text} | {r.session} | {r.reasons} |" for q, r in rows.items()]
    return "\n".join(lines) + "\n"


def _cell(caches: tuple[str, ...]) -> str:
    return ", ".join(sorted(caches))


def _nearest(reasons: tuple[str, ...]) -> str:
    near = [r for r in reasons if not r.startswith(_FAR)] or list(reasons)
    short = [r if len(r) <= _MOST else r[: _MOST - 2] + " …" for r in near[:2]]
    return "; ".join(short).replace("|", "/")
