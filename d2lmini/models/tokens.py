"""What models of text do with tokens before anything else: check them, embed them, pad rows of several lengths."""

import torch

from ..arguments import checked_ids


def embedded(embedding, tokens, name="tokens"):
    """Tokens (B, T), or segments, as an ``nn.Embedding`` has them: (B, T, h).

    Raises:
        TypeError: they are no tensor.
        ValueError: they are not integers (B, T), or (seen on a CPU alone) are not in the vocabulary.
    """
    check_batch(tokens, name)
    try:
        return embedding(tokens)
    except IndexError as error:  # a CPU looks at each token anyway
        encoded = ": were they encoded with the vocabulary of this model?" if name == "tokens" else ""
        raise ValueError(
            f"{name} are {int(tokens.min())} to {int(tokens.max())}, expected 0 to {embedding.num_embeddings - 1}"
            + encoded
        ) from error


def check_batch(tokens, name="tokens"):
    """Raises where tokens, or segments, are no tensor of integers (B, T), as `embedded` does."""
    if not isinstance(tokens, torch.Tensor):
        raise TypeError(
            f"{name} are a {type(tokens).__name__}, expected a tensor of integers (B, T): torch.tensor([...])"
        )
    if tokens.dim() != 2 or tokens.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            f"{name} are {tokens.dtype} of shape {tuple(tokens.shape)}, expected integers (B, T), int32 or int64"
        )


def padded(prompts, pad, device, *, side="right"):
    """Prompts of any lengths as one tensor.

    Args:
        prompts: integers (B, n), or a list of B lists of them.
        pad: the token that shorter ones are filled up with.
        device: where the tensor is to be.
        side: where to fill up, "right" or "left".

    Returns:
        Integers (B, n), and their lengths (B,); None where all have one length.

    Raises:
        ValueError: a prompt is empty, or there is none, a token is below 0, or a tensor is not (B, n).
        TypeError: what stands in a prompt is no integer, or prompts are no lists.
    """
    if isinstance(prompts, torch.Tensor):
        if prompts.dim() != 2:
            shape = tuple(prompts.shape)
            raise ValueError(f"prompts have shape {shape}, expected (B, n): one prompt alone is [prompt]")
        if prompts.is_floating_point() or prompts.dtype == torch.bool:
            raise TypeError(f"prompts are {prompts.dtype}, expected integers: ids of tokens")
        tokens, valid_lens = prompts.to(device), [prompts.shape[1]] * len(prompts)
    else:
        prompts = _listed(prompts)
        valid_lens = [len(prompt) for prompt in prompts]
        filling = [[pad] * (max(valid_lens) - n) for n in valid_lens]
        rows = zip(filling, prompts, strict=True) if side == "left" else zip(prompts, filling, strict=True)
        tokens = torch.tensor([[*left, *right] for left, right in rows], dtype=torch.long, device=device)
    if not valid_lens or min(valid_lens) < 1:
        raise ValueError("a prompt is empty: expected at least one token, such as <bos>, a line end or <eos>")
    if len(set(valid_lens)) == 1:
        return tokens, None
    return tokens, torch.tensor(valid_lens, device=device)


def _listed(prompts):
    """Prompts as lists of lists of int."""
    if not hasattr(prompts, "__len__") or any(
        isinstance(prompt, (str, bytes)) or not hasattr(prompt, "__len__") or getattr(prompt, "ndim", 1) != 1
        for prompt in prompts
    ):
        raise TypeError(
            f"prompts are {prompts!r:.40}, expected token ids, a list of lists of integers: one prompt alone is "
            "[prompt], and a text is encoded first"
        )
    return [checked_ids(prompt) for prompt in prompts]
