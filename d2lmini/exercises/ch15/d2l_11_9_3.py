r"""A classifier on a language model

A language model was trained on much text, and now it shall sort texts: which are praise, which complaint? One takes off
its last layer, which scores tokens, and puts a *head* in its place, a linear layer from h features to C classes. But
the model has features for every token, (B, T, h), and the head wants (B, h). Which to take?

For a model that is **causal**, as GPT is; an encoder is another matter (`own-13.3`).
"""

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def last_features(features, real):
    """Pick what a causal model makes of the last token of each text.

    Args:
        features: (B, T, h), finite numbers, at padding, too.
        real: (B, T), booleans; True at tokens, False at padding. Each row has at least one token, and its tokens stand
            side by side.

    Returns:
        (B, h).
    """
    ### BEGIN SOLUTION
    places = torch.arange(features.shape[1], device=features.device)  # (T,)
    last = torch.where(real, places, -1).amax(dim=1)  # (B,), the greatest place of a token
    rows = torch.arange(len(features), device=features.device)  # (B,)
    return features[rows, last]
    ### END SOLUTION


def from_the_end(features, real):
    padded = real.flip(1).int().argmax(1)  # the first maximum
    last = features.shape[1] - 1 - padded
    return features.gather(1, last[:, None, None].expand(-1, 1, features.shape[2])).squeeze(1)


def where_no_token_follows(features, real):
    follows = torch.cat([real[:, 1:], torch.zeros_like(real[:, :1])], 1)
    return torch.einsum("bth,bt->bh", features, (real & ~follows).to(features.dtype))


def row_by_row(features, real):
    return torch.stack([row[keep][-1] for row, keep in zip(features, real, strict=True)])


# mistakes


def the_last_place(features, real):
    return features[:, -1]


def the_first_place(features, real):
    return features[:, 0]


def the_first_token(features, real):
    return features[torch.arange(len(features)), real.int().argmax(1)]


def by_their_number(features, real):
    return features[torch.arange(len(features)), real.sum(1) - 1]


def before_the_padding(features, real):
    """Right where all padding is on the right, or all on the left: then -1 is the last place."""
    return features[torch.arange(len(features)), real.int().argmin(1) - 1]


def one_for_all_rows(features, real):
    return features[:, real.any(0).nonzero().max()]


def mean_of_tokens(features, real):
    return (features * real[..., None]).sum(1) / real.sum(1, keepdim=True)


def mean_of_all(features, real):
    return features.mean(1)


def at_the_first_padding(features, real):
    return features[torch.arange(len(features)), real.int().argmin(1)]


def from_the_wrong_side(features, real):
    """Of `from_the_end` without the flip."""
    return features[torch.arange(len(features)), features.shape[1] - 1 - real.int().argmax(1)]


def emptied_last_place(features, real):
    return (features * real[..., None])[:, -1]


def largest(features, real):
    return features.masked_fill(~real[..., None], -torch.inf).amax(1)


def sum_of_tokens(features, real):
    return (features * real[..., None]).sum(1)


def one_before(features, real):
    last = torch.where(real, torch.arange(features.shape[1]), -1).amax(1)
    return features[torch.arange(len(features)), (last - 1).clamp(min=0)]


def one_after(features, real):
    last = torch.where(real, torch.arange(features.shape[1]), -1).amax(1)
    return features[torch.arange(len(features)), (last + 1).clamp(max=features.shape[1] - 1)]


def of_the_first_text(features, real):
    last = torch.where(real, torch.arange(features.shape[1]), -1).amax(1)
    return features[0, last]


def as_a_sequence(features, real):
    return row_by_row(features, real)[:, None]


def all_pairs(features, real):
    return features[:, torch.where(real, torch.arange(features.shape[1]), -1).amax(1)]


def emptied(features, real):
    features.data[~real] = 0
    return row_by_row(features, real)


