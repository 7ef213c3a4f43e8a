"""Greedy and beam search against each other, a search by hand in plain Python, and all sequences there are."""

import itertools
import math

import pytest
import torch
from torch import nn
from toys import BOS, EOS, TRAP, Model, Table, check_form, cut, log_prob, penalised, start

from d2lmini.decoding import beam_search, greedy_search, reorder


@pytest.mark.parametrize("seed", range(5))
def test_greedy_takes_the_likeliest_token_until_the_end(seed):
    model, B, max_len = Model(5, seed), 6, 7
    found = greedy_search(model, start(B), BOS, EOS, max_len)
    check_form(found, B, max_len)
    for b in range(B):
        tokens = []
        while len(tokens) < max_len and EOS not in tokens:
            tokens.append(model.logits(b, [BOS, *tokens]).argmax().item())
        assert cut(found, b) == tokens
        assert found.scores[b].item() == pytest.approx(log_prob(model, b, tokens))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy(seed, alpha):
    model, B, max_len = Model(5, seed), 6, 7
    greedy = greedy_search(model, start(B), BOS, EOS, max_len)
    beam = beam_search(model, start(B), BOS, EOS, max_len, beam_size=1, length_penalty=alpha)
    assert torch.equal(beam.tokens, greedy.tokens) and torch.equal(beam.valid_lens, greedy.valid_lens)
    for b in range(B):
        expected = penalised(greedy.scores[b].item(), len(cut(greedy, b)), alpha)
        assert beam.scores[b].item() == pytest.approx(expected)


def all_sequences(model, example, max_len, alpha):
    """All there are, with their scores, the best last."""
    others = [v for v in range(model.V) if v != EOS]
    found = [list(p) for p in itertools.product(others, repeat=max_len)]
    for n in range(max_len):
        found += [[*p, EOS] for p in itertools.product(others, repeat=n)]
    return sorted((penalised(log_prob(model, example, y), len(y), alpha), y) for y in found)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 3.0])
