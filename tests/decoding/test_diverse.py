"""Diverse beam search against one written with lists, and against beam search."""

import pytest
import torch
from toys import BOS, EOS, Model, log_prob, penalised, start

from d2lmini.decoding import beam_search, diverse_beam_search


def by_hand(model, example, max_len, K, G, strength, alpha):
    """For each group its sequences with their scores, the best first, for one example."""
    each = K // G
    groups = [{"live": [(0.0, [])], "ended": [], "done": False} for _ in range(G)]
    for t in range(1, max_len + 1):
        chosen = []  # by the groups before, at this step
        for group in groups:
            if group["done"]:
                continue
            candidates = []
            for total, tokens in group["live"]:
                after = model.logits(example, [BOS, *tokens]).log_softmax(-1).tolist()
                for v, p in enumerate(after):
                    rank = total + p - strength * chosen.count(v)
                    candidates.append((rank, total + p, [*tokens, v]))
            candidates.sort(reverse=True)
            group["ended"] += [(penalised(p, t, alpha), y) for _, p, y in candidates[:each] if y[-1] == EOS]
            group["ended"] = sorted(group["ended"], reverse=True)[:each]
            group["live"] = [(p, y) for _, p, y in candidates if y[-1] != EOS][:each]
            best = max(p for p, _ in group["live"])
            full = len(group["ended"]) == each
            if full and group["ended"][-1][0] >= penalised(best, t, alpha):
                group["done"] = True
                group["live"] = []
            chosen += [y[-1] for _, y in group["live"]]
    return [
        sorted(g["ended"] + [(penalised(p, max_len, alpha), y) for p, y in g["live"]], reverse=True)[:each]
        for g in groups
    ]


@pytest.mark.parametrize("alpha", [0.0, 0.8])
@pytest.mark.parametrize(("K", "G"), [(4, 4), (6, 3), (6, 2), (3, 1)])
@pytest.mark.parametrize("strength", [0.3, 2.0])
def test_it_equals_the_search_by_hand(K, G, strength, alpha):
    model, B, max_len = Model(7, seed=K + G), 5, 6
    found = diverse_beam_search(model, start(B), BOS, EOS, max_len, K, G, strength, alpha)
    assert found.tokens.shape[:3] == found.valid_lens.shape == found.scores.shape == (B, G, K // G)
    for b in range(B):
        want = by_hand(model, b, max_len, K, G, strength, alpha)
        for g in range(G):
            rows = found.tokens[b, g].tolist()
            assert [y[: y.index(EOS) + 1] if EOS in y else y for y in rows] == [y for _, y in want[g]]
            assert found.scores[b, g].tolist() == pytest.approx([score for score, _ in want[g]])


@pytest.mark.parametrize(("K", "G", "strength"), [(6, 2, 0.0), (4, 4, 0.0), (3, 1, 5.0)])
def test_without_a_penalty_or_with_one_group_it_is_beam_search(K, G, strength):
    model, B = Model(6, seed=1), 4
    found = diverse_beam_search(model, start(B), BOS, EOS, 7, K, G, strength, 0.6)
    beam = beam_search(model, start(B), BOS, EOS, 7, K // G, 0.6, num_return=K // G)
    for g in range(G):
        assert torch.equal(found.scores[:, g], beam.scores) and torch.equal(found.valid_lens[:, g], beam.valid_lens)
        assert torch.equal(found.tokens[:, g], beam.tokens)


def test_a_strong_penalty_drives_the_groups_apart():
    """As many groups as tokens, <eos> apart, which never comes: at each step all choose another one."""
    model, G = Model(6, seed=3), 5
    model.logits = lambda example, prefix: Model.logits(model, example, prefix).index_fill(0, torch.tensor(EOS), -50)
    found = diverse_beam_search(model, start(4), BOS, EOS, 3, G, G, 40.0)
    for b in range(4):
        first = model.logits(b, [BOS]).argsort(descending=True)[:G]
        assert found.tokens[b, :, 0, 0].tolist() == first.tolist()
        assert all(len(set(found.tokens[b, :, 0, t].tolist())) == G for t in range(3))
        for g in range(G):  # what was paid enters no score
            assert found.scores[b, g, 0].item() == pytest.approx(log_prob(model, b, found.tokens[b, g, 0].tolist()))


def test_without_an_end():
    found = diverse_beam_search(Model(5, seed=0), start(2), BOS, None, 4, 4, 2, 1.0)
    assert found.tokens.shape == (2, 2, 2, 4) and (found.valid_lens == 4).all() and found.scores.isfinite().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 5, "num_groups": 2}, "beam_size is 5, expected a multiple of num_groups, which is 2"),
        ({"num_groups": 0}, "num_groups is 0"),
        ({"beam_size": 0, "num_groups": 1}, "beam_size is 0"),
        ({"diversity_penalty": -0.1}, "diversity_penalty is -0.1, expected a number 0 or more"),
        ({"diversity_penalty": float("nan")}, "diversity_penalty is nan"),
        ({"num_groups": True}, "num_groups is True, expected an integer"),
        ({"diversity_penalty": "1"}, "diversity_penalty is '1'"),
        ({"length_penalty": -1}, "length_penalty is -1"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        diverse_beam_search(Model(5, 0), start(2), BOS, EOS, 4, **options)
