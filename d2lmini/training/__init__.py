"""Training: D2L's `Module`, `DataModule` and `Trainer`, over Hugging Face accelerate.

The loop knows no model, the model knows no data. What belongs to which file:

    module.py       Module, Classifier      what a model is to the loop
    data_module.py  DataModule              what data are to it
    trainer.py      Trainer                 the loop
    options.py      what it is given has to be
    pace.py         the clock and the bar of a run
    schedules.py    the learning rate over the steps
    optimizers.py   Muon and AdamW as one
    batches.py      the order of the batches, the same after a restart and shared among processes
    device.py       what a run computes on
    checkpoint.py   to write the state whole or not at all, and to read it back
    state.py        what a checkpoint holds
    diagnosis.py    why a loss is not finite
    inspection.py   sizes of gradients, updates and the residual stream
    curves.py       the means that the curves are made of
    board.py        ProgressBoard           the live curve
"""

from .board import ProgressBoard
from .checkpoint import CheckpointError
from .data_module import DataModule
from .inspection import (
    batch_gradients,
    by_depth,
    gradient_sizes,
    highest_loss_scale,
    lost_updates,
    residual_sizes,
    second_moments,
    underflow,
    update_sizes,
)
from .module import Classifier, Module
from .optimizers import MuonWithAdamW
from .schedules import WarmupCosine, WarmupInverseSqrt, WarmupLinear
from .trainer import Trainer

__all__ = [
    "CheckpointError",
    "Classifier",
    "DataModule",
    "Module",
    "MuonWithAdamW",
    "ProgressBoard",
    "Trainer",
    "WarmupCosine",
    "WarmupInverseSqrt",
    "WarmupLinear",
    "batch_gradients",
    "by_depth",
    "gradient_sizes",
    "highest_loss_scale",
    "lost_updates",
    "residual_sizes",
    "second_moments",
    "underflow",
    "update_sizes",
]
