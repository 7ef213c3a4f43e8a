"""Figure of chapter 10: where every patch of a picture looks, over the picture."""

import torch

from .base import Figure, table
from .packing import pack, unpack


class PatchAttention(Figure):
    """Real attention over patches: choose a picture, a layer and a head, point at a patch, see where it looks.

    All heads of a layer stand beside each other as small pictures. Pixels and weights travel as one byte each, so what
    the page shows is right to 1/510.

    Args:
        pictures: dict from the title of a picture to a pair: the picture (height, width), grey from 0 to 1, and a dict
            from the name of a layer (as "block 1") to its weights (H, T, T); (T, T) where there is one map, as of a
            rollout. All pictures have the same names and numbers of heads.
        grid: rows and columns of patches, N together. T is N, or N + 1 where the first token is the class token.
        layer: name of the layer shown first; None: the first.
        head: which head, from 1.

    Raises:
        ValueError: there is nothing to show, names or sizes differ, the grid does not divide a picture, pixels or
            weights are outside of 0 to 1, or there is no such layer or head.
    """

    name = "patch_attention"
    title = "Where a patch looks"
    hint = "Choose layer and head, and point at a patch of the picture. By keyboard: arrow keys go from patch to patch."

    def __init__(self, pictures, grid, layer=None, head=1):
        if not pictures or not all(maps for _, maps in pictures.values()):
            raise ValueError("there is nothing to show: expected at least one picture with the weights of one layer")
        grid = tuple(int(n) for n in grid)
        titles, names = list(pictures), list(next(iter(pictures.values()))[1])
        for title, (_, maps) in pictures.items():
            if list(maps) != names:
                raise ValueError(f"picture {title!r} has the layers {list(maps)}, the first one {names}")
        pixels = [_pixels(title, picture, grid) for title, (picture, _) in pictures.items()]
        maps = [[_map(f"{name!r} of {title!r}", m[name], grid) for name in names] for title, (_, m) in pictures.items()]
        sizes = [[m["size"] for m in row] for row in maps]
        if any(size != sizes[0] for size in sizes) or len({size[1] for size in sizes[0]}) > 1:
            raise ValueError(f"the maps (heads, tokens) of the pictures are {sizes}: are they of one model?")
        layer = names[0] if layer is None else layer
        if layer not in names:
            raise ValueError(f"there is no layer {layer!r}, only {', '.join(names)}")
        heads, tokens = sizes[0][names.index(layer)]
        if not 1 <= head <= heads:
            raise ValueError(f"head {head} of {layer!r}: expected 1 to {heads}")
        super().__init__(
            f"Attention over the patches of {len(titles)} pictures: choose layer and head, and point at a patch.",
            titles=titles,
            names=names,
            grid=list(grid),
            class_token=tokens > grid[0] * grid[1],
            pixels=pixels,
            maps=maps,
            picture=0,
            layer=names.index(layer),
            head=head,
        )

    def weights(self, title, name):
        """The weights that the page shows, multiples of 1/255.

        Args:
            title: of the picture.
            name: of the layer.

        Returns:
            (H, T, T).

        Raises:
            ValueError: there is no such picture or layer.
        """
        card = self.state["maps"][self.state["titles"].index(title)][self.state["names"].index(name)]
        heads, tokens = card["size"]
        return unpack(card["data"], heads, tokens, tokens).double() / 255

    def token_names(self):
        """What the figure calls the T tokens. Returns: list of str."""
        rows, columns = self.state["grid"]
        patches = [f"row {r + 1}, column {c + 1}" for r in range(rows) for c in range(columns)]
        return ["class token"] * self.state["class_token"] + patches

    def fallback(self):
        state, tokens = self.state, self.token_names()
        weights = self.weights(state["titles"][0], state["names"][state["layer"]])
        best, where = weights.max(-1)  # (H, T)
        rows = [
            [token, *(f"{tokens[where[h, t]]}: {best[h, t]:.2f}" for h in range(len(weights)))]
            for t, token in enumerate(tokens)
        ]
        caption = (
            f"“{state['titles'][0]}”, {state['names'][state['layer']]}: of every token, the token that each head looks "
            "at most, with its weight. Rows and columns are those of the patches."
        )
        return table(["token", *(f"head {h + 1}" for h in range(len(weights)))], rows, caption)


def _pixels(title, picture, grid):
    """A picture as the page takes it."""
    picture = torch.as_tensor(picture).detach().cpu()
    fits = picture.dim() == 2 and picture.numel() and min(grid) > 0
    if not fits or picture.shape[0] % grid[0] or picture.shape[1] % grid[1]:
        raise ValueError(
            f"picture {title!r} has shape {tuple(picture.shape)}, expected (height, width) that "
            f"{grid[0]} x {grid[1]} patches divide"
        )
    return {"size": list(picture.shape), "data": pack(picture, f"the pixels of {title!r}")}


def _map(what, weights, grid):
    """The weights of one layer as the page takes them."""
    weights = torch.as_tensor(weights).detach().cpu()
    weights = weights[None] if weights.dim() == 2 else weights  # (H, T, T)
    patches = grid[0] * grid[1]
    if weights.dim() != 3 or not len(weights) or tuple(weights.shape[1:]) not in ((patches,) * 2, (patches + 1,) * 2):
        raise ValueError(
            f"the weights {what} have shape {tuple(weights.shape)}, expected (H, T, T) with T = {patches} patches, or "
            f"{patches + 1} with a class token"
        )
    return {"size": list(weights.shape[:2]), "data": pack(weights, f"the weights {what}")}
