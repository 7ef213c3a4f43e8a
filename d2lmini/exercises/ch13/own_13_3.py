r"""A classifier on an encoder

D2L asks in exercise 3 of section 11.9 where a classifier's head goes on a language model. `d2l-11.9.3` in chapter 15 is
about causal models; here is the other half: BERT, or another encoder, has features for every token, (B, T, h), and the
head wants one vector a text, (B, h).

In a batch the texts are of different lengths, so there is padding: mostly on the right, and on the left where the texts
are to be continued. What the classifier says of a text must not depend on it.
"""

import copy

import torch
from torch.nn import functional as F

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def classify(encoder, head, tokens, pad, pooling):
    """Scores of texts from an encoder and a head.

    Args:
        encoder: a `d2l.BERT`; ``encoder(tokens, mask=mask)`` gives (B, T, h). The mask is boolean, (B, 1, T), True at
            keys that may be attended to, and positions are counted from the first of them.
        head: takes (B, h) to scores (B, C).
        tokens: integers (B, T); the tokens of a text stand side by side, with padding before them, after them or both.
            The first token of each text is its class token.
        pad: the id of padding.
        pooling: what stands for a text: "class", the features of its class token, or "mean", the mean over the features
            of all its tokens.

    Returns:
        (B, C).
    """
    ### BEGIN SOLUTION
    real = tokens != pad  # (B, T)
    features = encoder(tokens, mask=real[:, None])  # (B, T, h)
    if pooling == "class":
        first = real.int().argmax(dim=1)  # (B,), the first place with the largest value
        pooled = features[torch.arange(len(tokens), device=tokens.device), first]
    else:
        total = (features * real[..., None]).sum(dim=1)
        pooled = total / real.sum(dim=1, keepdim=True)
    return head(pooled)
    ### END SOLUTION


def one_by_one(encoder, head, tokens, pad, pooling):
    rows = []
    for row in tokens:
        features = encoder(row[row != pad][None])[0]
        rows.append(features[0] if pooling == "class" else features.mean(0))
    return head(torch.stack(rows))


def by_weights(encoder, head, tokens, pad, pooling):
    real = tokens.ne(pad)
    features = encoder(tokens, mask=real.unsqueeze(1))
    weights = (real & (real.cumsum(1) == 1)) if pooling == "class" else real
    weights = weights.to(features) / weights.sum(1, keepdim=True)
    return head(torch.einsum("bt,bth->bh", weights, features))


def with_the_package(encoder, head, tokens, pad, pooling):
    mask = (tokens != pad)[:, None]
    pool = {"class": d2l.class_token, "mean": d2l.mean_pooling}[pooling]
    return head(pool(encoder(tokens, mask=mask), mask=mask))


# mistakes


def counted_as_lengths(encoder, head, tokens, pad, pooling):
    lengths = (tokens != pad).sum(1)
    pool = {"class": d2l.class_token, "mean": d2l.mean_pooling}[pooling]
    return head(pool(encoder(tokens, valid_lens=lengths), lengths))


def last_token(encoder, head, tokens, pad, pooling):
    real = tokens != pad
    features = encoder(tokens, mask=real[:, None])
    if pooling == "mean":
        return head((features * real[..., None]).sum(1) / real.sum(1, keepdim=True))
    last = torch.where(real, torch.arange(tokens.shape[1]), -1).amax(1)
    return head(features[torch.arange(len(tokens)), last])


def emptied_column_0(encoder, head, tokens, pad, pooling):
    real = tokens != pad
    features = encoder(tokens, mask=real[:, None]) * real[..., None]
    return head(features[:, 0] if pooling == "class" else features.sum(1) / real.sum(1, keepdim=True))


def without_class_token(encoder, head, tokens, pad, pooling):
    real = tokens != pad
    inner = real & (real.cumsum(1) > 1) if pooling == "mean" else real
    features = encoder(tokens, mask=real[:, None])
    return head(d2l.class_token(features, mask=real[:, None]) if pooling == "class" else _mean(features, inner))


def _mean(features, counted):
    return (features * counted[..., None]).sum(1) / counted.sum(1, keepdim=True)


def padding_emptied_and_counted(encoder, head, tokens, pad, pooling):
    real = tokens != pad
    features = encoder(tokens, mask=real[:, None]) * real[..., None]
    return head(d2l.class_token(features, mask=real[:, None]) if pooling == "class" else features.mean(1))


def head_before_mean(encoder, head, tokens, pad, pooling):
    """The same with a linear head; with a network it is not."""
    real = tokens != pad
    features = encoder(tokens, mask=real[:, None])
    return head(d2l.class_token(features, mask=real[:, None])) if pooling == "class" else _mean(head(features), real)


def causal(encoder, head, tokens, pad, pooling):
    mask = (tokens != pad)[:, None]
    pool = {"class": d2l.class_token, "mean": d2l.mean_pooling}[pooling]
    return head(pool(encoder(tokens, mask=mask, causal=True), mask=mask))


