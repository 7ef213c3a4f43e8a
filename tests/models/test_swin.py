"""Swin: what its blocks are, its stages, its size, and what it refuses."""

from dataclasses import replace

import pytest
import torch

from d2lmini.models.swin import Swin, SwinBlock, SwinConfig

SMALL = SwinConfig(img_size=16, num_hiddens=8, num_heads=(2, 4), num_blks=(2, 2), window_size=4)


def test_a_block_is_norm_attention_norm_network():
    torch.manual_seed(0)
    block, X = SwinBlock(6, 2, 4, 12, shift=2).double().eval(), torch.randn(2, 8, 8, 6).double()
    Y = X + block.attention(block.ln1(X))
    torch.testing.assert_close(block(X), Y + block.mlp(block.ln2(Y)))
    changed = X.clone()
    changed[:, 0, 7] += torch.randn(6)
    moved = (block(changed) - block(X)).abs().amax(-1) > 0
    assert moved[:, :2, 6:].all() and moved.sum() == 2 * 4  # it keeps to its window


def test_maps_are_normalized_before_their_mean():
    torch.manual_seed(0)
    model, X = Swin(SMALL).eval(), torch.rand(3, 1, 16, 16)
    torch.testing.assert_close(model(X), model.head(model.norm(model.features(X)[-1]).flatten(1, 2).mean(1)))


def test_shapes_of_the_stages_and_weights():
    model = Swin(SMALL).eval()
    X = torch.rand(3, 1, 16, 16)
    assert [tuple(x.shape) for x in model.features(X)] == [(3, 8, 8, 8), (3, 4, 4, 16)]
    assert model(X).shape == (3, 10)
    assert [tuple(w.shape) for w in model.attention_weights] == [(24, 16, 16)] * 2 + [(12, 16, 16)] * 2
    assert model(torch.rand(2, 1, 32, 16)).shape == (2, 10)  # what patches, windows and merging divide


def test_shifts_alternate_and_deeper_blocks_drop_more():
    model = Swin(replace(SMALL, drop_path=0.3))
    blocks = [m for m in model.modules() if isinstance(m, SwinBlock)]
    assert [b.attention.shift for b in blocks] == [0, 2, 0, 2]
    assert [b.drop_path.rate for b in blocks] == pytest.approx([0, 0.1, 0.2, 0.3])


def test_the_default_is_small_and_its_parameters_are_counted():
    model = Swin()
    h = 48
    of_block = lambda h, H: 12 * h * h + 9 * h + 4 * h + 13 * 13 * H  # noqa: E731
    want = (
        4 * h + h + 2 * h + 2 * of_block(h, 3) + 8 * h + 8 * h * h + 2 * of_block(2 * h, 6) + 4 * h + (2 * h + 1) * 10
    )
    assert model.num_parameters == want < 3_000_000
    assert set(dict(model.state_dict())) == {name for name, _ in model.named_parameters()}


def test_a_picture_does_not_depend_on_its_batch_and_training_mode_returns():
    model = Swin(replace(SMALL, dropout=0.1, drop_path=0.2)).eval()
    X = torch.rand(4, 1, 16, 16)
    torch.testing.assert_close(model(X)[2:3], model(X[2:3]))
    model.train()
    assert not torch.equal(model(X), model(X))


@pytest.mark.train
def test_it_learns():
    torch.manual_seed(0)
    model = Swin(replace(SMALL, num_classes=2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    X, labels = torch.rand(8, 1, 16, 16), torch.arange(8) % 2
    X[:, :, 6:, 6:] *= 1 + 4 * labels[:, None, None, None]
    for _ in range(30):
        optimizer.zero_grad()
        model.loss(model(X), labels).backward()
        optimizer.step()
    assert model.accuracy(model(X), labels) == 1
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"img_size": 15}, "15 x 15 pixels, which patches of 2 do not divide"),
        ({"window_size": 3}, "stage 1 has 8 x 8 patches, which windows of 3 do not divide"),
        ({"window_size": 8}, "stage 2 has 4 x 4 patches, which windows of 8 do not divide"),
        (
            {"img_size": 20, "window_size": 5, "num_blks": (1, 1, 1), "num_heads": (1, 1, 1)},
            "grid of stage 2 has 5 x 5 patches, which cannot be merged",
        ),
        ({"num_heads": (2, 3)}, "multiple of num_heads, 3"),
        ({"num_heads": (2,)}, "2 stages but num_heads has 1"),
    ],
)
def test_sizes_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        Swin(replace(SMALL, **options))


def test_pictures_that_do_not_fit():
    model = Swin(SMALL)
    with pytest.raises(TypeError, match="uint8, expected floats"):
        model(torch.zeros(2, 1, 16, 16, dtype=torch.uint8))
    with pytest.raises(ValueError, match="have 3 channels, expected 1"):
        model(torch.zeros(2, 3, 16, 16))
    with pytest.raises(ValueError, match="has 9 x 9 patches, which windows of 4 do not divide"):
        model(torch.zeros(2, 1, 18, 18))
