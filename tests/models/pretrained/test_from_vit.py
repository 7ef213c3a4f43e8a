"""A ViT with weights of transformers', random ones: the same scores."""

import pytest
import torch
from random_weights import tiny_vit

from d2lmini.models.pretrained import from_transformers, load_transformers_vit
from d2lmini.models.vit import ViT

IMAGES = torch.rand(5, 3, 12, 12, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def theirs():
    return tiny_vit(num_channels=3, num_labels=7, layer_norm_eps=1e-3)


@pytest.fixture
def make():
    def make(img_size=12, **options):
        options = {"use_bias": True, "num_classes": 7, "num_channels": 3, **options}
        return ViT(img_size, 4, 24, 40, 3, 2, 0.1, 0.1, **options)

    return make


def test_weights_of_a_model_in_memory(theirs, make):
    model = load_transformers_vit(make(num_channels=None), theirs.state_dict(), layer_norm_eps=1e-3).eval()
    torch.testing.assert_close(model(IMAGES), theirs(pixel_values=IMAGES).logits)


def test_a_checkpoint_folder_and_another_resolution(theirs, tmp_path):
    theirs.save_pretrained(tmp_path)
    model = from_transformers(tmp_path)
    torch.testing.assert_close(model(IMAGES), theirs(pixel_values=IMAGES).logits)
    large = torch.rand(2, 3, 20, 24)
    expected = theirs(pixel_values=large, interpolate_pos_encoding=True).logits
    torch.testing.assert_close(model.resize((20, 24))(large), expected)


def test_an_encoder_without_a_classifier(theirs, tmp_path):
    theirs.vit.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"has no classifier.bias: expected a model ...ForImageClassification"):
        from_transformers(tmp_path)


@pytest.mark.parametrize("options", [{"use_bias": False}, {"pooling": "mean"}, {"img_size": 16}, {"num_classes": 8}])
def test_weights_that_do_not_fit(theirs, make, options):
    model = make(**options)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match=r"use_bias=True.*another shape: .*(blks|cls_token|pos_embedding|head)"):
        load_transformers_vit(model, theirs.state_dict())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_projections_without_a_bias(make, tmp_path):
    theirs = tiny_vit(qkv_bias=False)
    theirs.save_pretrained(tmp_path)
    model = from_transformers(tmp_path)
    torch.testing.assert_close(model(IMAGES), theirs(pixel_values=IMAGES).logits)
    assert model.num_parameters == theirs.num_parameters()
    attention = model.blks[1].attention
    assert attention.W_q.bias is attention.W_k.bias is attention.W_v.bias is None and attention.W_o.bias is not None
