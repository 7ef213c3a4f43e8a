"""Three ways to pretrain one encoder: masked tokens, the next token, replaced tokens; and what a step of each costs."""

from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional as F

from d2lmini.models.bert import BERT, BERTForPretraining, MaskLM
from d2lmini.models.bert_config import BERT_CONFIGS, MODERN, BERTConfig
from d2lmini.models.heads import cross_entropy
from d2lmini.models.named_parts import ACTIVATIONS, init_bert
from d2lmini.objectives import MaskedTokens, mask_tokens, replace_tokens
from d2lmini.objectives.masking import IGNORE_INDEX
from d2lmini.training import Module
from d2lmini.training.optimizers import adamw_of, muon_of

DETECTION = 50.0  # weight of the discriminator's loss, as published


@dataclass(frozen=True)
class Objective:
    """What is to be guessed: ``kind`` is "masked", "causal" or "replaced", ``rate`` the share of tokens that are
    chosen, of which ``mask_share`` become a mask and ``random_share`` another token. ``published``: the encoder has the
    form of the published BERT, whatever the recipe says."""

    kind: str = "masked"
    rate: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1
    published: bool = False

    def __post_init__(self):
        if self.kind not in ("masked", "causal", "replaced"):
            raise ValueError(f"kind is {self.kind!r}, expected 'masked', 'causal' or 'replaced'")

    def batches(self, windows):
        """The function of tokens (B, T) and a generator that makes batches for `learner`.

        A batch is inputs (B, T), a seed (B,) for what the model draws, and labels (B, T).
        """

        def make(tokens, generator):
            if self.kind == "causal":
                inputs, labels = next_tokens(tokens, windows)
            else:
                inputs, labels = mask_tokens(
                    tokens, vocab_size=len(windows.encoder), mask_id=windows.encoder.mask_id,
                    special_ids=windows.special_ids, generator=generator, rate=self.rate, mask_share=self.mask_share,
                    random_share=self.random_share,
                )  # fmt: skip
            seed = torch.randint(2**62, (1,), generator=generator).expand(len(tokens))
            return inputs, seed, labels

        return make


def next_tokens(tokens, windows):
    """Tokens (B, T) and what follows each of them, -100 where that is a special token or nothing."""
    labels = torch.full_like(tokens, IGNORE_INDEX)
    labels[:, :-1] = torch.where(windows.ordinary(tokens[:, 1:]), tokens[:, 1:], IGNORE_INDEX)
    return tokens, labels


@dataclass(frozen=True)
class Recipe:
    """How an encoder is pretrained.

    ``steps`` are those of the first contestant. ``optimizer`` is "muon" (``lr_matrices`` for the blocks' matrices,
    ``lr`` for the rest) or "adamw" (``lr`` for all). The rate rises for a share ``warmup`` of the steps and falls for
    a share ``decay``. ``generator`` is the h of ELECTRA's generator.
    """

    model: BERTConfig = BERT_CONFIGS["toy"]
    batch_size: int = 32
    steps: int = 800
    checks: int = 10
    optimizer: str = "muon"
    lr: float = 2e-3
    lr_matrices: float = 0.02
    beta2: float = 0.98
    weight_decay: float = 0.0
    warmup: float = 0.1
    decay: float = 0.6
    gradient_clip_val: float = 1.0
    precision: str = "auto"
    generator: int = 64


_PUBLISHED = {name: getattr(BERTConfig(), name) for name in MODERN}


def learner(objective, recipe):
    """A model that learns by an objective; its ``bert`` is the encoder."""
    if objective.published:
        recipe = replace(recipe, model=replace(recipe.model, **_PUBLISHED))
    return Electra(recipe) if objective.kind == "replaced" else Guesser(recipe, objective.kind == "causal")


def _optimizer(recipe, model, blks):
    betas = (0.9, recipe.beta2)
    if recipe.optimizer == "muon":
        return muon_of(
            model, blks, lr=recipe.lr_matrices, lr_others=recipe.lr, betas=betas, weight_decay=recipe.weight_decay
        )
    return adamw_of(model, recipe.lr, recipe.weight_decay, betas)


class Guesser(BERTForPretraining):
    """A BERT that guesses masked tokens from both sides or, with ``causal``, the next one from the left."""

    def __init__(self, recipe, causal=False):
        super().__init__(recipe.model, recipe.lr, next_sentence=False)
        self.recipe, self.causal = recipe, causal

    def forward(self, tokens, chosen=None):
        """Logits (B, T, V), or (M, V) of the chosen tokens alone, booleans (B, T)."""
        X = self.bert(tokens, causal=self.causal)
        return self.mlm(X if chosen is None else X[chosen])

    def guess(self, tokens, chosen):
        """Logits (M, V) of tokens that are masked."""
        return self(tokens, chosen)

    def measures(self, batch):
        """Of a batch, the loss to minimise and what else is to be known, scalars."""
        tokens, _, labels = batch
        chosen = labels != IGNORE_INDEX
        logits, labels = self(tokens, chosen), labels[chosen]
        return {"loss": cross_entropy(logits, labels), "acc": (logits.argmax(-1) == labels).float().mean()}

    def training_step(self, batch):
        return _plotted(self, batch, True)

    def validation_step(self, batch):
        _plotted(self, batch, False)

    def batch_weight(self, batch):
        """How many guesses."""
        return (batch[-1] != IGNORE_INDEX).sum()

    def configure_optimizers(self):
        return _optimizer(self.recipe, self, self.bert.blks)


