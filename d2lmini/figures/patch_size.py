"""Figure of chapter 10: a picture cut into patches of several sizes, and what each size costs."""

import torch

from .base import Figure, table


class PatchSize(Figure):
    """A picture in patches: the reader chooses their size and sees the number of tokens, parameters and operations.

    The model is a vision Transformer with a class token and learned positions. Operations are those of all matrix
    products for one image, a multiplication and an addition being two; softmax, norms and the classifier's head are
    left out.

    Args:
        picture: (height, width), grey from 0 to 1.
        patch_sizes: sides of a patch, increasing, each a divisor of both sides of the picture.
        patch_size: the one shown first; None: the middle one.
        num_hiddens: h, features of a token.
        mlp_num_hiddens: size of the hidden layer of a block's network.
        num_blks: number of blocks.

    Raises:
        ValueError: the picture has another shape or numbers outside of 0 to 1, a patch size does not divide it, sizes
            do not increase, or ``patch_size`` is none of them.
    """

    name = "patch_size"
    title = "What the patch size costs"
    hint = "Move the slider: the picture is cut finer or coarser, and the counts follow."

    def __init__(
        self, picture, patch_sizes=(2, 4, 7, 14, 28), patch_size=None, num_hiddens=64, mlp_num_hiddens=128, num_blks=2
    ):
        picture, patch_sizes = torch.as_tensor(picture, dtype=torch.float64), [int(size) for size in patch_sizes]
        if picture.dim() != 2 or not picture.numel():
            raise ValueError(f"the picture has shape {tuple(picture.shape)}, expected (height, width)")
        if not (picture.min() >= 0 and picture.max() <= 1):
            raise ValueError("the pixels are outside of 0 to 1")
        height, width = picture.shape
        for size in patch_sizes:
            if size < 1 or height % size or width % size:
                raise ValueError(f"the picture has {height} x {width} pixels, which patches of {size} do not divide")
        if not patch_sizes or sorted(set(patch_sizes)) != patch_sizes:
            raise ValueError(f"patch sizes must increase, not {patch_sizes}")
        patch_size = patch_sizes[len(patch_sizes) // 2] if patch_size is None else patch_size
        if patch_size not in patch_sizes:
            raise ValueError(f"there is no patch size {patch_size}, only {patch_sizes}")
        super().__init__(
            f"A picture of {height} x {width} pixels in patches of a size to choose, with the number of tokens, "
            "parameters and operations.",
            picture=(picture * 255).round().to(torch.uint8),
            patch_sizes=patch_sizes,
            patch_size=patch_size,
            num_hiddens=num_hiddens,
            mlp_num_hiddens=mlp_num_hiddens,
            num_blks=num_blks,
        )

    def costs(self, patch_size):
        """What a patch size costs, as the page computes it.

        Args:
            patch_size: side of a patch.

        Returns:
            dict of integers: ``tokens`` (the class token is one), ``embedding_parameters`` (of the patches),
            ``position_parameters``, and operations for one image: ``embedding`` and, of all blocks, ``projections``,
            ``network`` and ``attention``.
        """
        state = self.state
        height, width, h = len(state["picture"]), len(state["picture"][0]), state["num_hiddens"]
        patches = height * width // patch_size**2
        tokens = patches + 1
        return {
            "tokens": tokens,
            "embedding_parameters": patch_size**2 * h + h,
            "position_parameters": tokens * h,
            "embedding": 2 * patches * patch_size**2 * h,
            "projections": state["num_blks"] * 8 * tokens * h**2,  # queries, keys, values, and the output
            "network": state["num_blks"] * 4 * tokens * h * state["mlp_num_hiddens"],
            "attention": state["num_blks"] * 4 * tokens**2 * h,  # scores, and the mixture of the values
        }

    def fallback(self):
        state, rows = self.state, []
        for size in state["patch_sizes"]:
            costs = self.costs(size)
            total = sum(costs[part] for part in ("embedding", "projections", "network", "attention"))
            counts = (costs["tokens"], costs["embedding_parameters"], costs["position_parameters"], total)
            rows.append([f"{size} x {size}", *(f"{n:,}" for n in counts), f"{costs['attention'] / total:.3f}"])
        header = ["patches", "tokens", "embedding", "positions", "operations", "share of attention"]
        caption = (
            f"A picture of {len(state['picture'])} x {len(state['picture'][0])} pixels in patches: tokens, parameters "
            "of the patch embedding and of the positions, operations for one image, and which share of them are "
            f"scores and mixtures. {state['num_blks']} blocks of {state['num_hiddens']} features."
        )
        return table(header, rows, caption)
