"""Chapter 15: how a small GPT comes to repeat what it has read, and the head that does it.

A sequence is of a few random pieces, said again and again in random order: words of a language that no other sequence
speaks. What follows a token for the first time nobody can know; from the second time on it stands in the context. An
induction head finds it: it attends to the token *after* the previous occurrence of the current one. It needs another
head below it, which has told each token what stands before it, and so two blocks. Measured, on one long piece that is
said twice: the losses of its first and of its second half, while models of one, two and three blocks learn; where each
head looks; the losses with heads switched off; and repetitions unlike those of the training.

The blocks are of attention alone, as in Elhage et al. 2021, and one contestant has feed-forward networks, too. (With
one piece in a sequence nothing need be looked up: what comes next is what was not said for the longest time.)
Whether every model that repeats has such a head is part of what is measured.

Source: Olsson et al. 2022; Elhage et al. 2021.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean, median

import torch
import torch.nn.functional as F
from torch import nn

from d2lmini.experiments.abilities import fresh_data
from d2lmini.hooks import capture_attention, head_masks
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS


@dataclass(frozen=True)
class Contestant:
    """A GPT of ``num_blks`` blocks, of attention alone or with feed-forward networks."""

    name: str
    num_blks: int
    ffn: bool = False


@dataclass(frozen=True)
class Config:
    """Settings.

    A sequence of the training has ``length`` tokens and ``pieces`` pieces of ``shortest`` to ``longest`` tokens, no
    token twice in them. Between them are single tokens that are never said again: the last ``reserved`` of the
    ``num_tokens`` are for that alone. A test is one piece of ``period`` tokens, said twice; ``others`` are further
    tests, lengths of piece and sequence. ``example`` is the length of the piece that is written down. ``checks``
    times the losses are measured while a model learns.
    """

    num_tokens: int = 88
    reserved: int = 24
    length: int = 48
    pieces: int = 3
    shortest: int = 2
    longest: int = 8
    period: int = 24
    others: tuple = ((4, 48), (8, 16), (48, 96))
    example: int = 16
    num_hiddens: int = 64
    num_heads: int = 4
    contestants: tuple = (
        Contestant("one block", 1),
        Contestant("two blocks", 2),
        Contestant("three blocks", 3),
        Contestant("two blocks with FFN", 2, ffn=True),
    )
    batch_size: int = 64
    steps: int = 800
    checks: int = 40
    lr: float = 3e-3
    lr_matrices: float = 0.02
    decay: float = 0.3
    sequences: int = 256
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(
        Config(), num_tokens=20, reserved=8, length=16, pieces=2, shortest=2, longest=4, period=6, others=((3, 8),),
        example=4, num_hiddens=8, num_heads=2, batch_size=4, steps=6, checks=3, sequences=8,
        contestants=(Contestant("one block", 1), Contestant("two blocks with FFN", 2, ffn=True)),
    ),
    "cpu": replace(Config(), steps=500, checks=20, contestants=Config().contestants[:2], sequences=64),
    "laptop": replace(Config(), seeds=(0, 1, 2)),
    "full": replace(
        Config(), num_tokens=1_024, reserved=256, length=256, pieces=6, longest=48, period=96,
        others=((8, 192), (48, 96), (256, 512)), num_hiddens=128, batch_size=128, steps=10_000, checks=100,
        seeds=(0, 1, 2, 3, 4),
    ),
}  # fmt: skip


def draw(config, size):
    """Sequences as the training has them, from torch's global random numbers: integers (B, T + 1)."""
    K, T, ordinary = config.pieces, config.length, config.num_tokens - config.reserved
    said = torch.rand(size, ordinary).argsort(-1)[:, : K * config.longest]  # piece after piece, no token twice
    lengths = torch.randint(config.shortest, config.longest + 1, (size, K))
    single = ordinary + torch.rand(size, config.reserved).argsort(-1)
    order = torch.randint(K + 1, (size, T + 1))  # which piece comes; K: a single token
    number = (order == K).cumsum(-1)
    order = torch.where((order == K) & (number > config.reserved), 0, order)  # there is none left
    lengths = torch.cat([lengths, torch.ones(size, 1, dtype=torch.long)], 1).gather(1, order)  # (B, T + 1)
    ends, places = lengths.cumsum(-1), torch.arange(T + 1).expand(size, -1).contiguous()
    turn = torch.searchsorted(ends, places, right=True)  # which of them holds each place
    piece, within = order.gather(1, turn), places - (ends - lengths).gather(1, turn)
    repeated = said.gather(1, (piece.clamp(max=K - 1) * config.longest + within).clamp(max=said.shape[1] - 1))
    return torch.where(piece == K, single.gather(1, number.gather(1, turn).clamp(1, config.reserved) - 1), repeated)


