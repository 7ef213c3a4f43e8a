"""What all checkpoints have in common: files are found and read, parameters are renamed, nothing is half done."""

import re
from contextlib import contextmanager
from pathlib import Path

from torch import nn

_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".gguf"}
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu": "gelu", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}


def at_hand(folder):
    """A folder as it is; of a name on the hub, where its files were put."""
    if Path(folder).is_dir():
        return Path(folder)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(str(folder), allow_patterns=["config.json", "model.safetensors"]))
    except Exception as error:  # there are many kinds, and of every client others
        raise FileNotFoundError(
            f"there is no folder {str(folder)!r}, and the hub gives no model of this name ({type(error).__name__}): is "
            "there a network? A folder with config.json and model.safetensors will do"
        ) from error


def read(path, reader):
    """What ``reader(path)`` gives; where it fails and the file is there, the file is damaged."""
    try:
        return reader(path)
    except OSError:
        raise
    except Exception as error:  # safetensors has an exception of its own
        raise ValueError(f"{path} is damaged ({error}): fetch it again") from error


def read_weights(path):
    """Names and tensors of a file; transformers is not needed."""
    from safetensors.torch import load_file

    return load_file(path)


def weights_file(folder):
    """Of a checkpoint: ``model.safetensors``.

    Raises:
        FileNotFoundError: it is not there; the message tells what is in its place.
    """
    path = folder / "model.safetensors"
    if path.is_file():
        return path
    others = sorted(other.name for other in folder.glob("*") if other.suffix in _WEIGHTS)
    there = ""
    if others:
        there = f", but {', '.join(others[:3])}: load it by transformers, whose save_pretrained(folder, max_shard_size="
        there += "'100GB') writes that one"
    raise FileNotFoundError(f"{folder} has no model.safetensors, in which the weights are expected, all of them{there}")


def eps_of(config):
    """What is added to variances, by any of its names."""
    names = "layer_norm_eps", "rms_norm_eps", "layer_norm_epsilon"
    return config[next((name for name in names if name in config), names[-1])]


def load_renamed(model, state_dict, renames, expected):
    """Puts weights into a model, under the names that a table of renames gives them; into all of it or nowhere.

    Args:
        renames: rows of (theirs, a pattern; ours), applied one after the other.
        expected: of the error, the model that would have fitted.

    Returns:
        The model.
    """
    weights = {
        renamed(name, renames): tensor
        for name, tensor in state_dict.items()
        # None: what is shared is missing; the other is Swin's, computed, and yet in older files
        if tensor is not None and not name.endswith("relative_position_index")
    }
    ours = model.state_dict()
    unbiased = not any(name.endswith(".W_q.bias") for name in weights)
    without = {name for name in ours if unbiased and re.search(r"\.W_[qkv]\.bias$", name)}
    wrong = sorted((ours.keys() - without) ^ weights.keys())
    wrong += [name for name in ours if name in weights and not _fits(ours[name], weights[name])]
    if wrong:  # nothing is overwritten
        raise ValueError(
            f"the weights do not fit: expected {expected}. Missing, superfluous or of another shape: {', '.join(wrong)}"
        )
    for name in without:
        model.get_submodule(name.removesuffix(".bias")).bias = None
    model.load_state_dict(weights)
    return model


@contextmanager
def nothing_drawn():
    """Models that are made in it begin with whatever is in memory: their weights come from a file anyway."""
    drawing = {name: value for name, value in vars(nn.init).items() if name.endswith("_") and callable(value)}
    try:
        for name in drawing:
            setattr(nn.init, name, lambda tensor, *args, **options: tensor)
        yield
    finally:
        for name, value in drawing.items():
            setattr(nn.init, name, value)


def with_eps(model, eps):
    """The model, with what its norms add to variances."""
    for module in model.modules():
        if isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
            module.eps = eps
    return model


def renamed(name, renames):
    """Our name of one of theirs."""
    for theirs, ours in renames:
        name = re.sub(theirs, ours, name)
    return name


def _fits(parameter, tensor):
    return nn.parameter.is_lazy(parameter) or parameter.shape == tensor.shape  # a lazy one takes the shape


def num_classes(weights, folder):
    """As many as the classifier has outputs."""
    if "classifier.bias" not in weights:
        raise ValueError(
            f"{folder} has no classifier.bias: expected a model ...ForImageClassification, no bare encoder"
        )
    return len(weights["classifier.bias"])