def largest(encoder, head, tokens, pad, pooling):
    real = tokens != pad
    features = encoder(tokens, mask=real[:, None])
    if pooling == "class":
        return head(d2l.class_token(features, mask=real[:, None]))
    return head(features.masked_fill(~real[..., None], -torch.inf).amax(1))


def mask_turned(encoder, head, tokens, pad, pooling):
    """As in torch.nn.MultiheadAttention, where True hides."""
    hidden = tokens == pad
    features = encoder(tokens, mask=hidden[:, None])
    return head(d2l.class_token(features, mask=~hidden[:, None]) if pooling == "class" else _mean(features, ~hidden))


def sum_of_tokens(encoder, head, tokens, pad, pooling):
    real = tokens != pad
    features = encoder(tokens, mask=real[:, None])
    return head(
        d2l.class_token(features, mask=real[:, None]) if pooling == "class" else (features * real[..., None]).sum(1)
    )


V, H = 40, 12


class _Head(torch.nn.Module):
    """A head with a hidden layer, so that what is in front of it cannot come after it."""

    def __init__(self, num_classes):
        super().__init__()
        self.hidden, self.dense = torch.nn.Linear(H, 9), torch.nn.Linear(9, num_classes)

    def forward(self, X):
        return self.dense(F.gelu(self.hidden(X)))


def _model(t, longest, num_classes):
    torch.manual_seed(t.seed)
    config = d2l.BERTConfig(V, longest, H, 3, 2, dropout=0.0, use_pooler=False)
    encoder, head = d2l.BERT(config).eval(), _Head(num_classes)
    for parameter in [*encoder.parameters(), *head.parameters()]:
        if parameter.dim() == 2:  # norms stay as they are: with small factors all tokens would be alike
            torch.nn.init.normal_(parameter, std=0.5)
    return encoder, head


def _padded(texts, befores, length, pad, device):
    rows = [[pad] * n + text + [pad] * (length - n - len(text)) for text, n in zip(texts, befores, strict=True)]
    return torch.tensor(rows, device=device)


def verify(t, answer):
    B, C = t.sizes(2, 4, 8)
    longest = t.random.randrange(9, 12)
    encoder, head = _model(t, longest + 4, C)
    pad, cls, *words = t.random.sample(range(V), V)
    lengths = t.random.sample(range(2, longest), B - 1)
    lengths.insert(1, longest)
    texts = [[cls, *t.random.choices(words, k=n - 1)] for n in lengths]
    wide, wide_head = (copy.deepcopy(x).double() for x in (encoder, head))
    want = {}
    with torch.no_grad():
        for pooling in ("class", "mean"):
            features = [wide(torch.tensor([text]))[0] for text in texts]
            rows = [x[0] if pooling == "class" else x.mean(0) for x in features]
            want[pooling] = wide_head(torch.stack(rows))
    encoder, head = encoder.to(t.device), head.to(t.device)
    sides = {
        "on the right": ([0] * B, longest),
        "on the left": ([longest - n for n in lengths], longest),
        "on both sides": ([1 + b % 2 for b in range(B)], longest + 4),
    }
    for pooling, said in (("class", "from the class token"), ("mean", "from the mean")):
        for side, (befores, length) in sides.items():
            tokens = _padded(texts, befores, length, pad, t.device)
            got = t.call(answer, encoder, head, tokens, pad, pooling)
            t.same(
                got,
                want[pooling],
                f"the result {said}, with padding {side}",
                dtype=torch.float32,
                tolerance=(1e-4, 1e-4),
            )


