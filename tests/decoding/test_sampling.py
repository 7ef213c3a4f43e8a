"""Drawing: what comes how often, the same again from the same seed, and what it is scored."""

import itertools
import math

import pytest
import torch
from toys import BOS, EOS, TRAP, Model, State, Table, log_prob, start

from d2lmini.decoding import Filters, greedy_search, reorder, sample, stream
from d2lmini.models.image_gpt import ImageGPT, ImageGPTConfig


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def chi_square(counts, probabilities):
    """The statistic, over its degrees of freedom in standard deviations: above 4 in one of 10,000 cases or so."""
    possible = probabilities > 0
    assert (counts[~possible] == 0).all()
    expected = counts.sum() * probabilities[possible]
    freedom = int(possible.sum()) - 1
    return (((counts[possible] - expected) ** 2 / expected).sum().item() - freedom) / math.sqrt(2 * freedom)


# ---- what is drawn


OPTIONS = [
    {},
    {"temperature": 0.6},
    {"temperature": 1.8},
    {"top_k": 3},
    {"top_p": 0.7},
    {"min_p": 0.2},
    {"temperature": 1.5, "top_k": 5, "top_p": 0.8},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_draws_follow_the_filtered_softmax(options):
    logits = 1.5 * torch.randn(8, generator=seeded(3), dtype=torch.float64)
    draws = 20_000
    found = sample(lambda tokens, state: (logits.expand(len(tokens), -1), state), torch.zeros(draws), 0, 1,
                   generator=seeded(1), **options)  # fmt: skip
    counts = found.tokens[:, 0].bincount(minlength=8).double()
    probabilities = (logits / options.get("temperature", 1)).softmax(-1)  # by hand from here on
    order = probabilities.argsort(descending=True)
    if "top_k" in options:
        probabilities[order[options["top_k"] :]] = 0
        probabilities /= probabilities.sum()
    if "top_p" in options:
        mass, keep = 0, []
        for v in order.tolist():
            if mass < options["top_p"]:
                keep.append(v)
                mass += probabilities[v].item()
        probabilities = torch.zeros(8).double().index_copy(0, torch.tensor(keep), probabilities[keep])
    if "min_p" in options:
        probabilities[probabilities < options["min_p"] * probabilities.max()] = 0
    probabilities /= probabilities.sum()
    assert abs(chi_square(counts, probabilities)) < 4
    if options:  # the test can tell
        assert chi_square(counts + 1e-9, logits.softmax(-1)) > 10


def test_second_tokens_follow_the_first():
    model, draws = Model(4, seed=2, sharpness=1.0), 12_000
    table = {(v,): model.logits(0, [BOS, v]).softmax(-1) for v in range(4)} | {(): model.logits(0, [BOS]).softmax(-1)}
    stack = torch.stack([table[()], *(table[(v,)] for v in range(4))]).log()

    def step(tokens, t):
        return stack[torch.where(t[:, 0] > 0, tokens + 1, 0)], t + 1

    found = sample(step, torch.zeros(draws, 1), BOS, 2, generator=seeded(5))
    pairs = (4 * found.tokens[:, 0] + found.tokens[:, 1]).bincount(minlength=16).double()
    expected = torch.stack([table[()][v] * table[(v,)] for v in range(4)]).flatten()
    assert abs(chi_square(pairs, expected)) < 4


def test_top_k_never_draws_outside_k():
    model = Model(9, seed=0, sharpness=0.3)  # nearly even: each of the others would come
    found = sample(model, start(40), BOS, 10, top_k=3, generator=seeded())
    for b, row in enumerate(found.tokens.tolist()):
        for t, token in enumerate(row):
            assert token in model.logits(b, [BOS, *row[:t]]).topk(3).indices


def test_cold_is_greedy():
    model = Model(6, seed=1)
    found = sample(model, start(7), BOS, 8, stop=EOS, temperature=0)
    greedy = greedy_search(model, start(7), BOS, EOS, 8)
    assert torch.equal(found.tokens, greedy.tokens) and torch.equal(found.valid_lens, greedy.valid_lens)
    torch.testing.assert_close(found.scores.double(), greedy.scores.double())
    assert (found.filtered_log_probs == 0).all()


# ---- scores


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 3}])
def test_scores_are_log_probabilities(options):
    model, B = Model(6, seed=0), 6
    found = sample(model, start(B), BOS, 9, stop=[EOS, 4], generator=seeded(2), **options)
    assert found.log_probs.shape == found.filtered_log_probs.shape == found.tokens.shape
    assert set(found.valid_lens.tolist()) > {0} or len(set(found.valid_lens.tolist())) > 1
    filters = Filters(**options)
    for b in range(B):
        row, length = found.tokens[b].tolist(), found.valid_lens[b].item()
        tokens = row[: length + 1]
        assert set(row[length:]) <= {row[length]} if length < len(row) else EOS not in row and 4 not in row
        assert found.scores[b].item() == pytest.approx(log_prob(model, b, tokens))
        assert found.log_probs[b, len(tokens) :].abs().sum() == 0 == found.filtered_log_probs[b, len(tokens) :].sum()
        for t, token in enumerate(tokens):
            logits = model.logits(b, [BOS, *tokens[:t]])
            assert found.log_probs[b, t].item() == pytest.approx(logits.log_softmax(-1)[token].item())
            drawn_from = filters.probabilities(logits)[token].log().item()
            assert found.filtered_log_probs[b, t].item() == pytest.approx(drawn_from)


