"""Diagrams of chapter 11: a pyramid, windows and their shift, attention among patches beside that among channels.

Source: Liu et al. 2021, figures 2 to 4; Ding et al. 2022, figure 3; UDL figure 12.18.
"""

import torch

from ...vision.windows import check_windows, shifted_window_mask, window_partition
from .drawing import ROW, Diagram


class _Sheet(Diagram):
    """A diagram with matrices of small squares."""

    narrows = False

    def matrix(self, name, at, shape, cell, fills=(), heavy=(None, None), dashes=()):
        """A matrix of ``shape`` (rows, columns), each entry a square of ``cell`` pixels.

        Args:
            name: of the place.
            at: its centre on the grid of the diagram.
            shape, cell: as above.
            fills: triples (boolean matrix, colour, opacity), painted in this order.
            heavy: heavy lines after so many rows and columns; None: only around.
            dashes: pairs (axis, number): a dashed orange line before that row (axis 0) or column (axis 1).
        """
        rows, columns = shape
        place = self._put(name, at, columns * cell, rows * cell)
        left, top = place.x - place.width / 2, place.y - place.height / 2
        for chosen, colour, opacity in fills:
            for row, column in torch.as_tensor(chosen).nonzero().tolist():
                self._shapes_drawn.append(
                    f'<rect x="{left + column * cell:g}" y="{top + row * cell:g}" width="{cell}" height="{cell}" '
                    f'fill="{colour}" fill-opacity="{opacity}"/>'
                )
        lines = [(0, i, heavy[0]) for i in range(rows + 1)] + [(1, i, heavy[1]) for i in range(columns + 1)]
        for axis, i, step in lines:
            bold = i in (0, shape[axis]) or (step and i % step == 0)
            style = 'stroke-width="2"' if bold else 'stroke-opacity="0.3"'
            self._rule(place, axis, i * cell, f'stroke="currentColor" {style}')
        for axis, i in dashes:
            self._rule(place, axis, i * cell, 'stroke="var(--orange)" stroke-width="2" stroke-dasharray="4 3"')
        return self

    def bar(self, name, at, length, colour):
        """A bar of ``length`` pixels."""
        place = self._put(name, at, length, 8)
        self._shapes_drawn.append(
            f'<rect x="{place.x - length / 2:g}" y="{place.y - 4:g}" width="{length:g}" height="8" fill="{colour}" '
            'fill-opacity="0.7"/>'
        )
        return self

    def pieces(self, name, numbers, cell):
        """Writes the number of each piece into the first of its squares."""
        place = self.places[name]
        left, top = place.x - place.width / 2, place.y - place.height / 2
        seen = set()
        for row, values in enumerate(numbers.tolist()):
            for column, value in enumerate(values):
                if value not in seen:
                    seen.add(value)
                    self._write(str(value), left + (column + 0.5) * cell, top + (row + 0.5) * cell + 4.5)
        return self

    def _rule(self, place, axis, offset, style):
        (x0, y0), (x1, y1) = place.edge("left"), place.edge("right")
        y0, y1 = place.edge("top")[1], place.edge("bottom")[1]
        ends = (x0, y0 + offset, x1, y0 + offset) if axis == 0 else (x0 + offset, y0, x0 + offset, y1)
        self._shapes_drawn.append('<line x1="{:g}" y1="{:g}" x2="{:g}" y2="{:g}" '.format(*ends) + f"{style}/>")


