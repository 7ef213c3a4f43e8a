"""A head for questions: where in a passage the answer begins, where it ends, and the best span of both scores."""

import torch
import torch.nn.functional as F

from ..masks import position_offsets, token_mask
from ..objectives.masking import IGNORE_INDEX
from .heads import Head


class SpanHead(Head):
    """Where in a passage the answer to a question begins, and where it ends.

    Args:
        encoder, dropout, lr, num_hiddens: as in `TextHead`.

    Source: Devlin et al. 2019, section 4.2; D2L section 11.9.1.2; UDL section 12.6.2.
    """

    def __init__(self, encoder, dropout=0.0, lr=5e-5, num_hiddens=None):
        super().__init__(encoder, 2, dropout, lr, num_hiddens)

    def forward(self, tokens, segments=None, valid_lens=None, passage=None, *, mask=None):
        """Scores of the first and of the last token of the answer; -inf outside of the passage.

        Args:
            tokens, segments, valid_lens, mask: as `BERT`'s.
            passage: booleans (B, T): where the answer may be. None: real tokens of segment 1, the mark at their end
                among them; all real tokens where there are no segments.

        Returns:
            (B, T, 2).

        Raises:
            ValueError: ``passage`` has another shape or dtype; and as the encoder.
        """
        if passage is None:
            passage = torch.ones_like(tokens, dtype=torch.bool) if segments is None else segments == 1
        elif passage.dtype != torch.bool or passage.shape != tokens.shape:
            raise ValueError(
                f"passage is {passage.dtype} of shape {tuple(passage.shape)}, expected booleans {tuple(tokens.shape)}"
            )
        Y_hat = self.dense(self.dropout(self._encoded(tokens, segments, valid_lens, mask)))
        mask = token_mask(tokens.shape, valid_lens, mask, device=tokens.device)
        passage = passage if mask is None else passage & mask
        return Y_hat.masked_fill(~passage[..., None], -torch.inf)

    def loss(self, Y_hat, Y):
        """Half the cross-entropies of first and last token, over the tokens of the passage; a mean over the answers.

        Args:
            Y_hat: scores (B, T, 2).
            Y: integers (B, 2), the first and the last token of each answer; -100 twice where the passage has none, as
                where it was cut off.

        Raises:
            ValueError: a shape or dtype does not fit; an answer ends before it begins, lies outside of the passage, or
                has one end alone.
        """
        if tuple(Y.shape) != (len(Y_hat), 2) or Y.is_floating_point() or Y.dtype == torch.bool:
            raise ValueError(
                f"answers are {Y.dtype} of shape {tuple(Y.shape)}, expected integers ({len(Y_hat)}, 2): the first and "
                "the last token of each"
            )
        answered = (Y != IGNORE_INDEX).any(1)  # (B,)
        spans, scores = Y[answered].long(), Y_hat[answered]  # rows without a passage must not get into the gradient
        ordered = (spans[:, 0] >= 0) & (spans[:, 0] <= spans[:, 1]) & (spans[:, 1] < Y_hat.shape[1])
        if not ordered.all():
            first, last = spans[~ordered][0].tolist()
            raise ValueError(
                f"an answer is from token {first} to {last} of {Y_hat.shape[1]}, expected both, in order: was it cut "
                "off? Label it (-100, -100) then"
            )
        span_scores = scores.gather(1, spans[:, None])[:, 0]  # (answers, 2): start's and end's score
        if span_scores.isneginf().any():
            first, last = spans[span_scores.isneginf().any(1)][0].tolist()
            raise ValueError(
                f"an answer is from token {first} to {last}, outside of the passage: do the positions count the class "
                "token and the question, and does the passage hold all real tokens of its text?"
            )
        nats = F.cross_entropy(scores.transpose(1, 2).flatten(0, 1), spans.flatten(), reduction="sum")
        return nats / (2 * answered.sum().clamp(min=1))

    def batch_weight(self, batch):
        return (batch[-1] != IGNORE_INDEX).any(1).sum()


def best_spans(Y_hat, max_len=30):
    """The best answer of each row: the start and end of the largest sum of scores, in order and not too far apart.

    Args:
        Y_hat: scores (B, T, 2) of a `SpanHead`, -inf where there is no passage.
        max_len: the most tokens of an answer.

    Returns:
        Spans (B, 2), the first and the last token, and their scores (B,). Where no span is possible -1 twice, and -inf.

    Raises:
        ValueError: ``max_len`` is below 1, or the scores have another shape.

    Source: Devlin et al. 2019, section 4.2.
    """
    if max_len < 1:
        raise ValueError(f"max_len is {max_len}, expected at least 1 token")
    if Y_hat.dim() != 3 or Y_hat.shape[-1] != 2:
        raise ValueError(f"scores have shape {tuple(Y_hat.shape)}, expected (B, T, 2)")
    start, end = Y_hat.unbind(-1)  # (B, T) each
    offsets = position_offsets(Y_hat.shape[1], device=Y_hat.device)  # (T, T)
    sums = start[:, :, None] + end[:, None, :]  # (B, T, T)
    scores, place = sums.masked_fill((offsets < 0) | (offsets >= max_len), -torch.inf).flatten(1).max(1)
    spans = torch.stack([place // Y_hat.shape[1], place % Y_hat.shape[1]], 1)  # (B, 2)
    return spans.masked_fill(scores.isneginf()[:, None], -1), scores
