"""A small drawing for each chapter's card, by code, in currentColor and the two accents of all figures.

A drawing is 96 units wide and 60 high and holds no text: it decorates, and is hidden from screen readers.
"""

import math

BLUE, ORANGE, INK = "var(--blue)", "var(--orange)", "currentColor"
DRAWINGS = {}


def _drawing(number):
    def keep(function):
        DRAWINGS[number] = function
        return function

    return keep


def _n(value):
    return f"{value:.1f}".removesuffix(".0")


def _rect(x, y, width, height, fill=INK, opacity=1.0, line=None, round_by=2):
    stroke = f' stroke="{line}"' if line else ""
    shade = f' fill-opacity="{opacity:.2g}"' if opacity < 1 else ""
    return (
        f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{round_by}" '
        f'fill="{fill}"{shade}{stroke}/>'
    )


def _dot(x, y, radius, fill=INK, opacity=1.0):
    shade = f' fill-opacity="{opacity:.2g}"' if opacity < 1 else ""
    return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{fill}"{shade}/>'


def _line(points, colour=INK, width=1.5, opacity=1.0, more=""):
    path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}" '
        f'stroke-opacity="{opacity:g}" stroke-linecap="round" stroke-linejoin="round"{more}/>'
    )


def _diamond(x, y, size=6.0, fill=ORANGE):
    return f'<path d="M{_n(x)} {_n(y - size)}l{size:g} {size:g}-{size:g} {size:g}-{size:g}-{size:g}z" fill="{fill}"/>'


def _arrow(x, y, length, colour=INK):
    return _line([(x, y), (x + length, y)], colour) + _line(
        [(x + length - 4, y - 4), (x + length, y), (x + length - 4, y + 4)], colour
    )


def _softmax(scores):
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def _cells(matrix, x, y, size, fill=BLUE):
    """A heat map: shares from 0 to 1, row by row."""
    return "".join(
        _rect(x + j * size, y + i * size, size - 1.5, size - 1.5, fill, max(weight, 0.08), round_by=1)
        for i, row in enumerate(matrix)
        for j, weight in enumerate(row)
        if weight is not None
    )


@_drawing("01")
def queries():
    query, keys = (44, 26), [(72, 17), (58, 46), (16, 14), (26, 48)]
    weights = _softmax([-math.dist(query, key) / 4 for key in keys])
    lines = "".join(_line([query, key], BLUE, 0.6 + 5 * w) for key, w in zip(keys, weights, strict=True))
    return lines + "".join(_dot(*k, 3 + 8 * w, BLUE) for k, w in zip(keys, weights, strict=True)) + _diamond(*query, 7)


@_drawing("02")
def pooling():
    def height(x):
        return 34 - 12 * math.sin(x / 13)

    noise = [5, -6, 3, 7, -5, -4, 6, -7, 4, -3, 5]
    dots = [(8 + 8 * i, height(8 + 8 * i) + off) for i, off in enumerate(noise)]
    bell = [(x, 58 - 20 * math.exp(-(((x - 48) / 10) ** 2) / 2)) for x in range(18, 79, 3)]
    return (
        _line(bell, ORANGE, 1.5)
        + "".join(_dot(x, y, 2, INK, 0.5) for x, y in dots)
        + _line([(x, height(x)) for x in range(6, 91, 3)], BLUE, 2.5)
    )


@_drawing("03")
def scores():
    bars = ""
    for left, scale in ((8, 4.0), (54, 1.0)):  # not divided, divided
        for i, weight in enumerate(_softmax([scale * s for s in (0.2, 1.0, -0.4, 0.5)])):
            bars += _rect(left + 9 * i, 52 - 44 * weight, 7, 44 * weight + 1, BLUE if left > 50 else ORANGE, 0.9)
    return bars + _line([(5, 54), (44, 54)]) + _line([(51, 54), (90, 54)])


@_drawing("04")
def translation():
    aligned = [0, 2, 1, 3, 5, 4]
    rows = [[0.95 if j == k else 0.3 if abs(j - k) == 1 and i % 2 else 0.06 for j in range(6)]
            for i, k in enumerate(aligned)]  # fmt: skip
    return _cells(rows, 21, 4, 9)


