"""Figure of chapter 11: who may attend to whom in windows, and what has reached a patch after some layers."""

import torch

from ..renamed import Attribute
from ..vision.windows import shifted_window_mask, window_partition
from .base import Figure, table


class SwinExplorer(Figure):
    """A picture in patches, cut into windows: choose their size and the layer, point at a patch.

    Layers 2, 4, 6, ... are shifted by half a window, if the reader leaves that on. The page shows which patches the
    chosen one may attend to in the layer, which have reached it through all layers so far, and what the layer costs:
    the operations of all matrix products of attention for one picture, a multiplication and an addition being two.

    Args:
        pictures: dict from titles to pictures (height, width), grey from 0 to 1, all of one size.
        patch_size: pixels along a side of a patch.
        window_sizes: patches along a side of a window, increasing, each a divisor of both sides of the grid; None: all
            from 2 on. One as large as the grid is attention of all to all.
        window_size: the one shown first; None: the middle one.
        layer: the one shown first, from 1.
        num_layers: how many there are.
        num_hiddens: h, for the operations.

    Raises:
        ValueError: there is no picture, they differ in size or have numbers outside of 0 to 1, patches or windows do
            not divide them, or there is no such window size or layer.
    """

    name = "swin_explorer"
    may_attend = Attribute("may_attend", "mask")
    title = "What reaches a patch"
    hint = "Choose the window and the layer, and point at a patch. By keyboard: arrow keys go from patch to patch."

    def __init__(
        self, pictures, patch_size=2, window_sizes=None, window_size=None, layer=1, num_layers=8, num_hiddens=48
    ):
        if not pictures:
            raise ValueError("there is nothing to show: expected at least one picture")
        pixels = {title: torch.as_tensor(picture, dtype=torch.float64) for title, picture in pictures.items()}
        shapes = {tuple(picture.shape) for picture in pixels.values()}
        if len(shapes) > 1 or len(height_and_width := shapes.pop()) != 2:
            raise ValueError(
                f"the pictures have shapes {[tuple(x.shape) for x in pixels.values()]}, expected one (height, width)"
            )
        if not all(picture.min() >= 0 and picture.max() <= 1 for picture in pixels.values()):
            raise ValueError("pixels are outside of 0 to 1")
        height, width = height_and_width
        if patch_size < 1 or height % patch_size or width % patch_size:
            raise ValueError(f"pictures of {height} x {width} pixels, which patches of {patch_size} do not divide")
        rows, columns = grid = [height // patch_size, width // patch_size]
        if window_sizes is None:
            window_sizes = [M for M in range(2, min(grid) + 1) if not (rows % M or columns % M)]
        window_sizes = [int(M) for M in window_sizes]
        if not window_sizes:
            raise ValueError(f"no window divides {rows} x {columns} patches")
        if sorted(set(window_sizes)) != window_sizes:
            raise ValueError(f"window sizes must increase, not {window_sizes}")
        for M in window_sizes:
            if M < 1 or rows % M or columns % M:
                raise ValueError(f"the grid has {rows} x {columns} patches, which windows of {M} do not divide")
        window_size = window_sizes[len(window_sizes) // 2] if window_size is None else window_size
        if window_size not in window_sizes:
            raise ValueError(f"there is no window size {window_size}, only {window_sizes}")
        if not 1 <= layer <= num_layers:
            raise ValueError(f"layer {layer}: expected 1 to {num_layers}")
        super().__init__(
            f"A picture in {rows} x {columns} patches, cut into windows: choose window size and layer, and point at a "
            "patch to see what it may attend to and what has reached it.",
            titles=list(pixels),
            pictures=[(picture * 255).round().to(torch.uint8) for picture in pixels.values()],
            grid=grid,
            window_sizes=window_sizes,
            num_layers=num_layers,
            num_hiddens=num_hiddens,
            picture=0,
            window_size=window_size,
            layer=layer,
            shifted=True,
        )

    def mask(self, window_size, layer, shifted=True):
        """Which patch may attend to which in a layer.

        Args:
            window_size: M.
            layer: from 1.
            shifted: whether every second layer is.

        Returns:
            boolean (T, T), patches row by row.
        """
        rows, columns = self.state["grid"]
        M, T = window_size, rows * columns
        shift = M // 2 if shifted and layer % 2 == 0 and M not in (rows, columns) else 0
        names = torch.arange(T).view(1, rows, columns, 1).roll((-shift, -shift), (1, 2))
        windows = window_partition(names, M).squeeze(-1)  # (windows, P)
        mask = torch.zeros(T, T, dtype=torch.bool)
        mask[windows[:, :, None], windows[:, None]] = shifted_window_mask((rows, columns), M, shift)
        return mask

    def reached(self, window_size, layer, shifted=True):
        """Which patch has heard of which after so many layers, boolean (T, T): rows hear, columns are heard."""
        heard = torch.eye(self.state["grid"][0] * self.state["grid"][1])
        for i in range(1, layer + 1):
            heard = (self.mask(window_size, i, shifted).float() @ heard > 0).float()
        return heard.bool()

    def costs(self, window_size):
        """What a layer costs, a dict: ``scores`` of a head, operations of ``attention`` and ``projections``."""
        T, h = self.state["grid"][0] * self.state["grid"][1], self.state["num_hiddens"]
        scores = T * window_size**2
        return {"scores": scores, "attention": 4 * scores * h, "projections": 8 * T * h**2}

    def fallback(self):
        state, rows = self.state, []
        (height, width), shown = state["grid"], [n for n in (1, 2, 3, 4, 6, 8) if n <= state["num_layers"]]
        middle = height // 2 * width + width // 2
        for M in state["window_sizes"]:
            costs = self.costs(M)
            heard = [int(self.reached(M, n)[middle].sum()) for n in shown]
            rows.append([f"{M} x {M}", height * width // M**2, *(f"{n:,}" for n in costs.values()), *heard])
        header = ["window", "windows", "scores of a head", "operations of attention", "of projections"]
        caption = (
            f"{height} x {width} patches of {state['num_hiddens']} features in windows: what a layer costs, and how "
            "many patches have reached the one in the middle after some layers of which every second is shifted."
        )
        return table([*header, *(f"layer {n}" for n in shown)], rows, caption)
