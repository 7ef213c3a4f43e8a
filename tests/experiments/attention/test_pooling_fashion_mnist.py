"""Attention pooling over Fashion-MNIST: the formula, its losses, the features of images."""

import dataclasses
import sys

import pytest
import torch
from torch.nn import functional as F

from d2lmini.experiments import pooling_fashion_mnist as pooled
from d2lmini.pooling import GaussianKernel, nadaraya_watson


@pytest.fixture
def stored():
    generator = torch.Generator().manual_seed(0)
    keys = torch.randn(40, 6, generator=generator)
    return keys, torch.randint(10, (40,), generator=generator), torch.randn(700, 6, generator=generator)


def test_pooled_classes_is_nadaraya_watson(stored):
    keys, labels, queries = stored
    got = pooled.pooled_classes(queries, keys, labels, 0.7)
    expected, _ = nadaraya_watson(keys, F.one_hot(labels, 10).float(), queries, GaussianKernel(0.7))
    torch.testing.assert_close(got, expected)


def test_leave_one_out_loss_is_what_a_loop_gives(stored):
    keys, labels, _ = (x[:12] for x in stored)
    labels = labels % 3
    labels[7] = 9  # alone in its class: cannot be predicted, does not count
    losses = []
    for i in range(8):  # the first eight are queries
        others = [j for j in range(12) if j != i]
        weights = torch.softmax(torch.stack([-((keys[i] - keys[j]) ** 2).sum() / 2 for j in others]), 0)
        right = sum(w for w, j in zip(weights, others, strict=True) if labels[j] == labels[i])
        if right:
            losses.append(-right.log())
    assert len(losses) == 7
    scores = pooled.gaussian_scores(keys[:8], keys).requires_grad_()
    loss = pooled.leave_one_out_loss(scores, labels)
    torch.testing.assert_close(loss, torch.stack(losses).mean())
    loss.backward()
    assert scores.grad.isfinite().all()


def test_learned_width_is_the_best(stored):
    keys, labels = 7 * stored[0], (stored[0][:, :2].sum(1) > 0).long()
    width, losses = pooled.learn_width(keys, labels, 40)
    assert losses[-1] < losses[0]

    def loss(width):
        return pooled.leave_one_out_loss(pooled.gaussian_scores(keys, keys) / width**2, labels)

    assert all(loss(width) <= loss(width * factor) for factor in (0.5, 0.9, 1.1, 2))


def test_oriented_gradients_see_edges():
    flat = torch.full((1, 28, 28), 200, dtype=torch.uint8)
    assert pooled.oriented_gradients(flat).abs().max() == 0
    edge = torch.zeros(1, 28, 28, dtype=torch.uint8)
    edge[:, :, 14:] = 255  # grows to the right: direction 0, the first bin
    votes = pooled.oriented_gradients(torch.cat([edge, edge.mT])).view(2, 9, 7, 7)
    assert votes[0].sum((1, 2)).argmax() == 0 and votes[0, :, :, :2].abs().max() == 0
    assert votes[0, 1:].abs().max() == 0
    assert set(votes[1].sum((1, 2)).topk(2).indices.tolist()) == {2, 3}  # a quarter turn is 2.25 bins
    assert pooled.oriented_gradients(edge).shape == (1, 441)


def test_projection_learns(stored):
    keys = stored[0].repeat(5, 1)
    noise = torch.randn(200, generator=torch.Generator().manual_seed(1))
    keys[:, 1] = 30 * noise  # a loud feature that says nothing
    labels = (keys[:, 0] > 0).long()
    config = dataclasses.replace(pooled.Config(), dim=3, lr=0.05, min_steps=60)
    torch.manual_seed(0)
    _, losses = pooled.learn_projection(keys, labels, config)
    assert sum(losses[-5:]) / 5 < 0.5 * sum(losses[:5]) / 5


def test_too_many_stored():
    config = dataclasses.replace(pooled.PRESETS["smoke"], stored=(5_000,))
    with pytest.raises(ValueError, match=r"5000 stored and 200 test images, .* \(shipped\) has 2000"):
        pooled.run(config, torch.device("cpu"))


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"pip install 'd2lmini\[experiments\]'"):
        pooled.run(pooled.PRESETS["smoke"], torch.device("cpu"))
