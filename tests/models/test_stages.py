"""What models of several scales share: merging, blocks, and a configuration that checkpoints know."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from d2lmini.models.stages import MapBlock, PatchMerging
from d2lmini.models.swin import Swin, SwinConfig


def test_merging_takes_each_patch_once():
    merging = PatchMerging(3)
    merging.ln = nn.Identity()
    with torch.no_grad():
        merging.dense.weight.copy_(torch.cat([torch.ones(1, 12), torch.zeros(5, 12)]))
    X = torch.rand(2, 4, 6, 3)
    Y = merging(X)
    assert Y.shape == (2, 2, 3, 6)
    torch.testing.assert_close(Y[1, 1, 2, 0], X[1, 2:4, 4:6].sum())


def test_merging_lays_the_left_two_before_the_right_two():
    merging, X = PatchMerging(1), torch.tensor([[[1.0, 3.0], [2.0, 4.0]]])[..., None]  # (1, 2, 2, 1)
    merging.ln, merging.dense = nn.Identity(), nn.Identity()
    assert merging(X).flatten().tolist() == [1, 2, 3, 4]


def test_merging_refuses_odd_grids():
    with pytest.raises(ValueError, match="3 x 4 patches, which cannot be merged"):
        PatchMerging(3)(torch.zeros(1, 3, 4, 3))


def test_a_block_leaves_out_whole_sublayers_in_training_alone():
    torch.manual_seed(0)
    block, X = MapBlock(nn.Linear(4, 4), 4, 8, drop_path=0.999), torch.randn(20, 2, 2, 4)
    assert torch.equal(block(X), X)
    assert not torch.equal(block.eval()(X), X)


def test_a_checkpoint_tells_configurations_apart():
    small = SwinConfig(img_size=8, num_hiddens=4, num_heads=(1,), num_blks=(1,), window_size=4)
    assert Swin(small).hparams["config"] == small != Swin(replace(small, dropout=0.1)).hparams["config"]
