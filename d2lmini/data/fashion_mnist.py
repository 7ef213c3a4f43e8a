"""Fashion-MNIST for a `Trainer`: kept in memory as bytes, made into float images batch by batch."""

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from ..training.data_module import DataModule
from .images import FASHION_MNIST_LABELS, fashion_mnist


class FashionMNIST(DataModule):
    """Fashion-MNIST in batches of images (B, 1, height, width), floats in [0, 1], and labels (B,).

    ``train`` and ``val`` are data sets that have a length and can be indexed. Nothing is downloaded unless
    ``subset="full"`` asks for it.

    Args:
        batch_size: B.
        resize: (height, width) of the images; the originals have (28, 28).
        augment: None, or a function of training images and labels that returns both, as `Augmentation`.
        num_train: None: all training images; else so many, equally many of each class as far as possible. What a
            smaller number takes is part of what a larger one takes.
        num_val: None: ``val`` is the test set, as in D2L; else so many training images that are taken out of ``train``,
            equally many of each class, to choose settings by.
        seed: of the choice of these images.
        subset: "full" (60,000 and 10,000 images), "shipped" (2,000 and 1,000), or "auto": all where it is here.
        device: where the data lie and batches are made.

    Raises:
        ValueError: more images are asked for than there are, or ``resize`` is not a pair.
        DataError: the data are not here and cannot be fetched, or are damaged.

    Source: D2L section 4.2; Xiao, Rasul, Vollgraf 2017.
    """

    def __init__(
        self,
        batch_size=64,
        resize=(28, 28),
        *,
        augment=None,
        num_train=None,
        num_val=None,
        seed=0,
        subset="auto",
        device="cpu",
    ):
        super().__init__(num_workers=0)
        self.save_hyperparameters()
        if len(resize) != 2 or min(resize) < 1:
            raise ValueError(f"resize is {resize}, expected (height, width) in pixels")
        images, labels = fashion_mnist("train", subset)
        order = stratified_order(labels, seed)
        held_out = num_val or 0
        num_train = len(order) - held_out if num_train is None else num_train
        if held_out < 0 or not 1 <= num_train <= len(order) - held_out:
            raise ValueError(
                f"num_train is {num_train} and num_val {held_out}, expected at least 1 to train on and at most "
                f"{len(order)} in all, the training images that are here"
            )
        # from the two ends of one order, so that they never meet
        chosen, others = order[:num_train].msort(), order[len(order) - held_out :].msort()
        self.train = _Images(images[chosen], labels[chosen], resize, augment, device)
        test = fashion_mnist("test", subset) if num_val is None else (images[others], labels[others])
        self.val = _Images(*test, resize, None, device)

    def text_labels(self, indices):
        """Names of classes, given as integers."""
        return [FASHION_MNIST_LABELS[int(i)] for i in indices]

    def get_dataloader(self, train):
        """The loader of the training (True, shuffled) or the validation batches."""
        options = {"shuffle": train, "collate_fn": _as_it_is}
        return DataLoader(self.train if train else self.val, self.batch_size, **options)

    def visualize(self, batch, nrows=1, ncols=8, labels=()):
        """Draws the first ``nrows * ncols`` images of a batch, titled with ``labels`` or the names of their classes.

        Returns:
            The axes, an array of ``nrows * ncols``.
        """
        from ..plotting import plt, use_svg_display

        use_svg_display()
        X, y = batch
        titles = list(labels) or self.text_labels(y)
        _, axes = plt.subplots(nrows, ncols, figsize=(1.5 * ncols, 1.7 * nrows), squeeze=False)
        for ax in axes.flat:
            ax.axis("off")
        for ax, image, title in zip(axes.flat, X.cpu(), titles, strict=False):
            ax.imshow(image.squeeze(0).numpy(), cmap="gray")
            ax.set_title(title)
        return axes.flatten()


def stratified_order(labels, seed=0):
    """An order in which the classes take turns, drawn at random inside of each class.

    Args:
        labels: integers (N,).
        seed: integer.

    Returns:
        indices (N,): of the first n examples, the numbers of two classes differ by at most 1 while both last.
    """
    drawn = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    by_class = labels[drawn].argsort(stable=True)  # places in `drawn`, class after class
    counts = labels.bincount()
    turns = torch.cat([torch.arange(n) for n in counts.tolist()])  # the how-manieth of its class each one is
    return drawn[by_class[turns.argsort(stable=True)]]


class _Images(Dataset):
    """Bytes (N, 28, 28) and labels (N,), given out as float images (1, height, width), a batch in one go."""

    def __init__(self, images, labels, resize, augment, device):
        self.images, self.labels = images.to(device), labels.to(device)
        self.resize, self.augment = tuple(resize), augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        images, labels = self.__getitems__([index])
        return images[0], labels[0]

    def __getitems__(self, indices):
        chosen = torch.as_tensor(indices, device=self.labels.device)
        images, labels = self.images[chosen, None].float() / 255, self.labels[chosen]
        if self.resize != tuple(images.shape[2:]):
            images = F.interpolate(images, self.resize, mode="bilinear", antialias=True)
        return (images, labels) if self.augment is None else self.augment(images, labels)


def _as_it_is(batch):
    return batch
