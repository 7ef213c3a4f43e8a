"""Products of quantised matrices are those of numpy, and the next token of a large vocabulary that of a small one."""

import base64

import numpy as np
import pytest

from d2lmini.models.pretrained.gguf_blocks import dequantise_q4_1

SIZES = [(n, k, m) for n in (1, 2, 3, 4, 5, 9) for k in (32, 64, 96, 160) for m in (1, 2, 7, 8)]

# Puts a matrix into memory, in two parts, and multiplies X by it into the middle of a wider one.
PRODUCT = """
await live.prepare();
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
return given.map(({ kind, shape: [m, k], first, parts, X, n, floats }) => {
  live.floatProducts(floats);
  const before = live.memoryUsed(), W = kind === "int8" ? new live.Int8Matrix([m, k]) : new live.Q4Matrix([m, k]);
  W.put(0, first, bytes(parts[0]), 0);
  if (first < m) W.put(first, m - first, bytes(parts[1]), 0);
  const told = live.tidy(() => {
    const C = live.Tensor.from(Array((n + 1) * (m + 3)).fill(7), n + 1, m + 3);
    W.times(live.Tensor.from(X, n, k), live.part(C, 0, 2));
    return { C: C.data.slice(), row: W.row(m - 1) };
  });
  W.free();
  live.floatProducts(false);
  return { ...told, left: live.memoryUsed() - before };
});
"""


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
    whole = dequantise_q4_1(blocks.reshape(-1), (m, k)).numpy()
    return whole, lambda rows: text_of(lanes[rows], blocks[rows, :, :2], blocks[rows, :, 2:4])


def rounded_rows(X):
    """As the page rounds what comes in: to 16 bits, a scale for each 32."""
    blocks = X.reshape(len(X), -1, 32)
    most = np.maximum(np.abs(blocks).max(-1, keepdims=True), np.float32(1e-30))
    return (np.rint(blocks * (np.float32(32767) / most)) * (most / np.float32(32767))).reshape(X.shape)


@pytest.mark.parametrize("floats", [False, True], ids=["integers", "floats"])
@pytest.mark.parametrize("kind", ["int8", "q4_1"])
def test_products_of_all_sizes(kind, floats, live):
    rng = np.random.default_rng(0)
    sizes = [*SIZES, (2, 2048 if kind == "int8" else 1536, 70)]
    cases, wanted = [], []
    for n, k, m in sizes:
        W, parts = (int8_matrix if kind == "int8" else q4_1_matrix)(rng, m, k)
        X = rng.standard_normal((n, k)).astype(np.float32)
        X[0] = 1  # with the largest row of W: the largest sums
        if n > 1:
            X[1] = 0
        first = (m + 1) // 2
        case = {"kind": kind, "shape": [m, k], "first": first, "n": n, "floats": floats, "X": X.ravel().tolist()}
        cases.append(case | {"parts": [parts(slice(0, first)), parts(slice(first, m))]})
        wanted.append((W, (X if floats else rounded_rows(X)).astype(np.float64) @ W.T.astype(np.float64)))
    for (n, k, m), told, (W, C) in zip(sizes, live(PRODUCT, cases), wanted, strict=True):
        whole = np.array(told["C"]).reshape(n + 1, m + 3)
        np.testing.assert_allclose(whole[:n, 2 : 2 + m], C, rtol=1e-5, atol=2e-5 * np.sqrt(k), err_msg=f"{n} {k} {m}")
        whole[:n, 2 : 2 + m] = 7
        assert (whole == 7).all() and told["left"] == 0  # what lies around it is left alone
        np.testing.assert_allclose(told["row"], W[-1], rtol=1e-6, atol=1e-7)


def test_rows_that_the_products_cannot_take(live):
    said = live(
        """await live.prepare();
        return [() => new live.Q4Matrix([2, 33]), () => new live.Int8Matrix([2, 80])].map((make) => {
          try { make(); return null; } catch (error) { return error.message; }
        });"""
    )
    assert said == [
        "rows of 33 weights, expected whole blocks of 32",
        "rows of 80 weights, expected whole blocks of 32",
    ]


FILTERS = [
    {}, {"temperature": 0}, {"temperature": 0.6}, {"temperature": 2, "top_k": 5}, {"top_k": 1}, {"top_p": 0.3},
    {"top_p": 0.999}, {"top_p": 1}, {"top_k": 300, "top_p": 0.8}, {"min_p": 0.05}, {"top_p": 0.9, "min_p": 0.1},
    {"temperature": 0.5, "top_k": 90, "top_p": 0.97, "min_p": 0.001}, {"temperature": 5, "top_p": 0.99},
]  # fmt: skip


def test_the_next_token_is_that_of_the_filters(live):
    """Of 700 scores, with equals among them: the same probabilities, and the same draws by the same random numbers."""
    told = live(
        """const random = live.randomNumbers(3);
        const normal = () => Array.from({ length: 6 }, random).reduce((a, b) => a + b) - 3;
        return given.map((filters) => {
          const scores = Float32Array.from({ length: 700 }, (_, i) => (i % 10 ? 4 * normal() : 2));
          const next = new live.NextToken(scores, filters), all = live.filtered(scores, filters);
          const own = live.filtered(scores), [one, two] = [live.randomNumbers(7), live.randomNumbers(7)];
          let worst = 0, draws = 0;
          scores.forEach((_, id) => {
            worst = Math.max(worst, Math.abs(next.own(id) - own[id]), Math.abs(next.drawnWith(id) - all[id]));
          });
          for (let i = 0; i < 200; i++) draws += next.draw(one) === live.drawn(all, two);
          const order = live.ranked(scores), likeliest = live.likeliest(scores, 80);
          return { worst, draws, same: likeliest.every((id, i) => id === order[i]) && likeliest.length === 80 };
        });""",
        FILTERS,
    )
    for filters, found in zip(FILTERS, told, strict=True):
        assert found["worst"] < 1e-9 and found["draws"] == 200 and found["same"], filters


def test_all_of_few_are_the_likeliest(live):
    assert live("return live.likeliest(Float32Array.from([1, 3, 2, 3]), 9);") == [1, 3, 2, 0]
