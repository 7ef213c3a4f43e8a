"""What it takes to train a GPT, in floating-point operations: by the rule of thumb 6 N D, and counted."""

from ..models.named_parts import NETWORKS
from ..transformer import GatedFFN


def training_flops(parameters, tokens):
    """6 N D: of each token each parameter takes a product and a sum on the way forward, and twice that on the way back.

    Args:
        parameters: N, those that a token is multiplied by; of a mixture of experts those that one token meets.
        tokens: D, how many are read, repeated ones too.

    Returns:
        FLOPs, a float.

    Raises:
        ValueError: one of them is below 0.

    Source: Kaplan et al. 2020, section 2.1; Hoffmann et al. 2022, appendix F.
    """
    if not (parameters >= 0 and tokens >= 0):
        raise ValueError(f"got {parameters} parameters and {tokens} tokens, expected numbers from 0")
    return 6.0 * parameters * tokens


def matrix_parameters(config):
    """The parameters of a GPT that multiply tokens: all matrices with the last layer, also where it is tied.

    Looking a token up multiplies nothing, and biases, norms and positions are left out.

    Args:
        config: a `GPTConfig`.

    Returns:
        int.
    """
    return _block_matrices(config) * config.num_blks + config.vocab_size * config.num_hiddens


def gpt_training_flops(config, tokens, *, context=None, causal=False):
    """FLOPs of a GPT's training, counted matrix by matrix, attention's scores and weighted sums with them.

    A product of (m, n) and (n, p) counts 2 m n p; the way back counts twice the way forward. Norms, activations and the
    softmax are left out: they are few operations on each number.

    Args:
        config: a `GPTConfig`.
        tokens: D, how many are read.
        context: T, how many stand in a sequence; None: ``max_len``.
        causal: whether only the scores on and below the diagonal count, as in a kernel that skips the others. False:
            all T of them, which is how published figures count.

    Returns:
        float.

    Raises:
        ValueError: fewer than 0 tokens, or a context below 1.

    Source: Hoffmann et al. 2022, appendix F; Chowdhery et al. 2022, appendix B.
    """
    context = config.max_len if context is None else context
    if not (tokens >= 0 and context >= 1):
        raise ValueError(f"got {tokens} tokens and a context of {context}, expected from 0 and from 1")
    keys = (context + 1) / 2 if causal else context  # that a query meets, on average
    attention = 2 * 2 * keys * config.num_heads * _head_size(config) * config.num_blks  # scores, and sums of values
    return 3.0 * tokens * (2 * matrix_parameters(config) + attention)


def _block_matrices(config):
    h, d = config.num_hiddens, _head_size(config)
    heads = 2 * config.num_heads + 2 * (config.num_kv_heads or config.num_heads)  # W_q and W_o, W_k and W_v
    num_ffn = 3 if NETWORKS[config.ffn][0] is GatedFFN else 2
    return heads * d * h + num_ffn * h * (config.ffn_num_hiddens or 4 * h)


def _head_size(config):
    return config.head_size or config.num_hiddens // config.num_heads
