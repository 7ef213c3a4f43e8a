"""The batches of an epoch: the same after a restart, and shared among processes.

The data draw from random numbers of their own, seeded for each epoch. So what a model draws (dropout) never changes the
order of the batches, and going through the first batches again brings a restarted run to where it was. (accelerate's
`skip_first_batches` loads none of them, so that what an augmentation would draw is not drawn.)
"""

import hashlib
import pickle
import random
from itertools import islice

import numpy as np
import torch
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader


def random_state():
    """The state of torch's (CPU and CUDA), numpy's and Python's random numbers, in types that a file can hold."""
    numpy_state = np.random.get_state()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": [numpy_state[0], torch.from_numpy(numpy_state[1].astype(np.int64)), *numpy_state[2:]],
        "python": random.getstate(),
    }


def set_random_state(state):
    """Sets what `random_state` gave."""
    torch.set_rng_state(state["torch"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), *rest))
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys), gauss))


class _OwnRandomNumbers:
    """Inside of ``with``, the global random numbers (not CUDA's) go on from where the last ``with`` left them."""

    def __init__(self, seed):
        # numpy's generator is exchanged as a whole, for its state takes long to copy
        self.other = (
            torch.Generator().manual_seed(seed).get_state(),
            np.random.MT19937(seed),
            random.Random(seed).getstate(),
        )

    def __enter__(self):
        current = torch.get_rng_state(), np.random.get_bit_generator(), random.getstate()
        torch.set_rng_state(self.other[0])
        np.random.set_bit_generator(self.other[1])
        random.setstate(self.other[2])
        self.other = current

    def __exit__(self, *error):
        self.__enter__()


def epoch_batches(loader, seed, epoch, skip=0):
    """Gives the batches of an epoch.

    Args:
        loader: a ``DataLoader``, or anything that gives batches again and again.
        seed: integer; it and ``epoch`` alone decide what is drawn.
        epoch: number of the epoch.
        skip: how many batches to leave out, loaded all the same, so that what they draw is drawn.

    Yields:
        batches, as the loader gives them.
    """
    seed = (seed + epoch) % 2**63
    for part in _parts(loader):
        if hasattr(part, "set_epoch"):
            part.set_epoch(epoch)
        if isinstance(getattr(part, "generator", None), torch.Generator):
            part.generator.manual_seed(seed)
    own = _OwnRandomNumbers(seed)
    with own:
        iterator = iter(loader)
    end = object()
    while True:
        with own:
            batch = next(iterator, end)
        if batch is end:
            return
        if skip:
            skip -= 1
            continue
        yield batch


def digest(loader):
    """What tells a loader's data from others of the same size: a digest of the first batch that it gives.

    It draws with random numbers of its own, in this process. Of a ``TensorDataset`` all tensors count. None: there is
    no loader.
    """
    if loader is None:
        return None
    dataset, sampler = (getattr(loader, name, None) for name in ("dataset", "batch_sampler"))
    if sampler is not None:  # what an augmentation draws depends on the number of workers
        alone = DataLoader(dataset, batch_sampler=sampler, collate_fn=loader.collate_fn, generator=loader.generator)
    found = hashlib.sha256()
    parts = [next(epoch_batches(loader if sampler is None else alone, 0, 0)), list(getattr(dataset, "tensors", ()))]
    for leaf in tree_leaves(parts):
        if isinstance(leaf, torch.Tensor):
            found.update(f"{leaf.dtype} {tuple(leaf.shape)}".encode())
            found.update(leaf.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        elif isinstance(leaf, (str, bytes, int, float, type(None), np.ndarray)):
            found.update(pickle.dumps(leaf, protocol=5))
    return found.hexdigest()[:16]


def in_groups(batches, size):
    """Lists of ``size`` batches, the last one of what is left."""
    batches = iter(batches)
    while group := list(islice(batches, size)):
        yield group


def _parts(loader):
    """The loader and all that it draws from: data sets, samplers, batch samplers."""
    parts, todo = [], [loader]
    while todo:
        part = todo.pop()
        if part is not None and not any(part is other for other in parts):
            parts.append(part)
            todo += [getattr(part, name, None) for name in ("dataset", "sampler", "batch_sampler")]
    return parts


def share(loader, rank, processes):
    """The part of a loader's batches that one of several processes works on.

    Every process takes every ``processes``-th batch. Where the batches do not divide evenly, the processes left without
    one repeat the first batch of the epoch, so that all make as many steps: `is_repeat` tells which. (accelerate's
    `BatchSamplerShard` fills up the last batches with the first examples, which then count twice, or lets some
    processes make fewer steps than others, which wait for them.)

    Args:
        loader: a ``DataLoader`` over a data set that can be indexed.
        rank: number of the process, from 0.
        processes: how many there are.

    Returns:
        A ``DataLoader``; ``loader`` itself for one process.

    Raises:
        TypeError: the loader has no batch sampler, so that its batches cannot be shared.
    """
    if processes == 1:
        return loader
    if getattr(loader, "batch_sampler", None) is None:
        raise TypeError(
            f"the data come as a {type(loader).__name__} without a batch sampler, which {processes} processes cannot "
            "share: expected a DataLoader over a data set that can be indexed"
        )
    same = "num_workers collate_fn pin_memory timeout worker_init_fn multiprocessing_context generator"
    return DataLoader(
        loader.dataset,
        batch_sampler=_Share(loader.batch_sampler, rank, processes),
        prefetch_factor=loader.prefetch_factor,
        persistent_workers=loader.persistent_workers,
        **{name: getattr(loader, name) for name in same.split()},
    )


class _Share:
    def __init__(self, batch_sampler, rank, processes):
        self.batch_sampler, self.rank, self.processes = batch_sampler, rank, processes

    def __len__(self):
        return -(-len(self.batch_sampler) // self.processes)

    def __iter__(self):
        first, count = None, 0
        for count, batch in enumerate(self.batch_sampler, start=1):
            if first is None:
                first = batch = list(batch)
            if (count - 1) % self.processes == self.rank:
                yield batch
        if count % self.processes and self.rank >= count % self.processes:
            yield first


def is_repeat(loader, index):
    """Whether the batch of this index of a shared loader only fills up, and counts nothing."""
    part = getattr(loader, "batch_sampler", None)
    return isinstance(part, _Share) and index * part.processes + part.rank >= len(part.batch_sampler)
