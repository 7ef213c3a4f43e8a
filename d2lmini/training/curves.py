"""What a run is seen by: weighted means of what the module plots, on its board."""

import math

import torch

from ..utils import widest_float


class Means:
    """Means of named values, each weighted by its batch; nothing waits for the device until they are taken."""

    def __init__(self):
        self._totals = {}  # name -> [sum of value * weight, sum of weights]

    def add(self, key, value, weight):
        total = self._totals.setdefault(key, [0.0, 0.0])
        if not weight:  # a mean of nothing, which may be NaN
            return
        if isinstance(value, torch.Tensor):
            value = value.detach().to(widest_float(value.device))
        total[0] += value * weight
        total[1] += weight

    def take(self, device, over_processes):
        """The means over all processes, a dict of floats; of nothing, NaN. Then it starts anew.

        Args:
            device: where to add up.
            over_processes: function that gives the sum of a tensor over the processes.
        """
        totals, self._totals = self._totals, {}
        if not totals:
            return {}
        dtype = widest_float(device)
        rows = [[torch.as_tensor(x, dtype=dtype, device=device).reshape(()) for x in t] for t in totals.values()]
        sums = over_processes(torch.stack([x for row in rows for x in row])).view(-1, 2)
        return dict(zip(totals, (sums[:, 0] / sums[:, 1]).tolist(), strict=True))


class Curves:
    """The curves of a run on the board of its model: means over parts of an epoch, and over validation.

    Args:
        module: a `Module`.
        num_batches: training batches in an epoch.
        take: function from `Means` to a dict of floats.
        draws: whether this process is the one that draws.
    """

    def __init__(self, module, num_batches, take, draws):
        self.module, self.num_batches, self.take, self.draws = module, num_batches, take, draws
        self.train, self.val = Means(), Means()
        self._start = 0

    def start(self, batch):
        """Sets where the next part of the training curve begins: at a number of batches since the start of the run."""
        self._start = batch

    def trained(self, batch):
        """Draws a point where a part of the epoch is over, at the middle of the part."""
        points = self.module.plot_train_per_epoch
        if batch * points // self.num_batches > self._start * points // self.num_batches:
            self._draw("train", self.take(self.train), (self._start + batch) / 2 / self.num_batches)
            self._start = batch

    def validated(self, epochs):
        """Draws a point of each validation curve and returns their values."""
        values = self.take(self.val)
        if self.module.plot_valid_per_epoch:
            self._draw("val", values, epochs)
        return values

    def _draw(self, prefix, values, x):
        for key, value in values.items():
            if self.draws and math.isfinite(value):
                self.module.board.draw(x, value, f"{prefix}_{key}")
