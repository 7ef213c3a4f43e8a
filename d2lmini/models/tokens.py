"""What models of text do with tokens before anything else: check them, embed them, pad rows of several lengths."""

import torch


def embedded(embedding, tokens, name="tokens"):
    """Tokens (B, T), or segments, as an ``nn.Embedding`` has them: (B, T, h).

    Raises:
        ValueError: they are not integers (B, T), or (seen on a CPU alone) are not in the vocabulary.
    """
    if tokens.dim() != 2 or tokens.is_floating_point() or tokens.dtype == torch.bool:
        raise ValueError(f"{name} are {tokens.dtype} of shape {tuple(tokens.shape)}, expected integers (B, T)")
    try:
        return embedding(tokens)
    except IndexError as error:  # a CPU looks at each token anyway
        raise ValueError(
            f"{name} are {int(tokens.min())} to {int(tokens.max())}, expected 0 to {embedding.num_embeddings - 1}: "
            "were they encoded with the vocabulary of this model?"
        ) from error


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
        ValueError: a prompt is empty, or there is none.
    """
    if isinstance(prompts, torch.Tensor):
        tokens, lengths = prompts.to(device), [prompts.shape[-1]] * (prompts.dim() == 2)
    else:
        lengths = [len(prompt) for prompt in prompts]
        filling = [[pad] * (max(lengths) - n) for n in lengths]
        rows = zip(filling, prompts, strict=True) if side == "left" else zip(prompts, filling, strict=True)
        tokens = torch.tensor([[*one, *other] for one, other in rows], dtype=torch.long, device=device)
    if not lengths or min(lengths) < 1:
        raise ValueError("a prompt is empty: expected at least one token, such as <bos>, a line end or <eos>")
    if len(set(lengths)) == 1:
        return tokens, None
    return tokens, torch.tensor(lengths, device=device)
