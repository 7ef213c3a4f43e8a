r"""Mask like BERT

BERT learns from text with holes. Of the tokens that are not special about 15 % are *chosen*: these the model has to
guess. What it sees in their place is drawn for each of them:

- with probability 0.8 the mask token,
- with probability 0.1 a token by chance, each of the vocabulary that is not special being as likely,
- with probability 0.1 the token itself.

Draw afresh in each call, so that a text has other holes each time that it is read.
"""

import torch

import d2lmini as d2l
from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def mask(tokens, special, vocab_size, mask_id):
    """Choose what is to be guessed, and hide most of it.

    Args:
        tokens: integers (B, T).
        special: integers (n,), the ids of tokens that are never chosen and never put in by chance: class token,
            separator, padding, and ``mask_id``.
        vocab_size: V; ids are 0 to V - 1.
        mask_id: id of the mask token.

    Returns:
        inputs: (B, T), what the model sees.
        labels: (B, T), the token that stood there where it was chosen, -100 elsewhere.
    """
    ### BEGIN SOLUTION
    chosen = (torch.rand(tokens.shape, device=tokens.device) < 0.15) & ~torch.isin(tokens, special)
    labels = torch.where(chosen, tokens, -100)
    ordinary = torch.ones(vocab_size, dtype=torch.bool, device=tokens.device)
    ordinary[special] = False
    ordinary = ordinary.nonzero()[:, 0]  # ids that may be put in
    drawn = ordinary[torch.randint(len(ordinary), tokens.shape, device=tokens.device)]
    fate = torch.rand(tokens.shape, device=tokens.device)
    inputs = torch.where(chosen & (fate < 0.8), mask_id, tokens)
    inputs = torch.where(chosen & (fate >= 0.8) & (fate < 0.9), drawn, inputs)
    return inputs, labels
    ### END SOLUTION


def an_exact_number(tokens, special, vocab_size, mask_id):
    generator = torch.Generator().manual_seed(int(torch.randint(2**31, ())))
    masked = d2l.mask_tokens(
        tokens, vocab_size=vocab_size, mask_id=mask_id, special_ids=special.tolist(), generator=generator
    )
    return masked.inputs, masked.labels


def token_by_token(tokens, special, vocab_size, mask_id):
    kept = set(special.tolist())
    ordinary = [i for i in range(vocab_size) if i not in kept]
    inputs, labels = tokens.tolist(), []
    for row in inputs:
        draws = torch.rand(3, len(row)).tolist()
        labels.append([-100] * len(row))
        for t, token in enumerate(row):
            if token in kept or draws[0][t] > 0.15:
                continue
            labels[-1][t] = token
            if draws[1][t] > 0.2:
                row[t] = mask_id
            elif draws[1][t] > 0.1:
                row[t] = ordinary[int(draws[2][t] * len(ordinary))]
    return torch.tensor(inputs, device=tokens.device), torch.tensor(labels, device=tokens.device)


def a_part_of_each_half(tokens, special, vocab_size, mask_id):
    """In a row of its own for each fate: all places are shuffled over the batch, and the first are taken."""
    flat = tokens.flatten()
    places = (~torch.isin(flat, special)).nonzero()[:, 0]
    places = places[torch.randperm(len(places), device=tokens.device)]
    chosen = places[: round(0.15 * len(places))]
    hidden, changed = chosen[: round(0.8 * len(chosen))], chosen[round(0.8 * len(chosen)) : round(0.9 * len(chosen))]
    labels = torch.full_like(flat, -100)
    labels[chosen] = flat[chosen]
    inputs = flat.clone()
    inputs[hidden] = mask_id
    left = torch.tensor([i for i in range(vocab_size) if i not in special.tolist()], device=tokens.device)
    inputs[changed] = left[torch.randint(len(left), changed.shape, device=tokens.device)]
    return inputs.view_as(tokens), labels.view_as(tokens)


# mistakes


def always_the_same(tokens, special, vocab_size, mask_id):
    torch.manual_seed(0)
    return mask(tokens, special, vocab_size, mask_id)


