"""The vision Transformer: its parts against torch's, its positions, what it refuses."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from d2lmini.hooks import capture_attention
from d2lmini.models.vit import ViT, ViTBlock, ViTMLP
from d2lmini.vision.grid_position import sinusoidal_2d


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def make(img_size=(12, 16), patch_size=4, **options):
    sizes = {"num_hiddens": 24, "mlp_num_hiddens": 40, "num_heads": 3, "num_blks": 2, "num_channels": 3}
    return ViT(img_size, patch_size, **{**sizes, "emb_dropout": 0.0, "blk_dropout": 0.0, **options})


IMAGES = torch.rand(5, 3, 12, 16)


# ---- blocks


def test_a_block_is_torchs_pre_norm_encoder_layer():
    block = ViTBlock(24, 24, 40, 3, 0.5, use_bias=True).eval()
    theirs = nn.TransformerEncoderLayer(24, 3, 40, activation="gelu", batch_first=True, norm_first=True).eval()
    ours = block.attention
    with torch.no_grad():
        for module in (block.ln1, block.ln2):
            nn.init.normal_(module.weight), nn.init.normal_(module.bias)
        theirs.self_attn.in_proj_weight.copy_(torch.cat([ours.W_q.weight, ours.W_k.weight, ours.W_v.weight]))
        theirs.self_attn.in_proj_bias.copy_(torch.cat([ours.W_q.bias, ours.W_k.bias, ours.W_v.bias]))
    pairs = [
        (theirs.self_attn.out_proj, ours.W_o),
        (theirs.linear1, block.mlp.dense1),
        (theirs.linear2, block.mlp.dense2),
        (theirs.norm1, block.ln1),
        (theirs.norm2, block.ln2),
    ]
    for module, source in pairs:
        module.load_state_dict(source.state_dict())
    X = torch.randn(2, 7, 24)
    torch.testing.assert_close(block(X), theirs(X))


def test_a_block_that_is_always_left_out_passes_its_input():
    block = ViTBlock(24, 24, 40, 3, 0.0, drop_path=0.999)
    X = torch.randn(20, 4, 24)
    assert torch.equal(block(X), X)
    assert not torch.equal(block.eval()(X), X)


def test_stochastic_depth_grows_from_block_to_block():
    assert [blk.drop_path.rate for blk in make(num_blks=3, drop_path=0.2).blks] == [0, 0.1, 0.2]


def test_mlp_takes_its_input_size_from_the_first_call():
    mlp = ViTMLP(40, 24, 0.5)
    X = torch.randn(2, 3, 5)
    assert mlp(X).shape == (2, 3, 24)
    expected = mlp.dense2(F.gelu(mlp.dense1(X)))
    torch.testing.assert_close(mlp.eval()(X), expected)


# ---- the model


def test_the_model_is_its_parts_put_together():
    model = make(pooling="class").eval()
    patches = model.patch_embedding(IMAGES)
    X = torch.cat([model.cls_token.expand(5, 1, 24), patches], 1) + model.pos_embedding
    for blk in model.blks:
        X = blk(X)
    torch.testing.assert_close(model(IMAGES), model.head(X[:, 0]))
    assert model(IMAGES).shape == (5, 10)


def test_the_mean_is_over_patches_without_a_class_token():
    model = make(pooling="mean").eval()
    assert model.cls_token is None and model.pos_embedding.shape == (1, 12, 24)
    torch.testing.assert_close(model(IMAGES), model.head(model.encode(IMAGES).mean(1)))


@pytest.mark.parametrize("pooling", ["class", "mean"])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
@pytest.mark.parametrize("use_bias", [True, False])
def test_number_of_parameters(pooling, positions, use_bias):
    model = make(pooling=pooling, positions=positions, use_bias=use_bias)
    h, m, extra = 24, 40, pooling == "class"
    block = 4 * h * h + 4 * h * use_bias + 2 * h * m + m + h + 4 * h
    embedding = 3 * 4 * 4 * h + h + h * extra + (12 + extra) * h * (positions == "learned")
    assert sum(p.numel() for p in model.parameters()) == embedding + 2 * block + 2 * h + 10 * h + 10


def test_weights_by_block_are_those_that_are_captured():
    model = make(num_heads=4).eval()
    with capture_attention(model) as seen:
        model(IMAGES)
    assert [w.shape for w in model.attention_weights] == [(20, 13, 13)] * 2
    for i, weights in enumerate(model.attention_weights):
        torch.testing.assert_close(weights.unflatten(0, (5, 4)), seen[f"blks.{i}.attention.attention"][0])


def test_without_positions_the_order_of_patches_does_not_count():
    model = make(pooling="mean", positions="rotary").eval()
    shuffled = IMAGES.unflatten(3, (4, 4))[:, :, :, [2, 0, 3, 1]].flatten(3)
    assert (model(shuffled) - model(IMAGES)).abs().max() > 1e-3
    model.rotary = None
    torch.testing.assert_close(model(shuffled), model(IMAGES))


def test_every_parameter_learns():
    for pooling, positions in (("class", "learned"), ("mean", "rotary"), ("class", "sinusoidal")):
        model = make(pooling=pooling, positions=positions, use_bias=True, drop_path=0.1)
        model.loss(model(IMAGES), torch.arange(5)).backward()
        idle = [name for name, p in model.named_parameters() if p.grad is None]
        assert idle == []


# ---- positions


def test_sinusoidal_positions_are_no_parameters():
    model = make(positions="sinusoidal").eval()
    assert torch.equal(model.pos_embedding[0, 1:], sinusoidal_2d((3, 4), 24))
    assert not model.pos_embedding[0, 0].any() and "pos_embedding" not in model.state_dict()


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
def test_a_model_is_resized(positions):
    model = make(positions=positions).eval()
    before, large = model(IMAGES), torch.rand(2, 3, 20, 24)
    with pytest.raises(ValueError, match=r"20 x 24 pixels, 5 x 6 patches, but the model has positions for 3 x 4"):
        model(large)
    assert model.resize((20, 24)).grid == (5, 6)
    fresh = make((20, 24), positions=positions).eval()
    weights = {k: v for k, v in model.state_dict().items() if k != "pos_embedding"}
    fresh.load_state_dict(weights, strict=False)
    if positions == "learned":
        fresh.pos_embedding = model.pos_embedding
        assert isinstance(model.pos_embedding, nn.Parameter) and model.pos_embedding.requires_grad
    torch.testing.assert_close(model(large), fresh(large))
    if positions != "learned":  # nothing is lost on the way back
        torch.testing.assert_close(model.resize((12, 16))(IMAGES), before)


# ---- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"img_size": 30}, "30 x 30 pixels, which patches of 4 do not divide"),
        ({"pooling": "max"}, "pooling is 'max', expected 'class' or 'mean'"),
        ({"positions": "none"}, "positions is 'none', expected 'learned' or 'sinusoidal' or 'rotary'"),
        ({"num_heads": 5}, "num_hiddens is 24, expected a multiple of num_heads, 5"),
        ({"positions": "rotary", "num_heads": 12}, "a head has 2 features, expected a multiple of 4"),
        ({"positions": "sinusoidal", "num_hiddens": 15}, "num_hiddens is 15, expected an even number"),
        ({"drop_path": 1.0}, "rate is 1.0"),
    ],
)
def test_arguments_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        ((255 * IMAGES).to(torch.uint8), TypeError, "images are torch.uint8, expected floats"),
        (IMAGES[:, :1], ValueError, "images have 1 channels, expected 3"),
        (IMAGES[0], ValueError, r"images have shape \(3, 12, 16\), expected \(N, channels"),
        (IMAGES[:, :, 1:], ValueError, "11 x 16 pixels, which patches of 4 do not divide"),
    ],
)
def test_images_that_do_not_fit(images, error, message):
    with pytest.raises(error, match=message):
        make()(images)


@pytest.mark.parametrize(("labels", "said"), [([0, 10], "0 to 10"), ([-1, 3], "-1 to 3")])
def test_labels_out_of_range(labels, said):
    model = make()
    with pytest.raises(ValueError, match=f"labels go from {said}, but the model has 10 classes, 0 to 9"):
        model.loss(torch.rand(2, 10), torch.tensor(labels))
