r"""A sampler that respects a grammar

A language model is to write expressions with balanced parentheses, such as `(x(x))x`, and it may write nothing else:
a program reads them. Its vocabulary has four tokens: 0 is `(`, 1 is `)`, 2 is a letter, 3 ends the text. What the model
was trained on does not matter here. At each step the tokens that cannot come get probability 0, and the others share
what is left.

There is room for `max_len` tokens, the end included, and the text must be balanced *and ended* within them. So it does
not suffice to ask whether a parenthesis is open: a token is allowed only if the text can still be completed after it in
the room that is left.
"""

import itertools

import torch

from d2lmini.exercises.engine import Choice, Code, Exercise, Mutant, Option


def grammatical(logits, depth, left):
    """What to draw the next token from.

    Args:
        logits: (B, 4), of any size: a token that is forbidden may have by far the largest.
        depth: integers (B,), how many parentheses are open.
        left: integers (B,), how many tokens there is room for, the next one and the end included; at least
            ``depth + 1``, so that the text can be completed.

    Returns:
        Probabilities (B, 4): 0 where the text could not be completed within ``left`` tokens any more; the others in the
        ratios that the model gives them.
    """
    ### BEGIN SOLUTION
    after = left - 1  # what is left when the token is written; then depth many have to be closed, and the end comes
    opens = after >= depth + 2
    closes = depth > 0
    letter = after >= depth + 1
    ends = depth == 0
    allowed = torch.stack([opens, closes, letter, ends], dim=-1)
    return torch.softmax(logits.masked_fill(~allowed, -torch.inf), dim=-1)
    ### END SOLUTION


def by_the_room_needed(logits, depth, left):
    change = torch.tensor([1, -1, 0, 0], device=logits.device)
    then = depth[:, None] + change  # (B, 4)
    needed = torch.where(torch.arange(4, device=logits.device) == 3, 1, then + 2)  # the token, what closes, the end
    fits = (needed <= left[:, None]) & (then >= 0)
    fits[:, 3] = depth == 0
    powers = torch.exp(logits - logits.masked_fill(~fits, -torch.inf).amax(-1, keepdim=True).detach())
    powers = torch.where(fits, powers, torch.zeros_like(powers))
    return powers / powers.sum(-1, keepdim=True)


def row_by_row(logits, depth, left):
    result = torch.zeros_like(logits)
    for b, (d, n) in enumerate(zip(depth.tolist(), left.tolist(), strict=True)):
        tokens = ([0] if n >= d + 3 else []) + ([1] if d else []) + ([2] if n >= d + 2 else []) + ([] if d else [3])
        result[b, tokens] = torch.softmax(logits[b, tokens], dim=0)
    return result


def parentheses_alone(logits, depth, left):
    allowed = torch.stack([depth >= 0, depth > 0, depth >= 0, depth == 0], dim=-1)
    return torch.softmax(logits.masked_fill(~allowed, -torch.inf), dim=-1)


def exchanged(logits, depth, left):
    allowed = torch.stack([depth > 0, left >= depth + 3, left >= depth + 2, depth == 0], dim=-1)
    return torch.softmax(logits.masked_fill(~allowed, -torch.inf), dim=-1)


def first_row_for_all(logits, depth, left):
    return grammatical(logits, depth[:1].expand_as(depth), left[:1].expand_as(left))


def softmax_first(logits, depth, left):
    allowed = row_by_row(torch.zeros_like(logits), depth, left) > 0
    probabilities = torch.softmax(logits, dim=-1) * allowed
    return probabilities / probabilities.sum(-1, keepdim=True)


def _completions(depth, left):
    """Whether the text can be balanced and ended by ``left`` tokens, found by trying all."""
    ends, seen = False, {depth}
    for _ in range(left):
        ends = ends or 0 in seen  # the end comes now
        seen = {d + change for d in seen for change in (1, -1, 0) if d + change >= 0}
    return ends