# ---- reproducible


def test_the_generator_decides():
    model = Model(6, seed=0)

    def once(seed, **more):
        return sample(model, start(5), BOS, 8, generator=seeded(seed), **more).tokens

    torch.manual_seed(5)
    state = torch.get_rng_state()
    assert torch.equal(once(1), once(1)) and not torch.equal(once(1), once(2))
    assert torch.equal(torch.get_rng_state(), state)  # the global numbers are left alone
    torch.manual_seed(7)
    free = sample(model, start(5), BOS, 8).tokens
    torch.manual_seed(7)
    assert torch.equal(sample(model, start(5), BOS, 8).tokens, free)


def test_a_row_does_not_depend_on_when_others_end():
    model, B = Model(6, seed=3), 8
    endless = sample(model, start(B), BOS, 9, generator=seeded(4))
    found = sample(model, start(B), BOS, 9, stop=EOS, generator=seeded(4))
    assert len(set(found.valid_lens.tolist())) > 2
    for b in range(B):
        length = found.valid_lens[b] + 1
        assert torch.equal(found.tokens[b, :length], endless.tokens[b, :length])
    other = start(B)._replace(example=torch.cat([torch.arange(4), 40 + torch.arange(4)]))
    other.more["twice"][0] = 2 * other.example
    changed = sample(model, other, BOS, 9, stop=EOS, generator=seeded(4))
    L = min(changed.tokens.shape[1], found.tokens.shape[1])
    assert torch.equal(changed.tokens[:4, :L], found.tokens[:4, :L])


def test_several_samples_an_example():
    model, B, n = Model(6, seed=0), 3, 4
    found = sample(model, start(B), BOS, 6, stop=EOS, num_samples=n, generator=seeded())
    rows = torch.arange(B).repeat_interleave(n)
    wide = sample(model, reorder(start(B), rows), BOS, 6, stop=EOS, generator=seeded())
    for got, want in zip(found, wide, strict=True):
        assert got.shape[:2] == (B, n) and torch.equal(got.flatten(0, 1), want)
    assert len(set(map(tuple, found.tokens[0].tolist()))) > 1
    assert sample(model, start(B), BOS, 6, num_samples=1).tokens.shape == (B, 1, 6)


