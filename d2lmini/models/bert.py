"""BERT: a Transformer without decoder, every token of which sees all the others, and how it is pretrained.

`d2lmini.models.bert_config` says what makes the published ones, `d2lmini.models.heads` what stands on top for a task.
"""

from functools import partial

import torch
from torch import nn

from ..masks import as_mask
from ..objectives.masking import IGNORE_INDEX
from ..rotation import RotaryEmbedding
from ..training import Module
from ..training.optimizers import adamw_of
from ..transformer import TransformerEncoderBlock
from .heads import class_token, cross_entropy
from .named_parts import ACTIVATIONS, head_norm_maker, init_bert, init_by_inputs, norm_maker
from .tokens import check_batch, embedded

_norm_maker = partial(norm_maker, eps=1e-12)  # as published


class BERT(nn.Module):
    """Embeddings of tokens, positions and segments, and blocks with attention both ways: (B, T) to (B, T, h).

    Args:
        config: a `BERTConfig`.

    Raises:
        ValueError: ``num_heads`` does not divide ``num_hiddens``.

    Source: Devlin et al. 2019, section 3; D2L section 11.9.1; UDL section 12.6.
    """

    def __init__(self, config):
        super().__init__()
        self.config = config
        h, size = config.num_hiddens, config.emb_size or config.num_hiddens
        self.embedding = nn.Embedding(config.vocab_size, size)
        self.pos_embedding = nn.Embedding(config.max_len, size) if config.positions == "learned" else None
        self.rotary = RotaryEmbedding(h // config.num_heads, config.max_len) if config.positions == "rotary" else None
        self.segment_embedding = nn.Embedding(config.num_segments, size)
        self.norm = _norm_maker(config.norm)(size)
        self.dropout = nn.Dropout(config.dropout)
        self.widen = nn.Linear(size, h) if config.emb_size else nn.Identity()
        self.blks = nn.ModuleList(self._block(config) for _ in range(1 if config.share_blks else config.num_blks))
        self.last_norm = _norm_maker(config.norm)(h) if config.norm_first else nn.Identity()
        self.pooler = nn.Sequential(nn.Linear(h, h), nn.Tanh()) if config.use_pooler else None
        self.apply(init_bert if config.init == "bert" else init_by_inputs)
        if config.init == "zero":
            for blk in self.blks:
                nn.init.zeros_(blk.attention.W_o.weight)
                nn.init.zeros_(blk.ffn.dense2.weight)

    @staticmethod
    def _block(config):
        h = config.num_hiddens
        wide, activation = config.ffn_num_hiddens or 4 * h, ACTIVATIONS[config.activation]
        return TransformerEncoderBlock(
            h,
            wide,
            config.num_heads,
            config.dropout,
            use_bias=config.use_bias,
            activation=activation,
            norm_first=config.norm_first,
            norm=_norm_maker(config.norm),
            qk_norm=head_norm_maker(config.qk_norm),
        )

    @property
    def num_parameters(self):
        """How many numbers are learnt, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, tokens, segments=None, valid_lens=None, *, mask=None, causal=False):
        """What each token means among the others.

        Args:
            tokens: integers (B, T) below V.
            segments: None, or integers (B, T): to which text a token belongs, from 0; None: all to text 0.
            valid_lens: None, or integers (B,): how many of the first tokens of each row are no padding.
            mask: None, or booleans, True = may attend, as `d2lmini.masks`: (B, 1, T) for padding on any side. Positions
                count from the first token of a row that any may attend to.
            causal: whether later tokens are hidden, to compare with: BERT sees them.

        Returns:
            (B, T, h). What is there for padding means nothing.

        Raises:
            ValueError: a shape, a token or a segment does not fit, or there are more tokens than positions.
            TypeError: ``valid_lens`` or ``mask`` is of a wrong type.
        """
        self._check(tokens, segments, mask)
        batch, length = tokens.shape
        places = torch.arange(length, device=tokens.device)  # (T,)
        start_anywhere = mask is not None and tokens.numel()
        mask = as_mask((batch, length, length), valid_lens, mask, device=tokens.device)  # once for all blocks
        if start_anywhere:
            first = mask.any(1).int().argmax(1)  # (B,)
            places = (places - first[:, None]).clamp(min=0)  # (B, T)
        X = self._embedded(tokens, segments, places)
        for i in range(self.config.num_blks):
            X = self.blks[i % len(self.blks)](X, mask=mask, causal=causal, rotary=self.rotary)
        return self.last_norm(X)

    def pooled(self, X, valid_lens=None, *, mask=None):
        """What `forward` gave, (B, T, h), as one vector a row, (B, h): the class token through the pooler.

        Raises:
            ValueError: this one has no pooler, or no token.
        """
        if self.pooler is None:
            raise ValueError("this BERT has no pooler: make it with use_pooler=True")
        return self.pooler(class_token(X, valid_lens, mask=mask))

    def _embedded(self, tokens, segments, places):
        X = embedded(self.embedding, tokens)  # (B, T, emb_size)
        X = X + embedded(self.segment_embedding, torch.zeros_like(tokens) if segments is None else segments, "segments")
        X = X if self.pos_embedding is None else X + self.pos_embedding(places)
        return self.widen(self.dropout(self.norm(X)))

    def _check(self, tokens, segments, mask):
        check_batch(tokens)
        if isinstance(mask, torch.Tensor) and mask.dim() == 2:  # (T, T), or (B, T) with as many examples as tokens
            raise ValueError(
                f"mask has shape {tuple(mask.shape)}, expected (B, 1, T) or (B, T, T): a row an example, as for "
                "padding, is mask[:, None, :], and one for all examples mask[None]"
            )
        if segments is not None:
            check_batch(segments, "segments")
        if segments is not None and segments.shape != tokens.shape:
            raise ValueError(f"segments have shape {tuple(segments.shape)} but tokens {tuple(tokens.shape)}")
        if tokens.shape[1] > self.config.max_len:
            raise ValueError(
                f"there are {tokens.shape[1]} tokens but {self.config.max_len} positions (max_len): cut the text, or "
                "take it piece by piece"
            )


class MaskLM(nn.Module):
    """Scores of what a token was before it was masked: a layer, then products with the embeddings of all tokens.

    Args:
        bert: the `BERT` whose embeddings score; they are shared, not copied.

    Source: Devlin et al. 2019, section 3.1, and their published code for the layer; D2L section 11.9.1.1.
    """

    def __init__(self, bert):
        super().__init__()
        config, (vocab_size, size) = bert.config, bert.embedding.weight.shape
        self.dense = nn.Linear(config.num_hiddens, size)
        self.activation = ACTIVATIONS[config.activation]()
        self.norm = _norm_maker(config.norm)(size)
        self.decoder = nn.Linear(size, vocab_size)
        self.apply(init_bert if config.init == "bert" else init_by_inputs)
        self.decoder.weight = bert.embedding.weight

    def forward(self, X):
        """(..., h) to logits (..., V)."""
        return self.decoder(self.norm(self.activation(self.dense(X))))


class BERTForPretraining(Module):
    """A BERT that learns to guess masked tokens and, if asked, whether one text follows another.

    Args:
        config: a `BERTConfig`.
        lr: learning rate of the AdamW that `configure_optimizers` gives.
        next_sentence: whether it learns the second, too; it needs the pooler.

    Raises:
        ValueError: ``next_sentence`` without a pooler.

    Source: Devlin et al. 2019, section 3.1; D2L section 11.9.1.1; UDL section 12.6.1.
    """

    def __init__(self, config, lr=1e-4, next_sentence=True):
        super().__init__()
        self.save_hyperparameters()
        if next_sentence and not config.use_pooler:
            raise ValueError("next_sentence is True, which needs the pooler: expected use_pooler=True")
        self.bert = BERT(config)
        self.mlm = MaskLM(self.bert)
        self.nsp = nn.Linear(config.num_hiddens, 2).apply(init_bert) if next_sentence else None

    def forward(self, tokens, segments=None, valid_lens=None, *, mask=None, chosen=None):
        """Scores of what masked tokens were, and of whether the second text follows the first.

        Args:
            tokens, segments, valid_lens, mask: as `BERT`'s.
            chosen: None: every token is scored; or booleans (B, T), or a pair (M,), (M,) of rows and columns: these M
                tokens alone, row by row, which is cheaper.

        Returns:
            Logits (B, T, V) or (M, V), and logits (B, 2), of "it follows" and "it does not"; None without
            ``next_sentence``.
        """
        X = self.bert(tokens, segments, valid_lens, mask=mask)
        follows = None if self.nsp is None else self.nsp(self.bert.pooled(X, valid_lens, mask=mask))
        return self.mlm(X if chosen is None else X[chosen]), follows

    def loss(self, Y_hat, Y):
        """The mean cross-entropy of the masked tokens, in nats, and that of the pairs added to it.

        Args:
            Y_hat: what `forward` gives.
            Y: integers like the first logits without their last dimension, at each place what the token was, -100 where
                nothing is to be guessed; or a pair of these and of booleans (B,), True where the second text follows
                the first. (Published code has integers, 0 where it follows.)

        Raises:
            ValueError: labels do not fit, or there are labels of pairs but no ``next_sentence``, or the reverse.
        """
        masked, follows = Y if isinstance(Y, (tuple, list)) else (Y, None)
        loss = cross_entropy(Y_hat[0], masked)
        if (follows is None) != (Y_hat[1] is None):
            raise ValueError(
                f"there are {'no ' * (follows is None)}labels of pairs, but next_sentence is {Y_hat[1] is not None}"
            )
        if follows is None:
            return loss
        if follows.dtype != torch.bool:
            raise ValueError(f"labels of pairs are {follows.dtype}, expected booleans: whether the second text follows")
        return loss + cross_entropy(Y_hat[1], (~follows).long())

    def _loss(self, batch):
        masked, *others = batch[-1] if isinstance(batch[-1], (tuple, list)) else (batch[-1],)
        # looked for once, not at each use: a GPU is waited for until their number is known
        chosen = (masked != IGNORE_INDEX).nonzero(as_tuple=True)
        return self.loss(self(*batch[:-1], chosen=chosen), (masked[chosen], *others) if others else masked[chosen])

    def training_step(self, batch):
        """Loss of a batch (tokens, segments, valid_lens, labels), of which the middle two may be left out."""
        loss = self._loss(batch)
        self.plot("loss", loss, train=True)
        return loss

    def validation_step(self, batch):
        self.plot("loss", self._loss(batch), train=False)

    def batch_weight(self, batch):
        """How many tokens are to be guessed."""
        masked = batch[-1][0] if isinstance(batch[-1], (tuple, list)) else batch[-1]
        return (masked != IGNORE_INDEX).sum()

    def configure_optimizers(self):
        """AdamW as published; matrices decay, biases and norms do not."""
        return adamw_of(self, self.lr, weight_decay=0.01)