def _reference(logits, depth, left):
    rows = torch.zeros(*logits.shape, dtype=torch.float64)
    for b, (d, n) in enumerate(zip(depth.tolist(), left.tolist(), strict=True)):
        change = {0: 1, 1: -1, 2: 0}
        tokens = [v for v in change if d + change[v] >= 0 and _completions(d + change[v], n - 1)] + [3] * (d == 0)
        rows[b, tokens] = logits[b, tokens].cpu().double().softmax(0)
    return rows


def verify(t, answer):
    # all places where a text may be: open parentheses, and room up to six tokens more than it takes, or far more
    places = [(d, n) for d in range(5) for n in (*range(d + 1, d + 7), d + 70)]
    t.random.shuffle(places)
    depth, left = torch.tensor(places, device=t.device).unbind(1)
    roomy = left >= depth + 5
    logits = t.randn(len(places), 4)
    for chosen, where in ((roomy, "where there is room"), (~roomy, "where the room gets scarce")):
        inputs = logits[chosen], depth[chosen], left[chosen]
        t.same(t.call(answer, *inputs), _reference(*inputs), f"the distribution {where}")
    allowed = _reference(logits, depth, left).to(t.device) > 0
    far = torch.where(allowed, -1e30, 1e30).to(logits)  # no finite number forbids here
    want = _reference(far, depth, left)
    name = "the distribution where forbidden tokens have large logits, and the others large ones below 0"
    t.same(t.call(answer, far, depth, left), want, name)
    for scale, shift in ((1.0, 31.5), (100.0, 0.0), (1.0, -1e4)):  # of any size
        large = scale * logits + shift
        got, want = t.call(answer, large, depth, left), _reference(large, depth, left)
        t.same(got, want, f"the distribution for logits of {scale:g} times the size, and {shift:g} more")
        zeros = bool((got[~allowed] == 0).all())
        t.that(zeros, "not-zero", "what is forbidden has a small probability: it must be 0 itself")


def write(model, distribution, numbers):
    """Draws a text for each row of random numbers.

    Args:
        model: ``model(tokens)`` takes integers (B, t), t from 0, all tokens so far, and returns the logits (B, 4) of
            the next.
        distribution: ``distribution(logits, depth, left)``, a right answer to the first part.
        numbers: (B, max_len), from 0 up to 1. Number t decides about token t: it is the first token for which the
            probabilities up to it, its own included, add up to more than the number; where rounding leaves none, the
            last that has a probability above 0.

    Returns:
        Integers (B, max_len): the texts, each filled up with 3 after its end.
    """
    ### BEGIN SOLUTION
    B, max_len = numbers.shape
    tokens = torch.zeros(B, 0, dtype=torch.long, device=numbers.device)
    depth = torch.zeros(B, dtype=torch.long, device=numbers.device)
    ended = torch.zeros(B, dtype=torch.bool, device=numbers.device)
    for t in range(max_len):
        left = torch.full_like(depth, max_len - t)
        probabilities = distribution(model(tokens), depth, left)
        passed = probabilities.cumsum(dim=-1) <= numbers[:, t : t + 1]
        last = 3 - (probabilities > 0).flip(-1).int().argmax(dim=-1)  # that is possible
        drawn = torch.minimum(passed.sum(dim=-1), last)
        drawn = torch.where(ended, 3, drawn)
        depth = depth + (drawn == 0).long() - (drawn == 1).long()
        ended = ended | (drawn == 3)
        tokens = torch.cat([tokens, drawn[:, None]], dim=1)
    return tokens
    ### END SOLUTION


