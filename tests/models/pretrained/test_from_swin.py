"""A Swin with weights of transformers', random ones: the same scores and gradients."""

import pytest
import torch
from random_weights import at_random

from d2lmini.models.pretrained import from_transformers, load_transformers_swin
from d2lmini.models.pretrained.checkpoints import renamed
from d2lmini.models.pretrained.from_swin import RENAMES
from d2lmini.models.swin import Swin, SwinConfig


@pytest.fixture
def their_swin():
    """Makes one of three stages: 16 x 32 patches, 8 x 16 and 4 x 8, where there is nothing left to shift."""
    from transformers import SwinConfig, SwinForImageClassification

    def make(**options):
        sizes = {"embed_dim": 8, "depths": (2, 3, 2), "num_heads": (2, 4, 4), "window_size": 4, "mlp_ratio": 1.5}
        config = SwinConfig(**sizes, image_size=(32, 64), patch_size=2, num_channels=3, num_labels=5, **options)
        return at_random(SwinForImageClassification(config))

    return make


LARGE = torch.rand(2, 3, 32, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("options", [{}, {"qkv_bias": False, "layer_norm_eps": 1e-2}])
def test_a_swin_in_float64_with_its_gradients(their_swin, tmp_path, options):
    theirs = their_swin(**options)
    theirs.save_pretrained(tmp_path)
    theirs, model = theirs.double(), from_transformers(tmp_path).double()
    assert [len(stage) for stage in model.stages] == [2, 3, 2]
    inputs, found = [LARGE.clone().requires_grad_() for _ in range(2)], []
    for network, X in zip((theirs, model), inputs, strict=True):
        scores = network(X)
        scores = getattr(scores, "logits", scores)
        scores.square().sum().backward()
        found.append(scores)
    torch.testing.assert_close(found[1], found[0])
    torch.testing.assert_close(inputs[1].grad, inputs[0].grad)
    ours = dict(model.named_parameters())
    assert len(ours) == len(list(theirs.parameters()))
    for name, parameter in theirs.named_parameters():
        torch.testing.assert_close(ours[renamed(name, RENAMES)].grad, parameter.grad)
    hidden = theirs.swin(LARGE).last_hidden_state
    torch.testing.assert_close(model.norm(model.features(LARGE)[-1]).flatten(1, 2), hidden)


def test_a_swin_in_memory_and_from_an_older_file(their_swin):
    theirs = their_swin()
    sizes = {"img_size": (32, 64), "num_hiddens": 8, "num_blks": (2, 3, 2), "num_heads": (2, 4, 4), "window_size": 4}
    config = SwinConfig(**sizes, mlp_ratio=1.5, num_channels=3, num_classes=5)
    older = {"swin.encoder.layers.0.blocks.0.attention.self.relative_position_index": torch.zeros(16, 16)}
    model = load_transformers_swin(Swin(config), theirs.state_dict() | older).eval()
    torch.testing.assert_close(model(LARGE.float()), theirs(LARGE.float()).logits)
    with pytest.raises(ValueError, match=r"expected a Swin of the same sizes. Missing.*head.weight"):
        load_transformers_swin(Swin(SwinConfig(**sizes, mlp_ratio=1.5, num_channels=3)), theirs.state_dict())
