"""Muon and AdamW as one optimizer do what each does alone."""

import copy

import pytest
import torch
from torch import nn

from d2lmini.training.optimizers import MuonWithAdamW, adamw_of, muon_of


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 7), nn.Tanh(), nn.Linear(7, 3))


def go(model, optimizer, steps, schedule=None):
    torch.manual_seed(1)
    scheduler = schedule and torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(5, 4)).square().sum().backward()
        optimizer.step()
        if scheduler:
            scheduler.step()


def split(model):
    return [model[0].weight], [model[0].bias, *model[2].parameters()]


def test_it_is_both():
    together, apart = net(), net()
    go(together, MuonWithAdamW(*split(together), lr=0.1, lr_others=0.01), 5)
    matrices, others = split(apart)
    muon = torch.optim.Muon(matrices, lr=0.1, weight_decay=0.0)
    adamw = torch.optim.AdamW(others, lr=0.01, betas=(0.9, 0.95), weight_decay=0.0)
    torch.manual_seed(1)
    for _ in range(5):
        apart.zero_grad()
        apart(torch.randn(5, 4)).square().sum().backward()
        muon.step(), adamw.step()
    for one, other in zip(together.parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_matrix_moves_by_the_same_in_all_directions():
    model = net()
    before = model[0].weight.detach().clone()
    go(model, MuonWithAdamW(*split(model), lr=0.1, lr_others=0.01), 1)
    moved = torch.linalg.svdvals(model[0].weight.detach() - before) / (0.1 * (7 / 4) ** 0.5)
    assert moved.min() > 0.6 and moved.max() < 1.3  # five steps of Newton and Schulz, in bf16


def test_schedules_reach_both_and_states_come_back():
    def half(step):
        return 0.5**step

    whole, cut = net(), net()
    go(whole, MuonWithAdamW(*split(whole)), 4, half)
    first = MuonWithAdamW(*split(cut))
    go(cut, first, 4, half)
    assert [round(g["lr"], 6) for g in first.param_groups] == [0.02 / 16, round(3e-3 / 16, 6)]
    again = copy.deepcopy(cut)
    second = MuonWithAdamW(*split(again))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    go(cut, first, 3), go(again, second, 3)
    for one, other in zip(cut.parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    fresh = copy.deepcopy(cut)
    go(fresh, MuonWithAdamW(*split(fresh)), 3), go(cut, first, 3)
    assert not torch.equal(fresh[0].weight, cut[0].weight), "the state makes no difference"


def test_who_gets_what():
    model = net()
    optimizer = muon_of(model, model[0])
    kinds = {id(p): group["kind"] for group in optimizer.param_groups for p in group["params"]}
    assert [kinds[id(p)] for p in model.parameters()] == ["muon", "adamw", "adamw", "adamw"]


def test_bad_input():
    model = net()
    with pytest.raises(ValueError, match="2D"):
        MuonWithAdamW([model[0].bias], [model[0].weight])
    with pytest.raises(ValueError, match="empty"):
        MuonWithAdamW([], list(model.parameters()))


def test_matrices_decay_and_nothing_else():
    model = net()
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = adamw_of(model, lr=0.1, weight_decay=0.5, betas=(0.8, 0.9))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for parameter, old in zip(model.parameters(), before, strict=True):
        torch.testing.assert_close(parameter.detach(), old * (0.95 if old.dim() == 2 else 1))
    assert all(group["betas"] == (0.8, 0.9) for group in optimizer.param_groups)