def test_image_gpt_draws_what_it_drew_before():
    """Its completion, written out as it was before it used the filters."""
    torch.manual_seed(0)
    model = ImageGPT(ImageGPTConfig((3, 4), 6, 12, 20, 3, 2)).eval()
    for temperature, top_k in [(1.0, None), (0.7, 3), (1.6, 5)]:
        generator, caches = seeded(8), model.empty_caches(5)
        inputs, pixels = torch.full((5, 1), 6), torch.empty(5, 0, dtype=torch.long)
        with torch.no_grad():
            while pixels.shape[1] < 12:
                scores, caches = model.step(inputs, caches)
                scores = scores[:, -1]
                if top_k is not None:
                    scores = scores.masked_fill(scores < scores.topk(top_k)[0][:, -1:], -torch.inf)
                inputs = torch.multinomial((scores / temperature).softmax(-1), 1, generator=generator)
                pixels = torch.cat([pixels, inputs], 1)
        drawn = model.sample(5, temperature=temperature, top_k=top_k, generator=seeded(8))
        assert torch.equal(drawn.flatten(1), pixels)


# ---- repetition


def test_what_has_occurred_is_penalized_and_the_prompt_counts():
    flat = Table([0.25] * 4, [0.25] * 4, [0.25] * 4, [0.25] * 4)

    def step(tokens, state):
        return flat(tokens, state)[0] + 10, state  # positive logits, all alike

    many = 400
    found = sample(step, torch.zeros(many), 0, 3, repetition_penalty=1e6, generator=seeded())
    assert all(sorted([0, *row]) == [0, 1, 2, 3] for row in found.tokens.tolist())  # bos is one of them
    prompt = torch.tensor([[-1, 2]]).expand(many, -1)
    found = sample(step, torch.zeros(many), 0, 2, prompt=prompt, repetition_penalty=1e6, generator=seeded())
    assert all(sorted(row) == [1, 3] for row in found.tokens.tolist())
    prompts = torch.tensor([[1, 2], [3, 1]])
    found = sample(step, torch.zeros(2), 0, 1, prompt=prompts, repetition_penalty=1e6, num_samples=3)
    assert found.tokens.tolist() == [[[3]] * 3, [[2]] * 3]
    with pytest.raises(ValueError, match="leaves no token"):
        sample(step, torch.zeros(2), 0, 4, no_repeat_ngram_size=1)
    found = sample(step, torch.zeros(many), 0, 12, no_repeat_ngram_size=2, generator=seeded(), stop=3, num_samples=2)
    for row, length in zip(found.tokens.flatten(0, 1).tolist(), found.valid_lens.flatten().tolist(), strict=True):
        pairs = list(itertools.pairwise([0, *row[: length + 1]]))
        assert len(pairs) == len(set(pairs))


