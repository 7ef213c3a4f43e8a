"""GPT: a Transformer without encoder, which predicts each token from those before it.

One class serves the published models and a form of today: `d2lmini.models.gpt_config` says what makes them.
"""

import math
from typing import NamedTuple

import torch
from torch import nn

from ..cache import KeyValueCache
from ..decoding import sample
from ..objectives.masking import IGNORE_INDEX
from ..rotation import RotaryEmbedding
from ..training import Module
from ..training.optimizers import adamw_of
from ..transformer import TransformerEncoderBlock
from .heads import cross_entropy
from .named_parts import NETWORKS, head_norm_maker, init_by_inputs, init_normal, norm_maker
from .tokens import embedded, padded


class GPTState(NamedTuple):
    """What a `GPT` carries from token to token: a `KeyValueCache` of each block, and what of a row is padding.

    Nothing changes one: every step returns a new one. ``padding``, (B,), counts the first tokens of a row that are no
    tokens; None: all are.
    """

    caches: tuple[KeyValueCache, ...]
    padding: torch.Tensor | None

    @property
    def length(self):
        """How many tokens went by, padding too."""
        return self.caches[0].length

    def first(self, length):
        """The state after the first tokens alone; this one stays as it is. See `KeyValueCache.first`."""
        return GPTState(tuple(cache.first(length) for cache in self.caches), self.padding)


