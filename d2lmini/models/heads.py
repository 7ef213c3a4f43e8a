"""What stands on top of an encoder for a task: one small layer, and a loss that leaves padding out.

    TextHead      a class, or a number, of a whole text
    PairHead      the same of two texts
    TaggingHead   a class of every token
    SpanHead      where in a passage the answer begins, and where it ends: `d2lmini.models.span_head`

The encoder is any module that takes tokens (B, T) to (B, T, h). ``segments``, ``valid_lens`` and ``mask`` are handed to
it by name where they are given. A label of -100 is none: it counts in no loss.
"""

import torch
import torch.nn.functional as F
from torch import nn

from ..masks import token_mask
from ..objectives.masking import IGNORE_INDEX
from ..training import Module
from ..training.optimizers import adamw_of

POOLINGS = "class", "mean", "pooler"


def mean_pooling(X, valid_lens=None, *, mask=None):
    """The mean over real tokens: (B, T, h) to (B, h); zero where a row has none. Arguments as `token_mask`'s.

    Source: Reimers and Gurevych 2019, section 3.
    """
    mask = token_mask(X.shape[:2], valid_lens, mask, device=X.device)  # (B, T)
    if mask is None:
        return X.sum(1) / max(X.shape[1], 1)
    total = X.masked_fill(~mask[..., None], 0).sum(1)  # (B, h)
    return total / mask.sum(1, keepdim=True).clamp(min=1)


def class_token(X, valid_lens=None, *, mask=None):
    """The first real token of each row, of which padding may stand on the left: (B, T, h) to (B, h)."""
    if not X.shape[1]:
        raise ValueError("there is no token, expected a class token first in each row")
    mask = token_mask(X.shape[:2], valid_lens, mask, device=X.device)  # (B, T)
    return X[:, 0] if mask is None else X[torch.arange(len(X), device=X.device), mask.int().argmax(1)]


def cross_entropy(Y_hat, Y):
    """Mean cross-entropy in nats over the labels that are not -100; 0 where there are none.

    Args:
        Y_hat: scores (..., C).
        Y: integers (...).

    Raises:
        ValueError: shapes differ, labels are no integers, or (on a CPU, which looks at each) one is no class.
    """
    if Y.shape != Y_hat.shape[:-1]:
        raise ValueError(
            f"labels have shape {tuple(Y.shape)}, expected {tuple(Y_hat.shape[:-1])}: are they those of another task?"
        )
    if Y.is_floating_point() or Y.dtype == torch.bool:
        raise ValueError(f"labels are {Y.dtype}, expected integers: classes from 0, or -100 for none")
    chosen = Y != IGNORE_INDEX
    try:
        total = F.cross_entropy(Y_hat.flatten(0, -2), Y.flatten().long(), ignore_index=IGNORE_INDEX, reduction="sum")
    except IndexError as error:
        raise ValueError(
            f"labels are {int(Y[chosen].min())} to {int(Y[chosen].max())}, expected 0 to {Y_hat.shape[-1] - 1} "
            "(or -100 for none): was the head made for fewer classes?"
        ) from error
    return total / chosen.sum().clamp(min=1)


class Head(Module):
    """An encoder, dropout and one linear layer; a batch is what ``forward`` takes, then the labels."""

    def __init__(self, encoder, num_outputs, dropout, lr, num_hiddens):
        super().__init__()
        if num_outputs < 1:
            raise ValueError(f"there are {num_outputs} classes, expected at least 1")
        self.encoder, self.lr = encoder, lr
        self.num_hiddens = encoder.config.num_hiddens if num_hiddens is None else num_hiddens
        self.dropout = nn.Dropout(dropout)
        self.dense = nn.Linear(self.num_hiddens, num_outputs)
        nn.init.normal_(self.dense.weight, std=0.02)  # as BERT's
        nn.init.zeros_(self.dense.bias)

    def _encoded(self, tokens, segments, valid_lens, mask):
        given = {"segments": segments, "valid_lens": valid_lens, "mask": mask}
        X = self.encoder(tokens, **{name: value for name, value in given.items() if value is not None})
        if tuple(X.shape) != (*tokens.shape, self.num_hiddens):
            raise ValueError(
                f"the encoder made {tuple(X.shape)} of tokens {tuple(tokens.shape)}, expected "
                f"{(*tokens.shape, self.num_hiddens)}: num_hiddens says how many features it gives"
            )
        return X

    def _loss(self, batch):
        return self.loss(self(*batch[:-1]), batch[-1])

    def training_step(self, batch):
        loss = self._loss(batch)
        self.plot("loss", loss, train=True)
        return loss

    def validation_step(self, batch):
        self.plot("loss", self._loss(batch), train=False)

    def batch_weight(self, batch):
        """How many labels there are."""
        return (batch[-1] != IGNORE_INDEX).sum()

    def configure_optimizers(self):
        """AdamW for encoder and head; matrices decay, biases and norms do not."""
        return adamw_of(self, self.lr, weight_decay=0.01)


