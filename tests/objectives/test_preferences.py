"""DPO by hand and at its minimum; log-probabilities by a loop; the best of n by simulation and by counting."""

import itertools
import math

import pytest
import torch

from d2lmini.objectives import (
    IGNORE_INDEX,
    Preference,
    answer_batch,
    best_of_n,
    best_of_n_kl,
    check_preferences,
    dpo_loss,
    expected_best_of,
    preference_pairs,
    sequence_log_probs,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_labels_are_those_of_the_answer():
    inputs, labels = answer_batch([[5, 6, 7], [8]], [[1, 2], [3, 4, 9]], pad=0)
    none = IGNORE_INDEX
    assert inputs.tolist() == [[5, 6, 7, 1], [8, 3, 4, 0]]
    assert labels.tolist() == [[none, none, 1, 2], [3, 4, 9, none]]


def test_log_probs_by_loop():
    logits = torch.randn(3, 5, 7, generator=seeded(), dtype=torch.float64)
    labels = torch.randint(7, (3, 5), generator=seeded(1))
    labels[0, :2] = labels[1, 3:] = IGNORE_INDEX
    found = sequence_log_probs(logits, labels)
    for b in range(3):
        want = sum(math.log(logits[b, t].softmax(0)[labels[b, t]]) for t in range(5) if labels[b, t] != IGNORE_INDEX)
        assert found[b].item() == pytest.approx(want)


def test_log_probs_refuse():
    logits, labels = torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.long)
    with pytest.raises(ValueError, match=r"expected \(B, T, V\) and \(B, T\)"):
        sequence_log_probs(logits, labels[:, 1:])
    with pytest.raises(ValueError, match="from another tokenizer"):
        sequence_log_probs(logits, labels + 5)
    with pytest.raises(ValueError, match="the logits of row 1 are not finite: did the training diverge"):
        sequence_log_probs(torch.stack([logits[0], logits[1] + float("nan")]), labels)
    labels[1] = IGNORE_INDEX
    with pytest.raises(ValueError, match="row 1 of the labels counts no token"):
        sequence_log_probs(logits, labels)


def four(size=6, seed=0):
    return (-8 * torch.rand(4, size, generator=seeded(seed), dtype=torch.float64)).unbind()


@pytest.mark.parametrize("beta", [0.1, 0.7])
def test_value_and_gradient_by_hand(beta):
    chosen, rejected, *reference = (x.clone().requires_grad_() for x in four())
    loss = dpo_loss(chosen, rejected, *reference, beta)
    want, slopes = 0.0, []
    for a, b, c, d in zip(chosen.tolist(), rejected.tolist(), *(x.tolist() for x in reference), strict=True):
        wrong = 1 / (1 + math.exp(beta * ((a - c) - (b - d))))  # the probability that it gives to the other order
        want -= math.log(1 - wrong) / len(chosen)
        slopes.append(-beta * wrong / len(chosen))
    assert loss.item() == pytest.approx(want)
    loss.backward()
    assert chosen.grad.tolist() == pytest.approx(slopes)
    assert rejected.grad.tolist() == pytest.approx([-slope for slope in slopes])
    assert all(x.grad is None for x in reference)


def test_the_reference_itself_has_log_2():
    one, other, *_ = four()
    assert dpo_loss(one, other, one, other).item() == pytest.approx(math.log(2))


@pytest.mark.parametrize(("beta", "rewards"), [(0.5, (1.0, 0.2)), (2.0, (0.0, 1.5))])
def test_minimum_of_two_answers(beta, rewards):
    """Preferences with the odds exp(r1 - r2): the log-odds move by the difference of the rewards over beta."""
    reference = torch.tensor([0.3, -0.4], dtype=torch.float64).log_softmax(0)
    first = torch.tensor(rewards[0] - rewards[1], dtype=torch.float64).sigmoid()  # how often the first is preferred
    scores = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([scores], max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-15)

    def loss():
        a, b = scores.log_softmax(0).split(1)
        c, d = reference.split(1)
        return first * dpo_loss(a, b, c, d, beta) + (1 - first) * dpo_loss(b, a, d, c, beta)

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)
    odds = (scores[0] - scores[1]).item()
    assert odds == pytest.approx((reference[0] - reference[1]).item() + (rewards[0] - rewards[1]) / beta, abs=1e-5)
    # and it is the policy that reward less beta KL is highest for
    p = torch.linspace(0.001, 0.999, 9_999, dtype=torch.float64)
    kl = p * (p.log() - reference[0]) + (1 - p) * ((1 - p).log() - reference[1])
    best = p[(p * rewards[0] + (1 - p) * rewards[1] - beta * kl).argmax()]
    assert best.logit().item() == pytest.approx(odds, abs=2e-3)