@_drawing("05")
def heads():
    def head(look):
        return [[_softmax([2.5 if j == look(i) else 0 for j in range(5)])[j] for j in range(5)] for i in range(5)]

    looks = (lambda i: i, lambda i: max(i - 1, 0), lambda i: 4, lambda i: 4 - i)
    return "".join(
        _cells(head(look), x, y, 5, fill)
        for look, (x, y), fill in zip(looks, ((20, 4), (51, 4), (20, 32), (51, 32)), (BLUE, ORANGE) * 2, strict=True)
    )


@_drawing("06")
def positions():
    waves = "".join(
        _line([(x, 30 - 20 * math.sin((x - 6) / rate)) for x in range(6, 92, 2)], colour, 2, shade)
        for rate, colour, shade in ((28, INK, 0.45), (13, ORANGE, 1), (6.2, BLUE, 1))
    )
    return waves + "".join(_line([(x, 54), (x, 57)], INK, 1, 0.6) for x in range(8, 92, 8))


@_drawing("07")
def transformer():
    tower = "".join(_rect(14, 44 - 13 * i, 26, 10, BLUE, 0.75 - 0.2 * i) for i in range(3))
    tower += "".join(_rect(56, 44 - 13 * i, 26, 10, ORANGE, 0.75 - 0.2 * i) for i in range(3))
    return (
        tower
        + "".join(_arrow(42, 23 + 13 * i, 12) for i in range(1, 2))
        + _line([(27, 14), (27, 9)])
        + _line([(69, 14), (69, 9)])
    )


@_drawing("08")
def training():
    fall = [(8 + 2 * i, 12 + 34 * (1 - math.exp(-i / 12)) + 1.6 * math.sin(2.3 * i)) for i in range(41)]
    bad = [(x, y if i < 12 else min(y, 44 - 2.1 * (i - 12) ** 1.15)) for i, (x, y) in enumerate(fall[:30])]
    return _line([(6, 4), (6, 55), (92, 55)], INK, 1.2, 0.6) + _line(bad, ORANGE, 2) + _line(fall, BLUE, 2)


@_drawing("09")
def long_texts():
    size, rows = 11, 11
    band = [[0.85 if 0 <= i - j < 3 else 0.85 if j == 0 and i > 2 else 0.08 for j in range(rows)] for i in range(size)]
    return _cells([[w if j <= i else None for j, w in enumerate(row)] for i, row in enumerate(band)], 21, 3, 5)