def repetitions(config, period, length, seed, reserved=False):
    """Test sequences, integers (N, length): a random piece of ``period`` tokens, said again to the end.

    ``reserved``: whether the piece is of the tokens that no piece of the training has.
    """
    first = config.num_tokens - config.reserved if reserved else 0
    number = config.reserved if reserved else config.num_tokens - config.reserved
    generator = torch.Generator().manual_seed(seed)
    piece = first + torch.rand(config.sequences, number, generator=generator).argsort(-1)[:, :period]
    return piece[:, torch.arange(length) % period]


class Nothing(nn.Module):
    """In place of a feed-forward network: it adds nothing."""

    def forward(self, X):
        return torch.zeros_like(X)


class Learner(GPT):
    """A `GPT` that is trained by a `Config`."""

    def __init__(self, config, contestant):
        model = replace(
            GPT_CONFIGS["modern"], vocab_size=config.num_tokens, max_len=config.length, num_hiddens=config.num_hiddens,
            num_heads=config.num_heads, num_blks=contestant.num_blks, dropout=0.0, qk_norm=False, use_bias=True,
        )  # fmt: skip
        super().__init__(model, config.lr)
        self.settings = config
        if not contestant.ffn:
            for blk in self.blks:
                blk.ffn = Nothing()

    def configure_optimizers(self):
        return fresh_data.optimizer_of(self, self.settings)


def batch_of(config, size):
    """A batch of the training: tokens (B, T) and what follows each."""
    tokens = draw(config, size)
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


@torch.no_grad()
def losses(model, tokens):
    """Cross-entropy of each token but the first in nats, (N, T - 1)."""
    tokens = tokens.to(model.dense.weight.device)
    return F.cross_entropy(model(tokens[:, :-1]).mT, tokens[:, 1:], reduction="none").cpu().double()


def halves(losses, period):
    """Mean loss of what is said for the first time, and of what can be known from the second time on.

    The token that begins the repetition counts to neither: nothing tells that it begins.
    """
    return losses[:, : period - 1].mean().item(), losses[:, period:].mean().item()


@torch.no_grad()
def attention_maps(model, tokens):
    """Weights of every block, (L, N, H, T, T)."""
    with capture_attention(model) as record:
        model(tokens.to(model.dense.weight.device))
    return torch.stack([record[f"blks.{i}.attention.attention"][0].cpu() for i in range(model.config.num_blks)])


def induction_scores(weights, period):
    """How much each head attends to the token after the previous occurrence of the current one.

    Args:
        weights: (..., N, H, T, T), of sequences in which a piece of ``period`` different tokens is repeated.
        period: how far back the current token was said before; the token after that is one nearer.

    Returns:
        (..., H): mean weight on that key, over the queries that have been said before.
    """
    return weights.diagonal(1 - period, -2, -1)[..., 1:].mean((-3, -1))


def previous_scores(weights):
    """How much each head attends to the token before the current one: (..., N, H, T, T) to (..., H)."""
    return weights.diagonal(-1, -2, -1).mean((-3, -1))


def without(model, off):
    """Inside of ``with``, heads of a model are switched off: ``off`` has pairs of block and head, from 0."""
    masks = {}
    for block, head in off:
        mask = masks.setdefault(f"blks.{block}.attention", torch.ones(model.config.num_heads))
        mask[head] = 0
    return head_masks(model, {name: mask.to(model.dense.weight.device) for name, mask in masks.items()})