class Electra(Module):
    """A narrow BERT that fills masks, and one that finds out which tokens are not the author's: the encoder.

    They share the embeddings of tokens and positions.

    Source: Clark et al. 2020, section 2 and 3.2.
    """

    def __init__(self, recipe):
        super().__init__()
        self.recipe, config = recipe, recipe.model
        self.bert, self.generator = BERT(config), BERT(generator_config(recipe))
        self.generator.embedding, self.generator.pos_embedding = self.bert.embedding, self.bert.pos_embedding
        self.mlm = MaskLM(self.generator)
        h = config.num_hiddens
        self.head = nn.Sequential(nn.Linear(h, h), ACTIVATIONS[config.activation](), nn.Linear(h, 1)).apply(init_bert)

    def guess(self, tokens, chosen):
        """The generator's logits (M, V) of tokens that are masked."""
        return self.mlm(self.generator(tokens)[chosen])

    def measures(self, batch):
        """Of a batch, the loss to minimise and what else is to be known, scalars."""
        tokens, seeds, labels = batch
        chosen = labels != IGNORE_INDEX
        logits = self.guess(tokens, chosen)
        generator = torch.Generator().manual_seed(int(seeds[0]))
        inputs, is_replaced = replace_tokens(MaskedTokens(tokens, labels), logits, generator=generator)
        says = self.head(self.bert(inputs)).squeeze(-1).float()  # (B, T)
        detection = F.binary_cross_entropy_with_logits(says, is_replaced.float())
        generation = cross_entropy(logits, labels[chosen])
        return {
            "loss": generation + DETECTION * detection,
            "acc": ((says > 0) == is_replaced).float().mean(),
            "detection": detection,
            "generation": generation,
            "replaced": is_replaced.float().mean(),
        }

    def training_step(self, batch):
        return _plotted(self, batch, True)

    def validation_step(self, batch):
        _plotted(self, batch, False)

    def batch_weight(self, batch):
        """How many tokens are looked at."""
        return batch[-1].numel()

    def configure_optimizers(self):
        return _optimizer(self.recipe, self, nn.ModuleList([self.bert.blks, self.generator.blks]))


def _plotted(model, batch, train):
    measures = model.measures(batch)
    for name, value in measures.items():
        model.plot(name, value, train=train)
    return measures["loss"]


def generator_config(recipe):
    """ELECTRA's generator: as deep as the encoder, narrower, and with the encoder's embeddings."""
    config, h = recipe.model, recipe.generator
    heads = max(1, round(config.num_heads * h / config.num_hiddens))
    return replace(config, num_hiddens=h, num_heads=heads, emb_size=config.num_hiddens, ffn_num_hiddens=None)


def guesses_of(objective, length):
    """How many tokens of a window (T of them, the first and last special) have a label, those unknown not counted."""
    return {"masked": max(1, round(objective.rate * (length - 2))), "causal": length - 2, "replaced": length}[
        objective.kind
    ]


def flops(objective, recipe):
    """Floating-point operations of training by one window, forward and backward, those of all products of matrices.

    A product of (m, n) and (n, k) has 2 m n k of them, and its gradients twice as many. Scores of attention count for
    all pairs, hidden or not. Tokens are scored only where they are guessed. Look-ups, norms, softmax and the optimizer
    do not count. ELECTRA's generator does.

    Args:
        objective, recipe: an `Objective` and a `Recipe`; T is the model's ``max_len``.

    Returns:
        int.
    """
    config, T = recipe.model, recipe.model.max_len
    h = config.num_hiddens
    forward = _encoder_flops(config, T)
    if objective.kind == "replaced":
        small = generator_config(recipe)
        masked = guesses_of(replace(objective, kind="masked"), T)
        forward += _encoder_flops(small, T) + _guess_flops(small, masked) + 2 * T * (h * h + h)
    else:
        forward += _guess_flops(config, guesses_of(objective, T))
    return 3 * forward


def _encoder_flops(config, T):
    h, wide = config.num_hiddens, config.ffn_num_hiddens or 4 * config.num_hiddens
    block = 2 * T * (4 * h * h + 2 * h * wide) + 4 * T * T * h
    return config.num_blks * block + (2 * T * config.emb_size * h if config.emb_size else 0)


def _guess_flops(config, guesses):
    size = config.emb_size or config.num_hiddens
    return 2 * guesses * (config.num_hiddens * size + size * config.vocab_size)
