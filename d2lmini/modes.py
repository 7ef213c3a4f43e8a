"""Training and evaluation mode of a model and its parts."""

from contextlib import contextmanager


@contextmanager
def evaluating(module):
    """A module in evaluation mode while it is open; afterwards each part is in the mode in which it was.

    Args:
        module: any `torch.nn.Module`.

    Yields:
        The module.
    """
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield module
    finally:
        for part in training:
            part.training = True
