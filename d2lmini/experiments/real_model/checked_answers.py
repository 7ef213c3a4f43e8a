"""Groups of answers that a model gives to sums, whether each is right, and what drawing and learning from them costs.

FLOPs are counted as `d2lmini.scaling.gpt_training_flops` counts them: attention by what each token may see, padding not
at all. With a cache a token of an answer costs one token's pass, and a prompt is read once for its whole group; an
update counts a pass forward and twice that backward over prompt and answer.
"""

from typing import NamedTuple

import torch

from d2lmini.experiments.abilities.addition import END
from d2lmini.experiments.abilities.addition_exam import prompts_of
from d2lmini.objectives import IGNORE_INDEX, expected_best_of
from d2lmini.scaling import gpt_training_flops


class Group(NamedTuple):
    """Answers to B questions, G each.

    ``inputs`` and ``labels``, (B G, T), are what a causal model reads and what follows each token, `IGNORE_INDEX` where
    it belongs to no answer; ``log_probs``, (B G, T), those of the labels under the model that drew them, 0 elsewhere.
    ``right``, boolean (B, G); ``valid_lens``, (B, G), the tokens of the answers, the end included; ``prompt``, the
    tokens of a question.
    """

    inputs: torch.Tensor
    labels: torch.Tensor
    log_probs: torch.Tensor
    right: torch.Tensor
    valid_lens: torch.Tensor
    prompt: int

    @property
    def entropy(self):
        """Of the model's distribution over whole answers, in nats: an estimate without bias, a float."""
        return -self.log_probs.sum(1).cpu().double().mean().item()


def draw_group(model, sums, form, summands, size, *, temperature=1.0, generator=None):
    """A `Group` of ``size`` answers to each question, summands (B, num); the model is in evaluation mode afterwards."""
    prompts, max_new = prompts_of(sums, summands, form)
    options = {"temperature": temperature, "num_samples": size, "generator": generator}
    drawn = model.eval().generate(prompts, max_new, stop=END, **options)
    tokens, P = drawn.tokens.flatten(0, 1), prompts.shape[1]  # (B G, L)
    L = tokens.shape[1]
    valid_lens = (drawn.valid_lens + 1).clamp(max=L)  # with the end, if it came so far
    counted = torch.arange(L) < valid_lens.flatten()[:, None]
    labels = torch.full((len(tokens), P - 1 + L), IGNORE_INDEX)
    labels[:, P - 1 :] = tokens.masked_fill(~counted, IGNORE_INDEX)
    log_probs = torch.zeros(labels.shape)
    log_probs[:, P - 1 :] = drawn.log_probs.flatten(0, 1)
    return Group(
        torch.cat([prompts.repeat_interleave(size, 0), tokens], 1)[:, :-1],
        labels,
        log_probs,
        are_right(sums, summands, drawn.tokens),
        valid_lens,
        P,
    )


def are_right(sums, summands, tokens):
    """Which answers end with the sum: summands (B, num), tokens (B, G, L) to booleans (B, G). Steps do not count."""
    rows = zip(summands.sum(1).tolist(), tokens.tolist(), strict=True)
    return torch.tensor([[bool(read := sums.read(one)) and read[-1] == right for one in row] for right, row in rows])


def forward_flops(config, tokens):
    """FLOPs of one pass over so many tokens, each of which sees itself and those before it."""
    return gpt_training_flops(config, tokens, context=tokens, causal=True) / 3 if tokens else 0.0


def drawing_flops(config, group):
    """What it takes to draw a group: each prompt but its last token once, then token by token."""
    before = forward_flops(config, group.prompt - 1)
    each = [forward_flops(config, group.prompt - 1 + n) - before for n in group.valid_lens.flatten().tolist()]
    return len(group.valid_lens) * before + sum(each)


def learning_flops(config, group, rows):
    """What it takes to learn once from the answers ``rows``, boolean (B G,): three passes over each."""
    valid_lens = group.valid_lens.flatten()[rows].tolist()
    return 3 * sum(forward_flops(config, group.prompt - 1 + n) for n in valid_lens)


def draw_questions(sums, num, size, held_out):
    """Summands (size, num), from torch's global random numbers; none of them is one of ``held_out``, (n, num)."""
    base = 10**sums.digits
    digits = base ** torch.arange(num)
    codes = (held_out * digits).sum(1)
    summands = sums.draw(size, num)
    while (again := torch.isin((summands * digits).sum(1), codes)).any():
        summands[again] = sums.draw(int(again.sum()), num)
    return summands


def chances(right, ks):
    """Chances that one of k answers is right, from N of each question: right (B, N) to a dict of lists, one of each k.

    The estimate has no bias, since every choice of k of the N is counted (Chen et al. 2021, equation 1). ``error`` is
    the standard error over the questions.
    """
    each = [expected_best_of(right, right, k) for k in ks]  # (B,) of each k
    return {
        "k": list(ks),
        "chance": [one.mean().item() for one in each],
        "error": [(one.std() / len(one) ** 0.5).item() for one in each],
    }
