"""The cache grows in place and looks as if it never changed."""

import copy
import pickle
from dataclasses import replace

import pytest
import torch
from torch.utils._pytree import tree_map

import d2lmini as d2l
from d2lmini.cache import KeyValueCache

B, H, d = 2, 3, 4


@pytest.fixture(params=[False, True], ids=["small", "large"], autouse=True)
def size(request, monkeypatch):
    """As what a cache is taken: a large one may keep its keys feature by feature."""
    if request.param:
        monkeypatch.setattr("d2lmini.cache._LARGE", 0)
    return request.param


def some(n):
    return KeyValueCache(torch.randn(B, H, n, d), torch.randn(B, H, n, d))


def joined(*caches):
    return [torch.cat(parts, 2) for parts in zip(*caches, strict=True)]


def same(cache, tensors):
    return all(torch.equal(x, y) for x, y in zip(cache, tensors, strict=True))


@pytest.mark.parametrize("grad", [True, False])
def test_it_holds_what_was_appended(grad):
    parts = [some(n) for n in (1, 1, 5, 40, 1, 3)]
    cache = KeyValueCache(*(x[:, :, :0] for x in parts[0]))
    with torch.set_grad_enabled(grad):
        for i, part in enumerate(parts, start=1):
            cache = cache.append(part)
            assert same(cache, joined(*parts[:i])) and cache.length == cache.keys.shape[2]


@torch.no_grad()
def test_whoever_holds_one_never_sees_it_change():
    held, wanted = [some(2)], []
    wanted.append([x.clone() for x in held[0]])
    generator = torch.Generator().manual_seed(3)
    for _ in range(60):  # go on from any of the caches so far, the newest and those long ago
        i = int(torch.randint(len(held), (), generator=generator))
        new = some(int(torch.randint(1, 4, (), generator=generator)))
        held.append(held[i].append(new))
        wanted.append(joined(wanted[i], new))
    assert all(same(cache, tensors) for cache, tensors in zip(held, wanted, strict=True))


@torch.no_grad()
def test_it_grows_in_place_where_nobody_else_has():
    cache = some(1)
    blocks = set()
    for _ in range(500):
        cache = cache.append(some(1))
        blocks.add(cache.keys.data_ptr())
    assert len(blocks) < 15, "500 tokens were copied too often"
    twin = cache.append(some(1))
    assert twin.keys.data_ptr() == cache.keys.data_ptr()
    fork = cache.append(some(1))  # its place is taken
    assert fork.keys.data_ptr() != cache.keys.data_ptr()


@torch.no_grad()
def test_keys_of_a_large_one_lie_feature_by_feature_as_soon_as_it_goes_on(size):
    cache = some(3).append(some(1))
    assert cache.keys.stride(-1) == 1, "a search may reorder it at every step"
    for _ in range(100):
        cache = cache.append(some(1))
    assert cache.keys.stride()[2:] == ((1, cache.keys.stride(-1)) if size else (d, 1)) and cache.values.stride(-1) == 1


def test_gradients_go_through_all_that_was_appended():
    first, second, third = (some(2) for _ in range(3))
    for x in (*first, *second, *third):
        x.requires_grad_()
    one = first.append(second)
    other = one.append(third)
    (other.keys.square().sum() + one.values.square().sum()).backward()
    for part in (first, second, third):
        torch.testing.assert_close(part.keys.grad, 2 * part.keys.detach())
    assert third.values.grad is None


def test_inference_mode_and_out_of_it():
    start = some(2)
    with torch.inference_mode():
        inside = start.append(some(1))
        inside = inside.append(some(1))
    with torch.no_grad():
        new = some(1)
        after = inside.append(new)
    assert same(after, joined(inside, new))


@torch.no_grad()
def test_trees_copies_and_files():
    cache = some(2).append(some(3))
    index = torch.tensor([1, 1, 0])
    picked = tree_map(lambda x: x.index_select(0, index), {"layers": (cache,)})["layers"][0]
    assert isinstance(picked, KeyValueCache) and same(picked, [x[index] for x in cache])
    assert same(d2l.reorder([cache], index)[0], picked)
    new = KeyValueCache(*(x[:1] for x in some(1)))
    one = d2l.reorder([cache], torch.tensor([1]))[0].append(new)
    assert same(one, joined([x[1:] for x in cache], new))
    for again in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert same(again, cache) and again.keys.untyped_storage().nbytes() == again.keys.nbytes
    with pytest.raises(AttributeError):
        cache.keys = cache.values


def test_other_dtypes_and_shapes():
    with torch.no_grad():
        mixed = some(1).append(some(1)).append(KeyValueCache(*(x.double() for x in some(1))))
    assert mixed.keys.dtype == torch.float64 and mixed.length == 3
    with pytest.raises(ValueError, match=r"cannot be appended: expected \(B, H, S, d\)"):
        some(1).append(KeyValueCache(torch.zeros(1, H, 1, d), torch.zeros(1, H, 1, d)))
    new = some(1)
    for values in (new.values[:1], new.values[..., :1], torch.zeros(2, H, 2, d)):  # nothing is broadcast
        with torch.no_grad(), pytest.raises(ValueError, match="cannot be appended"):
            some(1).append(KeyValueCache(new.keys, values))


@torch.no_grad()
def test_the_first_positions_alone():
    parts = [some(n) for n in (3, 2)]
    cache = parts[0].append(parts[1])
    whole, held = joined(*parts), cache.first(4)
    assert (
        same(held, [x[:, :, :4] for x in whole])
        and held.length == 4
        and same(cache.first(0), [x[:, :, :0] for x in whole])
    )
    longer = held.append(new := some(1))  # goes another way than the cache that it is of
    assert same(longer, joined(held, new)) and same(cache, whole)
    with pytest.raises(ValueError, match="holds 5 positions"):
        cache.first(6)


@torch.no_grad()
def test_bytes_are_what_the_formula_says():
    config = d2l.GPTConfig(7, 20, 16, 4, 3, dropout=0.0)
    _, state = d2l.GPT(config).extend(torch.zeros(2, 9).long(), d2l.GPT(config).empty_state(2))
    held = sum(cache.num_bytes for cache in state.caches)
    assert held == d2l.cache_bytes(config, 9, batch_size=2, bytes_per_number=4) == 2 * 3 * 16 * 9 * 2 * 4
    grouped = d2l.GPT(replace(config, num_kv_heads=2, head_size=6))
    _, state = grouped.extend(torch.zeros(2, 9).long(), grouped.empty_state(2))
    held = sum(cache.num_bytes for cache in state.caches)
    assert held == d2l.cache_bytes(grouped.config, 9, batch_size=2, bytes_per_number=4) == 2 * 3 * 2 * 6 * 9 * 2 * 4
    gpt3 = d2l.GPT_CONFIGS["gpt3"]
    assert d2l.cache_bytes(gpt3, 1) == 4_718_592 and d2l.cache_bytes(gpt3, 0) == 0
    with pytest.raises(ValueError, match="0 or more"):
        d2l.cache_bytes(gpt3, -1)
