"""Advantages by a loop; REINFORCE by autograd; expected gradients on a bandit, by all groups and by many draws."""

import itertools
import math
from statistics import mean, pstdev

import pytest
import torch

from d2lmini.objectives import (
    IGNORE_INDEX,
    group_advantages,
    policy_gradient_loss,
    sequence_log_probs,
    token_log_probs,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(B=5, T=7, V=4, seed=0):
    """Logits (B, T, V), labels (B, T) of answers of different lengths in the middle of rows, and advantages (B,)."""
    logits = torch.randn(B, T, V, generator=seeded(seed), dtype=torch.float64, requires_grad=True)
    labels = torch.randint(V, (B, T), generator=seeded(seed + 1))
    for row in range(B):
        labels[row, : row % 3] = IGNORE_INDEX
        labels[row, T - row % 4 :] = IGNORE_INDEX
    return logits, labels, torch.randn(B, generator=seeded(seed + 2), dtype=torch.float64)


# ---- advantages


@pytest.mark.parametrize("scale", [True, False])
def test_advantages_by_loop(scale):
    rewards = torch.randn(3, 4, generator=seeded(), dtype=torch.float64)
    for row, found in zip(rewards.tolist(), group_advantages(rewards, scale).tolist(), strict=True):
        s = pstdev(row) if scale else 1
        assert found == pytest.approx([(r - mean(row)) / s for r in row])


def test_right_and_wrong():
    found = group_advantages(torch.tensor([[True, False, False, False], [True, True, False, False]]))
    assert found.tolist() == [pytest.approx([3**0.5, *[-(3**-0.5)] * 3]), pytest.approx([1, 1, -1, -1])]


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("reward", [0.0, 0.1, 1.0, 1e6])
def test_equal_rewards_teach_nothing(reward, scale):
    rewards = torch.full((2, 7), reward)
    assert group_advantages(rewards, scale).eq(0).all()  # 0 to the last bit: the mean of seven 0.1 is not 0.1
    one = rewards.clone()
    one[0, 3] += 1
    assert group_advantages(one, scale)[0].ne(0).all() and group_advantages(one, scale)[1].eq(0).all()


def test_advantages_refuse():
    for bad in (torch.zeros(3), torch.zeros(0, 4), torch.zeros(2, 0)):
        with pytest.raises(ValueError, match=r"expected \(B, G\)"):
            group_advantages(bad)
    with pytest.raises(ValueError, match="a group of one answer, expected 2 or more"):
        group_advantages(torch.zeros(3, 1))
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="a reward of group 1 is NaN or infinite"):
            group_advantages(torch.tensor([[0.0, 1.0], [bad, 1.0]]))


# ---- log-probabilities


def test_log_probs_of_tokens_sum_to_those_of_answers():
    logits, labels, _ = drawn()
    found = token_log_probs(logits, labels)
    assert torch.equal(found == 0, labels == IGNORE_INDEX)
    torch.testing.assert_close(found.sum(1), sequence_log_probs(logits, labels))
    with pytest.raises(ValueError, match=r"expected \(B, T, V\) and \(B, T\)"):
        token_log_probs(logits, labels[:, 1:])
    with pytest.raises(ValueError, match="from another tokenizer"):
        token_log_probs(logits, labels.clamp(min=0) + 4)


# ---- the loss


@pytest.mark.parametrize("clip", [0.2, math.inf])
@pytest.mark.parametrize("by_length", [True, False])
def test_at_ratio_one_the_gradient_is_that_of_reinforce(by_length, clip):
    logits, labels, advantages = drawn()
    mask = labels != IGNORE_INDEX
    log_probs = token_log_probs(logits, labels)
    policy_gradient_loss(log_probs, log_probs.detach(), advantages, mask, clip=clip, by_length=by_length).backward()
    found, logits.grad = logits.grad, None
    total = 0
    for b in range(len(labels)):  # REINFORCE: the log-probability of each answer times what it is worth
        places = [t for t in range(labels.shape[1]) if labels[b, t] != IGNORE_INDEX]
        answer = sum(logits[b, t].log_softmax(0)[labels[b, t]] for t in places)
        total = total - advantages[b] * answer / (len(places) if by_length else 1)
    (total / len(labels)).backward()
    torch.testing.assert_close(found, logits.grad, rtol=1e-10, atol=1e-14)
    assert found[~mask].eq(0).all() and found[mask].ne(0).all()


