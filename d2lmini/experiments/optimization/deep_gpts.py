"""GPTs on the characters of a text, trained by one recipe or another: they learn, are stuck, or diverge.

What `depth_by_rate` and `optimizers` share: the models; the loop, for which a loss that is not finite is a result and
no error; and the rule that says what came out.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import nn

from d2lmini.experiments.gpt import characters
from d2lmini.experiments.gpt.language import Windows, loss_by_place
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.training import by_depth
from d2lmini.transformer import AddNorm

VERDICTS = "trains", "stuck", "diverged"
MARGIN = 0.05  # nats; what differs by less may be chance
BASE = GPTConfig(max_len=64, num_hiddens=64, num_heads=4, num_blks=4, dropout=0.0, ffn="relu", tie_weights=False)
MATRICES = {
    "queries": "attention.W_q.weight",
    "keys": "attention.W_k.weight",
    "values": "attention.W_v.weight",
    "output": "attention.W_o.weight",
    "ffn 1": "ffn.dense1.weight",
    "ffn 2": "ffn.dense2.weight",
}


@dataclass(frozen=True)
class Form:
    """What is done to make depth trainable.

    ``norms`` stand "after" each residual connection, "before" each sublayer, or nowhere (None). ``warmup`` is the share
    of the steps in which the learning rate rises. ``small_start`` is T-Fixup's idea: embeddings, values, what follows
    them and the feed-forward networks begin smaller, by 0.67 L^(-1/4) (their factor for an encoder's matrices, here for
    the embeddings, too), so that the first steps change what L blocks without norms compute by little.
    ``residual_weight`` is ReZero's: each branch is multiplied by a learned number that begins at 0.

    Source: Xiong et al. 2020 (``norms``); Huang et al. 2020 (``small_start``); Bachlechner et al. 2021
    (``residual_weight``); Henry et al. 2020 (``qk_norm``).
    """

    norms: str | None = "before"
    warmup: float = 0.0
    qk_norm: bool = False
    small_start: bool = False
    residual_weight: bool = False


class WeightedAdd(AddNorm):
    """X + a Y with a learned number a that is 0 at first, and no norm. Source: Bachlechner et al. 2021."""

    def __init__(self, norm_shape):
        super().__init__(norm_shape, norm=nn.Identity)
        self.weight = nn.Parameter(torch.zeros(1))

    def add(self, X, Y):
        return super().add(X, self.weight * Y)


class DeepGPT(GPT):
    """A `GPT` of a `Form`; all forms begin as Glorot and Bengio say but for what the form changes.

    Args:
        config: a `GPTConfig`; its ``norm_first``, ``qk_norm`` and ``init`` are not used.
        form: a `Form`.
    """

    def __init__(self, config, form):
        super().__init__(replace(config, **_fields(form)))
        self.form, h = form, config.num_hiddens
        if form.norms is None:
            self.norm = nn.Identity()
            for blk in self.blks:
                if form.residual_weight:
                    blk.addnorm1 = blk.addnorm2 = WeightedAdd(h)  # one number for both branches, as in their code
                else:
                    blk.addnorm1, blk.addnorm2 = (AddNorm(h, norm=nn.Identity) for _ in range(2))
        self._begin()

    @torch.no_grad()
    def _begin(self):
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_normal_(module.weight)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=module.weight.shape[1] ** -0.5)
        if self.form.small_start:
            shrunk = [self.embedding, self.pos_embedding]
            for blk in self.blks:
                shrunk += [blk.attention.W_v, blk.attention.W_o, blk.ffn.dense1, blk.ffn.dense2]
            for module in shrunk:
                module.weight.mul_(0.67 * len(self.blks) ** -0.25)


def _fields(form):
    if form.norms not in ("before", "after", None):
        raise ValueError(f"norms is {form.norms!r}, expected 'before', 'after' or None")
    if form.norms and (form.small_start or form.residual_weight):
        raise ValueError(f"norms stand {form.norms!r}: small_start and residual_weight are in place of norms (None)")
    # without norms a block adds to the stream what it makes of the stream, as one with norms before its sublayers does
    return {"norm_first": form.norms != "after", "qk_norm": form.qk_norm}


@dataclass(frozen=True)
class Text:
    """A text in characters: the ids for training and for validation, (N,), and V."""

    train: torch.Tensor
    val: torch.Tensor
    vocab_size: int

    @classmethod
    def read(cls, name):
        tokenizer, *ids = characters.read(name)
        return cls(*ids, len(tokenizer))

    @property
    def uniform(self):
        """Loss in nats of one who knows nothing: log V."""
        return math.log(self.vocab_size)

    def unigram(self, config):
        """Loss, on the crops that `score` takes, of one who knows how frequent each character is in the training text.

        Every character is counted once more than it occurs, so that none is impossible.
        """
        counts = torch.bincount(self.train.long(), minlength=self.vocab_size) + 1.0
        return score(_Frequencies((counts / counts.sum()).log()), self, config)

    def batches(self, size, length, device, seed):
        """Random crops (B, T) of the training text and what follows each character, without end."""
        windows, generator = Windows(self.train, length), torch.Generator().manual_seed(seed)
        while True:
            starts = torch.randint(len(windows), (size,), generator=generator)
            yield tuple(ids.to(device) for ids in windows.__getitems__(starts))


class _Frequencies(nn.Module):
    """A "GPT" that expects the same after every character; its embedding is what tells the device."""

    def __init__(self, logits):
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(logits.expand(len(logits), -1))

    def forward(self, tokens):
        return self.embedding(tokens)


def train(model, batches, optimizer, schedule, steps, gradient_clip_val=0.0, after_step=None):
    """Trains a model, and stops before a step that could only be by numbers that are not finite.

    Args:
        model: a `GPT`, on its device.
        batches: iterator of (B, T) ids and what follows them.
        optimizer: of the model.
        schedule: function from the step, counted from 1, to a factor on the learning rate.
        steps: how many.
        gradient_clip_val: largest norm of the gradient; 0: any.
        after_step: None, or a function without arguments.

    Returns:
        dict of ``losses`` and ``norms`` (of the gradient before clipping): a finite number for each step made.
    """
    model.train()
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: schedule(done + 1))
    history = {"losses": [], "norms": []}
    for _ in range(steps):
        X, Y = next(batches)
        optimizer.zero_grad()
        loss = model.loss(model(X), Y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), gradient_clip_val or math.inf)
        loss, norm = torch.stack([loss.detach(), norm]).tolist()
        if not math.isfinite(loss + norm):
            break
        optimizer.step()
        scheduler.step()
        history["losses"].append(loss)
        history["norms"].append(norm)
        if after_step:
            after_step()
    return history


def score(model, text, config):
    """The loss in nats a character on random crops of the validation text; None where it is not finite.

    Args:
        model: a `GPT`. text: a `Text`.
        config: has ``model.max_len``, ``batch_size`` and ``final_batches``.
    """
    loss = loss_by_place(model.eval(), text.val, config).mean().item()
    return loss if math.isfinite(loss) else None


def verdict(loss, start, unigram, uniform):
    """What came of a training, by its loss on the validation text.

    "diverged": the loss is not finite (None), or by `MARGIN` worse than both at the start and without any knowledge.
    "trains": by `MARGIN` better than knowing how frequent each character is, for which nothing but the last layer has
    to learn. Else it is "stuck", as is one that is merely too slow for its steps.

    Args:
        loss, start: after the training, and of its first step; None where they are not finite.
        unigram, uniform: as `Text` gives them.
    """
    if loss is None or start is None or loss > max(start, uniform) + MARGIN:
        return "diverged"
    return "trains" if loss < unigram - MARGIN else "stuck"


def told(values):
    """Of what is known of each parameter: that of the `MATRICES` of the blocks, lists over depth, to four digits."""
    over_depth = by_depth(values)
    return {name: rounded(over_depth[key]) for name, key in MATRICES.items() if key in over_depth}


def rounded(values):
    """A list of numbers to four digits; what is None or not finite is None, as JSON has it."""
    return [None if x is None or not math.isfinite(x) else float(f"{x:.4g}") for x in values]
