"""A picture of how many calls are run at once, over time, as SVG.

Takes the events of a profile; hands on the text of a picture. Each launch is a bar as wide as it
took and as high as its batch is large, on a logarithmic scale.

>>> import tenfold as tn
>>> x = tn.asarray([1.0, 2.0])
>>> with tn.profile() as p:
...     y = (x + 1).wait()
>>> picture("one addition", p.events).count("<title>")
1
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from tenfold.runtime.timeline import TimelineEvent

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 800, 300, 60, 20, 40, 40
THIN = 1.5
"""Pixels of a bar at least."""
COLOURS = {"call": "#c44e52", "kernel": "#4c72b0"}
"""Libraries' products, and kernels."""
OPENING = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
    'font-family="sans-serif" font-size="12">'
)


def launches(events: Sequence[TimelineEvent]) -> list[TimelineEvent]:
    """Return the launches among events, in their order."""
    return sorted((each for each in events if each.category in COLOURS), key=lambda e: e.begin)


def sizes(events: Sequence[TimelineEvent]) -> list[int]:
    """Return how many calls each launch ran."""
    return [max(len(event.operators), event.members, 1) for event in launches(events)]


def picture(title: str, events: Sequence[TimelineEvent]) -> str:
    """Return the picture; there must be a launch."""
    found, high = launches(events), max(sizes(events))
    begin, end = found[0].begin, max(event.end for event in found)
    top = max(math.ceil(math.log2(high)), 1)
    width = (WIDTH - LEFT - RIGHT) / max(end - begin, 1)
    parts = [
        OPENING,
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(WIDTH / 2, 22, f"{title}: calls in a launch, over time", "middle"),
        *axes(top, (end - begin) * 1e-6),
    ]
    for event, size in zip(found, sizes(events), strict=True):
        x, y = LEFT + (event.begin - begin) * width, place(size, top)
        wide = max((event.end - event.begin) * width, THIN)
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" '
            f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{COLOURS[event.category]}">'
            f"<title>{escape(event.name)}, {size:,} at once</title></rect>"
        )
    return "\n".join([*parts, "</svg>", ""])


def place(size: float, top: int) -> float:
    """Return how high a size lies; one is a little above the ground."""
    share = (math.log2(size) + 0.3) / (top + 0.3)
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)


def axes(top: int, milliseconds: float) -> Iterator[str]:
    """Give the marks of both axes."""
    for power in range(0, top + 1, max(top // 6, 1)):
        y = place(2**power, top)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>'
        yield text(LEFT - 8, y + 4, f"{2**power:,}", "end")
    for quarter in range(5):
        x = LEFT + (WIDTH - LEFT - RIGHT) * quarter / 4
        anchor = "end" if quarter == 4 else "middle"
        yield text(x, HEIGHT - 16, f"{milliseconds * quarter / 4:.3g} ms", anchor)


def text(x: float, y: float, what: str, anchor: str) -> str:
    """Return a line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(what)}</text>'
