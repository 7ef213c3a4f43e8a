"""Products of quantised matrices, as numpy has them of the same bytes."""

import base64

import numpy as np

from d2lmini.models.pretrained.gguf_blocks import dequantize_q4_1

MODULE = "tests/javascript/quantized.js"
WITHIN = 1e-4
SIZES = [(1, 32, 1), (2, 64, 7), (3, 96, 2), (9, 32, 3)]


def cases():
    rng = np.random.default_rng(0)
    for kind, make in (("int8", int8_matrix), ("q4_1", q4_1_matrix)):
        for n, k, m in SIZES:
            W, parts = make(rng, m, k)
            X = (rng.integers(-300, 300, (n, k)) / 100).astype(np.float32)
            X[0] = 1  # with the largest row of W: the largest sums
            if n > 1:
                X[1] = 0
            first = (m + 1) // 2
            given = {"kind": kind, "shape": [m, k], "first": first, "n": n, "X": floats(X)}
            given |= {"parts": [parts(slice(0, first)), parts(slice(first, m))]}
            products = [numbers(read.astype(np.float64) @ W.T.astype(np.float64)) for read in (rounded_rows(X), X)]
            yield "multiplied", [given], {"integers": products[0], "floats": products[1], "row": numbers(W[-1])}


def numbers(array):
    return [float(f"{value:.7g}") for value in array.ravel().tolist()]


def floats(array):
    return [round(value, 2) for value in array.ravel().tolist()]


def text_of(*arrays):
    return base64.b64encode(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).decode()


def int8_matrix(rng, m, k):
    levels = rng.integers(-127, 128, (m, k), dtype=np.int8)
    levels[0] = 127  # the largest sums
    scales = rng.uniform(0.001, 0.01, m).astype(np.float32)
    return scales[:, None] * levels, lambda rows: text_of(levels[rows], scales[rows])


def q4_1_matrix(rng, m, k):
    blocks = rng.integers(0, 256, (m, k // 32, 20), dtype=np.uint8)
    for at, low in ((0, 0.001), (2, -0.2)):  # scales, then minima; one of them tiny
        numbers = rng.uniform(low, 0.2, (m, k // 32)).astype(np.float16)
        numbers[0, 0] = 3e-7
        blocks[..., at : at + 2] = numbers[..., None].view(np.uint8)
    low, high = blocks[..., 4:] & 15, blocks[..., 4:] >> 4
    levels = np.concatenate([low, high], -1).reshape(m, -1, 4, 8).astype(np.uint16)
    lanes = sum(levels[:, :, i] << 4 * i for i in range(4)).astype(np.uint16)
    whole = dequantize_q4_1(blocks.reshape(-1), (m, k)).numpy()
    return whole, lambda rows: text_of(lanes[rows], blocks[rows, :, :2], blocks[rows, :, 2:4])


def rounded_rows(X):
    """As the page rounds what comes in: to 16 bits, a scale for each 32."""
    blocks = X.reshape(len(X), -1, 32)
    most = np.maximum(np.abs(blocks).max(-1, keepdims=True), np.float32(1e-30))
    return (np.rint(blocks * (np.float32(32767) / most)) * (most / np.float32(32767))).reshape(X.shape)
