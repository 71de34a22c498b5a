"""Dot plot: how many times as fast Tenfold is, for each row of bench/kernels.py.

Input: the dict of docs/performance.json. Output: the text of docs/performance.svg.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from acceptance import TITLES, Row, peers_of  # beside this file

COLOURS = {"numexpr": "#8c6bb1", "numpy": "#4c78a8", "numba": "#2a9d8f", "jax": "#e08214",
           "torch": "#d6404e", "torch.compile": "#7f2704"}  # fmt: skip
"""In the order of the legend. The letter of each library is legible without colour."""
LETTERS = {"numexpr": "E", "numpy": "N", "numba": "B", "jax": "J", "torch": "T",
           "torch.compile": "C"}  # fmt: skip

LEFT, RIGHT, TOP, STEP, WIDTH, DOT = 320, 190, 64, 30, 960, 16
"""Points: margins, height of a row, width of the picture, diameter of a dot."""
OPENING = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" '
    'font-family="sans-serif" font-size="13" fill="#222">'
)


def picture(report: Row) -> str:
    """Return an SVG: for each workload, how many times as fast as each library Tenfold is."""
    peers, rows = peers_of(report), report["rows"]
    ratios = [time / row["milliseconds"]["tenfold"]
              for row in rows for time in row["milliseconds"].values()]  # fmt: skip
    low, high = min(0.5, *ratios) / 1.15, max(2, *ratios) * 1.15
    height = TOP + STEP * len(rows) + 40
    parts = [
        OPENING.format(WIDTH, height),
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *axis(low, high, height),
        *legend(peers),
    ]
    for number, row in enumerate(rows):
        parts += line(row, TOP + STEP * number + STEP / 2, (low, high))
    return "\n".join([*parts, "</svg>", ""])


def place(ratio: float, bounds: tuple[float, float]) -> float:
    """Position of a ratio on the logarithmic axis."""
    low, high = map(math.log, bounds)
    return LEFT + (WIDTH - LEFT - RIGHT) * (math.log(ratio) - low) / (high - low)


def axis(low: float, high: float, height: int) -> Iterator[str]:
    marks = [m * 10.0**e for e in range(-3, 5) for m in (1, 2, 5) if low <= m * 10.0**e <= high]
    for mark in marks:
        x, strong = place(mark, (low, high)), mark == 1
        colour, thick = ("#222", 2) if strong else ("#ddd", 1)
        yield (
            f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{height - 40}" '
            f'stroke="{colour}" stroke-width="{thick}"/>'
        )
        label = "Tenfold" if strong else f"{mark:g}x"
        yield text(x, height - 24, label, "middle")
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield text(middle, height - 6, "how many times as fast Tenfold is (logarithmic)", "middle")


def legend(peers: Sequence[str]) -> Iterator[str]:
    for number, name in enumerate(peers):
        x = LEFT - 80 + 116 * number
        yield from dot(x, 22, name)
        yield text(x + 14, 27, TITLES[name])
    yield text(WIDTH - RIGHT + 20, TOP - 12, "Tenfold", weight="bold")
    yield text(WIDTH - 10, TOP - 12, "of copy", "end", "bold")


def line(row: Row, y: float, bounds: tuple[float, float]) -> Iterator[str]:
    """One workload: title, a dot for each library, Tenfold's time and share of the copy."""
    times = row["milliseconds"]
    yield text(LEFT - 16, y + 4, row["title"], "end")
    yield f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#eee"/>'
    found = sorted(
        (place(times[name] / times["tenfold"], bounds), name) for name in times if name != "tenfold"
    )
    places = [-math.inf, *(x for x, _ in found), math.inf]
    for number, (x, name) in enumerate(found):
        near = min(x - places[number], places[number + 2] - x) < DOT
        side = (-1) ** number * DOT * 0.45 if near else 0  # overlapping dots move apart
        yield from dot(x, y + side, name)
    yield text(WIDTH - RIGHT + 20, y + 4, f"{times['tenfold']:.3g} ms")
    if "copy_share" in row:
        yield text(WIDTH - 10, y + 4, f"{row['copy_share']:.0%}", "end")


def dot(x: float, y: float, name: str) -> Iterator[str]:
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT // 2}" fill="{COLOURS[name]}"/>'
    yield (
        f'<text x="{x:.1f}" y="{y + 3.5:.1f}" text-anchor="middle" font-size="10" '
        f'font-weight="bold" fill="white">{LETTERS[name]}</text>'
    )


def text(x: float, y: float, words: str, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">'
        f"{escape(words)}</text>"
    )
