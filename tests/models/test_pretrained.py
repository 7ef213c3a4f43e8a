"""The vision Transformer with weights of Hugging Face's, random ones: the same scores."""

import importlib.util
import json

import pytest
import torch
from torch import nn

from d2lmini.models.pretrained import from_transformers, load_transformers_vit
from d2lmini.models.vit import ViT

if importlib.util.find_spec("transformers") is None:
    pytest.skip(
        "TRANSFORMERS TESTS SKIPPED: pip install transformers, as requirements.txt has it", allow_module_level=True
    )

IMAGES = torch.rand(5, 3, 12, 12, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module")
def theirs():
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(1)
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40}
    config = ViTConfig(**sizes, image_size=12, patch_size=4, num_channels=3, num_labels=7, layer_norm_eps=1e-3)
    model = ViTForImageClassification(config).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)  # biases and positions too, which start at 0
    return model


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


def test_a_checkpoint_of_another_model(theirs, tmp_path):
    theirs.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    with pytest.raises(ValueError, match=r"'hidden_act': 'relu'.*expected model_type 'vit' and hidden_act 'gelu'"):
        from_transformers(tmp_path)


def test_an_encoder_without_a_classifier(theirs, tmp_path):
    theirs.vit.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"has no classifier.bias: expected a ViTForImageClassification"):
        from_transformers(tmp_path)


@pytest.mark.parametrize("options", [{"use_bias": False}, {"pooling": "mean"}, {"img_size": 16}, {"num_classes": 8}])
def test_weights_that_do_not_fit(theirs, make, options):
    model = make(**options)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match=r"use_bias=True.*another shape: .*(blks|cls_token|pos_embedding|head)"):
        load_transformers_vit(model, theirs.state_dict())
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
