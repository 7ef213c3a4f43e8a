"""The residual network: its size, its shapes, its blocks by hand, and what it refuses."""

import pytest
import torch
from torch.nn import functional as F

from d2lmini.models.resnet import Residual, ResNet, arch_for

SMALL = ((1, 4), (2, 6))


def test_the_number_of_parameters_by_hand():
    model = ResNet(SMALL, num_channels=3)
    stem = 9 * 3 * 4 + 2 * 4
    first = 9 * 4 * 4 * 2 + 2 * 2 * 4
    second = 9 * (4 * 6 + 6 * 6) + 2 * 2 * 6 + 4 * 6  # with a 1 x 1 convolution
    third = 9 * 6 * 6 * 2 + 2 * 2 * 6
    assert model.num_parameters == stem + first + second + third + 6 * 10 + 10
    assert ResNet(((2, 32), (2, 64), (2, 128))).num_parameters == 695_658


@pytest.mark.parametrize("asked", [100_000, 205_000, 1_500_000])
def test_a_size_can_be_asked_for(asked):
    arch = arch_for(asked)
    found = ResNet(arch).num_parameters
    assert abs(found - asked) < 0.07 * asked
    width = arch[0][1]
    neighbours = [ResNet(tuple((2, w * 2**i) for i in range(3))).num_parameters for w in (width - 1, width + 1)]
    assert all(abs(found - asked) <= abs(other - asked) for other in neighbours)
    assert arch_for(asked, multiple=8)[0][1] in (width // 8 * 8, width // 8 * 8 + 8)
    assert arch_for(50_000, blocks=(1, 3))[1] == (3, 2 * arch_for(50_000, blocks=(1, 3))[0][1])


def test_a_size_too_small_to_have():
    with pytest.raises(ValueError, match="a width of 1 has 793 parameters already, 100 were asked for"):
        arch_for(100)


def test_a_block_by_hand():
    torch.manual_seed(0)
    block = Residual(6, use_1x1conv=True, strides=2, num_inputs=4).eval()
    for norm in (block.bn1, block.bn2):
        norm.running_mean.normal_()
        norm.running_var.uniform_(0.5, 2)
    X = torch.randn(3, 4, 9, 7)

    def norm(bn, Y):
        return (Y - bn.running_mean[:, None, None]) / (bn.running_var[:, None, None] + bn.eps).sqrt()

    Y = norm(block.bn1, F.conv2d(X, block.conv1.weight, stride=2, padding=1)).relu()
    Y = norm(block.bn2, F.conv2d(Y, block.conv2.weight, padding=1))
    want = (Y + F.conv2d(X, block.conv3.weight, stride=2)).relu()
    assert want.shape == (3, 6, 5, 4)
    torch.testing.assert_close(block(X), want)


def test_a_new_network_passes_its_stem_on():
    """Every branch starts at zero, so blocks of equal shape change nothing."""
    torch.manual_seed(0)
    model = ResNet(((3, 5),)).eval()
    X = torch.randn(2, 1, 8, 8)
    torch.testing.assert_close(model.net[:4](X), model.net[:3](X))


def test_shapes():
    model = ResNet(((1, 4), (1, 6), (1, 8)), num_classes=7, num_channels=2)
    X = torch.randn(3, 2, 28, 28)
    assert model(X).shape == (3, 7)
    assert model.net[:-4](X).shape == (3, 8, 7, 7)
    assert model(torch.randn(3, 2, 20, 36)).shape == (3, 7)  # any size
    assert Residual(5)(torch.randn(2, 5, 4, 4)).shape == (2, 5, 4, 4)  # D2L's call, sized by its first input


def test_evaluation_takes_each_image_by_itself():
    model = ResNet(SMALL).eval()
    X = torch.randn(4, 1, 12, 12)
    torch.testing.assert_close(model(X)[:1], model(X[:1]))


@pytest.mark.train
def test_it_learns():
    torch.manual_seed(0)
    X, Y = torch.randn(40, 1, 8, 8), torch.arange(40) % 4
    model = ResNet(((1, 8), (2, 12)), num_classes=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(40):
        loss = model.loss(model(X), Y)
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None for p in model.parameters())
        optimizer.step()
    assert model.eval().accuracy(model(X), Y) > 0.9


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (torch.zeros(2, 1, 8, 8, dtype=torch.uint8), TypeError, "uint8, expected floats"),
        (torch.zeros(2, 3, 8, 8), ValueError, "3 channels, expected 1"),
        (torch.zeros(2, 8, 8), ValueError, r"shape \(2, 8, 8\), expected \(N, channels"),
    ],
)
def test_bad_images(images, error, message):
    with pytest.raises(error, match=message):
        ResNet(SMALL)(images)


def test_bad_blocks():
    with pytest.raises(ValueError, match=r"\(2, 4, 8, 8\) but what is added to it \(2, 4, 4, 4\): use_1x1conv"):
        Residual(4, strides=2)(torch.zeros(2, 4, 8, 8))
    with pytest.raises(ValueError, match="expected a pair"):
        ResNet(())
    with pytest.raises(ValueError, match="with blocks from 1"):
        ResNet(((1, 4), (0, 8)))


def test_the_experiment_compares_networks_of_one_size():
    from d2lmini.experiments import vision_cnn, vision_vit

    assert vision_cnn.PRESETS.keys() - vision_vit.PRESETS.keys() == {"compact"}
    for config in vision_cnn.PRESETS.values():
        size = vision_cnn.make(config).num_parameters
        assert abs(size - config.parameters) < 0.05 * config.parameters and size <= 3_000_000
    assert vision_vit.PRESETS.keys() - vision_cnn.PRESETS.keys() == {"page"}  # one is in the page, and has no rival
    for preset, other in vision_vit.PRESETS.items():
        if preset == "page":
            continue
        config, size = vision_cnn.PRESETS[preset], vision_vit.make(other).num_parameters
        assert size == config.parameters <= 3_000_000
        assert (config.num_train, config.shift, config.seeds) == (other.num_train, other.shift, other.seeds)
    full, other = vision_cnn.PRESETS["full"], vision_vit.PRESETS["full"]
    assert (full.steps, full.batch_size) == (other.steps, other.batch_size)
