"""Match latency against the number of caches, as one SVG for the docs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from bench.results import Figure

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 360, 64, 48, 150, 56
_LINES = (
    ("first sight p50", "#2563eb"),
    ("first sight p99", "#93c5fd"),
    ("cannot hit p99", "#f59e0b"),
    ("seen before p99", "#059669"),
)
_NAME = re.compile(r"(?P<line>.+), (?P<count>\d+) caches")
_DECADES = (0.01, 0.1, 1.0, 10.0)


def latency_plot(figures: Sequence[Figure]) -> str:
    """The plot.

    Args:
        figures: Those of `bench.match_latency`; others are passed over.

    Returns:
        SVG text; both axes are logarithmic, so a flat line does not grow with the caches.
    """
    lines: dict[str, list[tuple[int, float]]] = {}
    for figure in figures:
        found = _NAME.fullmatch(figure.name)
        if found is not None:
            lines.setdefault(found["line"], []).append((int(found["count"]), figure.value))
    largest = max((n for line, _ in _LINES for n, _ in lines.get(line, ())), default=10)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="14">Milliseconds to decide on a query, by the '
        "number of caches</text>",
    ]
    for decade in _DECADES:
        y = _y(decade)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{decade:g}</text>')
    for count in (10**i for i in range(round(math.log10(largest)) + 1)):
        x, y = _x(count, largest), _HEIGHT - _BOTTOM
        parts.append(f'<text x="{x}" y="{y + 20}" text-anchor="middle">{count:,}</text>')
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) // 2}" y="{_HEIGHT - 12}" '
        'text-anchor="middle">caches</text>'
    )
    for line, colour in _LINES:
        parts += _curve(line, colour, sorted(lines.get(line, ())), largest)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _curve(name: str, colour: str, points: Sequence[tuple[int, float]], largest: int) -> list[str]:
    if not points:
        return []
    places = [(_x(count, largest), _y(value)) for count, value in points]
    path = " ".join(f"{x},{y}" for x, y in places)
    x, y = places[-1]
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places),
        f'<text x="{x + 8}" y="{y + 4}" fill="{colour}">{name}</text>',
    ]


def _x(count: int, largest: int) -> float:
    share = math.log10(count) / max(1.0, math.log10(largest))
    return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(value: float) -> float:
    low, high = math.log10(_DECADES[0]), math.log10(_DECADES[-1])
    share = (math.log10(min(max(value, _DECADES[0]), _DECADES[-1])) - low) / (high - low)
    return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)