def _masks(t, B, T):
    """Masks (B, T) of texts of different lengths, by where their padding stands."""
    # on both sides: the second text begins at place 0, and none goes on to the last place
    lengths = [*t.random.sample(range(2, T - 2), B - 1), 1]
    starts = [t.random.randrange(1, T - length) for length in lengths]
    starts[1] = 0
    layouts = {"on both sides": (starts, lengths)}
    lengths = [T, *lengths[1:]]  # a text without any padding among those with it
    layouts["on the right"] = [0] * B, lengths
    layouts["on the left"] = [T - length for length in lengths], lengths
    places = torch.arange(T)
    for name, (starts, lengths) in layouts.items():
        starts, lengths = torch.tensor(starts)[:, None], torch.tensor(lengths)[:, None]
        yield name, (places >= starts) & (places < starts + lengths)


def verify(t, answer):
    B, h = t.sizes(2, 2, 6)
    T = t.random.randrange(9, 13)
    masks = dict(_masks(t, B, T))
    for name, real in {**masks, "on both sides, in a batch of one": masks["on both sides"][:1]}.items():
        features, weights = t.randn(len(real), T, h), t.randn(len(real), h)
        want, slope = [], torch.zeros(len(real), T, h, dtype=torch.float64)
        for b in range(len(real)):
            last = max(i for i in range(T) if real[b, i])
            want.append(features[b, last].cpu().double())
            slope[b, last] = weights[b].cpu().double()
        got = t.call(answer, features.requires_grad_(), real.to(t.device))
        t.same(got, torch.stack(want), f"the features with padding {name}")
        t.same(t.gradient(got, 0, weights=weights), slope, f"the gradient with padding {name}")

    # a real model: the same texts, padded on the right, on the left, and alone
    B, T, V = t.sizes(3, 4, 9)
    torch.manual_seed(t.seed)
    config = d2l.GPTConfig(V, T + 3, 12, 3, 2, dropout=0.0)
    model, head = d2l.GPT(config).eval(), torch.nn.Linear(12, 5)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    texts = [torch.randint(V, (length,)) for length in [T + 3, *t.random.choices(range(1, T + 3), k=B - 1)]]
    lengths = torch.tensor([len(text) for text in texts])
    longest = int(lengths.max())
    wide = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)  # (B, T)
    turned = torch.stack([row.roll(longest - len(text)) for row, text in zip(wide, texts, strict=True)])
    places = torch.arange(longest)
    with torch.no_grad():
        alone = torch.cat([head(model.features(text[None])[:, -1]) for text in texts]).double()
        runs = {
            "right": (model.features(wide), places < lengths[:, None]),
            "left": (model.features(turned, longest - lengths), places >= longest - lengths[:, None]),
        }
        for side, (features, real) in runs.items():
            got = t.call(answer, features.to(t.device), real.to(t.device))
            want = torch.stack([row[keep.nonzero().max()] for row, keep in zip(features.double(), real, strict=True)])
            t.same(got, want, f"the features of a model, padded on the {side}")
            t.that(
                torch.allclose(head(got.cpu()).double(), alone, atol=1e-3),
                "logits",
                f"the classifier's scores of a text that is padded on the {side} are not those of the text alone",
            )


MUTANTS = [
    Mutant("last-place", the_last_place, "these are the features at the last place, which is padding where a text is "
        "padded on the right; `real` is True at tokens"),
    Mutant("first-place", the_first_place, "these are the features at place 0"),
    Mutant("first-token", the_first_token, "these are the features of the first token, which has seen nothing of the "
        "text but itself"),
    Mutant("counted-from-the-left", by_their_number, "the number of tokens less one is the place of the last one only "
        "where no padding stands before it"),
    Mutant("before-the-padding", before_the_padding, "this is the place before the first padding, counted from the end "
        "where that is place 0: it fails where padding is on both sides"),
    Mutant("first-padding", at_the_first_padding, "this is the first place of padding, or place 0 where there is none: "
        "it comes after the last token, or before the first one"),
    Mutant("not-turned-around", from_the_wrong_side, "how far the first token is from the left is taken for how far "
        "the last one is from the right: turn `real` around before `argmax`"),
    Mutant("emptied-last-place", emptied_last_place, "rows that end with padding give zeros: to multiply by `real` "
        "empties padding, but moves no token to the last place"),
    Mutant("one-for-all", one_for_all_rows, "one place is taken for all rows: each text ends at a place of its own"),
    Mutant("mean", mean_of_tokens, "this is the mean over the tokens, of which most have seen a part of the text only"),
    Mutant("mean-of-all", mean_of_all, "this is the mean over all places, padding among them"),
    Mutant("largest", largest, "this is the largest of each feature"),
    Mutant("sum", sum_of_tokens, "this is the sum over the tokens"),
    Mutant("one-before", one_before, "this is the token before the last one: off by one"),
    Mutant("one-after", one_after, "this is the place after the last token: off by one"),
    Mutant("first-text", of_the_first_text, "all rows are taken from the first text"),
    Mutant("shape", all_pairs),
    Mutant("shape", ("features[rows, last]", "features[rows, last].squeeze()")),  # wrong for a batch of one
    Mutant("shape", as_a_sequence),
    Mutant("mutates", emptied),
]  # fmt: skip