def test_value_by_loop():
    logits, labels, advantages = drawn()
    mask = labels != IGNORE_INDEX
    new, old, ref = (token_log_probs(logits + d, labels).detach() for d in (0, drawn(seed=5)[0], drawn(seed=9)[0]))
    want = 0
    for b in range(len(labels)):
        terms = []
        for t in range(labels.shape[1]):
            if labels[b, t] != IGNORE_INDEX:
                rho, x, A = math.exp(new[b, t] - old[b, t]), (ref[b, t] - new[b, t]).item(), advantages[b].item()
                kept = min(max(rho, 0.7), 1.3)
                terms.append(min(rho * A, kept * A) - 0.4 * (math.exp(x) - x - 1))
        want -= mean(terms) / len(labels)
    found = policy_gradient_loss(new, old, advantages, mask, clip=0.3, reference=ref, beta=0.4)
    assert found.item() == pytest.approx(want)


@pytest.mark.parametrize(("advantage", "shift", "moves"), [(1, 0.3, 0), (1, -0.3, 1), (-1, 0.3, 1), (-1, -0.3, 0)])
def test_the_clip_stops_what_went_far_enough_and_lets_it_come_back(advantage, shift, moves):
    old = torch.full((1, 1), -1.0, dtype=torch.float64)
    new = (old + shift).requires_grad_()
    A, mask = torch.tensor([advantage], dtype=torch.float64), torch.ones(1, 1, dtype=torch.bool)
    policy_gradient_loss(new, old, A, mask, clip=0.2).backward()
    assert new.grad.item() == pytest.approx(-advantage * math.exp(shift) * moves)


def test_what_is_not_counted_has_no_effect():
    logits, labels, advantages = drawn()
    mask = labels != IGNORE_INDEX
    log_probs = token_log_probs(logits, labels)
    want = policy_gradient_loss(log_probs, log_probs.detach(), advantages, mask)
    spoilt = torch.where(mask, log_probs, math.nan)
    found = policy_gradient_loss(spoilt, torch.where(mask, log_probs, 7.0).detach(), advantages, mask)
    assert found.item() == want.item()
    found.backward()
    assert logits.grad.isfinite().all()


def test_the_price_is_the_divergence_in_the_mean():
    """Over all tokens, weighted by the policy, the mean of d is KL(policy || reference), and its gradient is right."""
    p = torch.randn(6, generator=seeded(), dtype=torch.float64).log_softmax(0)
    q = torch.randn(6, generator=seeded(1), dtype=torch.float64).log_softmax(0)
    mask = torch.ones(1, 1, dtype=torch.bool)

    def price(i):
        one = p[i].view(1, 1)
        args = one, one, torch.zeros(1, dtype=torch.float64), mask
        return policy_gradient_loss(*args, reference=q[i].view(1, 1), beta=2.0).item()

    found = sum(p[i].exp().item() * price(i) for i in range(6))
    assert found == pytest.approx(2 * (p.exp() * (p - q)).sum().item())


def test_loss_refuses():
    logits, labels, A = drawn()
    mask = labels != IGNORE_INDEX
    lp = token_log_probs(logits, labels).detach()
    good = {"log_probs": lp, "old_log_probs": lp, "advantages": A, "mask": mask}
    for wrong, error, message in [
        ({"clip": 0}, ValueError, "clip is 0, expected above 0"),
        ({"clip": math.nan}, ValueError, "clip is nan"),
        ({"beta": -1, "reference": lp}, ValueError, "beta is -1"),
        ({"beta": 0.1}, ValueError, "beta is 0.1, expected from 0, finite, and 0 where there is no reference"),
        ({"mask": mask.long()}, TypeError, "mask has dtype torch.int64, expected booleans"),
        ({"mask": mask[:, 1:]}, ValueError, r"expected \(B, T\) of both"),
        ({"mask": mask & (A.min() < A)[:, None]}, ValueError, f"row {int(A.argmin())} of the mask counts no token"),
        ({"log_probs": labels}, TypeError, "log_probs has dtype torch.int64, .* were ids passed"),
        ({"old_log_probs": lp[1:]}, ValueError, r"old_log_probs has shape \(4, 7\), expected \(5, 7\)"),
        ({"old_log_probs": -lp}, ValueError, "old_log_probs holds a number above 0, or not finite, in an answer"),
        ({"log_probs": lp / 0}, ValueError, "log_probs holds a number above 0, or not finite"),
        ({"reference": lp * math.nan}, ValueError, "reference holds a number above 0, or not finite"),
        ({"advantages": A[1:]}, ValueError, r"advantages have shape \(4,\) .* expected finite numbers \(5,\)"),
        ({"advantages": A * math.nan}, ValueError, "expected finite numbers"),
        ({"advantages": A.long()}, ValueError, "expected finite numbers"),
    ]:
        with pytest.raises(error, match=message):
            policy_gradient_loss(**good | wrong)


