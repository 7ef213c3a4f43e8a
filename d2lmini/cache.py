"""The key/value cache: what attention has projected of earlier positions, so that a new one costs one projection.

Keys and values of a growing sequence are kept in blocks with room for more. To its user a cache never changes: whoever
holds one of S positions sees these S and no others. Behind it, `KeyValueCache.append` writes the new positions into the
free room of the block where nobody has done so yet, and copies where somebody has (two beams that went on from one
beginning), where the room is used up, or where gradients are wanted.
"""

import torch
from torch.utils._pytree import register_pytree_node

_GROWTH = 1.5  # of a block that is full; with it each position is copied about twice in the mean
_LARGE = 2**18  # numbers in the keys of a block, from which on a CPU's caches do not hold those of a few layers


class KeyValueCache:
    """Projected keys and values of what was already seen, each (B, H, S, d). Nothing changes one: `append` makes anew.

    It unpacks into keys and values, and is a node of torch's pytrees: ``torch.utils._pytree.tree_map`` (and with it
    `d2lmini.reorder`) reorders or repeats its rows.

    Args:
        keys: (B, H, S, d).
        values: (B, H, S, d).

    Source: UDL section 12.7.3; Pope et al. 2022, section 3.3.
    """

    __slots__ = ("_keys", "_room", "_values")

    def __init__(self, keys, values, _room=None):
        self._keys, self._values, self._room = keys, values, _room

    @property
    def keys(self):
        """(B, H, S, d)."""
        return self._keys

    @property
    def values(self):
        """(B, H, S, d)."""
        return self._values

    @property
    def length(self):
        """S, how many positions are in it."""
        return self._keys.shape[2]

    @property
    def num_bytes(self):
        """Bytes of its keys and values; room that is kept free is not counted."""
        return sum(x.numel() * x.element_size() for x in self)

    def first(self, length):
        """A cache of the first positions alone; the numbers are shared, and this one stays as it is.

        Raises:
            ValueError: there are fewer positions, or ``length`` is below 0.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"the cache holds {self.length} positions, expected a length of 0 to that, got {length}")
        return KeyValueCache(self.keys[:, :, :length], self.values[:, :, :length])

    def append(self, new):
        """This cache and after it another, (B, H, S + n, d).

        Without gradients its cost does not grow with S, but for a copy now and then.

        Raises:
            ValueError: batches, heads or sizes differ.
        """
        start, added = self._keys.shape[2], new._keys.shape
        self.check_next(new)
        if torch.is_grad_enabled() or self.keys.dtype != new.keys.dtype:  # autograd wants what it saved unchanged
            return KeyValueCache(torch.cat([self.keys, new.keys], 2), torch.cat([self.values, new.values], 2))
        end = start + added[2]
        room = self._room
        if room is None or not room.takes(start, end):
            room = _Room(self, end)
        room.write(start, end, new)
        return KeyValueCache(room.keys[:, :, :end], room.values[:, :, :end], room)

    def check_next(self, new):
        """Raises ValueError where another one cannot follow: batches, heads or sizes differ."""
        for own, other in ((self._keys, new._keys), (self._values, new._values)):
            if other.shape != (*own.shape[:2], new._keys.shape[2], own.shape[3]):
                raise ValueError(
                    f"the cache holds {tuple(own.shape)}, to which {tuple(other.shape)} cannot be appended: expected "
                    "(B, H, S, d) that differ in S alone"
                )

    def __iter__(self):
        return iter((self._keys, self._values))

    def __reduce__(self):
        return KeyValueCache, (self._keys.clone(), self._values.clone())  # a file has no use for free room

    def __repr__(self):
        return f"KeyValueCache({self.length} positions of {tuple(self.keys.shape)})"


def cache_bytes(config, num_tokens, batch_size=1, bytes_per_number=2):
    """Bytes of the keys and values that a decoder keeps: 2 L G d for each token, times those of a number.

    Args:
        config: has ``num_blks``, L, and ``num_hiddens``, h, as `GPTConfig` does. Where it has no ``num_kv_heads``, G,
            all heads have keys of their own, and G d = h unless it has a ``head_size``, d.
        num_tokens: how many were read.
        batch_size: of texts.
        bytes_per_number: 2 for float16 and bfloat16, 4 for float32.

    Returns:
        int.

    Raises:
        ValueError: a number is negative.

    Source: Pope et al. 2022, section 3.3; Ainslie et al. 2023 for G.
    """
    if min(num_tokens, batch_size, bytes_per_number) < 0:
        raise ValueError(
            f"got {num_tokens} tokens, a batch of {batch_size}, {bytes_per_number} bytes a number: expected 0 or more"
        )
    heads, groups, size = (getattr(config, name, None) for name in ("num_heads", "num_kv_heads", "head_size"))
    kept = config.num_hiddens if groups is size is None else (groups or heads) * (size or config.num_hiddens // heads)
    return 2 * config.num_blks * kept * num_tokens * batch_size * bytes_per_number


class _Room:
    """A block of keys and values, (B, H, capacity, d); of its positions the first ``used`` are somebody's."""

    def __init__(self, cache, least):
        capacity = max(int(_GROWTH * least), least + 15)
        batch, heads, _, size = cache.keys.shape
        self.keys, self.values = (x.new_empty(batch, heads, capacity, size) for x in cache)
        # one query's scores are read faster from keys that lie feature by feature; it pays where a sequence goes on
        if cache._room is not None and self.keys.device.type == "cpu" and self.keys.numel() >= _LARGE:
            self.keys = self.keys.view(batch, heads, size, capacity).mT
        self.write(0, cache.length, cache)

    def takes(self, start, end):
        """Whether positions from ``start`` to ``end`` may be written."""
        if start != self.used or end > self.keys.shape[2]:
            return False
        return torch.is_inference_mode_enabled() or not self.keys.is_inference()

    def write(self, start, end, cache):
        self.used = end
        self.keys[:, :, start:end] = cache._keys
        self.values[:, :, start:end] = cache._values


# what a tree_map makes of a cache are other tensors, which have no room of their own
register_pytree_node(KeyValueCache, lambda cache: (list(cache), None), lambda tensors, _: KeyValueCache(*tensors))