def pyramid(side=14, window_size=7, num_stages=2):
    """A model of several scales, from the bottom up: patches, blocks in windows, merging, blocks, a mean, scores.

    Args:
        side: patches along a side of the first map.
        window_size: M.
        num_stages: 2 or 3.

    Returns:
        A `Diagram` of `d2lmini.models.swin.Swin`, called with images.

    Raises:
        ValueError: there are not 2 or 3 stages, or windows or merging do not divide a map.
    """
    if num_stages not in (2, 3):
        raise ValueError(f"num_stages is {num_stages}, expected 2 or 3")
    diagram = _Sheet(
        "A pyramid of stages",
        "From the bottom up: images are cut into patches, and one matrix maps each to h features. "
        f"{num_stages} stages of blocks follow, in which patches attend inside of windows, in turns without and with a "
        "shift. Between two stages four neighbouring patches are merged into one of twice the features. After the last "
        "stage come a layer norm, the mean over all patches, and a linear layer that gives the scores of the classes. "
        "On the right, the picture as each stage sees it, cut into patches by thin lines and into windows by heavy "
        "ones, and a bar as long as the number of features: " + ", then ".join(_stages(side, window_size, num_stages))
        + ".",
        "Thin lines: patches; heavy lines: windows; orange: features. The squares on the right are the whole picture "
        "each time.",
    )  # fmt: skip
    maps = lambda i: f"(B, {_over('rows', i)}, {_over('columns', i)}, {_times('h', i)})"  # noqa: E731
    diagram.text("images", (0, 0)).box("ln_patches", (0, 1.4), "cut into patches, × matrix, norm", width=3.0)
    diagram.arrow("images", "ln_patches", "(B, c, y, x)", of="input 0", side="left")
    last, row = "ln_patches", 1.4
    for i, says in enumerate(_stages(side, window_size, num_stages)):
        if i:
            diagram.box(f"merging.{i - 1}", (0, row + 1.8), "merge 2 × 2 patches", width=3.0, accent="orange")
            diagram.arrow(last, f"merging.{i - 1}", maps(i - 1), of=last, side="left")
            last, row = f"merging.{i - 1}", row + 1.8
        row += 1.8
        inside = "blocks in one window" if "1 window," in says else "blocks: windows, shifted windows"
        diagram.box(f"stages.{i}", (0, row), inside, width=3.0, accent="blue")
        diagram.arrow(last, f"stages.{i}", maps(i), of=last, side="left")
        last, patches = f"stages.{i}", side // 2**i
        cell = 112 / patches
        diagram.matrix(f"map {i}", (2.5, row), (patches, patches), cell, heavy=(window_size, window_size))
        for line, text in enumerate(says.split(", ")):
            diagram.text(f"map {i}: {text}", (4.1, row + 0.7 - 0.55 * line), text)
        diagram.bar(f"map {i}: bar", (4.1, row - 0.95), 32 * 2**i, "var(--orange)")
    diagram.box("mean", (0, row + 1.8), "layer norm, mean over patches", width=3.0)
    diagram.arrow(last, "mean", maps(num_stages - 1), of=last, side="left")
    diagram.box("head", (0, row + 3.4), "linear", width=3.0)
    diagram.arrow("mean", "head", f"(B, {_times('h', num_stages - 1)})", side="left")
    diagram.text("scores", (0, row + 4.8), "scores of the classes")
    return diagram.arrow("head", "scores", "(B, C)", of="head", side="left")


def _over(letter, i):
    return f"{letter}/{2**i}" if i else letter


def _times(letter, i):
    return f"{2**i}{letter}" if i else letter


