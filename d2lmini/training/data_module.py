"""What data are to the loop: something that gives a loader of training batches and one of validation batches."""

from torch.utils.data import DataLoader, TensorDataset

from ..utils import HyperParameters


class DataModule(HyperParameters):
    """Base class of data for a `Trainer`. A subclass gives ``get_dataloader(train)``.

    The order of the batches may depend on the global random numbers of torch, numpy and Python, on the ``generator`` of
    a loader or sampler (the trainer seeds all of these for each epoch), and on the epoch, where a sampler, a batch
    sampler or the data set has a method ``set_epoch(epoch)``. Then a run that goes on from a checkpoint sees the
    batches that it would have seen. A sampler that keeps random numbers of its own from epoch to epoch needs
    ``set_epoch``. ``len`` of the loader has to be the number of its batches.

    Args:
        root: folder of data.
        num_workers: processes that load batches, for subclasses that use them.

    Source: D2L section 3.2.3.
    """

    def __init__(self, root="../data", num_workers=4):
        self.save_hyperparameters()

    def get_dataloader(self, train):
        """The loader of the training (True) or the validation batches (False)."""
        raise NotImplementedError(f"{type(self).__name__} has no get_dataloader(train)")

    def train_dataloader(self):
        return self.get_dataloader(train=True)

    def val_dataloader(self):
        return self.get_dataloader(train=False)

    def get_tensorloader(self, tensors, train, indices=slice(0, None)):
        """A loader over tensors that share their first dimension, in batches of ``self.batch_size``.

        Args:
            tensors: tensors of shape (N, ...).
            train: whether to shuffle.
            indices: which examples.

        Returns:
            A loader of lists of tensors (B, ...).

        Source: D2L section 3.3.3.
        """
        dataset = _Tensors(*(tensor[indices] for tensor in tensors))
        return DataLoader(dataset, self.batch_size, shuffle=train and len(dataset) > 0, collate_fn=_as_it_is)


class _Tensors(TensorDataset):
    """A data set of which a loader takes a batch by one index for each tensor, not example by example."""

    def __getitems__(self, indices):
        return [tensor[indices] for tensor in self.tensors]


def _as_it_is(batch):
    return batch