def text_by_text(model, distribution, numbers):
    max_len = numbers.shape[1]
    texts = []
    for row in numbers:
        text = torch.zeros(1, 0, dtype=torch.long, device=numbers.device)
        while text.shape[1] < max_len:
            if 3 in text:
                text = torch.nn.functional.pad(text, (0, max_len - text.shape[1]), value=3)
                break
            depth = (text == 0).sum(1) - (text == 1).sum(1)
            left = torch.full_like(depth, max_len - text.shape[1])
            edges = distribution(model(text), depth, left)[0].cumsum(0)
            drawn = min(int((edges <= row[text.shape[1]]).sum()), int((edges < edges[-1]).sum()))
            text = torch.nn.functional.pad(text, (0, 1), value=drawn)
        texts.append(text[0])
    return torch.stack(texts)


def number_against_each(model, distribution, numbers):
    def one_or_nothing(logits, depth, left):
        share = distribution(logits, depth, left)  # the first token with more than the number takes all, or the first
        number = numbers[:, numbers.shape[1] - int(left[0])].unsqueeze(1)
        first = (share > number).to(share).argmax(-1, keepdim=True)
        return torch.zeros_like(share).scatter(-1, first, 1.0)

    return write(model, one_or_nothing, numbers)


class _Model:
    """Logits by chance for each text, in float64, so that no rounding decides."""

    def __init__(self, table):
        self.table = table  # (97, 4)

    def __call__(self, tokens):
        place = torch.zeros(len(tokens), dtype=torch.long, device=tokens.device)
        for column in tokens.unbind(1):
            place = (5 * place + column + 1) % 97
        return self.table[place]


def _draw(table, numbers, whole=1.0):
    """The texts as lists, one by one, with the reference of the first part, whose probabilities sum to ``whole``."""
    model, texts = _Model(table), []
    for row in numbers.tolist():
        text, depth = [], 0
        for t, number in enumerate(row):
            logits = model(torch.tensor([text]).long().view(1, -1))
            shares = _reference(logits, torch.tensor([depth]), torch.tensor([len(row) - t]))[0].tolist()
            sums = list(itertools.accumulate(whole * share for share in shares))
            token = next((v for v in range(4) if sums[v] > number), max(v for v in range(4) if shares[v] > 0))
            token = 3 if 3 in text else token
            depth += {0: 1, 1: -1}.get(token, 0)
            text.append(token)
        texts.append(text)
    return torch.tensor(texts)


class _Distribution:
    """A right answer to the first part, of which rounding may leave a little less than 1."""

    def __init__(self, whole=1.0):
        self.whole = whole

    def __call__(self, logits, depth, left):
        return self.whole * by_the_room_needed(logits, depth, left)


def verify_write(t, answer):
    for B, max_len, ends in ((12, 11, False), (15, 25, False), (3, 1, False), (4, 5, True)):
        table = t.randn(97, 4, dtype=torch.float64)
        table[:, 3] -= 0.7  # not too short
        table[:, 0] += 0.5
        numbers = t.rand(B, max_len, dtype=torch.float64)
        numbers[0] = 0.0  # the first token that is allowed
        if ends:  # all texts at once
            numbers[:, 0] = 1 - 1e-9
        want = _draw(table.cpu(), numbers.cpu())
        got = t.call(answer, _Model(table), _Distribution(), numbers)
        t.same(got, want, f"the texts for {B} rows of {max_len} numbers{', all of which end at once' * ends}")
    numbers, whole = torch.full((3, 7), 1 - 1e-13, dtype=torch.float64, device=t.device), 1 - 1e-12
    numbers[1:, 0] = numbers[2, 1] = 0.0  # parentheses are open
    want = _draw(table.cpu(), numbers.cpu(), whole)
    got = t.call(answer, _Model(table), _Distribution(whole), numbers)
    t.same(got, want, "the texts where all probabilities add up to less than the number, as rounding may have it")


