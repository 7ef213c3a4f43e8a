"""A chart of lines with logarithmic axes, as SVG in the colour of the text, so that it follows the page's theme."""

import html
import math

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 16, 44
DASHES = ("none", "7 4", "2 4", "10 3 2 3", "1 6")
MARKS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0",  # disc
    "M-4,-4h8v8h-8z",  # square
    "M0,-5L5,4H-5z",  # triangle
    "M0,-5L5,0L0,5L-5,0z",  # diamond
    "M-4,-4L4,4M-4,4L4,-4",  # cross
)


def lines(alt, series, x_label, y_label):
    """A figure with a line for each series.

    Args:
        alt: what is to be seen, in a sentence, for those who cannot see it.
        series: dict from names to lists of pairs (x, y), all positive; five at most.
        x_label, y_label: of the axes.

    Returns:
        str, HTML without an empty line, which Markdown takes as it is.

    Raises:
        ValueError: there is nothing to draw, or a value that has no logarithm, or too many lines.
    """
    points = [point for of in series.values() for point in of]
    if not points or min(map(min, points)) <= 0:
        raise ValueError(f"expected positive values to draw, got {points}")
    if len(series) > len(DASHES):
        raise ValueError(f"there are {len(series)} lines, at most {len(DASHES)} can be told apart")
    xs, ys = ([point[i] for point in points] for i in (0, 1))
    x_at = _scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    high = max(high, low + 1)
    y_at = _scale(10.0**low, 10.0**high, HEIGHT - BOTTOM, TOP)
    parts, bottom = [], HEIGHT - BOTTOM
    for power in range(low, high + 1):
        y = y_at(10.0**power)
        parts.append(f'<path d="M{LEFT},{y:.1f}H{WIDTH - RIGHT}" stroke-opacity="0.25"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{10.0**power:g}", "end"))
    for x in sorted(set(xs)):
        parts.append(f'<path d="M{x_at(x):.1f},{bottom}v5"/>' + _text(x_at(x), bottom + 18, f"{x:,}", "middle"))
    parts.append(f'<path d="M{LEFT},{TOP}V{bottom}H{WIDTH - RIGHT}"/>')
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_label, "middle"))
    parts.append(_text(14, (TOP + bottom) / 2, y_label, "middle", f' transform="rotate(-90 14 {(TOP + bottom) / 2})"'))
    ends = {}
    for (name, of), dash, mark in zip(series.items(), DASHES, MARKS, strict=False):
        places = [(x_at(x), y_at(y)) for x, y in sorted(of)]
        path = "L".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<path d="M{path}" stroke-width="2" stroke-dasharray="{dash}"/>')
        parts += [f'<path d="{mark}" fill="currentColor" transform="translate({x:.1f} {y:.1f})"/>' for x, y in places]
        ends[name] = (places[-1][1], mark)
    previous = -math.inf
    for name, (y, mark) in sorted(ends.items(), key=lambda item: item[1][0]):
        previous = y = max(y, previous + 16)  # names do not cover each other
        x = WIDTH - RIGHT + 16
        parts.append(f'<path d="{mark}" fill="currentColor" transform="translate({x} {y:.1f})"/>')
        parts.append(_text(x + 10, y + 4, name, "start"))
    body = "\n".join(parts)
    return (
        f'<figure style="margin: 0.5rem 0 1rem; overflow-x: auto">\n'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" aria-label="{html.escape(alt)}" fill="none" '
        f'stroke="currentColor" style="max-width: 100%; height: auto; background: none">\n{body}\n</svg>\n</figure>'
    )


def _scale(low, high, start, end):
    """From values to pixels, by their logarithms."""
    span = math.log(high / low) or 1
    return lambda value: start + (end - start) * math.log(value / low) / span


def _text(x, y, words, anchor, more=""):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor" stroke="none" font-size="12" '
        f'font-family="system-ui, sans-serif"{more}>{html.escape(words)}</text>'
    )
