"""Chapter 06: what each way of encoding positions can learn, and what is left of it past the trained length.

Small Transformers of one design differ in their position encoding alone. Three tasks, all of which need order:

- ``back``: each place repeats the token that stands ``places_back`` places before it. A fixed *offset*.
- ``side``: one token is a mark; each place says whether the mark comes before or after it. A *direction*, at any
  distance.
- ``place``: every place answers with the token that stands at place number ``place``. An *absolute* position.

Training sees the lengths from ``shortest`` to ``longest``; scores are the share of right answers, at lengths up to
that ("within") and above it ("beyond"), on fresh sequences.

The learning rate is tuned for each encoding and task: it is the one of ``rates`` with the lowest loss at lengths
*within*, of a model of ``validation_seed``, on sequences that no other score uses; the tested models have other seeds.
An encoding with parameters of its own (the learned table, Shaw's vectors, T5's numbers) then gets a rate of its own for
them, the best of ``multipliers`` times the common one. Without this, Adam, which moves a parameter by about the rate in
a step, would decide how far a score made of one bare number can go. Nothing beyond the trained lengths has a say in the
choice; what each of the rates does there is recorded.
"""

from dataclasses import dataclass, replace
from statistics import mean

import torch
from torch import nn
from torch.nn import functional as F

from d2lmini import position
from d2lmini.lab.parts import Parts
from d2lmini.lab.summaries import means
from d2lmini.rotation import rotary
from d2lmini.transformer import TransformerEncoderBlock

ENCODINGS = ("none", "sinusoidal", "learned", "shaw", "t5", "rotary")
TASKS = ("back", "side", "place")
NO_ANSWER = -100  # a place that is not scored


@dataclass(frozen=True)
class Config:
    """Settings; lengths and offsets count tokens, ``max_offset`` is Shaw's k, ``max_distance`` that of T5's buckets.

    ``rates``, and ``multipliers`` of the rate of an encoding's own parameters, are tried where there are several.
    """

    tasks: tuple = TASKS
    encodings: tuple = ENCODINGS
    shortest: int = 6
    longest: int = 16
    within: tuple = (8, 16)
    beyond: tuple = (20, 32, 64)
    num_symbols: int = 10
    places_back: int = 3
    place: int = 3
    num_hiddens: int = 32
    num_heads: int = 2
    num_blks: int = 2
    max_offset: int = 8
    num_buckets: int = 16
    max_distance: int = 16
    batch_size: int = 32
    steps: int = 500
    rates: tuple = (1e-3, 3e-3, 1e-2, 3e-2)
    multipliers: tuple = (1, 3, 10, 30)
    test_size: int = 200
    validation_seed: int = 100
    seeds: tuple = (0, 1, 2)


PRESETS = {
    "smoke": replace(
        Config(), steps=8, rates=(3e-3, 1e-2), multipliers=(1, 10), seeds=(0,), test_size=20, within=(8,), beyond=(20,)
    ),
    # the task learned soonest
    "cpu": replace(Config(), tasks=("back",), steps=300, rates=(3e-3,), multipliers=(10,), seeds=(0,)),
    "laptop": Config(),
}


def draw(task, length, size, config, generator):
    """Draw `size` sequences of one task.

    Returns:
        tokens and answers, integers of shape (size, length); a place without an answer has `NO_ANSWER`.
    """
    tokens = torch.randint(config.num_symbols, (size, length), generator=generator)
    if task == "place":
        return tokens, tokens[:, config.place, None].expand_as(tokens)
    if task == "back":
        answers = tokens.roll(config.places_back, dims=1)
        answers[:, : config.places_back] = NO_ANSWER
        return tokens, answers
    place = torch.randint(length, (size, 1), generator=generator)
    tokens = tokens.scatter(1, place, config.num_symbols)  # the mark
    return tokens, (place < torch.arange(length)).long().scatter(1, place, NO_ANSWER)