MUTANTS_A = [
    Mutant("ends-anywhere", ("ends = depth == 0", "ends = depth >= 0"), "a text may end while parentheses are open"),
    Mutant("closes-anywhere", ("closes = depth > 0", "closes = depth >= 0"), "a parenthesis may be closed where none "
        "is open"),
    Mutant("opens-always", ("opens = after >= depth + 2", "opens = after >= 0"), "`(` is allowed without room for the "
        "`)` and the end that it makes necessary"),
    Mutant("opens-early", ("opens = after >= depth + 2", "opens = after >= depth + 1"), "`(` is allowed with room for "
        "all that must be closed then, but not for the end"),
    Mutant("opens-late", ("opens = after >= depth + 2", "opens = after > depth + 2"), "`(` is forbidden where there is "
        "just room enough: everything closed, then the end"),
    Mutant("letter-always", ("letter = after >= depth + 1", "letter = after >= 0"), "a letter is allowed where the "
        "room is needed to close what is open and to end"),
    Mutant("letter-late", ("letter = after >= depth + 1", "letter = after > depth + 1"), "a letter is forbidden where "
        "there is just room enough"),
    Mutant("no-room", parentheses_alone, "only the open parentheses decide: `(` and letters also need room for all "
        "that must come after them"),
    Mutant("ends-late", ("ends = depth == 0", "ends = (depth == 0) & (left == 1)"), "the end is forbidden while there "
        "is room: a text may end wherever nothing is open"),
    Mutant("opens-once", ("opens = after >= depth + 2", "opens = left > 1"), "`(` is allowed wherever it is not the "
        "last token: what is open already takes room, too"),
    Mutant("exchanged", exchanged, "the rules of `(` and `)` are exchanged: token 0 is `(`, token 1 is `)`"),
    Mutant("one-depth", ("    after = left - 1", "    depth = depth[:1].expand_as(depth)\n    after = left - 1"),
        "the depth of the first row is used for all rows"),
    Mutant("one-room", ("after = left - 1", "after = left[:1].expand_as(left) - 1"), "the room of the first row is "
        "used for all rows"),
    Mutant("one-row", first_row_for_all, "the rule of the first row is used for all rows"),
    Mutant("left-off", ("after = left - 1", "after = left"), "the token that is drawn now takes room as well: one less "
        "is left after it"),
    Mutant("not-scaled", ("torch.softmax(logits.masked_fill(~allowed, -torch.inf), dim=-1)",
        "torch.softmax(logits, dim=-1).masked_fill(~allowed, 0.0)"), "the rows do not sum to 1: the allowed tokens "
        "share what the others had"),
    Mutant("even", ("torch.softmax(logits.masked_fill(~allowed, -torch.inf), dim=-1)",
        "allowed.to(logits) / allowed.sum(dim=-1, keepdim=True)"), "all allowed tokens are equally likely: keep the "
        "ratios that the model gives them"),
    Mutant("zero", ("-torch.inf", "0.0"), "forbidden tokens get the logit 0, which is a probability like any other: "
        "minus infinity forbids"),
    Mutant("nonfinite", softmax_first),
    Mutant("finite", ("logits.masked_fill(~allowed, -torch.inf)", "logits - 100 * (~allowed).to(logits)"),
        "a finite number does not forbid: logits of any size may lie above it, or below. Minus infinity does"),
]  # fmt: skip