class TextHead(Head):
    """A class, or a number, of a whole text.

    Args:
        encoder: gives (B, T, h), see the module's text.
        num_classes: C; None: a number.
        pooling: what stands for the text. "class": its first token; "mean": the mean over its tokens; "pooler": the
            first token through the encoder's own layer, ``encoder.pooled``, as in BERT's published code.
        dropout: of what stands for the text, in training.
        lr: learning rate of the AdamW that `configure_optimizers` gives.
        num_hiddens: h; None: ``encoder.config.num_hiddens``.

    Raises:
        ValueError: there is no such pooling, the encoder has no pooler, or there is no class.

    Source: Devlin et al. 2019, section 4.1; D2L section 11.9.1.2; UDL section 12.6.2.
    """

    def __init__(self, encoder, num_classes=2, pooling="class", dropout=0.1, lr=5e-5, num_hiddens=None):
        super().__init__(encoder, 1 if num_classes is None else num_classes, dropout, lr, num_hiddens)
        self.num_classes, self.pooling = num_classes, pooling
        if pooling not in POOLINGS:
            raise ValueError(f"pooling is {pooling!r}, expected one of {', '.join(map(repr, POOLINGS))}")
        if pooling == "pooler" and getattr(encoder, "pooler", None) is None:
            raise ValueError("pooling is 'pooler' but the encoder has none: 'class' or 'mean' need none")

    def forward(self, tokens, segments=None, valid_lens=None, *, mask=None):
        """Tokens (B, T) to scores (B, C), or to numbers (B,) where ``num_classes`` is None; arguments as `BERT`'s."""
        X = self._encoded(tokens, segments, valid_lens, mask)
        pool = {"class": class_token, "mean": mean_pooling}.get(self.pooling) or self.encoder.pooled
        Y_hat = self.dense(self.dropout(pool(X, valid_lens, mask=mask)))
        return Y_hat[:, 0] if self.num_classes is None else Y_hat

    def loss(self, Y_hat, Y):
        """Mean cross-entropy of labels, integers (B,), -100 for none; of numbers (B,) the mean squared error."""
        if self.num_classes is not None:
            return cross_entropy(Y_hat, Y)
        if Y.shape != Y_hat.shape:
            raise ValueError(f"labels have shape {tuple(Y.shape)}, expected {tuple(Y_hat.shape)}: a number a text")
        return F.mse_loss(Y_hat, Y.to(Y_hat.dtype))

    def batch_weight(self, batch):
        return len(batch[-1]) if self.num_classes is None else super().batch_weight(batch)


class PairHead(TextHead):
    """A class, or a number, of two texts: one sequence with both, ``segments`` telling them apart.

    Arguments, loss and errors are those of `TextHead`.

    Source: Devlin et al. 2019, section 4.1; D2L section 11.9.1.2.
    """

    def forward(self, tokens, segments=None, valid_lens=None, *, mask=None):
        """As in `TextHead`; ValueError without segments."""
        if segments is None:
            raise ValueError("a pair needs segments, (B, T) with 0 for the first text and 1 for the second, got None")
        return super().forward(tokens, segments, valid_lens, mask=mask)


class TaggingHead(Head):
    """A class of every token.

    Words of several tokens are labelled at one of them, by custom the first; the others have -100.

    Args:
        encoder, dropout, lr, num_hiddens: as in `TextHead`.
        num_classes: C.

    Source: Devlin et al. 2019, section 5.3; D2L section 11.9.1.2; UDL section 12.6.2.
    """

    def __init__(self, encoder, num_classes, dropout=0.1, lr=5e-5, num_hiddens=None):
        super().__init__(encoder, num_classes, dropout, lr, num_hiddens)

    def forward(self, tokens, segments=None, valid_lens=None, *, mask=None):
        """Tokens (B, T) to scores (B, T, C); arguments as `BERT`'s."""
        return self.dense(self.dropout(self._encoded(tokens, segments, valid_lens, mask)))

    def loss(self, Y_hat, Y, valid_lens=None, *, mask=None):
        """Mean cross-entropy over tokens that are no padding and whose label, of (B, T), is not -100."""
        return cross_entropy(Y_hat, self._without_padding(Y, valid_lens, mask))

    def _loss(self, batch):
        return self.loss(self(*batch[:-1]), batch[-1], batch[2] if len(batch) > 3 else None)

    def batch_weight(self, batch):
        labels = self._without_padding(batch[-1], batch[2] if len(batch) > 3 else None, None)
        return (labels != IGNORE_INDEX).sum()

    @staticmethod
    def _without_padding(Y, valid_lens, mask):
        mask = token_mask(Y.shape, valid_lens, mask, device=Y.device) if Y.dim() == 2 else None
        return Y if mask is None else Y.masked_fill(~mask, IGNORE_INDEX)
