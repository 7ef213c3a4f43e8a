"""Speculative sampling: what is written is the large model's, whatever drafts, and how often that model is called."""

import itertools
from collections import Counter
from typing import NamedTuple

import pytest
import torch

import d2lmini as d2l
from d2lmini.decoding import Filters, PromptLookup, accept_or_replace, speculative_sample

V = 3


class State(NamedTuple):
    tokens: torch.Tensor  # (T,)

    @property
    def length(self):
        return len(self.tokens)

    def first(self, length):
        return State(self.tokens[:length])


class Toy:
    """The next token depends on the two before it; counts its calls."""

    def __init__(self, seed, size=V, sharpness=1.5):
        draw = torch.Generator().manual_seed(seed)
        self.logits = sharpness * torch.randn(size, size, size, generator=draw, dtype=torch.float64)
        self.calls = 0

    def empty_state(self, batch):
        assert batch == 1
        return State(torch.zeros(0).long())

    def extend(self, tokens, state):
        self.calls += 1
        seen = torch.cat([state.tokens, tokens[0]])
        previous = torch.cat([torch.zeros(1).long(), seen])[:-1]  # before the first one there is a 0
        return self.logits[previous, seen][None, state.length :], State(seen)

    def probability(self, prompt, text, **filters):
        seen, total = [0, *prompt], 1.0
        for token in text:
            total *= Filters(**filters).probabilities(self.logits[seen[-2], seen[-1]])[token].item()
            seen.append(token)
        return total


@pytest.mark.parametrize("seed", range(5))
def test_one_token_is_distributed_as_p_exactly(seed):
    """Over all tokens that q may propose: what is kept, and what the rest of p makes up for, is p."""
    generator = torch.Generator().manual_seed(seed)
    p, q = torch.randn(2, 6, generator=generator, dtype=torch.float64).mul(2).softmax(-1)
    kept = torch.minimum(p, q)
    rest = (p - q).clamp(min=0)
    torch.testing.assert_close(kept + (1 - kept.sum()) * rest / rest.sum(), p)
    counts = torch.zeros(6, dtype=torch.float64)
    accepted, n = 0, 4000
    for token in torch.multinomial(q, n, replacement=True, generator=generator).tolist():
        token, was = accept_or_replace(token, p, q, generator)
        counts[token] += 1
        accepted += was
    chi_square = ((counts - n * p) ** 2 / (n * p)).sum()
    assert chi_square < 20.5  # 5 degrees of freedom: one in a thousand is above
    assert abs(accepted / n - kept.sum()) < 4 * 0.5 / n**0.5


def test_a_token_that_the_large_model_likes_more_is_kept_and_an_impossible_one_never():
    p, q = torch.tensor([0.0, 0.4, 0.6]), torch.tensor([0.5, 0.3, 0.2])
    for _ in range(50):
        assert accept_or_replace(1, p, q) == (1, True) and accept_or_replace(2, p, q) == (2, True)
        token, kept = accept_or_replace(0, p, q)
        assert not kept and token in (1, 2)
    assert all(accept_or_replace(1, p, p)[1] for _ in range(50))


class Always:
    """Drafts the same tokens again and again, likely or not."""

    def propose(self, text, most, filters, generator):
        return [0, 1, 2, 0, 1][:most], None

    def probability(self, prompt, text, **filters):
        return float(tuple(text) == (0, 1, 2))


class LookUp(PromptLookup):
    def probability(self, prompt, text, **filters):  # where nothing is replaced: 2 1 2 1 | 2 1 2
        return float(tuple(text) == (2, 1, 2))


DRAFTS = {"small": lambda: Toy(1), "look-up": LookUp, "always the same": Always}


