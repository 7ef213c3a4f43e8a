r"""Why does it repeat itself?

A language model writes: *the cat sat on the mat and sat on the mat and sat on the mat and*. There are two suspects: the
code that asks the model, and the model itself. Question them one after the other.

Here is the code. It works with a cache, as chapter 16 does: `model(tokens, positions, cache)` takes the tokens that are
new, integers (B, n), their positions (n,), counted from 0, and the cache of all before them; it returns the logits of
what follows each of the n tokens, (B, n, V), and the grown cache, while the cache that it was given stays as it is.
`model.empty(B)` is a cache of nothing. The code has **three faults**, each of which can make texts repeat.

```python
def generate(model, prompt, num_tokens):
    positions = torch.arange(prompt.shape[1], device=prompt.device)
    logits, cache = model(prompt, positions, model.empty(len(prompt)))
    chosen = []
    for t in range(num_tokens):
        token = logits[:, 0].argmax(dim=-1, keepdim=True)
        chosen.append(token)
        logits, _ = model(token, positions[-1:], cache)
    return torch.cat(chosen, dim=1)
```

Do not search by staring. Without a cache little can go wrong: give the model the whole text anew at each step, compare
the logits, and see which of them differ first: those after the prompt, those of the second token, those of the third?
"""

import math
from itertools import combinations, pairwise

import torch

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def generate(model, prompt, num_tokens):
    """Goes on from a prompt, the likeliest token each time.

    Args:
        model: see above.
        prompt: integers (B, P), P at least 1.
        num_tokens: how many tokens to write, at least 1.

    Returns:
        What was written, integers (B, num_tokens).
    """
    ### BEGIN SOLUTION
    P = prompt.shape[1]
    positions = torch.arange(P + num_tokens, device=prompt.device)
    logits, cache = model(prompt, positions[:P], model.empty(len(prompt)))
    chosen = []
    for t in range(num_tokens):
        token = logits[:, -1].argmax(dim=-1, keepdim=True)  # what follows the last token
        chosen.append(token)
        logits, cache = model(token, positions[P + t : P + t + 1], cache)
    return torch.cat(chosen, dim=1)
    ### END SOLUTION


def without_a_cache(model, prompt, num_tokens):
    tokens = prompt
    for _ in range(num_tokens):
        logits, _ = model(tokens, torch.arange(tokens.shape[1], device=tokens.device), model.empty(len(tokens)))
        tokens = torch.cat([tokens, logits[:, -1].argmax(-1)[:, None]], dim=1)
    return tokens[:, prompt.shape[1] :]


def token_by_token(model, prompt, num_tokens):
    cache, tokens = model.empty(len(prompt)), prompt
    for t in range(prompt.shape[1] + num_tokens - 1):
        logits, cache = model(tokens[:, t : t + 1], torch.tensor([t], device=prompt.device), cache)
        if t >= prompt.shape[1] - 1:
            tokens = torch.cat([tokens, logits[:, 0].argmax(-1, keepdim=True)], dim=1)
    return tokens[:, prompt.shape[1] :]


def last_token_twice(model, prompt, num_tokens):
    P = prompt.shape[1]
    _, cache = model(prompt, torch.arange(P, device=prompt.device), model.empty(len(prompt)))
    token, chosen = prompt[:, -1:], []
    for t in range(num_tokens):
        logits, cache = model(token, torch.tensor([P - 1 + t], device=prompt.device), cache)
        token = logits[:, -1].argmax(dim=-1, keepdim=True)
        chosen.append(token)
    return torch.cat(chosen, dim=1)


def whole_text_into_the_cache(model, prompt, num_tokens):
    tokens, cache = prompt, model.empty(len(prompt))
    for _ in range(num_tokens):
        logits, cache = model(tokens, torch.arange(tokens.shape[1], device=tokens.device), cache)
        tokens = torch.cat([tokens, logits[:, -1].argmax(-1)[:, None]], dim=1)
    return tokens[:, prompt.shape[1] :]


def the_first_is_lost(model, prompt, num_tokens):
    return without_a_cache(model, prompt, num_tokens + 1)[:, 1:]


def one_place_late(model, prompt, num_tokens):
    P = prompt.shape[1]
    logits, cache = model(prompt, torch.arange(P, device=prompt.device), model.empty(len(prompt)))
    chosen = [logits[:, -1].argmax(dim=-1, keepdim=True)]
    for t in range(1, num_tokens):
        logits, cache = model(chosen[-1], torch.tensor([P + t], device=prompt.device), cache)
        chosen.append(logits[:, -1].argmax(dim=-1, keepdim=True))
    return torch.cat(chosen, dim=1)


