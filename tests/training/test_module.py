"""What a model is to the loop."""

import pytest
import torch
from torch import nn
from toy_line import Line

from d2lmini.training import DataModule, Module


def test_classifier():
    model = Line(net=nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    Y_hat, Y = torch.tensor([[[0.1, 0.9, 0.0], [0.8, 0.1, 0.1]]]), torch.tensor([[1, 2]])
    assert model.accuracy(Y_hat, Y) == 0.5 and model.accuracy(Y_hat, Y, averaged=False).tolist() == [1, 0]
    losses = model.loss(Y_hat, Y, averaged=False)
    torch.testing.assert_close(losses, -Y_hat[0].log_softmax(1)[[0, 1], [1, 2]])
    torch.testing.assert_close(model.loss(Y_hat, Y), losses.mean())


def test_layer_summary(capsys):
    Line(net=nn.Sequential(nn.Linear(2, 3), nn.ReLU())).layer_summary((5, 2))
    assert capsys.readouterr().out.splitlines() == ["Linear output shape:\t(5, 3)", "ReLU output shape:\t(5, 3)"]


def test_module_errors_and_initialisation():
    with pytest.raises(NotImplementedError, match="neither a `net` nor a forward"):
        Module()(torch.zeros(1))
    with pytest.raises(NotImplementedError, match=r"Module has no loss\(Y_hat, Y\)"):
        Module().loss(0, 0)
    with pytest.raises(RuntimeError, match=r"works inside of Trainer\.fit"):
        Line().plot("loss", 1.0, train=True)
    with pytest.raises(NotImplementedError, match="DataModule has no get_dataloader"):
        DataModule().train_dataloader()
    model = Line(net=nn.Sequential(nn.LazyLinear(3)))
    model.apply_init([torch.zeros(1, 5)], lambda m: nn.init.ones_(m.weight) if isinstance(m, nn.Linear) else None)
    assert torch.equal(model.net[0].weight, torch.ones(3, 5))


@pytest.mark.parametrize(
    "batch", [[torch.zeros(9), torch.zeros(4, 2)], {"X": torch.zeros(1), "y": torch.zeros(4)}, torch.zeros(4)]
)
def test_a_batch_weighs_as_many_as_its_labels(batch):
    assert Module().batch_weight(batch) == 4