@_drawing("10")
def images():
    shirt = ["0220", "2332", "0330", "0330"]
    patches = "".join(
        _rect(6 + 11 * j, 8 + 11 * i, 9.5, 9.5, ORANGE, max(int(c) / 3.4, 0.1), round_by=1)
        for i, row in enumerate(shirt)
        for j, c in enumerate(row)
    )
    return (
        patches
        + _arrow(53, 30, 9)
        + "".join(
            _rect(68, 4 + 9 * i, 22, 7, ORANGE, int(shirt[i // 2][1 + i % 2]) / 3.4 if i else 0.1, round_by=1)
            for i in range(6)
        )
    )


@_drawing("11")
def scales():
    def shade(i, j):
        return 0.2 + 0.65 * ((3 * i * i + 5 * j) % 7) / 6

    out = ""
    for left, cells, high in ((4, 8, 48), (58, 4, 24), (84, 2, 10)):
        size = high / cells
        out += "".join(
            _rect(left + j * size, 30 - high / 2 + i * size, size - 1, size - 1, ORANGE, shade(i, j), round_by=0.5)
            for i in range(cells)
            for j in range(cells)
        )
    return out


@_drawing("12")
def tokens():
    rows = ([10] * 8, [20, 10, 10, 20, 10, 10], [40, 20, 20])
    out = ""
    for i, row in enumerate(rows):
        x = 8
        for j, width in enumerate(row):
            out += _rect(x, 7 + 17 * i, width - 2, 12, (BLUE, ORANGE)[j % 2] if i == 2 else INK, 0.3 + 0.25 * i)
            x += width
    return out


@_drawing("13")
def bert():
    words = "".join(_rect(5 + 18 * i, 34, 15, 12, INK, 0.3) for i in (0, 1, 3, 4))
    guess = _rect(41, 34, 15, 12, "none", 1, ORANGE)
    looks = "".join(
        f'<path d="M{x:g} 32Q{(x + 48.5) / 2:g} {32 - abs(x - 48.5) / 1.7:.1f} 48.5 32" fill="none" stroke="{BLUE}" '
        'stroke-width="1.5"/>'
        for x in (12.5, 30.5, 66.5, 84.5)
    )
    return looks + words + guess + _dot(48.5, 40, 2.5, ORANGE)


@_drawing("14")
def t5():
    def text(x, widths, y, fill, shade):
        out = ""
        for width in widths:
            out, x = out + _rect(x, y, width, 6, fill, shade, round_by=3), x + width + 3
        return out

    left = "".join(text(4, ws, 8 + 16 * i, INK, 0.4) for i, ws in enumerate(([10, 16], [16, 9], [7, 8, 8])))
    right = "".join(text(64, ws, 8 + 16 * i, BLUE, 0.85) for i, ws in enumerate(([16, 9], [10], [12, 13])))
    return left + right + _rect(42, 6, 12, 42, ORANGE, 0.8) + _line([(34, 27), (39, 27)]) + _line([(57, 27), (61, 27)])


@_drawing("15")
def gpt():
    rows = [[_softmax([0.9 * ((3 * i + 5 * j) % 4) for j in range(i + 1)])[j] if j <= i else None for j in range(6)]
            for i in range(6)]  # fmt: skip
    return _cells(rows, 14, 4, 9) + _rect(74, 49, 14, 7.5, ORANGE, 0.9, round_by=1)


@_drawing("16")
def decoding():
    tree = {
        (8, 30): [(36, 14, 1), (36, 46, 0)],
        (36, 14): [(64, 6, 0), (64, 22, 1)],
        (36, 46): [(64, 38, 0), (64, 54, 0)],
        (64, 22): [(88, 16, 0), (88, 28, 1)],
    }
    lines = dots = ""
    for (x, y), ends in tree.items():
        for a, b, chosen in ends:
            lines += _line([(x, y), (a, b)], ORANGE if chosen else INK, 2.5 if chosen else 1.2, 1 if chosen else 0.5)
            dots += _dot(a, b, 3.5, ORANGE if chosen else INK, 1 if chosen else 0.5)
    return lines + dots + _dot(8, 30, 4, BLUE)


@_drawing("17")
def scaling():
    def law(x):
        return 12 + (x - 10) * 0.44

    dots = "".join(
        _dot(x, law(x) + off, 2.6, BLUE) for x, off in zip(range(14, 62, 9), (1, -1.5, 1, 0.5, -1, 1), strict=True)
    )
    return (
        _line([(6, 4), (6, 55), (92, 55)], INK, 1.2, 0.6)
        + _line([(10, law(10)), (62, law(62))], BLUE, 1.5)
        + _line([(62, law(62)), (84, law(84))], BLUE, 1.5, 1, ' stroke-dasharray="3 4"')
        + dots
        + _diamond(84, law(84))
    )


@_drawing("18")
def after_pretraining():
    def answer(x, lines, colour):
        return _rect(x, 8, 36, 34, colour, 0.15, colour, 5) + "".join(
            _line([(x + 7, 17 + 8 * i), (x + 7 + w, 17 + 8 * i)], colour, 2.5) for i, w in enumerate(lines)
        )

    return (
        answer(7, (22, 15, 19), INK)
        + answer(53, (20, 22, 9), BLUE)
        + _line([(63, 51), (69, 56), (80, 46)], ORANGE, 3)
        + _line([(21, 51), (29, 51)], INK, 2, 0.5)
    )


@_drawing("19")
def real_model():
    layers = "".join(_rect(24, 52 - 4 * i, 48, 2.8, BLUE, 0.25 + 0.06 * i, round_by=1) for i in range(12))
    return (
        layers
        + _diamond(48, 29, 7)
        + _line([(78, 54), (78, 10)], INK, 1.5, 0.6)
        + _line([(75, 13), (78, 9), (81, 13)], INK, 1.5, 0.6)
    )


def pictogram(number):
    """The drawing of a chapter, "01" to "19". Returns: str, SVG; three dots where there is none yet."""
    inner = (
        DRAWINGS[number]() if number in DRAWINGS else "".join(_rect(8 + 21 * i, 22, 16, 16, INK, 0.3) for i in range(4))
    )
    return f'<svg class="d2lmini-pictogram" viewBox="0 0 96 60" aria-hidden="true" focusable="false">{inner}</svg>'