FAULTS = {
    "place": "the first token follows the first of the prompt: of the logits after the prompt take the last place",
    "cache": "the grown cache is thrown away: of its own text the model sees the last token only",
    "position": "the position stands still: each new token must stand one place after the one before",
}


def faulty(*faults):
    """The code that was given with these of its faults left in it."""

    def generate(model, prompt, num_tokens):
        P = prompt.shape[1]
        positions = torch.arange(P + num_tokens, device=prompt.device)
        logits, cache = model(prompt, positions[:P], model.empty(len(prompt)))
        chosen = []
        for t in range(num_tokens):
            token = logits[:, 0 if "place" in faults else -1].argmax(dim=-1, keepdim=True)
            chosen.append(token)
            at = P - 1 if "position" in faults else P + t
            logits, grown = model(token, positions[at : at + 1], cache)
            cache = cache if "cache" in faults else grown
        return torch.cat(chosen, dim=1)

    return generate


def what_is_left(faults):
    """A mutant with these faults, and what to tell."""
    if len(faults) == 1:
        message = FAULTS[faults[0]]
    else:
        message = f"{'all three' if len(faults) == 3 else 'two of the three'} faults are still there"
    return Mutant("-and-".join(faults), faulty(*faults), message)


class _Model:
    """One attention layer with positions, by chance; in float64, so that no rounding decides."""

    def __init__(self, embedding, positions, W_q, W_k, W_v, W_o):
        self.embedding, self.positions = embedding, positions
        self.W_q, self.W_k, self.W_v, self.W_o = W_q, W_k, W_v, W_o

    def empty(self, B):
        return self.embedding.new_empty(B, 0, self.embedding.shape[1])

    def __call__(self, tokens, positions, cache):
        X = self.embedding[tokens] + self.positions[positions]  # (B, n, h)
        seen = torch.cat([cache, X], dim=1)  # (B, m + n, h)
        n, S = X.shape[1], seen.shape[1]
        scores = X @ self.W_q @ (seen @ self.W_k).mT / math.sqrt(X.shape[-1])
        may = torch.ones(n, S, dtype=torch.bool, device=X.device).tril(S - n)
        weights = scores.masked_fill(~may, -torch.inf).softmax(-1)
        return torch.tanh(X + weights @ seen @ self.W_v) @ self.W_o, seen