def the_same_places(tokens, special, vocab_size, mask_id):
    """The places from a seed; what stands there is drawn afresh."""
    chosen = torch.rand(tokens.shape, generator=torch.Generator().manual_seed(5)) < 0.15
    return _fill(chosen & ~torch.isin(tokens, special), torch.rand(tokens.shape), tokens, special, vocab_size, mask_id)


def the_same_fates(tokens, special, vocab_size, mask_id):
    chosen = (torch.rand(tokens.shape) < 0.15) & ~torch.isin(tokens, special)
    fate = torch.rand(tokens.shape, generator=torch.Generator().manual_seed(5))
    return _fill(chosen, fate, tokens, special, vocab_size, mask_id)


def in_runs(tokens, special, vocab_size, mask_id):
    """Three tokens side by side at a time, as in SpanBERT; as many as should be."""
    begins = torch.rand(len(tokens), tokens.shape[1] + 2) < 1 - 0.85 ** (1 / 3)
    chosen = (begins[:, 2:] | begins[:, 1:-1] | begins[:, :-2]) & ~torch.isin(tokens, special)
    return _fill(chosen, torch.rand(tokens.shape), tokens, special, vocab_size, mask_id)


def at_a_distance(tokens, special, vocab_size, mask_id):
    """From a place by chance on every so many tokens."""
    steps = (torch.arange(tokens.shape[1]) + torch.randint(1000, (len(tokens), 1))) * 3 % 20
    chosen = (steps < 3) & ~torch.isin(tokens, special)
    return _fill(chosen, torch.rand(tokens.shape), tokens, special, vocab_size, mask_id)


def _fill(chosen, fate, tokens, special, vocab_size, mask_id):
    ordinary = torch.tensor([i for i in range(vocab_size) if i not in special.tolist()])
    drawn = ordinary[torch.randint(len(ordinary), tokens.shape)]
    inputs = torch.where(chosen & (fate < 0.8), mask_id, torch.where(chosen & (fate < 0.9), drawn, tokens))
    return inputs, torch.where(chosen, tokens, -100)


def one_fate_a_row(tokens, special, vocab_size, mask_id):
    inputs, labels = mask(tokens, special, vocab_size, mask_id)
    fate = torch.rand(len(tokens), 1)
    drawn = torch.where(labels >= 0, (tokens + 1) % vocab_size, tokens)
    drawn = torch.where(torch.isin(drawn, special), tokens, drawn)
    inputs = torch.where((labels >= 0) & (fate < 0.8), mask_id, tokens)
    return torch.where((fate >= 0.8) & (fate < 0.9), drawn, inputs), labels


def the_first_of_each_row(tokens, special, vocab_size, mask_id):
    ordinary = ~torch.isin(tokens, special)
    chosen = ordinary & (ordinary.cumsum(1) <= 0.15 * ordinary.sum(1, keepdim=True))
    fate = torch.rand(tokens.shape)
    return torch.where(chosen & (fate < 0.8), mask_id, tokens), torch.where(chosen, tokens, -100)


def one_draw_for_both(tokens, special, vocab_size, mask_id):
    """The number that has chosen a token also decides what becomes of it: it is below 0.15, and so below 0.8."""
    fate = torch.rand(tokens.shape)
    chosen = (fate < 0.15) & ~torch.isin(tokens, special)
    return torch.where(chosen & (fate < 0.8), mask_id, tokens), torch.where(chosen, tokens, -100)


def of_the_rest(tokens, special, vocab_size, mask_id):
    """A tenth of those that were not masked, in place of a tenth of all."""
    chosen = (torch.rand(tokens.shape) < 0.15) & ~torch.isin(tokens, special)
    hidden = chosen & (torch.rand(tokens.shape) < 0.8)
    changed = chosen & ~hidden & (torch.rand(tokens.shape) < 0.1)
    ordinary = torch.tensor([i for i in range(vocab_size) if i not in special.tolist()])
    drawn = ordinary[torch.randint(len(ordinary), tokens.shape)]
    return torch.where(changed, drawn, torch.where(hidden, mask_id, tokens)), torch.where(chosen, tokens, -100)