def _stages(side, window_size, num_stages):
    """What is said of each stage: patches, windows, features."""
    says = []
    for i in range(num_stages):
        if side % 2**i:
            raise ValueError(f"a map of {side} x {side} patches cannot be merged {i} times")
        patches = side // 2**i
        check_windows((patches, patches), window_size, f" of stage {i + 1}")
        windows = (patches // window_size) ** 2
        plural = "s" if windows > 1 else ""
        says.append(f"{patches} × {patches} patches, {windows} window{plural}, {_times('h', i)} features")
    return says


def _check(side, window_size, patch):
    if side % window_size:
        raise ValueError(f"windows of {window_size} do not divide a side of {side}")
    if not all(0 <= place < side for place in patch):
        raise ValueError(f"the patch is {tuple(patch)}, expected a row and a column from 0 to {side - 1}")


def attended(side, window_size, shift, patch):
    """The patches that one patch may attend to.

    Args:
        side: patches along a side of the map.
        window_size, shift: as in `d2lmini.vision.windows`.
        patch: (row, column).

    Returns:
        Booleans (side, side).

    Raises:
        ValueError: windows do not divide the map, the shift is outside of 0 to M - 1, or there is no such patch.
    """
    _check(side, window_size, patch)
    numbers = torch.arange(side**2).view(1, side, side, 1)
    numbers = window_partition(numbers.roll((-shift, -shift), dims=(1, 2)), window_size)[..., 0]  # (windows, P)
    mask = shifted_window_mask((side, side), window_size, shift)  # (windows, P, P)
    window, place = (numbers == patch[0] * side + patch[1]).nonzero()[0].tolist()
    visible = torch.zeros(side**2, dtype=torch.bool)
    visible[numbers[window][mask[window, place]]] = True
    return visible.view(side, side)


def shifted_windows(side=8, window_size=4, shift=2, patches=((3, 3), (7, 7))):
    """Windows without and with a shift, and how the shifted ones are computed: rolled, with a mask.

    Args:
        side, window_size, shift: as in `attended`; the shift is not 0.
        patches: two patches (row, column), drawn in blue and in orange with what they may attend to.

    Returns:
        A `Diagram` of three panels.

    Raises:
        ValueError: as `attended` does; or the shift is 0.
    """
    if not shift:
        raise ValueError("the shift is 0, expected 1 to M - 1: nothing would be shifted")
    for patch in patches:
        _check(side, window_size, patch)
    strip = (torch.arange(side) - shift) // window_size + 1  # the number of the strip in which a row stands
    pieces = (int(strip[-1]) + 1) * strip[:, None] + strip  # (side, side)
    diagram = _Sheet(
        "Windows and their shift",
        f"Three panels with the same {side} by {side} patches. Left, windows of {window_size} by {window_size}: each "
        "of two marked patches may attend to the window in which it stands. Middle, the borders moved down and to the "
        f"right by {shift}: they cut the picture into {int(pieces.max()) + 1} numbered pieces; the blue patch attends "
        "across the old border, the orange one, in a corner, to the few patches of its piece. Right, as it is "
        "computed: the map is rolled up and to the left, so that full windows hold several pieces, and a mask keeps "
        "the pieces of a window apart, along the dashed lines; the orange piece shares its window with the other "
        "corners of the picture and attends to none of them.",
        "Full colour: a patch; faint colour: what it may attend to. Heavy lines: windows. Numbers: the pieces into "
        "which shifted borders cut the picture. Dashed: what the mask keeps apart.",
    )
    colours, cell = ("var(--blue)", "var(--orange)"), 22
    here = [torch.zeros(side, side, dtype=torch.bool) for _ in patches]
    for itself, patch in zip(here, patches, strict=True):
        itself[patch] = True
    turn = lambda X: X.roll((-shift, -shift), dims=(0, 1))  # noqa: E731
    unchanged = lambda X: X  # noqa: E731
    panels = {"windows": (0, unchanged), "shifted windows": (shift, unchanged), "shifted, as computed": (shift, turn)}
    for number, (name, (moved, view)) in enumerate(panels.items()):
        fills = []
        for itself, patch, colour in zip(here, patches, colours, strict=True):
            fills += [(view(attended(side, window_size, moved, patch)), colour, 0.3), (view(itself), colour, 0.75)]
        x = 2.3 * number
        borders = [axis_at for i in range(1, side) if strip[i] != strip[i - 1] for axis_at in ((0, i), (1, i))]
        last = side - shift
        diagram.matrix(
            name, (x, 0), (side, side), cell, fills,
            heavy=(None, None) if number == 1 else (window_size, window_size),
            dashes=[(0, last), (1, last)] if number == 2 else (),
        )  # fmt: skip
        if number == 1:
            for axis, i in borders:
                diagram._rule(diagram.places[name], axis, i * cell, 'stroke="currentColor" stroke-width="2"')
        if number:
            diagram.pieces(name, view(pieces), cell)
        diagram.text(f"{name}: name", (x, side * cell / 2 / ROW + 0.4), name)
    return diagram


def attention_both_ways(num_tokens=8, num_hiddens=6, window=4, groups=2):
    """Attention among the patches of a window beside attention among the channels of a group.

    Args:
        num_tokens: T, rows of the matrix that is drawn.
        num_hiddens: h, its columns.
        window: P, patches of a window.
        groups: G.

    Returns:
        A `Diagram` of two panels.

    Raises:
        ValueError: P does not divide T, or G does not divide h.
    """
    if num_tokens % window or num_hiddens % groups:
        raise ValueError(
            f"expected windows that divide T and groups that divide h, not {window} of {num_tokens} and "
            f"{groups} of {num_hiddens}"
        )
    shape, size = (num_tokens, num_hiddens), num_hiddens // groups
    diagram = _Sheet(
        "Two ways to attend in one matrix",
        "Two panels with the same matrix X of T rows, the patches, and h columns, the channels. Left, spatial "
        "attention: the token is a row with h features; rows attend to the rows of their window, and each window has "
        "a matrix of P by P weights. Right, channel attention: the token is a column with T features; columns attend "
        "to the columns of their group, and each group has a matrix of weights of the size of a group, h/G by h/G, "
        "however many patches there are. Both give T by h numbers again.",
        "T patches, h channels, P patches in a window, G groups of h/G channels. Full colour: a token; faint "
        "colour: the tokens that it may attend to.",
    )
    row, column = torch.arange(num_tokens)[:, None], torch.arange(num_hiddens)
    ones = torch.ones(shape, dtype=torch.bool)
    kinds = {
        "spatial": ("var(--blue)", ones & (row < window), ones & (row == 1), (window, None), window,
                    num_tokens // window, "token: a row, h features", "weights: (P, P) a window"),
        "channel": ("var(--orange)", ones & (column < size), ones & (column == 1), (None, size), size, groups,
                    "token: a column, T features", "weights: (h/G, h/G) a group"),
    }  # fmt: skip
    cell = 22
    for number, (name, (colour, near, token, heavy, n, count, says, weights)) in enumerate(kinds.items()):
        x, high = 4.2 * number, num_tokens * cell / 2 / ROW
        diagram.matrix(f"{name} X", (x, 0), shape, cell, [(near, colour, 0.25), (token, colour, 0.6)], heavy)
        diagram.text(f"{name}: X", (x, -high - 0.35), "X (T, h)")
        diagram.text(f"{name}: name", (x + 1.0, high + 1.2), f"{name} attention")
        diagram.text(f"{name}: token", (x + 1.0, high + 0.6), says)
        small = 16
        for i in range(count):
            y = ((count - 1) / 2 - i) * (n * small + 18) / ROW
            own, whole = torch.zeros(n, n, dtype=torch.bool), torch.ones(n, n, dtype=torch.bool)
            own[1] = True
            fills = [(whole, colour, 0.25), (own, colour, 0.35)] if i == 0 else []
            diagram.matrix(f"{name} weights {i}", (x + 1.9, y), (n, n), small, fills)
        diagram.text(f"{name}: weights", (x + 1.9, -high - 0.35), weights)
    return diagram
