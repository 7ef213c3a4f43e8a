"""Looking at attention weights: what a module remembers of its last call, and recording a whole model."""

from contextlib import contextmanager
from functools import partial

import torch
from torch import nn


class Attention(nn.Module):
    """What the scoring modules share: dropout on the weights, and the weights of the last call on request.

    No weights are kept. A call remembers the queries and keys that its scores came from, detached, which grow
    with T + S where weights grow with T * S; reading `attention_weights` computes the weights from them. They
    are forgotten at the next call, in copies and pickles and, in training, as soon as the backward pass has
    gone through the output; until then autograd holds the same tensors anyway. To see several calls or a
    whole model: `capture_attention`.
    """

    def __init__(self, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self._last = None

    @property
    def attention_weights(self):
        """Weights of the last call before dropout, (B, T, S), detached.

        Raises:
            RuntimeError: there was no call, its backward pass is over, or its inputs were changed in place.
        """
        return self._weights()

    def _weights(self):
        """`attention_weights`, but always with a dimension of heads where the inputs had one."""
        if self._last is None:
            raise RuntimeError(f"{type(self).__name__} has no weights to show: call it first (a copy starts afresh)")
        return self._last.weights()

    @property
    def _dropout_p(self):
        return self.dropout.p if self.dropout.training else 0.0

    def _remember(self, output, weights, *inputs):
        """Lets `attention_weights` be ``weights(*inputs)`` until the backward pass reaches ``output``."""
        self._last = _LastCall(weights, inputs)
        if output.requires_grad:
            output.register_hook(self._last.forget)
        return output

    def __getstate__(self):
        return {**self.__dict__, "_last": None}


@contextmanager
def capture_attention(module):
    """Records the weights of every attention module inside ``module``, call by call, while it is open.

    For example::

        with capture_attention(model) as weights:
            model(X)
        weights["decoder.attention"][0]  # (B, T, S), or (B, H, T, S) with heads: first call of that module

    Args:
        module: any module; an attention module itself goes by the name "".

    Yields:
        Dict from the name of each attention module to the list of its weights, detached, before dropout.

    Raises:
        ValueError: ``module`` holds no attention module.
    """
    sources = {name: m for name, m in module.named_modules() if isinstance(m, Attention)}
    if not sources:
        raise ValueError(f"{type(module).__name__} holds no attention module to capture")
    record = {name: [] for name in sources}

    def append(name, source, inputs, output):
        record[name].append(source._weights())

    hooks = [source.register_forward_hook(partial(append, name)) for name, source in sources.items()]
    try:
        yield record
    finally:
        for hook in hooks:
            hook.remove()


class _LastCall:
    """The detached inputs of a call, and how to get its weights from them."""

    def __init__(self, compute, inputs):
        self.compute = compute
        self.inputs = [x if x is None else x.detach() for x in inputs]
        self.versions = self._versions()

    def _versions(self):
        # a tensor and its detached alias count changes in place together; inference tensors do not count
        return [None if x is None or x.is_inference() else x._version for x in self.inputs]

    @torch.no_grad()
    def weights(self):
        if self.compute is None:
            raise RuntimeError(
                "the weights of the last call were let go in its backward pass: read them before it, call "
                "the module again, or use `with capture_attention(module)`"
            )
        if self._versions() != self.versions:
            raise RuntimeError("the inputs of the last call were changed in place since: its weights are lost")
        return self.compute(*self.inputs).to(self.inputs[0].dtype)

    def forget(self, grad=None):
        self.compute, self.inputs, self.versions = None, [], []
