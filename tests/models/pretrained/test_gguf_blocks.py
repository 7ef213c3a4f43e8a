"""Blocks of 8 and 4 bits by hand: the same weights as the gguf package makes of them."""

import pytest
import torch

from d2lmini.models.pretrained.gguf_blocks import dequantize_q4_1, dequantize_q8_0

gguf = pytest.importorskip("gguf", reason="THE GGUF PACKAGE IS NOT THERE TO COMPARE WITH")
KINDS = {"Q8_0": dequantize_q8_0, "Q4_1": dequantize_q4_1}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(5, 96), (32,), (2, 3, 64)])
def test_equal_to_the_package(kind, shape):
    torch.manual_seed(0)
    weights = torch.randn(shape)
    number = gguf.GGMLQuantizationType[kind]
    data = gguf.quants.quantize(weights.numpy(), number)
    wanted = torch.from_numpy(gguf.quants.dequantize(data, number)).reshape(shape)
    found = KINDS[kind](data.tobytes(), shape)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    assert (found - weights).abs().max() < {"Q8_0": 0.03, "Q4_1": 0.3}[kind]
    torch.testing.assert_close(KINDS[kind](data, shape), found, rtol=0, atol=0)  # of an array, too


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input(kind):
    with pytest.raises(ValueError, match=rf"rows of shape \(2, 40\) are no whole number of {kind} blocks of 32"):
        KINDS[kind](b"", (2, 40))
    with pytest.raises(ValueError, match=rf"there are 7 bytes of {kind}, expected .* for shape \(2, 32\)"):
        KINDS[kind](b"1234567", (2, 32))
