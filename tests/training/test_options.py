"""What a Trainer is told is looked at where it is told."""

import math

import numpy as np
import pytest
from toy_line import Line, Points, fit

from d2lmini.training import Trainer

NUMBERS = ("max_epochs", "num_gpus", "gradient_clip_val", "accumulate", "seed", "checkpoint_every")
NUMBERS += ("max_steps", "max_seconds")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_epochs": 0}, "max_epochs is 0, expected at least 1"),
        ({"accumulate": 0}, "accumulate is 0"),
        ({"precision": "half"}, "precision is 'half', expected 'auto', 'float32', 'bf16'"),
        ({"resume": True}, "need a folder"),
        ({"checkpoint_every": 5}, "need a folder"),
        ({"num_gpus": -1}, "num_gpus is -1, expected 0 or more"),
        ({"gradient_clip_val": -1.0}, r"gradient_clip_val is -1\.0, expected 0 or more"),
        ({"gradient_clip_val": math.nan}, "gradient_clip_val is nan"),
        ({"max_seconds": -3}, "max_seconds is -3"),
        ({"seed": -1}, r"seed is -1, expected an integer from 0 to 2\*\*32 - 1"),
    ],
    ids=str,
)
def test_options_outside_of_their_range(options, message):
    with pytest.raises(ValueError, match=message):
        Trainer(**{"max_epochs": 1, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_epochs": None}, "max_epochs is None, expected an integer"),
        ({"max_epochs": "3"}, "max_epochs is '3', expected an integer"),
        *(({name: True}, f"{name} is True, expected a") for name in NUMBERS),
        ({"max_epochs": 1.5}, r"max_epochs is 1\.5, expected an integer"),
        ({"max_steps": 1e3}, r"max_steps is 1000\.0, expected an integer"),
        ({"num_gpus": "cuda"}, "num_gpus is 'cuda', expected an integer"),
        ({"gradient_clip_val": None}, "gradient_clip_val is None, expected a number"),
        ({"max_seconds": "1h"}, "max_seconds is '1h', expected a number"),
        ({"seed": "x"}, "seed is 'x', expected an integer"),
        ({"checkpoint": True}, "checkpoint is True, expected the path of a folder"),
        ({"compile": "yes"}, "compile is 'yes', expected True, False or a dict"),
        ({"schedule": 0.1}, r"schedule is 0\.1, expected a function from the step to a factor"),
        ({"callbacks": print}, "callbacks is .*print.*, expected a list of functions"),
        ({"callbacks": [3]}, r"callbacks is \[3\], expected a list of functions"),
    ],
    ids=str,
)
def test_options_of_another_type(options, message):
    with pytest.raises(TypeError, match=message):
        Trainer(**{"max_epochs": 1, **options})


def test_options_of_numpy_and_paths_are_as_good(tmp_path):
    Trainer(np.int64(2), np.int64(1), np.float32(1), checkpoint=tmp_path, seed=np.uint32(3), max_seconds=np.float64(9))


def test_a_model_of_which_nothing_is_trained():
    model = Line()
    model.requires_grad_(False)
    with pytest.raises(ValueError, match=r"Line has no parameter to train: .* Were all of them frozen\?"):
        fit(model)

    class Cut(Line):
        def training_step(self, batch):
            return super().training_step(batch).detach()

    with pytest.raises(ValueError, match=r"Cut\.training_step returned a loss without a gradient"):
        fit(Cut())


def test_no_example_to_train_on():
    for data in (Points(num_train=0), Points(num_train=0, shuffle=False)):
        with pytest.raises(ValueError, match="the training data have no batches: no examples"):
            fit(data=data)
