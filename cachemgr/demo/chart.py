"""The bar chart of a run: seconds a query, without and with the cache, as SVG.

It has a logarithmic scale, since a hit is some ten times shorter than its query: on a linear scale
it would be a dot. Inside the report it takes the page's colours; as a file it brings its own, a
background among them, and so can be read on a light page and on a dark one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_ROW, _LEFT, _WIDTH, _RIGHT = 44, 50, 900, 90
_STYLE = """
svg { color-scheme: light dark; }
text { fill: #1c2330; font: 13px system-ui, sans-serif; } .page { fill: #ffffff; }
.grid { stroke: #c9d1dc; } .without { fill: #8a5a00; } .with { fill: #0b6e4f; }
@media (prefers-color-scheme: dark) { text { fill: #e6eaf0; } .page { fill: #12161d; }
  .grid { stroke: #3a4454; } .without { fill: #e0a84a; } .with { fill: #4fc79b; } }
"""


@dataclass(frozen=True, slots=True)
class Bars:
    """The two bars of one query.

    Args:
        name: `Q1.1` to `Q4.3`.
        without: Median seconds without the hook.
        with_hook: Median seconds with it.
    """

    name: str
    without: float
    with_hook: float


def bar_chart(queries: Sequence[Bars], *, standalone: bool = False) -> str:
    """The chart.

    Args:
        queries: What is drawn, at least one.
        standalone: Whether it is to be a file of its own and not a part of the report.

    Returns:
        SVG text.
    """
    times = [t for query in queries for t in (query.without, query.with_hook)]
    low = 10 ** math.floor(math.log10(max(min(times), 1e-3)))
    high = 10 ** math.ceil(math.log10(max(*times, low * 10)))
    span = math.log10(high / low)

    def x(seconds: float) -> float:
        share = math.log10(max(seconds, low) / low) / span
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    height = _ROW * len(queries) + 60
    namespace = 'xmlns="http://www.w3.org/2000/svg" ' if standalone else ""
    parts = [
        f'<svg {namespace}viewBox="0 0 {_WIDTH} {height}" role="img" '
        'aria-labelledby="chart-title chart-desc">',
        '<title id="chart-title">Seconds a query, without and with the cache</title>',
        '<desc id="chart-desc">Two bars a query on a logarithmic scale; the table below holds '
        "the same numbers.</desc>",
        *_page(height, standalone),
        f'<rect class="without" x="{_LEFT}" y="6" width="14" height="14"/>'
        f'<text x="{_LEFT + 20}" y="18">without</text>',
        f'<rect class="with" x="{_LEFT + 90}" y="6" width="14" height="14"/>'
        f'<text x="{_LEFT + 110}" y="18">with (seconds, logarithmic)</text>',
    ]
    for power in range(round(span) + 1):
        at, value = x(low * 10**power), low * 10**power
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="30" y2="{height - 20}"/>')
        parts.append(f'<text x="{at:.1f}" y="{height - 4}" text-anchor="middle">{value:g} s</text>')
    for number, query in enumerate(queries):
        top = 34 + number * _ROW
        parts.append(f'<text x="{_ROW // 6}" y="{top + 22}">{escape(query.name)}</text>')
        for offset, kind, seconds in ((2, "without", query.without), (19, "with", query.with_hook)):
            end = x(seconds)
            parts.append(
                f'<rect class="{kind}" x="{_LEFT}" y="{top + offset}" '
                f'width="{max(end - _LEFT, 1):.1f}" height="15"/>'
                f'<text x="{end + 6:.1f}" y="{top + offset + 12}">{seconds:.2f} s</text>'
            )
    return "\n".join([*parts, "</svg>"])


def _page(height: int, standalone: bool) -> list[str]:
    if not standalone:
        return []
    return [
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
    ]
