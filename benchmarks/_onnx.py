"""A GPT as an ONNX model with a cache, and the packages that make and run it, which one benchmark alone fetches.

The packages lie in the cache beside the data sets; `fetch` brings them there with `pip` and `npm`.
"""

import shutil
import subprocess
import sys
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn

from d2lmini.data.store import cache_folder

# what `torch.onnx.export` and `onnxruntime.quantization` import, with numpy, which is here
WHEELS = {
    "onnx": "1.23.2",
    "onnxscript": "0.7.2",
    "onnx_ir": "1.1.0",
    "onnxruntime": "1.32.0",
    "protobuf": "7.36.2",
    "ml_dtypes": "0.6.0",
    "flatbuffers": "25.12.19",
}
WEB = "onnxruntime-web", "1.30.0"
BACKEND = ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")  # its CPU alone
OPSET = 23  # the first that has attention, rotary embedding and RMS norm as one operator each


def folder():
    """Where the packages are kept: Path."""
    return cache_folder() / "live_peers"


def is_here():
    """Whether they are all there, so that nothing need be fetched."""
    return all(path.is_file() for path in web_files()) and _wheels().is_dir()


def web_files():
    """The files that a page needs to run ONNX models on one thread of the CPU: list of paths."""
    return [folder() / f"npm-{WEB[1]}" / "node_modules" / WEB[0] / "dist" / name for name in BACKEND]


def fetch():
    """Brings the packages into the cache, where they are not there yet.

    Raises:
        OSError: they cannot be had; one line says why.
    """
    if not all(path.is_file() for path in web_files()):
        npm = shutil.which("npm")
        if npm is None:
            raise OSError("onnxruntime-web cannot be had: there is no npm on this machine")
        place = folder() / f"npm-{WEB[1]}"
        place.mkdir(parents=True, exist_ok=True)
        options = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", place]
        _run([npm, "install", *options, "@".join(WEB)], "onnxruntime-web")
    if not _wheels().is_dir():
        half = _wheels().with_suffix(".half")
        shutil.rmtree(half, ignore_errors=True)
        pinned = [f"{name}=={version}" for name, version in WHEELS.items()]
        _run([sys.executable, "-m", "pip", "install", "--no-deps", "--target", half, *pinned], "onnx and onnxruntime")
        half.rename(_wheels())


def _wheels():
    return folder() / f"python-onnx-{WHEELS['onnx']}-onnxruntime-{WHEELS['onnxruntime']}"


def _run(words, what):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise OSError(f"{what} cannot be had: {last}")


@contextmanager
def _importable():
    sys.path.append(str(_wheels()))  # at the end: what the book itself needs comes first
    try:
        yield
    finally:
        sys.path.remove(str(_wheels()))


class CachedGPT(nn.Module):
    """A step of a `GPT` as ONNX wants it: what is carried is an input and an output.

    Tokens (1, T), then of each block the keys and values (1, H, P, d) of P tokens before, to the logits of what follows
    the last token, (1, V), and all keys and values, (1, H, P + T, d). Operators of ONNX do what they do best: one for
    attention, one for the rotation.

    Raises:
        ValueError: the GPT has a form that is not written here.
    """

    def __init__(self, gpt):
        super().__init__()
        config = gpt.config
        if config.positions != "rotary" or not config.norm_first or not config.qk_norm:
            raise ValueError(
                "only a GPT with rotary positions, norms first and normed queries and keys is written here"
            )
        self.gpt, self.heads = gpt, config.num_heads
        d = config.num_hiddens // config.num_heads
        frequencies = 10000 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        angles = torch.arange(config.max_len)[:, None] * frequencies  # (positions, d / 2)
        self.register_buffer("cos", angles.cos().float())
        self.register_buffer("sin", angles.sin().float())

    def forward(self, tokens, *past):
        before, after = past[0].shape[2], past[0].shape[2] + tokens.shape[1]
        places = torch.arange(before, after)  # (T,)
        mask = torch.arange(after) <= places[:, None]  # (T, S)
        X, present = self.gpt.embedding(tokens), []
        for i, blk in enumerate(self.gpt.blks):
            Z = blk.addnorm1.ln(X)
            Q, K, V = (self._heads(W(Z)) for W in (blk.attention.W_q, blk.attention.W_k, blk.attention.W_v))
            Q, K = self._turned(Q, places), self._turned(K, places)
            Y, K, V, _ = torch.onnx.ops.attention(Q, K, V, mask, past[2 * i], past[2 * i + 1])
            present += [K, V]
            X = X + blk.attention.W_o(Y.transpose(1, 2).flatten(2))
            X = X + blk.ffn(blk.addnorm2.ln(X))
        return self.gpt.dense(self.gpt.norm(X[:, -1])), *present

    def _heads(self, X):
        return X.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (1, H, T, d)

    def _turned(self, X, places):
        normed = F.rms_norm(X, X.shape[-1:])
        return torch.onnx.ops.rotary_embedding(normed, self.cos, self.sin, places[None], interleaved=True)


def shapes(config):
    """Names of the past of a GPT in its ONNX form, with the shape of an empty one: dict."""
    empty = [1, config.num_heads, 0, config.num_hiddens // config.num_heads]
    return {f"past.{i}.{of}": empty for i in range(config.num_blks) for of in ("keys", "values")}


def export(gpt, path, quick=False):
    """Writes a GPT as `CachedGPT`, in float32.

    Args:
        gpt: a `GPT` in evaluation mode.
        path: of the ONNX file.
        quick: whether its graph may stay as torch traces it, which takes less time.
    """
    past = shapes(gpt.config)
    inputs = [torch.zeros(*shape[:2], 5, shape[3]) for shape in past.values()]
    any_length = torch.export.Dim.DYNAMIC
    with _importable(), torch.no_grad():
        torch.onnx.export(
            CachedGPT(gpt).eval(),
            (torch.zeros(1, 3, dtype=torch.int64), *inputs),
            path,
            input_names=["tokens", *past],
            output_names=["logits", *(name.replace("past", "present") for name in past)],
            dynamic_shapes=({1: any_length}, tuple({2: any_length} for _ in past)),
            opset_version=OPSET,
            external_data=False,
            optimize=not quick,
            verbose=False,
        )


def quantize(path, to):
    """Writes an ONNX file anew with matrices in 8 bits, a scale each column; activations are rounded as they come."""
    with _importable():
        from onnxruntime.quantization import QuantType, quantize_dynamic

        products = ["MatMul", "Gemm"]  # of attention it would make what the runtime refuses
        quantize_dynamic(path, to, weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=products)