def test_dpo_refuses():
    a, b, c, d = four()
    with pytest.raises(ValueError, match=r"rejected has shape \(5,\), expected \(B,\) of all four"):
        dpo_loss(a, b[1:], c, d)
    with pytest.raises(ValueError, match="a pair at least"):
        dpo_loss(a[:0], b[:0], c[:0], d[:0])
    with pytest.raises(TypeError, match="were ids passed"):
        dpo_loss(a.long(), b, c, d)
    for bad in (-c, c / 0):
        with pytest.raises(ValueError, match="reference_chosen holds a number above 0, or not finite"):
            dpo_loss(a, b, bad, d)
    with pytest.raises(ValueError, match="beta is 0"):
        dpo_loss(a, b, c, d, 0)


def test_pairs_are_the_best_and_the_worst():
    answers = [[[1], [2], [3]], [[4], [5], [6]]]
    pairs = preference_pairs([[7], [8]], answers, [[0.1, 0.9, 0.0], [0.5, 0.5, 0.5]])
    assert pairs == [Preference([7], [2], [3])]
    with pytest.raises(ValueError, match=r"expected one of each answer of each prompt"):
        preference_pairs([[7]], answers, [[1.0, 0.0, 2.0]])


def test_preferences_that_teach_nothing():
    good = [Preference([1], [2], [3]), Preference([4], [2], [3])]
    check_preferences(good, 5)
    for pairs, message in [
        ([], "there is no preference pair"),
        ([Preference([1], [2], [2])], "pair 0: chosen equals rejected"),
        ([Preference([1], [], [2])], "pair 0 has an empty prompt or answer"),
        ([*good, good[0]], "pair 2 repeats pair 0"),
        ([*good, Preference([4], [3], [2])], "pair 2 contradicts pair 1"),
        ([*good, Preference([1], [2], [5])], r"pair 2 holds the id 5, expected 0 to 4: .* another tokenizer"),
        ([Preference([-1], [2], [3])], "holds the id -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_preferences(pairs, 5)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_kl_of_the_best_of_n_by_simulation(n):
    """Many answers, equally likely, no two as good: the exact divergence is that of the ranks."""
    K, draws = 400, 200_000
    rewards = torch.rand(draws, n, generator=seeded()).mul(K).floor()
    best = rewards.gather(1, best_of_n(rewards)[:, None])[:, 0]
    shares = best.long().bincount(minlength=K).double() / draws
    found = (shares * (shares * K).log()).nan_to_num().sum().item()
    assert found == pytest.approx(best_of_n_kl(n), abs=4e-3)


def test_ties_stay_below_the_bound():
    n, p = 4, 0.3  # a right answer has probability p; one keeps a right one if there is any
    q = 1 - (1 - p) ** n
    assert q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p)) < best_of_n_kl(n) - 0.1


def test_expected_best_by_counting():
    rewards = torch.tensor([[0.2, 0.9, 0.9, 0.1, 0.5]])
    values = torch.tensor([[3.0, 1.0, 2.0, 7.0, 5.0]])
    for n in range(1, 6):
        worth = []
        for chosen in itertools.combinations(range(5), n):
            top = max(rewards[0, i] for i in chosen)
            tied = [values[0, i].item() for i in chosen if rewards[0, i] == top]
            worth.append(sum(tied) / len(tied))
        assert expected_best_of(rewards, values, n).item() == pytest.approx(sum(worth) / len(worth))


def test_best_of_n_refuses():
    with pytest.raises(ValueError, match="not finite"):
        best_of_n(torch.tensor([[0.0, float("nan")]]))
    with pytest.raises(ValueError, match="n is 0"):
        best_of_n_kl(0)
    for n in (0, 3):
        with pytest.raises(ValueError, match=f"n is {n}, expected an integer from 1 to 2"):
            expected_best_of(torch.zeros(1, 2), torch.zeros(1, 2), n)