@pytest.mark.parametrize(
    ("draft", "draft_length", "filters"),
    [
        ("small", 1, {}),
        ("small", 2, {"temperature": 0.7}),
        ("small", 3, {"top_k": 2}),
        ("small", 4, {"min_p": 0.2}),
        ("look-up", 3, {}),
        ("look-up", 2, {"temperature": 0.7}),
        ("always the same", 1, {"top_k": 2}),
        ("always the same", 4, {}),
    ],
)
def test_texts_have_the_large_models_distribution(draft, draft_length, filters):
    draft, target, prompt, length, n = DRAFTS[draft](), Toy(2), [2, 1, 2, 1], 3, 1500
    generator, counts = torch.Generator().manual_seed(draft_length), Counter()
    options = {"draft_length": draft_length, "generator": generator, **filters}
    for _ in range(n):
        counts[tuple(speculative_sample(draft, target, prompt, length, **options).tokens.tolist())] += 1
    texts = list(itertools.product(range(V), repeat=length))
    wanted = torch.tensor([target.probability(prompt, text, **filters) for text in texts])
    found = torch.tensor([counts[text] for text in texts]) / n
    torch.testing.assert_close(wanted.sum(), torch.tensor(1.0))
    assert not counts.keys() - {text for text, p in zip(texts, wanted, strict=True) if p > 0}
    # 27 texts: the expected total variation of n draws is about sqrt(27 / (2 pi n)) = 0.05; a draft's texts are far off
    others = torch.tensor([draft.probability(prompt, text, **filters) for text in texts])
    assert (found - wanted).abs().sum() / 2 < 0.08 < 0.3 < (others - wanted).abs().sum() / 2
    likely = wanted * n >= 5
    chi_square = ((found - wanted) ** 2 / wanted)[likely].sum() * n
    freedom = int(likely.sum())
    assert chi_square < freedom + 4 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("look_up", [False, True])
@pytest.mark.parametrize("draft_length", [0, 1, 3, 5])
def test_greedy_is_the_large_models_greedy(draft_length, look_up):
    torch.manual_seed(draft_length)
    large, small = (
        d2l.GPT(d2l.GPTConfig(11, 32, 16, 2, blocks, dropout=0.0, positions=positions)).eval()
        for blocks, positions in ((2, "rotary"), (1, "learned"))
    )
    for model in (large, small):
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    prompt = [3, 1, 4, 1, 5]
    found = speculative_sample(
        PromptLookup() if look_up else small, large, prompt, 20, draft_length=draft_length, temperature=0
    )
    assert found.tokens.tolist() == large.generate([prompt], 20, temperature=0).tokens[0].tolist()
    assert found.accepted <= found.proposed and found.passes <= 20


def test_what_is_counted():
    target = Toy(3)
    alone = speculative_sample(Toy(4), target, [1], 12, draft_length=0)
    assert (alone.proposed, alone.accepted, alone.passes) == (0, 0, 12) and target.calls == 12
    own = speculative_sample(Toy(3), Toy(3), [1], 12, draft_length=3)  # it agrees with itself: 4 tokens a pass
    assert (own.proposed, own.accepted, own.passes) == (9, 9, 3) and own.tokens.shape == (12,)
    target, draft = Toy(5), Toy(6)
    found = speculative_sample(draft, target, [1], 50, draft_length=3)
    assert found.passes == target.calls < 50 and draft.calls == found.proposed
    assert len(found.tokens) == 50 == found.accepted + found.passes  # each pass adds one: a replacement or one more


def test_a_certain_proposal_is_kept_as_often_as_the_large_model_would_draw_it():
    p, q = torch.tensor([0.2, 0.5, 0.3]), torch.tensor([0.0, 1.0, 0.0])
    generator = torch.Generator().manual_seed(0)
    found = Counter(accept_or_replace(1, p, q, generator) for _ in range(4000))
    assert found.keys() == {(0, False), (1, True), (2, False)}
    assert abs(found[1, True] / 4000 - 0.5) < 0.032 and abs(found[0, False] / 4000 - 0.2) < 0.026


@pytest.mark.parametrize(
    ("text", "most", "options", "wanted"),
    [
        ([1, 2, 3, 4, 1, 2], 3, {}, [3, 4, 1]),
        ([1, 2, 3, 4, 1, 2], 1, {}, [3]),
        ([1, 2, 3, 4, 1, 2], 0, {}, []),
        ([1, 2, 3, 9, 2, 4, 1, 2], 2, {}, [3, 9]),  # two tokens, though the last alone stands nearer
        ([1, 2, 3, 9, 2, 4, 1, 2], 2, {"longest": 1}, [4, 1]),
        ([1, 2, 3, 1, 2, 5, 1, 2], 2, {}, [5, 1]),  # the latest time
        ([7, 7, 7], 4, {}, [7]),  # of the text, which ends there
        ([5, 1, 2, 3, 6, 1, 2, 3], 2, {"shortest": 3}, [6, 1]),
        ([5, 9, 2, 3, 6, 1, 2, 3], 2, {"shortest": 3}, []),
        ([1, 2, 3], 4, {}, []),
        ([1], 4, {}, []),
    ],
)
def test_what_is_looked_up(text, most, options, wanted):
    before = list(text)
    assert PromptLookup(**options).propose(text, most) == (wanted, None) and text == before