def every_row_alike(tokens, special, vocab_size, mask_id):
    chosen = (torch.rand(tokens.shape[1]) < 0.15) & ~torch.isin(tokens, special)
    ordinary = torch.tensor([i for i in range(vocab_size) if i not in special.tolist()])
    drawn = ordinary[torch.randint(len(ordinary), tokens.shape)]
    fate = torch.rand(tokens.shape)
    inputs = torch.where(chosen & (fate < 0.8), mask_id, tokens)
    return torch.where(chosen & (fate >= 0.9), drawn, inputs), torch.where(chosen, tokens, -100)


def from_the_batch(tokens, special, vocab_size, mask_id):
    inputs, labels = mask(tokens, special, vocab_size, mask_id)
    ordinary = tokens[~torch.isin(tokens, special)]
    drawn = ordinary[torch.randint(len(ordinary), tokens.shape)]
    return torch.where((labels >= 0) & (inputs != labels) & (inputs != mask_id), drawn, inputs), labels


B, T, V = 256, 400, 24  # about 98,000 tokens may be chosen, and 15,000 are


def _batch(t):
    """Tokens of which half are one and the same word, special ones inside, in some rows at the ends and as padding."""
    ids = t.random.sample(range(1, V - 1), V - 2)
    special, words = ids[:10], [*ids[10:], 0, V - 1]  # the first and the last id are words
    cls, sep, pad, mask_id, *_ = special  # and six that are not used: many, so that to draw them shows
    # numbers of its own: torch's are seeded as t.generator is, and an answer would draw what its tokens hang on
    generator = torch.Generator().manual_seed(t.random.randrange(2**31))
    tokens = torch.tensor(words)[torch.randint(len(words), (B, T), generator=generator)]
    tokens[torch.rand(B, T, generator=generator) < 0.5] = words[0]
    lengths = torch.randint(3 * T // 4, T + 1, (B, 1), generator=generator)
    lengths[B // 5 :] = 2 * T  # most rows are cut out of a longer text: words in the first and the last column
    places = torch.arange(T)
    tokens[torch.rand(B, T, generator=generator) < 0.01] = sep
    tokens = torch.where((places == 0) & (lengths <= T), cls, torch.where(places == lengths - 1, sep, tokens))
    tokens = torch.where(places >= lengths, pad, tokens)
    return tokens, torch.tensor(sorted(special)), mask_id


def _short(t):
    """A batch of two words, of which half is padding."""
    first, second, pad, mask_id = t.random.sample(range(6), 4)
    generator = torch.Generator().manual_seed(t.random.randrange(2**31))
    tokens = torch.where(torch.rand(B, T, generator=generator) < 0.5, first, second)
    lengths = torch.randint(T // 8, 7 * T // 8, (B, 1), generator=generator)
    special = torch.tensor(sorted({*range(6)} - {first, second}))
    return torch.where(torch.arange(T) < lengths, tokens, pad), special, mask_id


def _likely(counts, numbers, share):
    """Whether counts out of numbers are likely where each one of them has the probability ``share``.

    By Chernoff's bound a count is further away than is let pass here with a probability of at most 2 exp(-25), and an
    exact number strays less. With the 1,500 counts that are looked at a right answer fails once in ten million times.
    A token is given in addition, for numbers that are rounded.
    """
    wanted = share * numbers
    seen = torch.where(counts > wanted, (counts - 1).maximum(wanted), (counts + 1).minimum(wanted)) / numbers
    divergence = torch.special.xlogy(seen, seen / share) + torch.special.xlogy(1 - seen, (1 - seen) / (1 - share))
    return bool((numbers * divergence <= 25).all())


def _count(flags, dim=(0, 1)):
    return flags.sum(dim).double()


def verify(t, answer):
    tokens, special, mask_id = _batch(t)
    ordinary = ~torch.isin(tokens, special)
    given = tokens.to(t.device), special.to(t.device), V, mask_id
    inputs, labels = _pair(t, t.call(answer, *given))
    inputs_again, labels_again = _pair(t, t.call(answer, *given))

    # what must hold for every token
    ids = bool(((inputs >= 0) & (inputs < V)).all())
    t.that(ids, "exchanged", "inputs hold what is no id of a token: are inputs and labels exchanged?")
    chosen = labels != -100
    every = bool(chosen.all())
    t.that(not every, "no-minus-100", "no label is -100: that number marks where nothing is to be guessed")
    message = "special tokens have labels: they are never chosen, and -100 marks what is not to be guessed"
    t.that(not bool((chosen & ~ordinary).any()), "special", message)
    message = "labels are not the tokens that stood there before masking"
    t.that(bool((labels == tokens)[chosen].all()), "labels", message)
    message = (
        "where the label is -100 the model does not see the token that was there: what is masked, or replaced, has a "
        "label"
    )
    t.that(bool((inputs == tokens)[~chosen].all()), "changed", message)
    masked, kept = chosen & (inputs == mask_id), chosen & (inputs == tokens)
    drawn = chosen & ~masked & ~kept
    message = "tokens put in by chance are special ones now and then: draw from the others alone"
    t.that(not bool((drawn & torch.isin(inputs, special)).any()), "special-drawn", message)

    # what must hold for many
    rate = _count(chosen) / _count(ordinary)
    message = "it hangs on the place in the text whether a token is chosen: all are as likely, in each text anew"
    columns = _count(ordinary, 0) > 40
    evenly = _likely(_count(chosen, 0)[columns], _count(ordinary, 0)[columns], rate.clamp(0.01, 0.99))
    t.that(evenly, "places", message)
    message = f"too {'few' if rate < 0.15 else 'many'} tokens are chosen: 15 % of those that are not special"
    if not kept.any():
        message = (
            "no token that stays as it is has a label. One in ten of the chosen stays, and is guessed like the others: "
            "with these the chosen are 15 % of those that are not special"
        )
    t.that(_likely(_count(chosen), _count(ordinary), torch.tensor(0.15).double()), "rate", message)

    side_by_side = (ordinary & chosen)[:, :-1] & ordinary[:, 1:]
    runs = _likely(_count(side_by_side & chosen[:, 1:]), _count(side_by_side), torch.tensor(0.15).double())
    message = "whether a token is chosen hangs on its neighbour, as in runs, or at a distance: choose each for itself"
    t.that(runs, "neighbours", message)
    both = chosen & (labels_again != -100)
    anew = _likely(_count(both), _count(chosen), torch.tensor(0.15).double())
    message = "a second call makes the same holes, or more of them than chance does: draw afresh, from no seed of yours"
    t.that(anew, "again", message)

    words = torch.tensor([i for i in range(V) if i not in special.tolist()])
    own = 1 / len(words)  # how often chance gives what stood there
    fates = {
        "masked": (masked, 0.8, "are masked"),
        "drawn": (drawn, 0.1 * (1 - own), "are replaced by chance"),
        "kept": (kept, 0.1 * (1 + own), "are kept"),
    }
    rows = _count(chosen, 1) > 20
    for flags, _, name in fates.values():
        message = f"what becomes of a token hangs on its text: of some texts far more tokens {name} than of others"
        share = (_count(flags) / _count(chosen)).clamp(0.01, 0.99)
        t.that(_likely(_count(flags, 1)[rows], _count(chosen, 1)[rows], share), "together", message)
    counts = (inputs[drawn] == words[:, None]).sum(1).double()
    room = (tokens[chosen] != words[:, None]).sum(1).double()  # a word that is put in where it stood is not seen
    message = "tokens put in by chance are not all as likely: each of the vocabulary that is not special is"
    t.that(_likely(counts, counts.sum().clamp(min=1), room / room.sum()), "uneven", message)
    for code, (flags, share, name) in fates.items():
        few = "few" if _count(flags) < share * _count(chosen) else "many"
        message = f"of the chosen tokens too {few} {name}: in each call 80 % are masked, 10 % replaced, 10 % kept"
        t.that(_likely(_count(flags), _count(chosen), torch.tensor(share).double()), code, message)
    twice = _count(both & masked & (inputs_again == mask_id))
    message = "a second call decides in the same way what becomes of a chosen token: draw that afresh, too"
    t.that(_likely(twice, _count(both & masked), torch.tensor(0.8).double()), "same-fates", message)

    tokens, special, mask_id = _short(t)
    inputs, labels = _pair(t, t.call(answer, tokens.to(t.device), special.to(t.device), 6, mask_id))
    chosen, ordinary = labels != -100, ~torch.isin(tokens, special)
    case = "in a batch of which half is padding, "
    few = "few" if _count(chosen) < 0.15 * _count(ordinary) else "many"
    message = f"{case}too {few} tokens are chosen: 15 % of those that are not special. Is padding counted?"
    t.that(_likely(_count(chosen), _count(ordinary), torch.tensor(0.15).double()), "rate", message)
    message = (
        "with two words in the vocabulary too few tokens are kept: is a token that is put in by chance never the one "
        "that stood there? All of the vocabulary are as likely, it too"
    )
    kept = _count(chosen & (inputs == tokens))
    least = kept >= 0.15 * _count(chosen) or _likely(kept, _count(chosen), torch.tensor(0.15).double())
    t.that(bool(least), "other", message)


def _pair(t, got):
    pair = []
    for name, x in zip(("inputs", "labels"), t.unpack(got, "inputs", "labels"), strict=True):
        t.that(isinstance(x, torch.Tensor), "type", f"{name} are a {type(x).__name__}, expected a torch.Tensor")
        t.that(x.device.type == t.device.type, "device", f"{name} are on {x.device}, expected {t.device}")
        t.that(
            x.dtype == torch.int64, "dtype", f"{name} have dtype {x.dtype}, expected torch.int64, that of the tokens"
        )
        t.that(tuple(x.shape) == (B, T), "shape", f"{name} have shape {tuple(x.shape)}, expected that of the tokens")
        pair.append(x.detach().cpu())
    return pair


MUTANTS = [
    Mutant("special", (" & ~torch.isin(tokens, special)", "")),  # special chosen
    Mutant("no-minus-100", ("torch.where(chosen, tokens, -100)", "tokens.clone()")),  # labels everywhere
    Mutant("special", ("torch.where(chosen, tokens, -100)", "torch.where(chosen, -100, tokens)")),  # labels of the rest
    Mutant("no-minus-100", ("torch.where(chosen, tokens, -100)", "torch.where(chosen, tokens, 0)")),  # labels 0
    # labels for the masked alone
    Mutant("changed", ("return inputs, labels", "return inputs, torch.where(inputs == mask_id, labels, -100)")),
    Mutant("labels", ("return inputs, labels", "return inputs, torch.where(chosen, inputs, -100)")),  # labels after
    Mutant("rate", ("< 0.15) &", "< 2) &")),  # every token
    Mutant("rate", ("< 0.15", "< 0.18")),  # too many
    Mutant("rate", ("< 0.15", "< 0.15 / 0.9")),  # 15 % without the kept
    Mutant("rate", ("< 0.15", "< 0.15 / 0.8")),  # 15 % masked
    Mutant("rate", ("< 0.15", "< 0.15 * tokens.numel() / (~torch.isin(tokens, special)).sum()")),  # of all
    Mutant("other", ("    fate = torch", "    drawn = torch.where(drawn == tokens, ordinary.roll(1)[torch.searchsorted("
        "ordinary, drawn)], drawn)\n    fate = torch")),  # never itself
    Mutant("places", the_first_of_each_row),
    Mutant("places", every_row_alike),
    Mutant("places", ("torch.rand(tokens.shape, device=tokens.device) < 0.15)",
        "(torch.rand(tokens.shape) + (torch.arange(tokens.shape[1]) == tokens.shape[1] - 1)) < 0.15)")),
    Mutant("special-drawn", ("ordinary[special] = False\n", "pass\n")),  # special put in
    Mutant("masked", ("(fate < 0.8)", "(fate < 1.8)")),  # all masked
    Mutant("drawn", (" & (fate < 0.9)", "")),  # none kept
    Mutant("drawn", ("(fate >= 0.8) & (fate < 0.9)", "(fate < 0)")),  # none replaced
    Mutant("drawn", of_the_rest),
    Mutant("masked", one_draw_for_both),
    # shares exchanged
    Mutant("masked", ("inputs = torch.where(chosen & (fate < 0.8)", "inputs = torch.where(chosen & (fate < 0.1)")),
    Mutant("together", one_fate_a_row),
    Mutant("uneven", from_the_batch),
    # always the same token
    Mutant("uneven", ("ordinary[torch.randint(len(ordinary), tokens.shape, device=tokens.device)]", "ordinary[-1]")),
    Mutant("again", always_the_same),
    Mutant("again", the_same_places),
    Mutant("same-fates", the_same_fates),
    Mutant("neighbours", in_runs),
    Mutant("neighbours", at_a_distance),
    Mutant("exchanged", ("return inputs, labels", "return labels, inputs")),
    Mutant("no-minus-100", ("tokens, -100)", "tokens, -1)")),  # -1 as label
    Mutant("dtype", ("return inputs, labels", "return inputs, labels.float()")),  # labels as numbers
    Mutant("shape", ("return inputs, labels", "return inputs, labels[chosen]")),  # a list of the chosen
]  # fmt: skip


EXERCISE = Exercise(
    key="own-13.1",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-13.1a",
            prompt="Write `mask(tokens, special, vocab_size, mask_id)`. Whether each token is chosen by a draw of its "
            "own, or an exact number of them is, is up to you. The check counts on a large batch, with margins that a "
            "right answer leaves about once in ten million times.",
            hints=[
                "Two things are drawn for a token, one after the other: whether it is chosen, and what becomes of it "
                "if it is. If one random number decides both, the borders of the second lie within those of the first: "
                "0.8 of 0.15.",
                "`torch.isin(tokens, special)` says which tokens are special; `torch.where(chosen, tokens, -100)` are "
                "the labels.",
                "From one number in [0, 1) for the fate: below 0.8 masked, from 0.8 to 0.9 replaced, else kept.",
                "For a token by chance make a list of the ids that are not special, and draw places in that list.",
            ],
            answer=mask,
            verify=verify,
            alternatives=[an_exact_number, token_by_token, a_part_of_each_half],
            min_checks=20,
            advice={"mutates": "The text is read again in the next epoch, with other holes: work on a copy."},
            mutants=MUTANTS,
            explanation="""
An exact number or a draw for each token: both are used. With the first all batches cost alike; with the second some
short texts have nothing to guess. Devlin et al. (2019) take an exact number, and count special tokens as well when
they reckon how many. Their tokens by chance may be special ones, too; in a model that takes padding for the end of a
text that would do harm.

To test what is drawn, do not ask for 15 % give or take a number that feels right. The share of n draws has the
deviation $\\sqrt{p (1 - p) / n}$: six of these are left once in 500 million times, and a larger n makes them as narrow
as is needed to tell 15 % from what a mistake would give.
""",
        ),
        Choice(
            key="own-13.1b",
            prompt="Suppose that all chosen tokens were masked, none replaced and none kept. The model would lack more "
            "than one thing when it is fine-tuned on texts without masks. Which of them do Devlin et al. (2019) give "
            "as the reason for not masking all chosen tokens?",
            hints=[
                "Which tokens does the model see when it is fine-tuned? At which places does the loss ask for a guess?"
            ],
            options=[
                Option(
                    "An embedding of the mask token that can be used: it would be too large.",
                    "It would be trained as any other, and texts without masks do not need it. What matters is what "
                    "the model makes of the *other* tokens.",
                ),
                Option(
                    "The skill of copying: no token that it guesses would stand in its input.",
                    "It would lack that as well, as the chapter measures (*When every chosen token becomes a mask*). "
                    "But copying needs no understanding, and the tenth that is kept would alone teach it: this "
                    "does not explain why another tenth is replaced.",
                ),
                Option(
                    "Features of tokens that are no masks: the loss would ask for none there.",
                    "It need make nothing useful of what it is shown but for the masks' sake. Where any token may "
                    "have to be guessed, and any may be wrong, each must be understood from its neighbours. Devlin et "
                    "al. 2019 give this mismatch as the reason. Their own comparison (appendix C.2) finds the effect "
                    "of the exact shares small.",
                    right=True,
                ),
                Option(
                    "The skill of mending: it would have met no misspelled word in all its texts.",
                    "That may be a benefit, but a token by chance is hardly ever like a slip of the pen, and the tenth "
                    "that is kept would not be explained.",
                ),
            ],
        ),
    ],
)
