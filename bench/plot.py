"""Curves over two logarithmic axes, as SVG for the docs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from bench.results import Figure

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 360, 64, 48, 150, 56
_LINES: Final = (
    ("first sight p50", "#2563eb"),
    ("first sight p99", "#93c5fd"),
    ("cannot hit p99", "#f59e0b"),
    ("seen before p99", "#059669"),
)
_NAME: Final = re.compile(r"(?P<line>.+), (?P<count>\d+) caches")


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve: its name, colour and points."""

    name: str
    colour: str
    points: tuple[tuple[float, float], ...]
    is_dashed: bool = False


def latency_plot(figures: Sequence[Figure]) -> str:
    """Match latency against the number of caches.

    Args:
        figures: Those of `bench.match_latency`; others are passed over.

    Returns:
        SVG text; a flat line does not grow with the caches.
    """
    lines: dict[str, list[tuple[float, float]]] = {}
    for figure in figures:
        found = _NAME.fullmatch(figure.name)
        if found is not None:
            lines.setdefault(found["line"], []).append((int(found["count"]), figure.value))
    curves = [Curve(line, colour, tuple(sorted(lines.get(line, ())))) for line, colour in _LINES]
    largest = max((n for curve in curves for n, _ in curve.points), default=10)
    title = "Milliseconds to decide on a query, by the number of caches"
    return log_plot(title, "caches", curves, (1, largest), (0.01, 10), "{:g}")


def log_plot(
    title: str,
    below: str,
    curves: Sequence[Curve],
    across: tuple[float, float],
    up: tuple[float, float],
    label: str,
) -> str:
    """The plot, both axes logarithmic.

    Args:
        title: Stands above it.
        below: What the horizontal axis is of.
        curves: The curves; one without points is left out.
        across: Where the horizontal axis begins and ends.
        up: The same of the vertical one; what lies beyond is drawn at its end.
        label: How a value of the vertical axis is written.
    """
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="14">{escape(title)}</text>',
    ]
    for value in _ticks(*up):
        y = _y(value, up)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        text = label.format(value)
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{text}</text>')
    for value in _ticks(*across):
        x, y = _x(value, across), _HEIGHT - _BOTTOM
        parts.append(f'<text x="{x}" y="{y + 20}" text-anchor="middle">{value:,g}</text>')
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) // 2}" y="{_HEIGHT - 12}" '
        f'text-anchor="middle">{escape(below)}</text>'
    )
    drawn = [curve for curve in curves if curve.points]
    ends = _apart([_y(curve.points[-1][1], up) for curve in drawn])
    for curve, end in zip(drawn, ends, strict=True):
        parts += _drawn(curve, across, up, end)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _drawn(
    curve: Curve, across: tuple[float, float], up: tuple[float, float], name_at: float
) -> list[str]:
    places = [(_x(x, across), _y(y, up)) for x, y in curve.points]
    path = " ".join(f"{x},{y}" for x, y in places)
    dashes = ' stroke-dasharray="5 4"' if curve.is_dashed else ""
    name = escape(curve.name)
    return [
        f'<polyline points="{path}" fill="none" stroke="{curve.colour}" stroke-width="2"{dashes}/>',
        *(f'<circle cx="{x}" cy="{y}" r="3" fill="{curve.colour}"/>' for x, y in places),
        f'<text x="{places[-1][0] + 8}" y="{name_at + 4}" fill="{curve.colour}">{name}</text>',
    ]


def _apart(places: Sequence[float]) -> list[float]:
    """The places of names beside the ends of their curves, none over another one.

    >>> _apart([100.0, 50.0, 101.0])
    [100.0, 50.0, 114.0]
    """
    found = list(places)
    last = -math.inf
    for number in sorted(range(len(places)), key=lambda n: places[n]):
        last = found[number] = max(places[number], last + 14)
    return found


def _ticks(low: float, high: float) -> list[float]:
    """The powers of ten in a range."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]


def _x(value: float, across: tuple[float, float]) -> float:
    return round(_LEFT + _share(value, across) * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(value: float, up: tuple[float, float]) -> float:
    return round(_HEIGHT - _BOTTOM - _share(value, up) * (_HEIGHT - _TOP - _BOTTOM), 1)


def _share(value: float, axis: tuple[float, float]) -> float:
    low, high = map(math.log10, axis)
    return (math.log10(min(max(value, axis[0]), axis[1])) - low) / max(1e-9, high - low)