class GPT(Module):
    """A causal Transformer over tokens: a distribution over the next one at every position.

    Args:
        config: a `GPTConfig`.
        lr: learning rate of the AdamW that `configure_optimizers` gives.

    Raises:
        ValueError: ``num_heads`` does not divide ``num_hiddens``, or ``num_kv_heads`` not ``num_heads``.

    Source: D2L section 11.9.3; UDL sections 12.7.1 to 12.7.3; Radford et al. 2019.
    """

    def __init__(self, config, lr=6e-4):
        super().__init__()
        self.save_hyperparameters()
        h = config.num_hiddens
        norm = norm_maker(config.norm, bias=config.use_bias, eps=config.norm_eps)
        self.embedding = nn.Embedding(config.vocab_size, h)
        self.pos_embedding = nn.Embedding(config.max_len, h) if config.positions == "learned" else None
        self.rotary = None
        if config.positions == "rotary":
            head_size = config.head_size or h // config.num_heads
            self.rotary = RotaryEmbedding(head_size, config.max_len, base=config.rotary_base)
        self.limited = self.pos_embedding is not None or config.limit_context
        self.dropout = nn.Dropout(config.dropout)
        self.blks = nn.ModuleList(self._block(config, norm) for _ in range(config.num_blks))
        self.norm = norm(h) if config.norm_first else nn.Identity()
        self.dense = nn.Linear(h, config.vocab_size, bias=False)
        if config.tie_weights:
            self.dense.weight = self.embedding.weight
        self._init_weights()

    @staticmethod
    def _block(config, norm):
        h = config.num_hiddens
        wide, (make, activation) = config.ffn_num_hiddens or 4 * h, NETWORKS[config.ffn]
        return TransformerEncoderBlock(
            h,
            wide,
            config.num_heads,
            config.dropout,
            config.use_bias,
            norm_first=config.norm_first,
            norm=norm,
            ffn=make(wide, h, num_inputs=h, activation=activation, bias=config.use_bias),
            qk_norm=head_norm_maker(config.qk_norm),
            head_size=config.head_size,
            num_kv_heads=config.num_kv_heads,
        )

    def _init_weights(self):
        config = self.config
        self.apply(init_by_inputs if config.init == "zero" else init_normal)
        if config.init == "gpt1":
            return
        for blk in self.blks:
            for last in (blk.attention.W_o, blk.ffn.dense2):
                last.weight.data.mul_(0 if config.init == "zero" else 1 / math.sqrt(2 * config.num_blks))
        if config.init == "zero" and not config.tie_weights:
            nn.init.zeros_(self.dense.weight)

    def forward(self, tokens, padding=None):
        """Scores of what follows each token; those of a token depend on none after it.

        Args:
            tokens: integers (B, T) below V.
            padding: None, or integers (B,): how many of the first tokens of each row are none. They count neither as
                keys nor as positions, and what is scored at their places means nothing.

        Returns:
            Logits (B, T, V).

        Raises:
            TypeError: ``tokens`` or ``padding`` is no tensor.
            ValueError: a shape or (seen on a CPU alone) a number does not fit, or there are more tokens than positions.
        """
        return self.dense(self.features(tokens, padding))

    def features(self, tokens, padding=None):
        """What `forward` scores: (B, T, h), the last norm done. For a head of one's own."""
        if padding is not None:
            _check_padding(padding, len(tokens))
        X, block_inputs = self._before_blocks(tokens, 0, padding)  # (B, T, h)
        if padding is not None and padding.device.type == "cpu" and (padding > X.shape[1]).any():
            raise ValueError(f"padding is {padding}, but there are {X.shape[1]} tokens in a row")
        for blk in self.blks:
            X = blk(X, **block_inputs)
        return self.norm(X)

    def empty_state(self, batch, padding=None):
        """A `GPTState` of no tokens."""
        if padding is not None:
            _check_padding(padding, batch)
        return GPTState(tuple(blk.attention.empty_cache(batch) for blk in self.blks), padding)

    def extend(self, tokens, state):
        """Reads tokens that follow those in a state, all at once.

        Args:
            tokens: integers (B, n).
            state: a `GPTState`; not changed.

        Returns:
            Logits (B, n, V), and the grown `GPTState`.
        """
        X, state = self._read(tokens, state)
        return self.dense(X), state

    def step(self, tokens, state):
        """One token more, as `d2lmini.decoding` wants it: tokens (B,) to logits (B, V) and the grown state."""
        logits, state = self.extend(tokens[:, None], state)
        return logits[:, 0], state

    def generate(self, prompts, max_new_tokens, *, stop=None, num_samples=None, generator=None, **filters):
        """Goes on from prompts, drawing token by token. Call ``eval()`` before, or dropout is at work.

        Args:
            prompts: integers (B, n), or a list of lists of them, of any lengths from 1.
            max_new_tokens: the most tokens to write.
            stop, num_samples, generator, filters: as `d2lmini.decoding.sample` takes them: ``temperature=0.8``,
                ``top_k=50``, ``top_p=0.95``, ``repetition_penalty=1.2``, ...

        Returns:
            a `d2lmini.decoding.Sampled`; its tokens are the new ones, (B, L).

        Raises:
            ValueError: a prompt is empty, or what comes out would not fit into the context; and as ``sample`` does.
        """
        tokens, valid_lens = padded(prompts, 0, self.embedding.weight.device, side="left")
        padding = None if valid_lens is None else tokens.shape[1] - valid_lens
        if self.limited and tokens.shape[1] + max_new_tokens - 1 > self.config.max_len:
            raise ValueError(
                f"the prompt has {tokens.shape[1]} tokens, to which {max_new_tokens} cannot be added: the context is "
                f"{self.config.max_len} (max_len). Shorten one of them"
            )
        before = tokens[:, :-1]
        with torch.no_grad():
            _, state = self._read(before, self.empty_state(len(tokens), padding))
        if padding is not None:
            before = before.masked_fill(torch.arange(before.shape[1], device=before.device) < padding[:, None], -1)
        return sample(
            self.step,
            state,
            tokens[:, -1],
            max_new_tokens,
            stop=stop,
            num_samples=num_samples,
            prompt=before,
            generator=generator,
            **filters,
        )

    def _read(self, tokens, state):
        """What `extend` scores, (B, n, h), and the grown state."""
        if len(state.caches) != len(self.blks):
            raise ValueError(
                f"the state is of {len(state.caches)} blocks, the model has {len(self.blks)}: is it another's?"
            )
        X, block_inputs = self._before_blocks(tokens, state.length, state.padding)
        caches = []
        for blk, cache in zip(self.blks, state.caches, strict=True):
            X, cache = blk.extend(X, cache, **block_inputs)
            caches.append(cache)
        return self.norm(X), GPTState(tuple(caches), state.padding)

    def _before_blocks(self, tokens, past, padding):
        """What the first block reads of tokens (B, T) that follow ``past`` others, (B, T, h), and what all are told."""
        try:
            X, total = self.embedding(tokens), past + tokens.shape[1]
        except (IndexError, RuntimeError, TypeError):
            embedded(self.embedding, tokens)  # says what is wrong with them
            raise
        if tokens.dim() != 2 and not tokens.is_floating_point():
            embedded(self.embedding, tokens)  # says so
        if self.limited and total > self.config.max_len:
            raise ValueError(
                f"there are {total} tokens but the context is {self.config.max_len} (max_len): keep the last ones "
                "alone, or train with a larger context"
            )
        places, mask = torch.arange(past, total, device=tokens.device), None  # (T,)
        if padding is not None:
            mask = (torch.arange(total, device=tokens.device) >= padding[:, None])[:, None]  # (B, 1, S)
            places = (places - padding[:, None]).clamp(min=0)  # (B, T)
        if self.pos_embedding is not None:
            X = X + self.pos_embedding(places)
        return self.dropout(X), {"mask": mask, "causal": True, "rotary": self.rotary}

    def loss(self, Y_hat, Y):
        """Mean cross-entropy of the next tokens, in nats; 0 where none is to be guessed.

        Args:
            Y_hat: logits (B, T, V). Y: integers (B, T), at each place the token that follows; -100 where there is none.
        """
        return cross_entropy(Y_hat, Y)

    def batch_weight(self, batch):
        """How many tokens are to be guessed."""
        return (batch[-1] != IGNORE_INDEX).sum()

    def configure_optimizers(self):
        """AdamW; matrices decay, biases and norms do not."""
        return adamw_of(self, self.lr, weight_decay=0.1, betas=(0.9, 0.95))


def _check_padding(padding, batch):
    if not isinstance(padding, torch.Tensor):
        raise TypeError(f"padding is a {type(padding).__name__}, expected a tensor of integers ({batch},)")
    integers = not (padding.is_floating_point() or padding.dtype == torch.bool)
    below = padding.device.type == "cpu" and (padding < 0).any()  # elsewhere a look would wait for the device
    if not integers or padding.shape != (batch,) or below:
        raise ValueError(f"padding is {padding}, expected ({batch},) integers from 0: tokens to skip in each row")
