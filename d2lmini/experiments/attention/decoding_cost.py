"""Chapter 07: what the next token costs, against how many tokens there are already.

Three schemes, from one state and with one result: *cached* keeps the projected keys and values of earlier tokens;
*inputs kept* is D2L's, which keeps the inputs of every block and projects all of them again at every step;
*from scratch* keeps nothing and runs the decoder over the whole prefix. Beside them *kernel alone* is what no scheme
can go below: torch's attention, once in each block, over keys and values that lie there ready. The schemes take turns
at every length, so that a busy machine disturbs all alike, each with some steps before the one that is timed, since in
decoding a step follows its like; times are medians.
"""

import math
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F

from d2lmini.lab.parts import Parts
from d2lmini.lab.summaries import columns
from d2lmini.measure import median_seconds
from d2lmini.models.transformer_seq2seq import TransformerDecoder


@dataclass(frozen=True)
class Config:
    """Settings; a step is timed after each of ``lengths`` tokens, for each of ``batch_sizes`` (1, and a beam's 32)."""

    lengths: tuple = (16, 64, 256)
    batch_sizes: tuple = (1, 32)
    source_length: int = 20
    vocab_size: int = 4000
    num_hiddens: int = 128
    ffn_num_hiddens: int = 256
    num_heads: int = 4
    num_blks: int = 4
    repetitions: int = 7
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(Config(), lengths=(4, 8), batch_sizes=(1,), num_blks=1, vocab_size=50, repetitions=1),
    "cpu": Config(),
    "laptop": replace(Config(), lengths=(16, 32, 64, 128, 256, 512, 1000)),
}


def inputs_kept(decoder, token, state, kept):
    """One step of D2L's scheme.

    Args:
        decoder: a `TransformerDecoder` whose norms come last.
        token: (B, 1).
        state: a `DecoderState`, of which the memory alone is used.
        kept: for each block its inputs so far, (B, t, h).

    Returns:
        Logits (B, 1, V), and the inputs grown by one.
    """
    X = decoder.embedding(token) * math.sqrt(decoder.num_hiddens)
    X, grown = decoder.pos_encoding(X, offset=kept[0].shape[1]), []
    for blk, old in zip(decoder.blks, kept, strict=True):
        seen = torch.cat([old, X], 1)
        grown.append(seen)
        X = blk.addnorm1(X, blk.attention1(X, seen, seen))
        X = blk.addnorm2(X, blk.attention2(X, state.memory, state.memory, mask=state.memory_mask))
        X = blk.addnorm3(X, blk.ffn(X))
    return decoder.dense(X), grown


def block_inputs(decoder, tokens, state):
    """What every block is given for tokens (B, t), as `inputs_kept` wants it: a list of (B, t, h)."""
    kept = []
    hooks = [blk.register_forward_pre_hook(lambda blk, args: kept.append(args[0])) for blk in decoder.blks]
    decoder(tokens, state)
    for hook in hooks:
        hook.remove()
    return kept


def schemes(decoder, tokens, start):
    """The next token's logits by each scheme, after tokens (B, t + 1) but the last: functions without arguments.

    The cached one goes on from call to call, as in decoding: its second call is after one token more.
    """
    prefix, token = tokens[:, :-1], tokens[:, -1:]
    _, state = decoder(prefix, start)
    kept = block_inputs(decoder, prefix, start)

    def cached():
        nonlocal state
        logits, state = decoder(token, state)
        return logits

    return {
        "cached": cached,
        "inputs kept": lambda: inputs_kept(decoder, token, start, kept)[0],
        "from scratch": lambda: decoder(tokens, start)[0][:, -1:],
    }


def kernel_alone(config, batch, length, device):
    """Attention of one query to ``length`` keys in each block, a function without arguments."""
    size = config.num_hiddens // config.num_heads
    queries = torch.randn(batch, config.num_heads, 1, size, device=device)
    shape = (config.num_blks, 2, batch, config.num_heads, length, size)
    memory = torch.randn(shape, device=device)  # keys and values of each block

    def step():
        for keys, values in memory:
            F.scaled_dot_product_attention(queries, keys, values)

    return step


def _measure(config, decoder, batch, length, device):
    """Median seconds of a step by each scheme, after so many tokens."""
    start = decoder.init_state(torch.randn(batch, config.source_length, config.num_hiddens, device=device))
    steps = schemes(decoder, torch.randint(config.vocab_size, (batch, length + 1), device=device), start)
    first, *others = (step() for step in steps.values())
    for other in others:
        torch.testing.assert_close(other, first, rtol=1e-3, atol=1e-3)
    steps["kernel alone"] = kernel_alone(config, batch, length, device)
    return median_seconds(steps, config.repetitions, device, after_s=0.02)


@torch.no_grad()
def run(config, device, parts=None):
    """Measures every scheme after every length; ``parts`` are those of `Parts`.

    Returns:
        dict with ``curves``, the median seconds of a step for each batch size and scheme, and ``metrics``: for each
        the time after the longest prefix over that after the shortest, and the schemes' times over the cached one's;
        ``growth_over_kernel``: what the cached step takes more after the longest prefix, over what the kernel does.

    Raises:
        AssertionError: two schemes disagree.
    """
    device, parts = torch.device(device), parts or Parts()
    torch.manual_seed(config.seeds[0])
    sizes = (config.vocab_size, config.num_hiddens, config.ffn_num_hiddens, config.num_heads, config.num_blks)
    decoder = TransformerDecoder(*sizes).to(device).eval()
    curves, metrics = {"lengths": list(config.lengths)}, {}
    for batch in config.batch_sizes:
        rows = [
            parts(f"{batch}-{length}", _measure, config, decoder, batch, length, device) for length in config.lengths
        ]
        times = columns(rows)
        curves[f"batch {batch}"] = times
        metrics[f"batch {batch}"] = {
            name: {"longest_over_shortest": values[-1] / values[0], "over_cached": values[-1] / times["cached"][-1]}
            for name, values in times.items()
        }
        longer = {name: times[name][-1] - times[name][0] for name in ("cached", "kernel alone")}
        metrics[f"batch {batch}"]["growth_over_kernel"] = longer["cached"] / longer["kernel alone"]
    first = metrics[f"batch {config.batch_sizes[0]}"]
    metrics["headline"] = (
        f"after {config.lengths[-1]:,} tokens the next costs {first['cached']['longest_over_shortest']:.1f} times "
        f"what it costs after {config.lengths[0]} with the cache, {first['inputs kept']['over_cached']:.1f} times the "
        f"cached step by D2L's scheme and {first['from scratch']['over_cached']:.0f} times from scratch"
    )
    return {"metrics": metrics, "curves": curves}
