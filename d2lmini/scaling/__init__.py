"""Scaling laws: how the loss of a language model falls with size, data and compute; how to spend a budget.

flops.py       what training a GPT takes: by the rule of thumb 6 N D, and counted
laws.py        power laws fitted to runs, with bootstrap intervals
optimum.py     how many parameters, and on how many tokens, for a budget
literature.py  large language models and scaling laws as published
"""

from .flops import gpt_training_flops, matrix_parameters, training_flops
from .laws import PowerLaw, bootstrap_laws, fit_power_law, percentile_interval, predict_loss
from .literature import PublishedLaw, PublishedModel
from .optimum import Optimum, compute_frontier, compute_optimal, interpolate_log, isoflop_optimum, isoflop_profile

__all__ = [
    "Optimum",
    "PowerLaw",
    "PublishedLaw",
    "PublishedModel",
    "bootstrap_laws",
    "compute_frontier",
    "compute_optimal",
    "fit_power_law",
    "gpt_training_flops",
    "interpolate_log",
    "isoflop_optimum",
    "isoflop_profile",
    "matrix_parameters",
    "percentile_interval",
    "predict_loss",
    "training_flops",
]
