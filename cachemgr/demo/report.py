"""The HTML report: one file, no network, readable in light and dark, by eye and by screen reader.

The chart is inline SVG; the table beside it holds the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from cachemgr.demo.chart import Bars, bar_chart
from cachemgr.demo.measure import QueryResult
from cachemgr.demo.result import DemoResult

_STYLE = """
:root { color-scheme: light dark; --fg: #1c2330; --bg: #ffffff; --soft: #f1f4f8; --line: #c9d1dc;
  --muted: #55606f; --without: #8a5a00; --with: #0b6e4f; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --fg: #e6eaf0; --bg: #12161d; --soft: #1c222c;
  --line: #3a4454; --muted: #a3aebd; --without: #e0a84a; --with: #4fc79b; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg);
  max-width: 70rem; margin: 0 auto; padding: 1.5rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.lead { font-size: 1.15rem; } .muted { color: var(--muted); }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--with); font-weight: 600; }
.scroll { overflow-x: auto; } .scroll:focus-visible { outline: 2px solid var(--with); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--muted); padding: .3rem 0; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
pre { background: var(--soft); padding: 1rem; overflow-x: auto; border-radius: .4rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--fg); font: 13px system-ui, sans-serif; }
svg .grid { stroke: var(--line); } svg .without { fill: var(--without); }
svg .with { fill: var(--with); }
"""


def render_report(result: DemoResult) -> str:
    """The report of a run.

    Args:
        result: What the run found.

    Returns:
        A whole HTML document.
    """
    count = len(result.queries)
    verdict = (
        f'<span class="bad">{len(result.failures)} failures</span>'
        if result.failures
        else '<span class="good">all answers equal</span>'
    )
    parts = [
        f"<h1>Relational Cache: {count} SSB queries without and with the cache</h1>",
        f'<p class="lead">{result.hits} of {count} answered from a cache, '
        f"{result.equals} of {count} with equal rows, {verdict}; geometric mean "
        f"<strong>{result.mean_ratio:.1f} times</strong> faster.</p>",
        f'<p class="muted">Scale {result.scale:g}, seed {result.seed}, parameters drawn with seed '
        f"{result.query_seed}. Seconds are medians over five sets of parameters that the session "
        "had not seen, both sides warm, alternating, in one session; no result is "
        "cached.</p>",
        _failures(result),
        _section("Seconds a query", _chart(result.queries)),
        _section("Queries", _queries(result)),
        _budgets(result),
        _growth(result),
        _section("One rewritten query", _example(result.queries)),
        _section("What the published 16-set cube would answer by itself", _coverage(result)),
        _section("Settings, the same on both sides", _pairs(("setting", "value"), result.settings)),
        _section("Steps", _steps(result)),
    ]
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Relational Cache demo, scale {result.scale:g}</title>\n"
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>"


def _failures(result: DemoResult) -> str:
    if not result.failures:
        return ""
    items = "\n".join(f"<li>{escape(text)}</li>" for text in result.failures)
    return f'<section>\n<h2 class="bad">Failures</h2>\n<ul>\n{items}\n</ul>\n</section>'


def _growth(result: DemoResult) -> str:
    if result.growth is None:
        return ""
    items = "\n".join(f"<li>{escape(text)}</li>" for text in result.growth.told())
    return _section("While the table grows", f"<ul>\n{items}\n</ul>")


def _chart(queries: Sequence[QueryResult]) -> str:
    ran = [Bars(query.name, query.without, query.with_hook) for query in queries if query.runs]
    return bar_chart(ran) if ran else "<p>No query ran.</p>"


def _table(caption: str, head: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are HTML already; the flag of a head says that it is a number."""
    heads = "".join(
        f'<th scope="col"{" class=n" if number else ""}>{escape(text)}</th>'
        for text, number in head
    )
    body = "\n".join(
        "<tr>"
        + "".join(
            f"<td{' class=n' if number else ''}>{cell}</td>"
            for cell, (_, number) in zip(row, head, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">\n<table>'
        f"\n<caption>{escape(caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def _yes(value: bool, good: str, bad: str) -> str:
    return f'<span class="{"good" if value else "bad"}">{good if value else bad}</span>'


def _queries(result: DemoResult) -> str:
    head = [
        ("query", False), ("cache", False), ("grouping set", False), ("rows", True),
        ("without, s", True), ("with, s", True), ("ratio", True), ("rows equal", False),
    ]  # fmt: skip
    rows = []
    for query in result.queries:
        empty = f" ({len(query.empty_sets)} of {len(query.runs)} empty)" if query.empty_sets else ""
        rows.append(
            (
                escape(query.name),
                escape(", ".join(query.caches)) if query.hit else _yes(False, "", "miss"),
                escape(query.grouping_set or "none"),
                f"{query.rows:,}{empty}",
                f"{query.without:.3f}",
                f"{query.with_hook:.3f}",
                f"{query.ratio:.1f} times",
                _yes(query.equal, "equal", "failed" if query.error else "differ"),
            )
        )
    return _table("Medians over five sets of parameters; rows of all six", head, rows)


def _budgets(result: DemoResult) -> str:
    budgets = result.budgets()
    if not budgets:
        return ""
    rows = [(escape(b), escape(got), _yes(met, "met", "not met")) for b, got, met in budgets]
    head = [("budget", False), ("measured", False), ("met", False)]
    return _section("Budgets", _table("Measured in this run", head, rows))


def _example(queries: Sequence[QueryResult]) -> str:
    query = example_of(queries)
    if query is None:
        return "<p>No query was rewritten.</p>"
    return (
        f"<p>{escape(query.name)} as it was asked:</p>\n<pre>{escape(query.sql)}</pre>\n"
        f"<p>and as it ran:</p>\n<pre>{escape(query.rewritten_sql or '')}</pre>"
    )


def example_of(queries: Sequence[QueryResult]) -> QueryResult | None:
    """The rewritten query to show: Q4.1 has the most to compensate.

    Args:
        queries: The results.

    Returns:
        One that was rewritten, or None.
    """
    rewritten = [query for query in queries if query.rewritten_sql]
    return next((q for q in rewritten if q.name == "Q4.1"), rewritten[0] if rewritten else None)


def _coverage(result: DemoResult) -> str:
    rows = [
        (
            escape(one.query),
            _yes(one.answered, "yes", "no"),
            escape(one.grouping_set or "none"),
            escape(one.why),
        )
        for one in result.coverage
    ]
    head = [("query", False), ("answered", False), ("grouping set", False), ("why not", False)]
    return _table("Explained without building it", head, rows)


def _pairs(head: tuple[str, str], pairs: Iterable[tuple[str, str]]) -> str:
    rows = [(escape(key), escape(value)) for key, value in pairs]
    return _table("As Spark reports them", [(head[0], False), (head[1], False)], rows)


def _steps(result: DemoResult) -> str:
    rows = [(escape(step), f"{seconds:.1f}") for step, seconds in result.timings]
    return _table("This run", [("step", False), ("seconds", True)], rows)