class Tagger(nn.Module):
    """A Transformer encoder that answers at every place.

    Args:
        config: sizes.
        encoding: one of `ENCODINGS`.
    """

    def __init__(self, config, encoding):
        super().__init__()
        h, heads = config.num_hiddens, config.num_heads
        self.embedding = nn.Embedding(config.num_symbols + 1, h)
        self.blks = nn.ModuleList(
            TransformerEncoderBlock(h, 2 * h, heads, norm_first=True) for _ in range(config.num_blks)
        )
        self.norm = nn.LayerNorm(h)
        self.dense = nn.Linear(h, config.num_symbols)
        self.absolute, self.rotary = nn.Identity(), None
        self.relative = nn.ModuleList()  # one for each block, or one for all of them
        if encoding == "sinusoidal":
            self.absolute = position.PositionalEncoding(h, max_len=config.longest)
        elif encoding == "learned":  # rows past the trained length exist, and stay random
            self.absolute = position.LearnedPositionalEncoding(h, max_len=max(config.beyond))
            nn.init.normal_(self.absolute.P)  # as large as the embeddings
        elif encoding == "shaw":
            self.relative.extend(position.RelativePositionEmbedding(h // heads, config.max_offset) for _ in self.blks)
        elif encoding == "t5":
            self.relative.append(position.RelativePositionBias(heads, config.num_buckets, config.max_distance))
        elif encoding == "rotary":
            self.rotary = rotary
        self.encoding = encoding

    def of_encoding(self):
        """The parameters of the encoding alone, a list."""
        return [*self.absolute.parameters(), *self.relative.parameters()]

    def forward(self, tokens):
        """Tokens (B, N) to logits (B, N, num_symbols)."""
        X = self.absolute(self.embedding(tokens))
        for i, blk in enumerate(self.blks):
            bias = None
            if self.encoding == "shaw":
                bias = self.relative[i].scores
            elif self.encoding == "t5":
                bias = self.relative[0](tokens.shape[1])
            X = blk(X, score_bias=bias, rotary=self.rotary)
        return self.dense(self.norm(X))


def train(model, task, config, seed, device, rate=3e-3, times=1.0):
    """Train on lengths drawn evenly; returns the losses of all steps.

    The parameters of the encoding have ``times`` the learning rate of the others, which is ``rate``.
    """
    model.to(device).train()
    own = model.of_encoding()
    others = [p for p in model.parameters() if all(p is not q for q in own)]
    groups = [{"params": others, "lr": rate}, {"params": own, "lr": times * rate}]
    groups = [group for group in groups if group["params"]]
    rates = [group["lr"] for group in groups]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=config.steps, pct_start=0.1)
    generator, losses = torch.Generator().manual_seed(seed), []
    for _ in range(config.steps):
        length = int(torch.randint(config.shortest, config.longest + 1, (1,), generator=generator))
        tokens, answers = draw(task, length, config.batch_size, config, generator)
        loss = F.cross_entropy(model(tokens.to(device)).flatten(0, 1), answers.to(device).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


@torch.no_grad()
def accuracy(model, task, length, config, device):
    """Share of right answers at one length, on sequences that are the same for every model."""
    generator = torch.Generator().manual_seed(10_000 + length)
    tokens, answers = (x.to(device) for x in draw(task, length, config.test_size, config, generator))
    asked = answers != NO_ANSWER
    return (model.eval()(tokens).argmax(-1) == answers)[asked].cpu().double().mean().item()


def accuracies(model, task, config, device):
    """`accuracy` at every length, within and beyond. Returns: dict from the length as str."""
    return {str(n): accuracy(model, task, n, config, device) for n in (*config.within, *config.beyond)}


@torch.no_grad()
def validation_loss(model, task, config, device):
    """Mean cross-entropy over the lengths within, on sequences that neither training nor `accuracy` draws."""
    losses = []
    for length in config.within:
        generator = torch.Generator().manual_seed(20_000 + length)
        tokens, answers = (x.to(device) for x in draw(task, length, config.test_size, config, generator))
        losses.append(F.cross_entropy(model.eval()(tokens).flatten(0, 1), answers.flatten()).item())
    return mean(losses)


def make(encoding, config, seed):
    """The model of an encoding before training."""
    torch.manual_seed(seed)
    return Tagger(config, encoding)


def attempt(task, encoding, rate, times, config, device):
    """Train the model of the validation seed at one rate, and at ``times`` it for the encoding's parameters.

    Returns:
        dict of ``loss``, the validation loss, and ``accuracy``, by length.
    """
    model = make(encoding, config, config.validation_seed)
    train(model, task, config, config.validation_seed, device, rate, times)
    return {"loss": validation_loss(model, task, config, device), "accuracy": accuracies(model, task, config, device)}


def learn(task, encoding, rate, times, config, seed, device):
    """Train one model and score it at every length. Returns: dict for JSON."""
    model = make(encoding, config, seed)
    losses = train(model, task, config, seed, device, rate, times)
    return {
        "losses": means(losses, max(1, config.steps // 50)),
        "accuracy": accuracies(model, task, config, device),
    }


def choose(task, encoding, config, device, parts):
    """The learning rate, then how many times that the encoding's own parameters get.

    Returns:
        the rate; the multiplier, None for an encoding without parameters; and a list of what `attempt` returned for
        each pair that was tried, with its ``rate`` and ``times``. A list of one rate or multiplier is not tried.
    """
    tried = {}

    def best(pairs):
        if len(pairs) == 1:
            return pairs[0]
        for pair in pairs:
            if pair not in tried:
                name = "-".join(map(str, (task, encoding, *pair)))
                tried[pair] = parts(name, attempt, task, encoding, *pair, config, device)
        return min(pairs, key=lambda pair: tried[pair]["loss"])

    rate, _ = best([(rate, 1) for rate in config.rates])
    times = None
    if make(encoding, config, config.validation_seed).of_encoding():
        _, times = best([(rate, times) for times in config.multipliers])
    return rate, times, [{"rate": rate, "times": times, **made} for (rate, times), made in tried.items()]


def run(config, device, parts=None):
    """Train every encoding on every task with every seed; ``parts`` are those of `Parts`.

    Returns:
        dict with ``metrics``: ``accuracy[task][encoding][length]`` as a list over seeds, and their means over seeds and
        lengths, ``within[task][encoding]`` and ``beyond[task][encoding]``; ``rates``, ``times`` and ``tried``, what
        `choose` returned, likewise by task and encoding; and ``curves``, training losses of the first seed, each the
        mean of ``steps // 50`` steps.
    """
    parts = parts or Parts()
    scores, curves, rates, multipliers, tried = {}, {}, {}, {}, {}
    for task in config.tasks:
        for name in config.encodings:
            by_length = scores.setdefault(task, {}).setdefault(name, {})
            rate, times, attempts = choose(task, name, config, device, parts)
            for found, what in ((rates, rate), (multipliers, times), (tried, attempts)):
                found.setdefault(task, {})[name] = what
            for seed in config.seeds:
                record = parts(f"{task}-{name}-{seed}", learn, task, name, rate, times or 1, config, seed, device)
                curves.setdefault(f"{task}_{name}", record["losses"])
                for length, score in record["accuracy"].items():
                    by_length.setdefault(length, []).append(score)
    metrics = {"accuracy": scores, "rates": rates, "times": multipliers, "tried": tried}
    for side in ("within", "beyond"):
        metrics[side] = {
            task: {
                name: mean(score for length in getattr(config, side) for score in by_length[str(length)])
                for name, by_length in ways.items()
            }
            for task, ways in scores.items()
        }
    task, longest = config.tasks[0], config.beyond[-1]
    accuracies = ", ".join(f"{name} {mean(scores[task][name][str(longest)]):.2f}" for name in config.encodings)
    metrics["headline"] = (
        f"share right on {task!r} at {longest} tokens after training on up to {config.longest}: {accuracies}"
    )
    return {"metrics": metrics, "curves": curves}
