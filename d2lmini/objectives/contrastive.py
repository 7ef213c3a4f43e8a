"""A contrastive objective: among all in the batch, which one belongs to me?"""

import torch
import torch.nn.functional as F

from .checks import check_positive


def info_nce(queries, keys, temperature=0.07, *, symmetric=False, negatives=None):
    r"""The InfoNCE loss: a classification of each query among the keys of the batch.

    Key n belongs to query n, the others of the batch are its negatives. With
    :math:`s_{nm}` the cosine of the angle between query n and key m, divided by the temperature,

    .. math:: L = -\frac{1}{B}\sum_n\log\frac{\exp s_{nn}}{\sum_m\exp s_{nm}},

    which is the cross-entropy of B classes. With B keys of which none can be told from another it is log B.

    Args:
        queries: (B, D), of any length but 0; they are scaled to unit length.
        keys: (B, D).
        temperature: above 0, a number or a scalar tensor; the smaller, the more the hardest negatives count. 0.07 is
            where CLIP begins, which learns it.
        symmetric: whether each key also chooses among the queries; the loss is then the mean of both.
        negatives: booleans (B, B), whether key m is a negative of query n; None: all but its own. False where key m is
            right, too, such as a second picture of the same caption: a false negative.

    Returns:
        The loss, a scalar, in nats.

    Raises:
        ValueError: the shapes are not (B, D) and alike, B is below 2, a row is of length 0, ``temperature`` is out of
            range, or ``negatives`` are no booleans (B, B).

    Source: van den Oord et al. 2018, equation 4; symmetric: Radford et al. 2021 (CLIP), figure 3. UDL problem 12.8.
    """
    if queries.dim() != 2 or queries.shape != keys.shape:
        raise ValueError(
            f"queries have shape {tuple(queries.shape)} and keys {tuple(keys.shape)}, expected (B, D) of both: key n "
            "belongs to query n"
        )
    if len(queries) < 2:
        raise ValueError(f"the batch is {len(queries)}, expected at least 2: there is no negative to tell from")
    for name, rows in (("queries", queries), ("keys", keys)):
        if not (there := rows.any(1)).all():
            row = int((~there).nonzero()[0, 0])
            raise ValueError(f"row {row} of the {name} is of length 0, and has no direction")
    check_positive("temperature", temperature.item() if isinstance(temperature, torch.Tensor) else temperature)
    scores = F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).T / temperature  # (B, B)
    right = torch.arange(len(scores), device=scores.device)
    if negatives is not None:
        if negatives.shape != scores.shape or negatives.dtype != torch.bool:
            raise ValueError(
                f"negatives are {negatives.dtype} of shape {tuple(negatives.shape)}, expected booleans of shape "
                f"{tuple(scores.shape)}: whether key m is a negative of query n"
            )
        own = torch.eye(len(scores), dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(~(negatives | own), -torch.inf)
    loss = F.cross_entropy(scores, right)
    return (loss + F.cross_entropy(scores.T, right)) / 2 if symmetric else loss
