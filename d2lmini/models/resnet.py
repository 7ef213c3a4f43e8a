"""A small residual network for images of 28 x 28 pixels: what a Vision Transformer is compared with.

The stem keeps every pixel and each stage but the first halves height and width. `arch_for` chooses the widths for a
number of parameters.
"""

import torch.nn.functional as F
from torch import nn

from ..training import Classifier
from ..vision.patches import check_images


class Residual(nn.Module):
    """Two 3 x 3 convolutions with batch norm, added to what came in.

    Args:
        num_channels: channels of the output.
        use_1x1conv: whether a 1 x 1 convolution brings the input to the shape of the output; needed where they differ.
        strides: step of the first convolution; 2 halves height and width.
        num_inputs: channels of the input; None: taken from the first call.

    Source: D2L section 8.6.2; He et al. 2016.
    """

    def __init__(self, num_channels, use_1x1conv=False, strides=1, *, num_inputs=None):
        super().__init__()

        def conv(kernel_size, stride):
            options = {"kernel_size": kernel_size, "padding": kernel_size // 2, "stride": stride, "bias": False}
            if num_inputs is None:
                return nn.LazyConv2d(num_channels, **options)
            return nn.Conv2d(num_inputs, num_channels, **options)

        self.conv1 = conv(3, strides)
        self.conv2 = nn.Conv2d(num_channels, num_channels, kernel_size=3, padding=1, bias=False)
        # the 1 x 1 convolution takes every `strides`-th position: with a step of its own torch 2.13 writes past its
        # memory on a CPU without AVX-512, where fewer than eight channels come in, the last one varying fastest
        self.conv3 = conv(1, 1) if use_1x1conv else None
        self.strides = strides
        self.bn1 = nn.BatchNorm2d(num_channels)
        self.bn2 = nn.BatchNorm2d(num_channels)

    def forward(self, X):
        """(N, num_inputs, height, width) to (N, num_channels, height / strides, width / strides), rounded up.

        Raises:
            ValueError: the shapes of input and output differ and there is no 1 x 1 convolution.
        """
        Y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(X)))))
        if self.conv3 is not None:
            X = self.conv3(X[:, :, :: self.strides, :: self.strides])
        if X.shape != Y.shape:
            raise ValueError(
                f"the input has shape {tuple(X.shape)} but what is added to it {tuple(Y.shape)}: use_1x1conv=True "
                "brings them together"
            )
        return F.relu(X + Y)


class ResNet(Classifier):
    """A convolution, stages of `Residual` blocks, the mean over all places, and a linear layer to the classes.

    Args:
        arch: a pair (number of blocks, channels) for each stage.
        lr: learning rate.
        num_classes: C.
        num_channels: channels of the images.
        dropout: probability of dropping a feature before the last layer, in training.

    Raises:
        ValueError: there is no stage, or one without blocks.

    Source: D2L section 8.6.3; He et al. 2016, section 4.2, for the stem of small images.
    """

    def __init__(self, arch, lr=0.1, num_classes=10, *, num_channels=1, dropout=0.0):
        super().__init__()
        self.save_hyperparameters()
        if not arch or any(blocks < 1 for blocks, _ in arch):
            raise ValueError(f"arch is {arch}, expected a pair (blocks, channels) for each stage, with blocks from 1")
        width = arch[0][1]
        stem = nn.Conv2d(num_channels, width, kernel_size=3, padding=1, bias=False)
        layers = [stem, nn.BatchNorm2d(width), nn.ReLU()]
        for i, (blocks, channels) in enumerate(arch):
            layers.append(self.block(blocks, channels, width, first_block=i == 0))
            width = channels
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(width, num_classes)]
        self.net = nn.Sequential(*layers, *head)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, Residual):
                nn.init.zeros_(module.bn2.weight)  # each block starts as its shortcut alone: Goyal et al. 2017

    def block(self, num_residuals, num_channels, num_inputs, first_block=False):
        """A stage; all but the first halve height and width in their first block."""
        strides = 1 if first_block else 2
        changes = strides > 1 or num_inputs != num_channels
        blocks = [Residual(num_channels, changes, strides, num_inputs=num_inputs)]
        blocks += [Residual(num_channels, num_inputs=num_channels) for _ in range(num_residuals - 1)]
        return nn.Sequential(*blocks)

    def forward(self, X):
        """Images (N, num_channels, height, width), floats, to scores (N, C).

        Raises:
            TypeError: the images are not floating point.
            ValueError: they have another number of dimensions or channels.
        """
        check_images(X, self.num_channels)
        return self.net(X)


def arch_for(num_parameters, blocks=(2, 2, 2), num_classes=10, num_channels=1, multiple=1):
    """Stages of a `ResNet` that has about as many parameters as asked for.

    Args:
        num_parameters: how many it should have.
        blocks: how many blocks each stage has; stage i has ``width * 2**i`` channels.
        num_classes, num_channels: as in `ResNet`.
        multiple: what divides the width; 8 suits the matrix units of a GPU.

    Returns:
        The ``arch`` whose number of parameters is nearest.

    Raises:
        ValueError: even the smallest width has more than twice as many parameters.
    """

    def arch(width):
        return tuple((n, width * 2**i) for i, n in enumerate(blocks))

    def build(width):
        return ResNet(arch(width), num_classes=num_classes, num_channels=num_channels)

    # every layer's number of parameters is a quadratic in the width, so three small networks tell of all
    n1, n2, n3 = (build(width).num_parameters for width in (1, 2, 3))

    def count(width):
        return n1 + (width - 1) * (n2 - n1) + (width - 1) * (width - 2) // 2 * (n3 - 2 * n2 + n1)

    if count(multiple) > 2 * num_parameters:
        raise ValueError(
            f"a width of {multiple} has {count(multiple)} parameters already, {num_parameters} were asked for"
        )
    width = multiple
    while count(width + multiple) < num_parameters:
        width += multiple
    return arch(min((width, width + multiple), key=lambda width: abs(count(width) - num_parameters)))