def verify(t, answer):
    for P, num_tokens in ((5, 9), (1, 30), (7, 1)):
        B, V, h = 9 if num_tokens > 1 else 1, 11, 8
        tables = [t.randn(*size, dtype=torch.float64) for size in ((V, h), (P + num_tokens, h))]
        # attention is broad, and what it brings is large: all that is in the cache matters
        matrices = [t.randn(h, h, scale=scale, dtype=torch.float64) for scale in (0.3, 0.3, 2.0)]
        parts = [*tables, *matrices, t.randn(h, V, dtype=torch.float64)]
        prompt = t.integers(0, V, B, P)
        model, tokens = _Model(*(part.cpu() for part in parts)), prompt.cpu()
        for _ in range(num_tokens):
            logits, _ = model(tokens, torch.arange(tokens.shape[1]), model.empty(B))
            tokens = torch.cat([tokens, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
        got = t.call(answer, _Model(*parts), prompt, num_tokens)
        t.same(got, tokens[:, P:], f"the text of {num_tokens} tokens after a prompt of {P}")


def copies(model, sentence, n):
    """How probable a sentence is after copies of itself.

    Args:
        model: ``model(tokens)`` takes integers (B, T) and returns logits (B, T, V) of what follows each of them. A text
            begins with the token 0.
        sentence: integers (L,).
        n: how many copies.

    Returns:
        (n,): of each copy the mean log-probability of its L tokens, given the token 0 and all copies before it.
    """
    ### BEGIN SOLUTION
    text = sentence.repeat(n)  # (n * L,)
    inputs = torch.cat([torch.zeros_like(text[:1]), text[:-1]])  # each place predicts the token after it
    log_probs = torch.log_softmax(model(inputs[None])[0], dim=-1)  # (n * L, V)
    log_likely = log_probs.gather(1, text[:, None])[:, 0]
    return log_likely.unflatten(0, (n, -1)).mean(dim=1)
    ### END SOLUTION


def with_cross_entropy(model, sentence, n):
    text = torch.cat([sentence.new_zeros(1), *[sentence] * n])
    losses = torch.nn.functional.cross_entropy(model(text[None])[0, :-1], text[1:], reduction="none")
    return -losses.view(n, len(sentence)).mean(1)


def copy_by_copy(model, sentence, n):
    values, context = [], sentence.new_zeros(1)
    for _ in range(n):
        logits = model(torch.cat([context, sentence])[None])[0, len(context) - 1 : -1]
        values.append(logits.log_softmax(-1)[torch.arange(len(sentence), device=sentence.device), sentence].mean())
        context = torch.cat([context, sentence])
    return torch.stack(values)


def each_alone(model, sentence, n):
    return copies(model, sentence, 1).repeat(n)


def mean_of_all_so_far(model, sentence, n):
    each = copies(model, sentence, n)
    return each.cumsum(0) / torch.arange(1, n + 1, device=each.device)


def without_the_start(model, sentence, n):
    text = sentence.repeat(n + 1)
    log_likely = model(text[None])[0].log_softmax(-1)[:-1].gather(1, text[1:, None])[:, 0]
    return log_likely[len(sentence) - 1 :].view(n, -1).mean(1)


def the_start_before_each(model, sentence, n):
    row = torch.cat([sentence.new_zeros(1), sentence])
    text = row.repeat(n)
    log_likely = model(text[None])[0].log_softmax(-1)[:-1].gather(1, text[1:, None])[:, 0]
    return torch.nn.functional.pad(log_likely, (0, 1)).view(n, -1)[:, :-1].mean(1)


def the_first_left_out(model, sentence, n):
    text = sentence.repeat(n)
    log_likely = model(text[None])[0].log_softmax(-1)[:-1].gather(1, text[1:, None])[:, 0]
    return torch.nn.functional.pad(log_likely, (1, 0)).view(n, -1).mean(1)


class _Copier:
    """What followed a token before in the text is likelier to follow it again."""

    def __init__(self, table, strength):
        self.table, self.strength = table, strength  # (V, V), a number

    def __call__(self, tokens):
        T = tokens.shape[1]
        before = torch.ones(T, T, dtype=torch.bool, device=tokens.device).tril(-1)
        same = (tokens[:, :, None] == tokens[:, None]) & before  # (B, T, T)
        following = torch.nn.functional.one_hot(tokens.roll(-1, 1), len(self.table)).to(self.table)
        return self.table[tokens] + self.strength * (same.to(self.table) @ following)


def verify_copies(t, answer):
    for L, n, scale in ((*t.sizes(2, 4, 8), 1.0), (*t.sizes(2, 2, 7), 1e3), (1, 3, 1.0), (3, 1, 1.0)):
        V = 12
        table, strength = t.randn(V, V, scale=scale), t.random.uniform(0.6, 1.2)
        sentence = t.integers(1, V, L)
        table[0, sentence[0]] -= 3 * (scale - 1)  # so improbable that its probability rounds to 0
        wide, text, want = table.cpu().double(), [0], []
        for _ in range(n):
            total = 0.0
            for token in sentence.tolist():
                logits = wide[text[-1]].clone()
                for first, second in pairwise(text):
                    if first == text[-1]:
                        logits[second] += strength
                total += logits.log_softmax(0)[token].item()
                text.append(token)
            want.append(total / L)
        got = t.call(answer, _Copier(table, strength), sentence, n)
        name = f"the curve for {n} copies of {L} tokens{', some of them very improbable' * (scale > 1)}"
        t.same(got, torch.tensor(want).double(), name, dtype=torch.float32)


MUTANTS_A = [
    *(what_is_left(faults) for count in (1, 2, 3) for faults in combinations(FAULTS, count)),
    Mutant("one-early", ("positions[P + t : P + t + 1]", "positions[P + t - 1 : P + t]"), "the first written token "
        "stands where the last of the prompt stood: it stands at position P"),
    Mutant("one-text", ("logits[:, -1].argmax(dim=-1, keepdim=True)",
        "logits[:1, -1].argmax(dim=-1, keepdim=True).expand(len(prompt), 1)"), "the first text is right, and its "
        "tokens are written into all: each row has a token of its own"),
    Mutant("still", ("positions[P + t : P + t + 1]", "positions[P : P + 1]"), "all written tokens get the position P: "
        "only the first of them is there"),
    Mutant("one-late", one_place_late, "the first written token stands one place too late: it stands at position P"),
    Mutant("twice", last_token_twice, "the last token of the prompt goes in twice: the pass over the prompt tells what "
        "follows it already"),
    Mutant("all-again", whole_text_into_the_cache, "the whole text goes in again although the cache has most of it: "
        "with a cache the new token alone, or the whole text with an empty cache"),
    Mutant("first-lost", the_first_is_lost, "the first written token is missing: the logits after the prompt give it"),
    Mutant("anew", ("positions[P + t : P + t + 1]", "positions[t : t + 1]"), "positions start at 0 again after the "
        "prompt: they go on from P"),
    Mutant("raised", ("argmax(dim=-1, keepdim=True)", "argmax(dim=-1).squeeze()[..., None]")),  # of a batch of one
    # with the prompt
    Mutant("shape", ("return torch.cat(chosen, dim=1)", "return torch.cat([prompt, *chosen], dim=1)")),
    Mutant("drawn", ("logits[:, -1].argmax(dim=-1, keepdim=True)", "torch.multinomial(logits[:, -1].softmax(-1), 1)"),
        "tokens are drawn by chance: take the likeliest"),
    Mutant("least", (".argmax(dim=-1", ".argmin(dim=-1"), "these are the least likely tokens: take the largest logit"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("unshifted", ("torch.cat([torch.zeros_like(text[:1]), text[:-1]])", "text.clone()"), "the logits at a token "
        "predict the one *after* it: move the inputs one place to the right"),
    Mutant("rolled", ("torch.zeros_like(text[:1])", "text[-1:]"), "the text's last token stands in front of it "
        "(`roll`): the 0 belongs there"),
    Mutant("alone", each_alone, "each copy is asked without those before it, so that all are the same"),
    Mutant("sum", (".mean(dim=1)", ".sum(dim=1)"), "these are sums over the tokens, not means"),
    Mutant("no-log", ("torch.log_softmax(", "torch.softmax("), "these are means of probabilities: take "
        "log-probabilities, whose sum belongs to the product"),
    Mutant("nonfinite", ("torch.log_softmax(model(inputs[None])[0], dim=-1)",
        "torch.softmax(model(inputs[None])[0], dim=-1).log()")),
    Mutant("clamped", ("torch.log_softmax(model(inputs[None])[0], dim=-1)",
        "torch.softmax(model(inputs[None])[0], dim=-1).clamp(min=1e-10).log()"), "no log-probability falls below that "
        "of a small constant: take `log_softmax`, which needs none"),
    Mutant("sign", ("return log_likely", "return -log_likely"), "the sign is turned: log-probabilities are below zero"),
    Mutant("strided", ("log_likely.unflatten(0, (n, -1)).mean(dim=1)", "log_likely.unflatten(0, (-1, n)).mean(dim=0)"),
        "the means run over every n-th token: those of a copy stand side by side"),
    Mutant("interleaved", ("sentence.repeat(n)", "sentence.repeat_interleave(n)"), "each *token* is repeated, not the "
        "sentence: `repeat`, not `repeat_interleave`"),
    Mutant("cumulative", mean_of_all_so_far, "this is the mean over all copies so far, not of each copy"),
    Mutant("over-places", ("dim=-1)  # (n * L, V)", "dim=0)  # (n * L, V)"), "the softmax runs over the places, not "
        "over the vocabulary"),
    Mutant("raw", ("torch.log_softmax(model(inputs[None])[0], dim=-1)", "model(inputs[None])[0]"),
        "these are means of logits: they are no log-probabilities yet"),
    Mutant("exp", ("return log_likely.unflatten(0, (n, -1)).mean(dim=1)",
        "return log_likely.unflatten(0, (n, -1)).mean(dim=1).exp()"), "these are exponentials of the means: the mean "
        "log-probabilities themselves are asked for"),
    Mutant("perplexity", ("return log_likely.unflatten(0, (n, -1)).mean(dim=1)",
        "return (-log_likely.unflatten(0, (n, -1)).mean(dim=1)).exp()"),
        "these are perplexities: the mean log-probabilities themselves are asked for"),
    Mutant("likeliest", ("log_probs.gather(1, text[:, None])[:, 0]", "log_probs.amax(1)"), "these are the "
        "log-probabilities of the *likeliest* tokens: look up those of the sentence"),
    Mutant("inputs-asked", ("gather(1, text[:, None])", "gather(1, inputs[:, None])"), "this is how probable each "
        "token thinks *itself* to come next: the inputs are looked up where the text belongs, one place on"),
    Mutant("log-of-mean", ("log_likely.unflatten(0, (n, -1)).mean(dim=1)",
        "log_likely.exp().unflatten(0, (n, -1)).mean(dim=1).log()"),
        "this is the logarithm of the mean probability: take logarithms first, and then the mean"),
    Mutant("last-token", ("(n, -1)).mean(dim=1)", "(n, -1))[:, -1]"), "this is the last token of each copy alone: take "
        "the mean over all L"),
    Mutant("turned", ("(n, -1)).mean(dim=1)", "(n, -1)).mean(dim=1).flip(0)"), "the copies come in the wrong order: "
        "the first copy is the first number"),
    Mutant("start-each", the_start_before_each, "a 0 stands before each copy: only the text begins with one"),
    Mutant("no-start", the_first_left_out, "the first token of the first copy is left out: the 0 before it predicts "
        "it"),
    Mutant("one-more", without_the_start, "there is a copy too much before each: the first comes right after the token "
        "0"),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-16.2",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-16.2a",
            prompt="Write `generate(model, prompt, num_tokens)` without the faults.",
            hints=[
                "The first written token tells of the first fault: which of the P rows of logits says what follows "
                "the prompt?",
                "Print the length of the cache and the position at each step. Which numbers should they be?",
                "Take the last row of the logits, keep the cache that the model returns, and let the token number t "
                "stand at position P + t.",
            ],
            answer=generate,
            verify=verify,
            alternatives=[without_a_cache, token_by_token],
            mutants=MUTANTS_A,
            advice={
                "values": "Which column is the first that differs from the slow way, without a cache? The first: the "
                "logits after the prompt. The second: the position of the first written token. A later one: "
                "what the cache holds then, or the position.",
                "raised": "If an index is out of bounds: token t stands at position P + t, and behind the last one "
                "the model is not asked. If axes are missing: the model takes (B, n); keep the axis (`keepdim=True`), "
                "and mind that `squeeze()` without an axis takes a batch of one away.",
            },
            explanation=r"""
With the grown cache thrown away the model forgets what it wrote, all but the last token: with a position that stands
still it cannot tell how far it has got; with both, whenever a token comes again, what follows comes again as well. The
faults run without an error, and the texts look like a bad model's. The test that finds them compares with the slow way,
without a cache, and it takes a line: that is how the cache of this package is tested.
""",
        ),
        Code(
            key="own-16.2b",
            prompt="The code is mended, and the text still goes in circles. Now ask the model: how probable is a "
            "sentence once it has been said, once it has been said twice, and so on? Write "
            "`copies(model, sentence, n)`.",
            hints=[
                "One pass over the start and all n copies is enough: a causal model predicts every place from "
                "those before it.",
                "What predicts the first token of the text? The logits at the token 0. So the inputs are the text, "
                "moved one place to the right, with 0 in front.",
                "`log_softmax`, `gather` the text's own tokens, `view(n, L)`, mean over L.",
            ],
            answer=copies,
            verify=verify_copies,
            alternatives=[with_cross_entropy, copy_by_copy],
            mutants=MUTANTS_B,
            advice={
                "nonfinite": "A probability may round to 0, whose logarithm is minus infinity: `log_softmax` does not.",
                "shape": "(n,), also where n is 1: no `squeeze`.",
                "values": "Take n = 1 first: L numbers, the log-probability of each token of the sentence after all "
                "before it, the 0 included; then their mean. With n = 2 nothing of the first copy may change.",
            },
            explanation="""
Try it with the model of chapter 15 and with sentences of your own, nonsense among them. Look where the curve starts,
how fast it rises, and whether it comes down again.
""",
        ),
        Choice(
            key="own-16.2c",
            prompt="Somebody measures such a curve: the first copy has a mean log-probability of -4, the second -1.5, "
            "the tenth -0.02. The texts were written greedily. What follows?",
            hints=[
                "What is the probability of a token in the tenth copy, and what does greedy search do with it?",
                "Was a cache used in this measurement?",
            ],
            options=[
                Option(
                    "The cache has still a fault: a right model is no surer of what it said.",
                    "The curve is measured in one pass, without a cache. It tells of the model.",
                ),
                Option(
                    "A wider beam finds the way out of the circle, since it finds likelier texts.",
                    "After some copies the likeliest text *is* one copy more: a better search finds it all the better.",
                ),
                Option(
                    "Each copy makes the next one likelier, so that greedy search stays in it.",
                    "In the tenth copy a token has a probability of about 0.98, and greedy search asks only which one "
                    "is largest. Drawing leaves the circle now and then, and a penalty on repetition works against it "
                    "directly. Holtzman et al. 2020 and Xu et al. 2022 find such curves for large language models.",
                    right=True,
                ),
                Option(
                    "The vocabulary is too small for the text, so that words must come again.",
                    "Words come again in every text. It is whole sentences that come again here, and the curve would "
                    "be as steep with any vocabulary in which the model copies.",
                ),
            ],
        ),
    ],
)