MUTANTS_B = [
    Mutant("no-end", ("drawn = torch.where(ended, 3, drawn)", "drawn = drawn"), "a text goes on after its end: fill it "
        "up with 3"),
    Mutant("filled", ("drawn = torch.where(ended, 3, drawn)", "drawn = torch.where(ended, 0, drawn)"),
        "after its end a text is filled up with 0: with 3, the token that ended it"),
    Mutant("filled", ("drawn = torch.where(ended, 3, drawn)", "drawn = torch.where(ended, 2, drawn)"),
        "after its end a text is filled up with 2: with 3, the token that ended it"),
    Mutant("each-alone", number_against_each, "the number is compared with each probability by itself: add them up on "
        "the way"),
    Mutant("depth-grows", (" - (drawn == 1).long()", ""), "the depth never falls: `)` closes one"),
    Mutant("depth-forgotten", ("depth = depth + (drawn == 0)", "depth = (drawn == 0)"), "the depth is that of the last "
        "token alone: add it up"),
    Mutant("left-constant", ("max_len - t)", "max_len)"), "the room does not shrink as the text grows, so that some "
        "texts are not finished in it"),
    Mutant("left-off", ("max_len - t)", "max_len - t - (t + 1 < max_len))"), "the room is counted without the token "
        "that comes next"),
    Mutant("one-number", ("numbers[:, t : t + 1]", "numbers[:, :1]"), "every step uses the first random number: each "
        "has its own"),
    Mutant("greedy", ("drawn = torch.minimum(passed.sum(dim=-1), last)", "drawn = probabilities.argmax(dim=-1)"),
        "the likeliest token is taken, not the one that the number says"),
    Mutant("early", ("torch.minimum(passed.sum(dim=-1), last)", "(passed.sum(dim=-1) - 1).clamp(min=0)"),
        "the token before is taken: the probability of the drawn one itself must carry the sum above the number"),
    Mutant("at-zero", ("<= numbers", "< numbers"), "a number of 0 draws the first token though it is forbidden: the "
        "sum up to a token must be *more* than the number, so count those with `<=`"),
    Mutant("random", ("drawn = torch.minimum(passed.sum(dim=-1), last)",
        "drawn = torch.multinomial(probabilities, 1)[:, 0]"), "tokens are drawn by chance: `numbers` are the chance "
        "here, so that there is one right result"),
    Mutant("signs", ("(drawn == 0).long() - (drawn == 1)", "(drawn == 1).long() - (drawn == 0)"), "the depth falls "
        "with `(` and grows with `)`: token 0 is `(`, token 1 is `)`"),
    Mutant("sorted", ("probabilities.cumsum(dim=-1)", "probabilities.sort(descending=True).values.cumsum(dim=-1)"),
        "the probabilities are sorted before they are added up: they stand in the order of the tokens"),
    Mutant("counted-above", ("torch.minimum(passed.sum(dim=-1), last)", "(~passed[:, :3]).sum(dim=-1)"), "those "
        "sums are counted that are above the number: the token is as many places on as there are sums *not* above it"),
    Mutant("other-end", ("probabilities.cumsum(dim=-1) <= numbers[:, t : t + 1]",
        "probabilities.cumsum(dim=-1) <= 1 - numbers[:, t : t + 1]"),
        "the numbers are taken from the other end: add up from token 0 on"),
    Mutant("letters-close", ("- (drawn == 1).long()", "- (drawn > 0).long()"), "letters and the end lower the depth as "
        "well: `)` alone does"),
    Mutant("last-only", ("model(tokens), depth", "model(tokens[:, -1:]), depth"), "the model sees the last token only: "
        "give it all tokens so far"),
    Mutant("no-grammar", ("distribution(model(tokens), depth, left)", "torch.softmax(model(tokens), dim=-1)"),
        "these are draws from the model itself: the texts are not balanced"),
    # stops when all have ended
    Mutant("shape", ("tokens = torch.cat([tokens, drawn[:, None]], dim=1)",
        "tokens = torch.cat([tokens, drawn[:, None]], dim=1)\n        if ended.all():\n            break")),
]  # fmt: skip


