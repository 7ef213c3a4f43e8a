"""What the experiments with a real model share: the model of a preset with its tokenizer, and the processor's time."""

import hashlib
import time
from contextlib import contextmanager
from statistics import median

import torch

from d2lmini.data import registry
from d2lmini.data.text import SHAKESPEARE
from d2lmini.experiments.gpt import language
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.models.weights import files, smollm2
from d2lmini.models.weights.trained import trained
from d2lmini.tokenization.characters import CharacterTokenizer

BASES = "smollm2", "shakespeare", "toy"
_CHARACTERS = "".join(map(chr, (10, *range(32, 127))))
_TOY = GPTConfig(
    len(_CHARACTERS), 512, 16, 4, 4, dropout=0.0, positions="rotary", norm="rms", ffn="swiglu", use_bias=False
)


def load(name):
    """A model in evaluation mode, and its tokenizer.

    Args:
        name: "smollm2"; "shakespeare", the book's own GPT on characters, which comes with the package; or "toy", which
            was never trained, and reads characters.

    Raises:
        ValueError: there is none of that name.
        DataError: the weights are not on this machine.
    """
    if name == "smollm2":
        return smollm2.load_smollm2()
    if name == "shakespeare":
        model = trained("gpt_shakespeare")
        return model, model.tokenizer
    if name != "toy":
        raise ValueError(f"there is no base {name!r}, only {', '.join(BASES)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = GPT(_TOY).eval()
        for parameter in model.parameters():  # larger than at the start of a training, so that its words differ
            torch.nn.init.normal_(parameter, std=0.3)
    return model, CharacterTokenizer(_CHARACTERS)


def checksums(name):
    """SHA-256 of the files that a base is read from."""
    if name == "smollm2":
        return registry.checksums(smollm2.NAME, [smollm2.FILE])
    return _digest(files.path_of("gpt_shakespeare")) if name == "shakespeare" else {}


def text_checksums(name):
    """SHA-256 of what a text of `load_text` is read from."""
    return _digest(SHAKESPEARE) if name == "shakespeare" else language.text_checksums(name)


def _digest(path):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}


def encode(tokenizer, text):
    """The ids of a text; a tokenizer of characters leaves out those that it does not know."""
    if isinstance(tokenizer, CharacterTokenizer):
        text = "".join(character for character in text if character in set(tokenizer.idx_to_token))
    return tokenizer.encode(text)


@contextmanager
def one_thread():
    """Inside of ``with``, torch computes in one thread, so that the processor's time is that of a core."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def processor_seconds(work):
    """What a function of no arguments returns, and the processor's seconds that it took: others do not count."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def median_processor_seconds(steps, repeats):
    """The median of each of several functions, a dict by name, which take turns after a call to warm up."""
    with one_thread():
        rounds = [{name: processor_seconds(step)[1] for name, step in steps.items()} for _ in range(repeats + 1)]
    return {name: median(times[name] for times in rounds[1:]) for name in steps}