def test_a_look_up_saves_passes_where_a_text_repeats():
    class Cycle(Toy):
        """Always the next number."""

        def __init__(self, size):
            super().__init__(0, size)
            self.logits = 50 * torch.eye(size, dtype=torch.float64).roll(1, 1)[None].expand(size, -1, -1)

    target = Cycle(6)
    found = speculative_sample(PromptLookup(), target, [0, 1, 2, 3, 4, 5, 0], 24, draft_length=5)
    assert found.tokens.tolist() == [(1 + i) % 6 for i in range(24)]
    assert (found.proposed, found.accepted, found.passes) == (20, 20, 4) and target.calls == 4


def test_a_generator_repeats_it():
    def written(seed):
        options = {"draft_length": 3, "generator": torch.Generator().manual_seed(seed)}
        return speculative_sample(Toy(1), Toy(2), [0], 20, **options).tokens.tolist()

    assert written(0) == written(0) != written(1)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([], 3), {}, "prompt is empty"),
        (([1], 0), {}, "max_new_tokens is 0"),
        (([1], 3), {"draft_length": -1}, "draft_length is -1"),
        (([1], 2.5), {}, "max_new_tokens is 2.5, expected an integer"),
        (([1], True), {}, "max_new_tokens is True, expected an integer"),
        (([1], 3), {"draft_length": 2.0}, "draft_length is 2.0, expected an integer"),
        (([-1], 3), {}, "id -1 is below 0"),
        (([1], 3), {"temperature": -1}, "temperature is -1"),
        (([1], 3), {"repetition_penalty": 2.0}, "repetition"),
    ],
)
def test_wrong_arguments(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        speculative_sample(Toy(1), Toy(2), *arguments, **options)


NO_IDS = [[1.7, 2.2], [1.0], [True, 1], "12", b"12", ["1"], 1, None, torch.tensor([1.0]), torch.tensor([[1, 2]])]
NO_IDS += [torch.tensor([True]), torch.tensor(1), {1: 2.5}.values()]


@pytest.mark.parametrize("prompt", NO_IDS, ids=repr)
def test_what_is_no_prompt(prompt):
    with pytest.raises(TypeError, match=r"(ids are|an id is) .*expected"):
        speculative_sample(Toy(1), Toy(2), prompt, 2)


def test_what_is_no_model():
    with pytest.raises(TypeError, match=r"draft is a NoneType, expected a model with .*, or what has a propose"):
        speculative_sample(None, Toy(2), [1], 2)
    with pytest.raises(TypeError, match="target is a PromptLookup, expected a model with empty_state and extend"):
        speculative_sample(Toy(1), PromptLookup(), [1], 2)


GOOD = torch.tensor([0.5, 0.25, 0.25])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1, GOOD, GOOD), ValueError, "token is -1, expected an integer from 0 to 2"),
        ((3, GOOD, GOOD), ValueError, "token is 3"),
        ((True, GOOD, GOOD), ValueError, "token is True"),
        ((1.0, GOOD, GOOD), ValueError, "token is 1.0"),
        ((0, 15 * GOOD, GOOD), ValueError, "p holds .* sums to 15, expected probabilities"),
        ((0, GOOD, GOOD / 2), ValueError, "q holds .* sums to 0.5"),
        ((0, torch.tensor([2.0, -0.5, -0.5]), GOOD), ValueError, "p holds a number below 0"),
        ((0, GOOD, torch.tensor([torch.nan, 1, 0])), ValueError, "q holds"),
        ((0, torch.tensor([1, 0, 0]), GOOD), TypeError, "p is of torch.int64, expected a floating-point"),
        ((0, GOOD, [0.5, 0.25, 0.25]), TypeError, "q is of list"),
        ((0, GOOD[None], GOOD[None]), ValueError, r"p is of shape \(1, 3\), expected \(V,\)"),
    ],
)
def test_what_are_no_probabilities(arguments, error, message):
    with pytest.raises(error, match=message):
        accept_or_replace(*arguments)


@pytest.mark.parametrize(
    "options", [{"longest": 0}, {"shortest": 0}, {"longest": 2, "shortest": 3}, {"shortest": True}]
)
def test_a_look_up_of_no_tokens(options):
    with pytest.raises(ValueError, match=r"est is .*, expected an integer"):
        PromptLookup(**options)


def test_models_that_do_not_fit():
    with pytest.raises(ValueError, match="same vocabulary"):
        speculative_sample(Toy(1, size=2), Toy(2), [1], 3)
    with pytest.raises(ValueError, match="shapes"):
        accept_or_replace(0, torch.ones(2) / 2, torch.ones(3) / 3)
    with pytest.raises(ValueError, match="no probability"):
        accept_or_replace(0, torch.ones(2) / 2, torch.tensor([0.0, 1.0]))