EXERCISE = Exercise(
    key="own-16.3",
    doc=__doc__,
    source="own",
    parts=[
        Code(
            key="own-16.3a",
            prompt="Write `grammatical(logits, depth, left)`, which returns the probabilities of the next token.",
            hints=[
                "With d parentheses open, how many tokens does it take at least to balance the text and to end it?",
                "It takes d + 1. A token is allowed if the room after it is at least what it takes then.",
                "`(` needs left - 1 >= d + 2, a letter left - 1 >= d + 1; `)` needs d > 0, the end d = 0. Set the "
                "logits of the others to minus infinity before the softmax.",
            ],
            answer=grammatical,
            verify=verify,
            alternatives=[by_the_room_needed, row_by_row],
            mutants=MUTANTS_A,
            advice={
                "nonfinite": "minus infinity is for logits; what comes back are probabilities. Mask the logits, then "
                "take the softmax: the other way round the allowed ones may have rounded to 0 before they are scaled "
                "up",
                "values": "In the row that is named: which tokens have a probability, and which should? With d open "
                "and the token written, left - 1 must hold what closes then and the end.",
            },
            explanation=r"""
With $d$ open it takes $d + 1$ tokens to finish. The rule "never let the text get where it cannot be finished" is all
there is: then some token is allowed at every step, since with room for $d + 1$ either `)` or the end fits. A sampler
that looks at the parentheses alone may write `((((((` until the room is used up.

The same works for any grammar whose states can be told by a program, with "the least number of tokens to the end"
computed once for each state: numbers, dates, JSON.
""",
        ),
        Code(
            key="own-16.3b",
            prompt="Write `write(model, distribution, numbers)`, which draws whole texts. The random numbers are "
            "given, so that there is one right result.",
            hints=[
                "Beside the tokens keep for each row how many parentheses are open, and whether it has ended.",
                "`(p.cumsum(-1) <= u).sum(-1)` counts the tokens that are passed over.",
                "The room at step t is max_len - t. A row that has ended gets the token 3 whatever it draws.",
            ],
            answer=write,
            verify=verify_write,
            alternatives=[text_by_text],
            mutants=MUTANTS_B,
            advice={
                "shape": "When all texts have ended the columns go on: (B, max_len), whatever is drawn.",
                "values": "Take the row that is named, and write down for each step: depth, room, the four "
                "probabilities, their running sums and the number. Which is the first step at which your token is not "
                "the first whose sum is above the number?",
                "raised": "If it is `distribution` that complains: the room at step t counts the token that comes "
                "next, so it is never less than the depth and one more. If the next tokens do not fit to those "
                "before: make them a column, (B, 1), for `torch.cat`.",
            },
            explanation="""
That is all that "constrained" or "structured" output of a language model is: an automaton runs along with the text and
says at each step what may come. It needs nothing from the model but its logits.
""",
        ),
        Choice(
            key="own-16.3c",
            prompt="A model begins its texts with `(` or with a letter, each with probability 1/2. Of the texts that "
            "it would write after `(`, 1 in 100 is balanced (in probability); of those after a letter, all are. How "
            "often do texts begin with `(`: (i) those of your sampler, (ii) those of the model itself, if all that are "
            "not balanced are thrown away?",
            hints=[
                "Both first tokens are allowed. What does the sampler know at this step of what comes later?",
                "For (ii): of 200 texts of the model, how many begin with `(` and are kept, how many are kept at all?",
            ],
            options=[
                Option(
                    "(i) 1/2, (ii) 1/2: neither changes the ratios of tokens that are possible.",
                    "True of each step, and so of (i). Throwing whole texts away punishes a beginning for what "
                    "follows it.",
                ),
                Option(
                    "(i) 1/101, (ii) 1/2: forbidding looks ahead, and throwing away does not.",
                    "The other way round: it is throwing away that looks at the whole text.",
                ),
                Option(
                    "(i) 1/101, (ii) 1/101: forbidding is a faster way of throwing away.",
                    "The mask knows what *can* follow, not how likely the model thinks it. Both tokens are allowed, so "
                    "each keeps its 1/2.",
                ),
                Option(
                    "(i) 1/2, (ii) 1/101: forbidding asks what can come, not how likely it is.",
                    "Of 200 texts 100 begin with `(` and 1 of these is kept, beside 100 others: 1/101. The sampler "
                    "gives `(` its 1/2 and then forces a continuation that the model finds unlikely. All its texts are "
                    "grammatical, but they are not distributed as the model's grammatical texts are.",
                    right=True,
                ),
            ],
        ),
    ],
)