MUTANTS = [
    Mutant("no-mask", ("encoder(tokens, mask=real[:, None])", "encoder(tokens)"), "the encoder does not hide "
        "the padding, so that every token attends to it: is the mask given, and made with `pad`?"),
    Mutant("mask-turned", mask_turned, "the mask of the encoder is turned around: True is where one may attend"),
    Mutant("lengths", counted_as_lengths, "lengths say where tokens are only if all padding is on the right: the mask "
        "can tell more"),
    Mutant("column-0", ("len(tokens), device=tokens.device), first]", "len(tokens), device=tokens.device), 0]"),
        "these are the scores of column 0, which is padding where that is on the left; so may be the id in the "
        "corner of the batch"),
    Mutant("emptied-column-0", emptied_column_0, "rows that begin with padding give the scores of zeros: to empty "
        "padding moves no class token to column 0"),
    Mutant("last-token", last_token, "these are the scores of the last token; the class token stands first"),
    Mutant("always-class", ('if pooling == "class":', "if True:"), "these are the scores from the class token; asked "
        "for is the mean"),
    Mutant("always-mean", ('if pooling == "class":', "if False:"), "these are the scores from the mean; asked for is "
        "the class token"),
    Mutant("mean-of-all", ("total / real.sum(dim=1, keepdim=True)", "features.mean(dim=1)"), "the mean runs over all "
        "places: what the encoder made of padding is in it"),
    Mutant("divided-by-T", ("real.sum(dim=1, keepdim=True)", "tokens.shape[1]"), "the sum is right, but it is divided "
        "by one length for all, as T: divide by how many tokens each text has"),
    Mutant("padding-in-sum", ("(features * real[..., None]).sum(dim=1)", "features.sum(dim=1)"), "the sum has padding "
        "in it, though its number is taken without"),
    Mutant("sum", sum_of_tokens, "this is the sum over the tokens, which grows with the length of the text"),
    Mutant("class-left-out", without_class_token, "the class token is left out of the mean: it is one of the text's "
        "tokens here"),
    Mutant("head-first", head_before_mean, "the head is applied to each token, and its scores are averaged: average "
        "the features, then apply it once"),
    Mutant("causal", causal, "later tokens are hidden: an encoder looks both ways"),
    Mutant("largest", largest, "this is the largest of each feature, not the mean"),
    Mutant("column-0", ("first = real.int().argmax(dim=1)", "first = (tokens == tokens[0, 0]).int().argmax(dim=1)")),
    Mutant("first-padding", ("first = real.int().argmax(dim=1)", "first = (~real).int().argmax(dim=1)"), "these are "
        "the scores of the first padding: the class token stands at the first place that is none"),
    Mutant("batch-mean", ("real.sum(dim=1, keepdim=True)", "(real.sum() / len(tokens))"), "the sum is divided by the "
        "mean length of the batch: divide by how many tokens each text has"),
    Mutant("one-less", ("total / real.sum(dim=1, keepdim=True)", "total / (real.sum(dim=1, keepdim=True) + 1)"), "the "
        "sum is divided by one too many: every text has a token at least, so nothing need be added"),
    Mutant("shape", ("return head(pooled)", "return pooled")),  # features
    Mutant("shape", ("return head(pooled)", "return head(features)")),  # every token
    Mutant("raised", ("mask=real[:, None]", "mask=real")),  # one mask for two axes
]  # fmt: skip


EXERCISE = Exercise(
    key="own-13.3",
    doc=__doc__,
    source="own",
    parts=[
        Choice(
            key="own-13.3a",
            prompt="Where does the head go on an encoder?",
            hints=[
                "On how many tokens of the text can the features at a place depend, and on what else?",
                "Two texts of a batch have 5 and 50 tokens. What stands at place 49, and at place 0 if padding is on "
                "the left?",
            ],
            options=[
                Option(
                    "On the last token of a text, which alone has seen the whole of it.",
                    "That is so in a causal model. In an encoder every token has seen the whole text, the first one as "
                    "well as the last.",
                ),
                Option(
                    "On the mean over all places, for padding is hidden in attention.",
                    "Hidden are its keys. It has queries of its own, and so it gets features. In the mean they pull "
                    "each text towards them, a short one most.",
                ),
                Option(
                    "On column 0 of the batch, in which the texts' class tokens stand.",
                    "Not if padding is on the left. Where a library pads there without being told, no error is raised, "
                    "and the scores are those of padding.",
                ),
                Option(
                    "On a text's class token, or on the mean over that text's tokens.",
                    "Both depend on the whole text and on nothing else, provided that padding is hidden in attention "
                    "*and* left out when the features are taken. The class token is what BERT's second task has "
                    "trained. Yet with the encoder as it is, the mean is better for comparing texts (Reimers and "
                    "Gurevych 2019). Fine-tuning trains either.",
                    right=True,
                ),
                Option(
                    "On a text's class token alone: others have seen only a part of it.",
                    "That would be a causal model's mean. Here each term has seen all of the text.",
                ),
            ],
        ),
        Code(
            key="own-13.3b",
            prompt="Write `classify(encoder, head, tokens, pad, pooling)`. The check compares with each text read "
            "alone, without any padding.",
            hints=[
                "There are two places where padding can get in: the encoder's attention, and what you take from the "
                "features.",
                "`tokens != pad` is (B, T); the encoder wants a mask (B, 1, T), the same keys for all queries.",
                "The class token stands at the first real place of its row: `real.int().argmax(dim=1)`. For the mean: "
                "multiply by the mask, sum, and divide by how many tokens are real.",
            ],
            answer=classify,
            verify=verify,
            alternatives=[one_by_one, by_weights, with_the_package],
            min_checks=12,
            advice={
                "values": "From check to check padding and pooling change, the texts do not: look at what depends on "
                "the column in which a token stands, and on how many columns there are. Then compare with one text "
                "alone: the encoder, the features that are taken, the head, and nothing else."
            },
            mutants=MUTANTS,
            explanation="""
A test for any classifier: the scores of a text alone, and in a batch with longer ones, padded on either side. They
must be equal up to rounding. It finds both a missing mask and a wrong place, and it takes three lines.

Features at padding are numbers like any others, so no error tells of either mistake; and the mask alone mends half of
it. `d2l.TextHead` has both ways, and a third: a class token that goes through one more layer, which BERT's second task
has trained.
""",
        ),
    ],
)