@pytest.mark.parametrize(("V", "max_len"), [(2, 5), (3, 3), (4, 3), (3, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_all_sequences_is_exhaustive(V, max_len, alpha, seed):
    model, B = Model(V, seed), 4
    found = beam_search(model, start(B), BOS, EOS, max_len, beam_size=V**max_len, length_penalty=alpha)
    check_form(found, B, max_len)
    for b in range(B):
        ranked = all_sequences(model, b, max_len, alpha)
        assert found.scores[b].item() == pytest.approx(ranked[-1][0])
        assert cut(found, b) == ranked[-1][1]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 3.0])
@pytest.mark.parametrize(("V", "max_len", "n"), [(3, 3, 4), (4, 3, 9), (2, 3, 8)])
def test_a_beam_of_all_sequences_ranks_them(V, max_len, n, alpha):
    model, B = Model(V, seed=1), 3
    found = beam_search(model, start(B), BOS, EOS, max_len, V**max_len, alpha, num_return=n)
    assert found.tokens.shape[:2] == found.valid_lens.shape == found.scores.shape == (B, n)
    for b in range(B):
        ranked = all_sequences(model, b, max_len, alpha)[: -n - 1 : -1]
        assert found.scores[b, : len(ranked)].tolist() == pytest.approx([score for score, _ in ranked])
        rows = [found.tokens[b, i].tolist() for i in range(len(ranked))]
        assert [y[: y.index(EOS) + 1] if EOS in y else y for y in rows] == [y for _, y in ranked]
        assert (found.scores[b, len(ranked) :] == -torch.inf).all()  # of two tokens and three places only four


def test_the_best_of_several_is_the_one():
    model = Model(6, seed=4)
    one = beam_search(model, start(5), BOS, EOS, 8, 4, 0.7)
    several = beam_search(model, start(5), BOS, EOS, 8, 4, 0.7, num_return=3)
    assert (several.scores[:, 0] >= one.scores - 1e-9).all() and (several.scores.diff(dim=1) <= 0).all()
    assert all(len(set(map(tuple, rows))) == 3 for rows in several.tokens.tolist())  # no sequence twice
    single = beam_search(model, start(5), BOS, EOS, 8, 4, 0.7, num_return=1)
    assert torch.equal(single.tokens[:, 0], one.tokens) and torch.equal(single.scores[:, 0], one.scores)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_batch_is_its_examples_one_by_one(search):
    model, B = Model(6, seed=2), 5
    found = search(model, start(B), BOS, EOS, 8)
    for b in range(B):
        alone = search(model, start(B)._replace(**one_row(start(B), b)), BOS, EOS, 8)
        assert cut(alone, 0) == cut(found, b) and alone.scores[0] == pytest.approx(found.scores[b].item())


def one_row(state, b):
    return reorder(state, torch.tensor([b]))._asdict()


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_without_an_end_all_go_on(search):
    model, B, max_len = Model(4, seed=3), 3, 4
    found = search(model, start(B), BOS, None, max_len)
    assert found.tokens.shape == (B, max_len) and found.valid_lens.tolist() == [max_len] * B
    assert (found.tokens == EOS).any()  # a token like any other
    for b in range(B):
        assert found.scores[b].item() == pytest.approx(log_prob(model, b, found.tokens[b].tolist()))


def test_a_wide_beam_without_an_end_is_exhaustive():
    model, V, max_len = Model(3, seed=5), 3, 4
    found = beam_search(model, start(1), BOS, None, max_len, V**max_len, num_return=5)
    every = sorted(
        ((log_prob(model, 0, y), list(y)) for y in itertools.product(range(V), repeat=max_len)), reverse=True
    )
    assert found.tokens[0].tolist() == [y for _, y in every[:5]]
    assert found.scores[0].tolist() == pytest.approx([score for score, _ in every[:5]])


def test_greedy_may_end_in_several_ways():
    model, B, max_len = Model(6, seed=0), 8, 7
    endless = greedy_search(model, start(B), BOS, None, max_len)
    found = greedy_search(model, start(B), BOS, [EOS, 4], max_len)
    lasts = set()
    for b in range(B):
        path = endless.tokens[b].tolist()
        length = min([path.index(v) for v in (EOS, 4) if v in path], default=max_len)
        assert found.valid_lens[b] == length
        want = path[: length + 1]
        assert found.tokens[b].tolist() == want + want[-1:] * (found.tokens.shape[1] - len(want))
        assert found.scores[b].item() == pytest.approx(log_prob(model, b, want))
        lasts.add(want[-1])
    assert {EOS, 4} <= lasts


def beam_by_hand(model, example, max_len, K, alpha):
    """The rules of `beam_search` for one example with lists; it goes on even where nothing can win any more."""
    live, ended = [(0.0, [])], []
    for t in range(1, max_len + 1):
        candidates = []
        for total, tokens in live:
            log_probs = model.logits(example, [BOS, *tokens]).log_softmax(-1).tolist()
            candidates += [(total + p, [*tokens, v]) for v, p in enumerate(log_probs)]
        candidates.sort(reverse=True)
        ended += [(penalised(total, t, alpha), y) for total, y in candidates[:K] if y[-1] == EOS]
        live = [(total, y) for total, y in candidates if y[-1] != EOS][:K]
        if len(ended) >= K and sorted(ended)[-K][0] >= penalised(live[0][0], t, alpha):
            return max(ended)
    return max(ended + [(penalised(total, max_len, alpha), y) for total, y in live])


@pytest.mark.parametrize("alpha", [0.0, 0.8, 2.0])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_beam_search_equals_the_search_by_hand(K, alpha):
    model, B, max_len = Model(6, seed=K), 12, 8
    found = beam_search(model, start(B), BOS, EOS, max_len, K, alpha)
    check_form(found, B, max_len)
    for b in range(B):
        score, tokens = beam_by_hand(model, b, max_len, K, alpha)
        assert cut(found, b) == tokens
        assert found.scores[b].item() == pytest.approx(score)


def test_a_beam_finds_what_greedy_misses():
    greedy = greedy_search(TRAP, torch.zeros(1), BOS, EOS, 5)
    beam = beam_search(TRAP, torch.zeros(1), BOS, EOS, 5, beam_size=2)
    assert greedy.tokens.tolist() == [[2, EOS]] and beam.tokens.tolist() == [[3, EOS]]
    assert math.exp(greedy.scores) == pytest.approx(0.3) and math.exp(beam.scores) == pytest.approx(0.396)


def test_what_has_ended_is_kept_though_others_go_on():
    """<eos> comes first with 0.4, then every continuation is worse: 0.6 is spread over many."""
    model = Table([0.0, 0.4, 0.3, 0.3], [1, 0, 0, 0], [0.0, 0.1, 0.45, 0.45], [0.0, 0.1, 0.45, 0.45])
    calls = []

    def step(tokens, state):
        calls.append(len(tokens))
        return model(tokens, state)

    found = beam_search(step, torch.zeros(2), BOS, EOS, 6, beam_size=3)
    assert found.tokens.tolist() == [[EOS], [EOS]] and found.valid_lens.tolist() == [0, 0]
    assert calls == [6]  # 0.3 cannot grow to 0.4


def test_the_length_penalty_favours_longer_sequences():
    model = Table([0.0, 0.4, 0.6, 0.0], [1, 0, 0, 0], [0.0, 0.35, 0.0, 0.65], [0.0, 1.0, 0.0, 0.0])
    lengths = [
        beam_search(model, torch.zeros(1), BOS, EOS, 9, 4, length_penalty=alpha).valid_lens.item() for alpha in (0, 3)
    ]
    assert lengths == [0, 2]


def test_it_stops_when_all_have_ended_and_when_nothing_can_win():
    model = Model(4, 0)
    forced = torch.full((4,), -50.0).index_fill(0, torch.tensor(EOS), 50.0).double()
    model.logits = lambda example, prefix: forced if len(prefix) >= 2 + example else forced.flip(0)
    found = greedy_search(model, start(3), BOS, EOS, 100)
    assert model.calls == 4 and found.valid_lens.tolist() == [1, 2, 3]
    model.calls = 0
    assert beam_search(model, start(3), BOS, EOS, 100, 3, 1.0).valid_lens.tolist() == [1, 2, 3]
    assert model.calls <= 5


def test_an_empty_batch_is_never_stepped():
    for search in (greedy_search, beam_search):
        found = search(None, torch.zeros(0, 3), BOS, EOS, 5)
        assert found.tokens.shape == (0, 0) and found.valid_lens.shape == found.scores.shape == (0,)


def test_a_first_token_per_example():
    bos = torch.tensor([2, 3, 0])
    for search in (greedy_search, beam_search):
        found = search(TRAP, None, bos, EOS, 5)
        assert found.tokens[:2].tolist() == [[EOS, EOS]] * 2 and found.valid_lens[2] == 1


def test_states_are_not_changed_and_no_graph_is_built():
    layer, given = nn.Linear(3, 4), []

    def step(tokens, state):
        given.append((state["h"], state["h"].clone()))
        logits = layer(state["h"]) + nn.functional.one_hot(tokens, 4)
        assert not logits.requires_grad
        return logits, {"h": torch.tanh(state["h"] + tokens[:, None])}

    first = torch.randn(2, 3)
    for search in (greedy_search, beam_search):
        search(step, {"h": first}, BOS, EOS, 6)
    assert given and all(torch.equal(now, then) for now, then in given)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_scored_in_float32(dtype):
    def step(tokens, state):
        return TRAP(tokens, state)[0].clamp(min=-20).to(dtype).to(state.dtype), state

    for search in (greedy_search, beam_search):
        found = search(step, torch.zeros(2, dtype=dtype), BOS, EOS, 5)
        wide = search(step, torch.zeros(2), BOS, EOS, 5)  # the same logits in float32
        assert found.scores.dtype == torch.float32 and torch.equal(found.scores, wide.scores)
        assert found.valid_lens.tolist() == [1, 1]


@pytest.mark.parametrize("search", [greedy_search, beam_search])
@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
@pytest.mark.parametrize("column", [slice(None), 2])
def test_logits_that_are_no_numbers_give_a_clear_error(search, poison, column):
    def step(tokens, state):
        logits = torch.tensor([0.0, -20, 0, 0]).repeat(len(tokens), 1)
        if state.shape[1] == 2:
            logits[-1, column] = poison
        return logits, torch.cat([state, torch.zeros(len(tokens), 1)], 1)

    with pytest.raises(ValueError, match=r"step 2 gave logits that are NaN or infinite in rows \[\d+\]"):
        search(step, torch.zeros(3, 0), BOS, EOS, 9)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_beam_copies_what_changes_and_only_where_hypotheses_swap_places(beam_size):
    """The memory is handed on as it is; the prefixes are tensors of their own at every step."""
    seen, model = [], Model(5, seed=3)

    def step(tokens, state):
        memory, prefix, example = state
        prefix = torch.cat([prefix, tokens[:, None]], 1)
        rows = zip(example.tolist(), prefix.tolist(), strict=True)
        assert torch.equal(memory[:, 0], example.double())
        new = (memory, prefix, example)
        seen.append((state, new))
        return torch.stack([model.logits(e, p) for e, p in rows]), new

    example = torch.arange(3)
    found = beam_search(step, (example[:, None].double(), torch.zeros(3, 0).long(), example), BOS, EOS, 8, beam_size)
    expected = beam_search(Model(5, seed=3), start(3), BOS, EOS, 8, beam_size)
    assert torch.equal(found.tokens, expected.tokens) and torch.equal(found.scores, expected.scores)
    first = seen[0][0]
    assert all(state[0] is first[0] and state[2] is first[2] for state, _ in seen)
    steps = [(new[1], later[1]) for (_, new), (later, _) in itertools.pairwise(seen)]
    assert steps and all(new is later for new, later in steps) == (beam_size == 1)


def test_what_an_ended_example_is_fed_does_not_matter():
    """The first example ends at once, and its logits are NaN from then on; the second takes three tokens."""

    def step(tokens, state):
        example, t = state.unbind(1)
        logits = torch.full((len(tokens), 4), -30.0)
        ends = (example == 0) | (t == 3)
        logits[ends, EOS] = logits[~ends, 2] = 0
        logits[(example == 0) & (t > 0)] = torch.nan
        return logits, state + torch.tensor([0.0, 1.0])

    for search in (greedy_search, beam_search):
        found = search(step, torch.tensor([[0.0, 0.0], [1.0, 0.0]]), BOS, EOS, 9)
        assert found.tokens.tolist() == [[EOS] * 4, [2, 2, 2, EOS]]


@pytest.mark.parametrize("search", [greedy_search, beam_search])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_len": 0}, "max_len is 0, expected an integer, at least 1"),
        ({"max_len": 2.5}, "max_len is 2.5, expected an integer"),
        ({"state": None}, "no tensor to tell the batch from"),
        ({"eos": 4}, "eos is 4 but there are 4 tokens"),
        ({"step": lambda tokens, state: (torch.zeros(len(tokens), 1, 4), state)}, "step 0 gave logits of shape"),
        ({"step": lambda tokens, state: (torch.zeros(1, 4), state)}, r"step 0 gave logits of shape \(1, 4\)"),
    ],
)
def test_bad_input(search, change, message):
    arguments = {"step": TRAP, "state": torch.zeros(3), "bos": BOS, "eos": EOS, "max_len": 5}
    with pytest.raises(ValueError, match=message):
        search(**(arguments | change))


def test_bad_input_of_beam_search():
    with pytest.raises(ValueError, match="beam_size is 0"):
        beam_search(TRAP, torch.zeros(3), BOS, EOS, 5, 0)
    for penalty in (-1, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"length_penalty is {penalty}, expected a number 0 or more, and finite"):
            beam_search(TRAP, torch.zeros(3), BOS, EOS, 5, 2, penalty)
    for n in (0, 5):
        with pytest.raises(ValueError, match=f"num_return is {n}, expected an integer from 1 to 4"):
            beam_search(TRAP, torch.zeros(3), BOS, EOS, 5, 4, num_return=n)
    with pytest.raises(ValueError, match=r"eos is \[1, 2\], expected one token or None"):
        beam_search(TRAP, torch.zeros(3), BOS, [1, 2], 5, 4)