EXERCISE = Exercise(
    key="d2l-11.9.3",
    doc=__doc__,
    source="D2L 11.9, exercise 3",
    parts=[
        Choice(
            key="d2l-11.9.3a",
            prompt="Two reviews of 5 tokens differ in the last one alone, *good* and *bad*. A causal model reads them "
            "in one batch, in which texts are padded on the right to 8 places. At how many of the 8 places do the "
            "features of the two differ, and where does the head go?",
            hints=[
                "On which tokens can the features at a place depend?",
                "A place of padding is a place like any other: what does its query attend to?",
            ],
            options=[
                Option(
                    "At all 8, as attention joins all of them: it goes on the first token.",
                    "That is so for an encoder, and BERT's class token may stand first. The first token of a causal "
                    "model sees itself alone: its features, and those of the next three, are the same for both "
                    "reviews.",
                ),
                Option(
                    "At 4, from the last token on: it goes on the last token of a text.",
                    "The last token and the padding after it have seen the whole text, the tokens before it have not. "
                    "And the last token is where the model was trained to gather what matters for what comes next. "
                    "GPT-1 puts a token of its own there, to be trained with the head.",
                    right=True,
                ),
                Option(
                    "At 4, from the last token on: it goes on the last place of a batch.",
                    "The number is right. But what the model makes of padding after a text depends on how much of it "
                    "there is, and so on the other texts of the batch: the same review would be judged in another way "
                    "beside a longer one.",
                ),
                Option(
                    "At 1, that of the last token: it goes on the mean of all 8 places.",
                    "The padding attends to what is before it, and differs, too. With padding in it the mean depends "
                    "on the rest of the batch; over the real tokens alone it is a sound choice for an encoder, but "
                    "here most of its terms have seen a beginning of the text only.",
                ),
            ],
        ),
        Code(
            key="d2l-11.9.3b",
            prompt="""
Write `last_features(features, real)`, which picks the features of the last token of each text. `real` is True at tokens
and False at padding, which may stand on the right of a text, on its left or on both sides. Then the same head on top
gives the same scores, however a text is padded: the check compares with a `d2l.GPT` that reads each text alone. (On the
left the model must be told: padding there counts neither as keys nor as positions, `model.features(tokens, padding)`.
On the right causal attention hides it from all real tokens.)
""",
            hints=[
                "The number of the tokens of a row tells where the last one stands only where no padding is before it.",
                "Give each place its number, and every padding place something smaller than any number of a place. "
                "What is the greatest of a row?",
                "`features[torch.arange(B), last]` takes from each row another place: (B, h).",
            ],
            answer=last_features,
            verify=verify,
            alternatives=[from_the_end, where_no_token_follows, row_by_row],
            advice={
                "mutates": "Who passes the features may need them again.",
                "values": "Take a row b that is wrong and print `real[b]`. At which place stands its "
                "last True, and which place have you taken?",
            },
            min_checks=10,
            mutants=MUTANTS,
            explanation=r"""
A causal model's features at place t depend on the tokens 0 to t. So the last token is the only one that has seen the
whole text, and padding on its right can change nothing before it: no mask is needed there. Padding on the *left* stands
before all tokens. It must be hidden as keys and left out when positions are counted; then features are those of the
text alone, and the last place is the last token of every row, which is why one pads on the left to generate.

An index from a count (`real.sum(1) - 1`) is the usual code and the usual fault: it is right until somebody pads on the
other side. Nothing fails then, the classifier is just worse. Hence the test: one text, padded in two ways, must have
the same scores.
""",
        ),
    ],
)