def look(model, config, seed):
    """Where the heads of a trained model look, and what they are worth: a dict for JSON.

    Returns:
        dict: ``induction`` and ``previous``, scores (L, H); ``off``, of each head [first, second], the losses without
        it (L, H, 2); ``order``, heads by falling induction score, and ``off_in_order``, the losses when 0, 1, 2 ... of
        them are off; ``others``: by test ``first``, ``second`` and the highest ``induction``
        score of any head: other periods, and tokens that were never repeated in training ("reserved").
    """
    period, size = config.period, (model.config.num_blks, config.num_heads)
    tokens = repetitions(config, period, 2 * period, 1_000 + seed)
    maps = attention_maps(model, tokens)
    induction, previous = induction_scores(maps, period), previous_scores(maps)

    def scored(off):
        with without(model, off):
            return halves(losses(model, tokens), period)

    heads = [(block, head) for block in range(size[0]) for head in range(size[1])]
    order = sorted(heads, key=lambda head: -induction[head].item())
    others = {"reserved": (period, 2 * period, True)}
    others |= {f"{period} in {length}": (period, length, False) for period, length in config.others}
    other_scores = {}
    for name, (period_, length, reserved) in others.items():
        tokens_ = repetitions(config, period_, length, 2_000 + seed, reserved)
        pair = halves(losses(model, tokens_), period_)
        other_scores[name] = dict(zip(("first", "second"), pair, strict=True))
        other_scores[name]["induction"] = induction_scores(attention_maps(model, tokens_), period_).max().item()
    return {
        "induction": induction.tolist(),
        "previous": previous.tolist(),
        "off": [[scored([(block, head)]) for head in range(size[1])] for block in range(size[0])],
        "order": order,
        "off_in_order": [scored(order[:n]) for n in range(len(order) + 1)],
        "others": other_scores,
    }


def example(model, config, seed):
    """A sequence for the figure: its tokens, all weights, and the losses, with all heads and without each.

    Returns:
        dict: ``period``; ``tokens`` (T + 1); ``weights`` (L, H, T, T), a row a query; ``losses`` (T,), at each token
        the loss of the next; ``without`` (L, H, T), the losses with that head off.
    """
    tokens = repetitions(config, config.example, 2 * config.example + 1, 3_000 + seed)[:1]
    shape = model.config.num_blks, config.num_heads

    def told(off):
        with without(model, off):
            return [round(x, 3) for x in losses(model, tokens)[0].tolist()]

    weights = attention_maps(model, tokens[:, :-1])[:, 0].cpu().double().mul(1000).round().div(1000)
    return {
        "period": config.example,
        "tokens": tokens[0].tolist(),
        "weights": weights.tolist(),
        "losses": told([]),
        "without": [[told([(block, head)]) for head in range(shape[1])] for block in range(shape[0])],
    }


def learn(contestant, config, seed, device, parts, name):
    """Trains a contestant and looks into it: a dict for JSON."""
    torch.manual_seed(seed)
    model, period = Learner(config, contestant), config.period
    tokens = repetitions(config, period, 2 * period, 4_000 + seed)

    def after_check(trainer):
        model.eval()
        maps, (first, second) = attention_maps(model, tokens[:64]), halves(losses(model, tokens), period)
        scores = {"induction": induction_scores(maps, period), "previous": previous_scores(maps)}
        scores = {key: round(value.max().item(), 4) for key, value in scores.items()}
        return {"steps": trainer.step, "first": round(first, 4), "second": round(second, 4), **scores}

    history = fresh_data.fit(model, lambda size: batch_of(config, size), config, device, seed, parts, name, after_check)
    model.eval()
    heads = look(model, config, seed)
    seconds = [b - a for a, b in pairwise([0.0, *history["seconds"]])]
    return {
        "look": heads,
        "parameters": model.num_parameters,
        "step_s": round(median(seconds), 4),
        "example": example(model, config, seed) if seed == config.seeds[0] else None,
        "curves": summaries.curves(history, "steps", "first", "second", "induction", "previous"),
    }


def run(config, device, parts=None):
    """Trains every contestant with every seed; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (``models``: by contestant ``parameters``, ``example`` of the first seed, and lists over
        the seeds: ``look`` and ``step_s``, the median time of a step) and ``curves`` of each training: ``step`` and
        ``train_loss``; at ``steps`` the losses ``first`` and ``second`` on test sequences, and the highest
        ``induction`` and ``previous`` score of any head.
    """
    parts = parts or Parts()
    models, curves = fresh_data.contest(learn, config, device, parts, ("parameters", "example"), ("look", "step_s"))
    metrics = {"models": models}
    metrics["headline"] = headline(metrics, config)
    return {"metrics": metrics, "curves": curves}


def headline(metrics, config):
    """The loss on what is said for the second time, by contestant, and without the best head, in a sentence."""
    phrases = []
    for contestant in config.contestants:
        looks = metrics["models"][contestant.name]["look"]
        whole, one_off = (mean(look["off_in_order"][n][1] for look in looks) for n in (0, 1))
        score = mean(max(map(max, look["induction"])) for look in looks)
        phrases.append(f"{contestant.name} {whole:.2f} ({one_off:.2f} without the head of induction score {score:.2f})")
    return f"loss on a random piece of {config.period} tokens when it is said again, in nats: {', '.join(phrases)}"
