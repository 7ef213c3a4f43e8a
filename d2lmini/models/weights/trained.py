"""Trained models by name: ``trained("gpt_shakespeare")`` reads one of the files beside this one, without a network."""

from dataclasses import dataclass

import torch

from ..bert import BERTForPretraining
from ..bert_config import BERTConfig
from ..gpt import GPT
from ..gpt_config import GPTConfig
from ..image_gpt import ImageGPT, ImageGPTConfig
from ..transformer_seq2seq import Transformer, TransformerConfig
from ..vit import ViT
from . import files, tokenizers
from .files import WeightsError
from .rounding import restored

# how each class is made of the configuration in a file
MODELS = {
    "Transformer": lambda pad, **config: Transformer(TransformerConfig(**config), pad),
    "ViT": ViT,
    "ImageGPT": lambda **config: ImageGPT(ImageGPTConfig(**config)),
    "GPT": lambda **config: GPT(GPTConfig(**config)),
    "BERTForPretraining": lambda **config: BERTForPretraining(BERTConfig(**config), next_sentence=False),
}


@dataclass(frozen=True)
class TrainedRun:
    """From which run a model is: `str` of it goes beside a figure.

    ``rounding`` tells ``kind``, ``metric``, and its values ``before`` and ``after``; ``extra`` what else belongs to the
    model: labels, grey levels, whether a BERT is causal.
    """

    name: str
    experiment: str
    preset: str
    headline: str
    commit: str
    command: str
    rounding: dict
    extra: dict

    def __str__(self):
        return f"{self.experiment}, preset {self.preset}: {self.headline}"


def trained(name, folder=None):
    """A model that a run of this book trained.

    Args:
        name: of the model; a wrong one is answered with all names.
        folder: of the files; None: those of the package.

    Returns:
        The model, in evaluation mode, float32, on the CPU; its ``trained`` is a `TrainedRun`, and its ``tokenizer``,
        where it reads text, what encodes it. Random numbers are drawn by none of this.

    Raises:
        ValueError: there is none of that name.
        WeightsError: the file is damaged, foreign or of another version.
    """
    there = files.names(folder)
    if name not in there:
        raise ValueError(f"there is no trained model {name!r}, only {', '.join(there) or 'none at all'}")
    path = files.path_of(name, folder)
    tensors, said = files.read(path)
    if said["model"] not in MODELS:
        raise WeightsError(f"{path} holds a {said['model']!r}, expected one of {', '.join(MODELS)}")
    try:
        model = assemble(said["model"], said["config"], restored(tensors))
        tokenizer = tokenizers.from_json(said["tokenizer"])
        run = {key: said["run"][key] for key in ("experiment", "preset", "headline", "commit", "command")}
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(f"{path} does not fit this package ({error}): export it again") from error
    if tokenizer is not None:
        model.tokenizer = tokenizer
    model.trained = TrainedRun(name, **run, rounding=said["rounding"], extra=said["extra"])
    return model


def assemble(kind, config, tensors):
    """A model with weights, in evaluation mode.

    Args:
        kind: key of `MODELS`.
        config: dict, as a file has it.
        tensors: dict of float32 tensors, one for each parameter; shared ones have one name.

    Raises:
        ValueError: names or shapes are not those of the model.
    """
    with torch.random.fork_rng(devices=[]):  # a fresh model draws its weights
        model = MODELS[kind](**config)
    parameters = dict(model.named_parameters())
    if parameters.keys() != tensors.keys():
        odd = sorted(parameters.keys() ^ tensors.keys())
        raise ValueError(f"a {kind} of this configuration has other tensors: {', '.join(odd[:5])}")
    for name, parameter in parameters.items():
        if isinstance(parameter, torch.nn.UninitializedParameter):
            parameter.materialize(tensors[name].shape)
        if parameter.shape != tensors[name].shape:
            raise ValueError(f"{name} is of shape {tuple(tensors[name].shape)}, expected {tuple(parameter.shape)}")
        with torch.no_grad():
            parameter.copy_(tensors[name])
    return model.eval()