# ---- what the gradient estimates: a bandit of four arms, each answer one token


SCORES = torch.tensor([0.3, -0.8, 1.1, 0.2], dtype=torch.float64)
REWARDS = torch.tensor([1.0, 0.0, 0.0, 1.0], dtype=torch.float64)


def gradient(arms, scale, rewards=REWARDS):
    """Of the mean over groups of arms (B, G), with the sign of a climb: (4,)."""
    scores = SCORES.clone().requires_grad_()
    B, G = arms.shape
    log_probs = scores.log_softmax(0)[arms.flatten()][:, None]
    A = group_advantages(rewards[arms], scale).flatten()
    (-policy_gradient_loss(log_probs, log_probs.detach(), A, torch.ones(B * G, 1, dtype=torch.bool))).backward()
    return scores.grad


def of_the_mean_reward(rewards=REWARDS):
    scores = SCORES.clone().requires_grad_()
    (scores.softmax(0) @ rewards).backward()
    return scores.grad


def expected(G, scale, rewards=REWARDS):
    """Over all 4^G groups."""
    p, total = SCORES.softmax(0), torch.zeros(4, dtype=torch.float64)
    for group in itertools.product(range(4), repeat=G):
        group = torch.tensor(group)
        total += p[group].prod() * gradient(group[None], scale, rewards)
    return total


@pytest.mark.parametrize("G", [2, 3, 4])
def test_without_scale_it_is_the_gradient_of_the_mean_reward(G):
    rewards = torch.tensor([1.0, -0.5, 0.2, 2.0], dtype=torch.float64)  # any rewards
    torch.testing.assert_close(expected(G, False, rewards), (G - 1) / G * of_the_mean_reward(rewards))


def spread(p, G):
    """What k right answers of G give, in the mean over k: the mean of A r."""
    rewards = (torch.arange(G) < torch.arange(G + 1)[:, None]).double()  # (G + 1, G): k right ones
    each = (group_advantages(rewards) * rewards).mean(1).tolist()
    return sum(math.comb(G, k) * p**k * (1 - p) ** (G - k) * each[k] for k in range(G + 1))


@pytest.mark.parametrize("G", [2, 4])
def test_with_scale_the_direction_stays_where_rewards_are_right_and_wrong(G):
    p = (SCORES.softmax(0) @ REWARDS).item()
    torch.testing.assert_close(expected(G, True), spread(p, G) / (p * (1 - p)) * of_the_mean_reward())


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_large_groups_weigh_a_question_by_its_share_of_right_answers(p):
    assert spread(p, 400) / (p * (1 - p)) == pytest.approx(1 / math.sqrt(p * (1 - p)), rel=0.02)


def test_the_estimate_has_no_bias_by_chi_square():
    """2,000 estimates from groups that are drawn: their mean is off by no more than chance allows, and not by less."""
    G, n = 4, 2_000
    arms = torch.multinomial(SCORES.softmax(0), n * G, replacement=True, generator=seeded()).view(n, G)
    each = torch.stack([gradient(group[None], False) for group in arms])[:, :3]  # the fourth is what the others lack

    def distance(want):
        off = each.mean(0) - want
        return (off @ torch.linalg.solve(each.T.cov() / n, off)).item()

    right = (G - 1) / G * of_the_mean_reward()[:3]
    assert distance(right) < 16.27  # chi-square with 3 degrees of freedom: one in a thousand
    assert distance(right * G / (G - 1)) > 50  # it would see the factor