def test_an_ended_row_that_has_used_all_tokens_does_not_matter():
    step = Table([0.0, 0.1, 0.9], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    prompt = torch.tensor([[2], [-1]])  # the first has nothing left but the end, and then not even that
    found = sample(step, torch.zeros(2), 0, 9, stop=1, prompt=prompt, no_repeat_ngram_size=1, generator=seeded())
    assert found.tokens.tolist() == [[1, 1], [2, 1]]


# ---- streams


def test_a_stream_yields_what_sample_collects():
    model, B = Model(6, seed=3), 4
    found = sample(model, start(B), BOS, 30, stop=EOS, generator=seeded(4), top_p=0.95)
    tokens = list(stream(model, start(B), BOS, stop=EOS, generator=seeded(4), top_p=0.95))
    assert torch.equal(torch.stack(tokens, 1), found.tokens) and 2 < len(tokens) < 30


def test_a_stream_comes_one_by_one_and_may_be_left():
    calls = []

    def step(tokens, state):
        calls.append(torch.is_grad_enabled())
        return TRAP(tokens, state)[0], state

    endless = stream(step, torch.zeros(2), BOS)
    assert calls == []
    for n in range(1, 4):
        assert next(endless).shape == (2,) and len(calls) == n
    assert calls == [False] * 3 and torch.is_grad_enabled()
    calls.clear()
    assert len(list(stream(step, torch.zeros(2), BOS, 5))) == len(calls) == 5


def test_nothing_is_stepped_after_the_last_token():
    model = Model(5, seed=0)
    assert sample(model, start(2), BOS, 3).tokens.shape == (2, 3) and model.calls == 3
    empty = sample(None, torch.zeros(0, 3), BOS, 5)
    assert empty.tokens.shape == empty.log_probs.shape == (0, 0) and empty.valid_lens.shape == empty.scores.shape == (
        0,
    )
    assert sample(None, torch.zeros(0, 3), BOS, 5, num_samples=2).tokens.shape == (0, 2, 0)
    assert list(stream(None, torch.zeros(0, 3), BOS)) == []


def test_a_state_of_nested_parts_goes_along():
    """`Model` itself looks at each step whether its parts belong together."""
    found = sample(Model(5, seed=0), start(3), torch.tensor([2, 3, 0]), 4, num_samples=3)
    assert found.tokens.shape == (3, 3, 4) and isinstance(start(3), State)


def test_half_precision_is_scored_in_float32():
    def step(tokens, state):
        return TRAP(tokens, state)[0].clamp(min=-20).bfloat16(), state

    found = sample(step, torch.zeros(3), BOS, 4, temperature=0.9)
    assert found.scores.dtype == found.log_probs.dtype == torch.float32


# ---- what is refused


@pytest.mark.parametrize("poison", [math.nan, torch.inf])
def test_logits_that_are_no_numbers_give_a_clear_error(poison):
    def step(tokens, state):
        logits = torch.zeros(len(tokens), 4)
        if state.shape[1] == 2:
            logits[-1, 2] = poison
        return logits, torch.cat([state, torch.zeros(len(tokens), 1)], 1)

    with pytest.raises(ValueError, match=r"step 2 gave logits that are NaN or infinite in rows \[2\]"):
        sample(step, torch.zeros(3, 0), BOS, 9)


def test_an_ended_row_may_be_fed_anything():
    def step(tokens, state):
        example, t = state.unbind(1)
        logits = torch.full((len(tokens), 4), -30.0)
        ends = (example == 0) | (t == 3)
        logits[ends, EOS] = logits[~ends, 2] = 0
        logits[(example == 0) & (t > 0)] = math.nan
        return logits, state + torch.tensor([0.0, 1.0])

    state = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    for options in ({}, {"top_k": 2, "top_p": 0.9, "repetition_penalty": 1.01}):
        found = sample(step, state, BOS, 9, stop=EOS, **options)
        assert found.tokens.tolist() == [[EOS] * 4, [2, 2, 2, EOS]] and found.scores.isfinite().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_len": 0}, "max_len is 0, expected an integer, at least 1"),
        ({"max_len": 2.5}, "max_len is 2.5, expected an integer"),
        ({"state": None}, "no tensor to tell the batch from"),
        ({"stop": 4}, "stop is 4 but there are 4 tokens"),
        ({"stop": [1, -2]}, "stop is -2"),
        ({"step": lambda tokens, state: (torch.zeros(1, 4), state)}, r"step 0 gave logits of shape \(1, 4\)"),
        ({"temperature": -1}, "temperature is -1"),
        ({"top_k": 5}, "top_k is 5, expected an integer from 1 to 4"),
        ({"top_p": 0.0}, r"top_p is 0\.0"),
    ],
)
def test_bad_input(change, message):
    arguments = {"step": TRAP, "state": torch.zeros(3), "bos": BOS, "max_len": 5} | change
    with pytest.raises(ValueError, match=message):
        sample(**arguments)
    with pytest.raises(ValueError, match=message):
        list(stream(**arguments))


def test_bad_input_of_sample():
    with pytest.raises(ValueError, match="num_samples is 0"):
        sample(TRAP, torch.zeros(3), BOS, 5, num_samples=0)
    with pytest.raises(TypeError, match="topk"):
        sample(TRAP, torch.zeros(3), BOS, 5, topk=3)
    with pytest.raises(ValueError, match="top_p is 2"):
        stream(TRAP, torch.zeros(3), BOS, top_p=2)  # before anything is asked for
    if torch.cuda.is_available():
        with pytest.raises(ValueError, match="the generator is on cuda"):
            sample(TRAP, torch.zeros(3), BOS, 5, generator=torch.Generator("cuda"))
