"""Diverse beam search: the beams of several groups avoid each other's tokens."""

from ..arguments import check_integer, check_number
from .search import follow_groups
from .steps import decoded


def diverse_beam_search(
    step, state, bos, eos, max_len, beam_size=4, num_groups=4, diversity_penalty=0.5, length_penalty=0.0
):
    """Beam search in groups, each of which is put off the tokens that those before it choose at the same step.

    The first group is a beam search of beam_size / num_groups hypotheses. In every other one a token is ranked as if
    its log-probability were lower by ``diversity_penalty`` for each hypothesis of an earlier group that goes on with it
    at this step (Hamming diversity). The scores themselves stay log-probabilities: what was paid in one step is
    forgotten in the next (some implementations add it up). <eos> costs nothing, and a group that is done has no say.

    Args:
        step, state, bos, eos, max_len, length_penalty: those of `beam_search`.
        beam_size: K, the hypotheses of all groups together, a multiple of G.
        num_groups: G.
        diversity_penalty: log-probability, 0 or more; 0 makes all groups the same.

    Returns:
        A `Decoded` with an axis for the groups and one for the sequences of each, the best first: tokens
        (B, G, K / G, L), lengths and scores (B, G, K / G).

    Raises:
        ValueError: as `beam_search`, or ``num_groups`` does not divide ``beam_size``, or ``diversity_penalty`` is
            negative or no number.

    Source: Vijayakumar et al. 2016, "Diverse beam search".
    """
    if check_integer("beam_size", beam_size, 1) % check_integer("num_groups", num_groups, 1):
        raise ValueError(f"beam_size is {beam_size}, expected a multiple of num_groups, which is {num_groups}")
    check_number("diversity_penalty", diversity_penalty)
    each = beam_size // num_groups
    return decoded(
        *follow_groups(step, state, bos, eos, max_len, num_groups, each, each, length_penalty, diversity_penalty)
    )
