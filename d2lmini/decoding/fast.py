"""A copy of a model that decodes faster: where its weights lie in memory, and what a step goes through.

A step of cached decoding multiplies by every weight once, for one row or a few. Its time goes into fetching the weights
and, in small models, into what Python does between two products. A CPU fetches fastest what lies in order: for one row
x W^T is a sum of columns of W, (outputs, inputs), whose numbers lie far apart where `torch.nn.Linear` keeps them.
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from ..cache import KeyValueCache
from ..layers import check_model, replace, with_sums
from ..masks import as_mask
from ..multi_head import HeadsAttention, MultiHeadAttention
from ..transformer import AddNorm, PositionWiseFFN, TransformerEncoderBlock


def for_decoding(model):
    """A copy of a model, in evaluation mode and without gradients, that decodes faster on a CPU.

    Its scores are the model's to rounding; caches, masks, `d2lmini.capture_attention` and `d2lmini.head_masks` work as
    there. What differs: linear layers keep their weights column by column, a last layer that shared those of an
    embedding has its own, a merged `LowRankAdapter` is a linear layer, a plain `TransformerEncoderBlock` is a
    `PackedBlock`, and residual connections have no dropout. A block with a field or a part that `PackedBlock` does not
    know stays as it is. What the model learns from now on does not reach the copy, and the copy is not to be trained.

    Args:
        model: any module; it stays as it is.

    Returns:
        The copy. It takes as much memory again, and that of a last layer.

    Raises:
        TypeError: the model is no module.
    """
    check_model(model)
    model = with_sums(copy.deepcopy(model))
    model = replace(model, {block: PackedBlock(block) for block in model.modules() if _can_be_packed(block)})
    for module in model.modules():
        if type(module) is nn.Linear:
            module.weight = nn.Parameter(module.weight.detach().t().contiguous().t())
        elif type(module) is AddNorm:
            module.dropout = None
    return model.eval().requires_grad_(False)


class PackedBlock(TransformerEncoderBlock):
    """A `TransformerEncoderBlock` with `PackedAttention` and a short way for a single token that follows a cache.

    There is nothing to check on that way, and its parts are gone through without the calls of modules: a hook on one of
    them sees whole sequences alone. Those on ``attention.attention`` see all.

    Args:
        block: the `TransformerEncoderBlock` whose parts it takes over.
    """

    def __init__(self, block):
        nn.Module.__init__(self)
        self.norm_first = block.norm_first
        self.attention = PackedAttention(block.attention)
        self.addnorm1, self.ffn, self.addnorm2 = block.addnorm1, block.ffn, block.addnorm2

    def extend(self, X, cache, valid_lens=None, *, mask=None, causal=False, score_bias=None, rotary=None):
        """As `TransformerEncoderBlock`."""
        if X.shape[1] != 1 or valid_lens is not None or score_bias is not None:
            options = {"mask": mask, "causal": causal, "score_bias": score_bias, "rotary": rotary}
            return super().extend(X, cache, valid_lens, **options)
        norm1, norm2 = self.addnorm1.ln.forward, self.addnorm2.ln.forward
        if self.norm_first:
            Y, cache = self.attention.step(norm1(X), cache, mask, rotary)
            X = X + Y
            return X + self._ffn(norm2(X)), cache
        Y, cache = self.attention.step(X, cache, mask, rotary)
        X = norm1(X + Y)
        return norm2(X + self._ffn(X)), cache

    def _ffn(self, X):
        ffn = self.ffn
        if type(ffn) is not PositionWiseFFN:
            return ffn.forward(X)
        return ffn.dense2.forward(ffn.activation.forward(ffn.dense1.forward(X)))


class PackedAttention(MultiHeadAttention):
    """A `MultiHeadAttention` with ``W_qkv`` in place of ``W_q``, ``W_k`` and ``W_v``: one product for all three.

    Args:
        attention: the `MultiHeadAttention` whose parts it takes over. Its three inputs have one size.
    """

    def __init__(self, attention):
        nn.Module.__init__(self)
        self.num_heads, self.num_kv_heads = attention.num_heads, attention.num_kv_heads
        for name in ("attention", "W_o", "q_norm", "k_norm", "input_sizes"):
            setattr(self, name, getattr(attention, name))
        parts = (attention.W_q, attention.W_k, attention.W_v)
        weight = torch.cat([part.weight.detach() for part in parts])  # ((H + 2 G) d, input size)
        self.W_qkv = nn.Linear(*weight.T.shape, bias=parts[0].bias is not None, device="meta")
        self.W_qkv.weight = nn.Parameter(weight)
        if parts[0].bias is not None:
            self.W_qkv.bias = nn.Parameter(torch.cat([part.bias.detach() for part in parts]))

    def step(self, X, cache, mask=None, rotary=None):
        """One token X (B, 1, h) attends to itself and to those in a `KeyValueCache`: output (B, 1, h), and all of them.

        ``mask`` and ``rotary`` are those of `MultiHeadAttention`.
        """
        heads, keys, values = self._normed(*self._heads(self.W_qkv.forward(X)))  # (B, H, 1, d), (B, G, 1, d) twice
        past = cache.length
        if rotary is not None:
            heads, keys = rotary(heads, past), rotary(keys, past)
        new = KeyValueCache(keys, values)
        seen = cache.append(new) if past else new
        if mask is not None:
            mask = as_mask((*heads.shape[:3], seen.length), None, mask, device=heads.device)
        output = self.attention(heads, *seen, mask)  # (B, H, 1, d)
        return self.W_o.forward(output.reshape(*X.shape[:2], -1)), seen  # (B, 1, H d) to (B, 1, h)

    def to_heads(self, queries, keys, values):
        """As `MultiHeadAttention`."""
        if queries is keys is values:
            return self._normed(*self._heads(self.W_qkv(queries)))
        parts = self.num_heads, self.num_kv_heads, self.num_kv_heads
        d = self.W_qkv.out_features // sum(parts)
        weights = self.W_qkv.weight.split([part * d for part in parts])
        bias = self.W_qkv.bias
        biases = (None, None, None) if bias is None else bias.split([part * d for part in parts])
        heads = (
            X if X is None else F.linear(X, W, b).unflatten(-1, (part, d)).transpose(1, 2)  # (B, H or G, n, d)
            for X, W, b, part in zip((queries, keys, values), weights, biases, parts, strict=True)
        )
        return self._normed(*heads)

    def _heads(self, projected):
        """(B, n, (H + 2 G) d) cut into (B, H, n, d) and two of (B, G, n, d)."""
        parts = self.num_heads, self.num_kv_heads, self.num_kv_heads
        return torch.unflatten(projected, -1, (sum(parts), -1)).transpose(1, 2).split(parts, 1)


_KNOWN = {  # the fields of what a `PackedBlock` takes over; with one more there may be something else to compute
    TransformerEncoderBlock: {"norm_first", "attention", "addnorm1", "ffn", "addnorm2"},
    MultiHeadAttention: {
        *("num_heads", "num_kv_heads", "input_sizes", "attention", "W_q", "W_k", "W_v", "W_o", "q_norm", "k_norm"),
    },
    nn.Linear: {"in_features", "out_features", "weight", "bias"},
    AddNorm: {"dropout", "ln"},
    PositionWiseFFN: {"dense1", "activation", "dense2"},
}


def _can_be_packed(block):
    if not _is_known(block, TransformerEncoderBlock) or not _is_known(block.attention, MultiHeadAttention):
        return False
    attention, parts = block.attention, [block.attention.W_q, block.attention.W_k, block.attention.W_v]
    known = [_is_known(part, nn.Linear) for part in parts]
    known += [_is_known(addnorm, AddNorm) for addnorm in (block.addnorm1, block.addnorm2)]
    known += [type(block.ffn) is not PositionWiseFFN or _is_known(block.ffn, PositionWiseFFN)]
    if not all(known) or type(attention.attention) is not HeadsAttention or any(map(_has_hooks, block.modules())):
        return False
    return len({(part.in_features, part.bias is None) for part in parts}) == 1


def _is_known(module, kind):
    fields = {*vars(module), *module._modules, *module._parameters, *module._buffers} - _OF_ALL
    return type(module) is kind and fields == _KNOWN[kind]


_OF_ALL = set(vars(nn.Module()))


def _has_hooks(module):
    return bool(module._forward_hooks or module._forward_pre_hooks)
