"""Translation of a batch, greedy and by beams, beside `transformers`' Marian of the same sizes with random weights.

Both write the same number of tokens. A ratio above 1 means that ours is slower.
"""

from dataclasses import dataclass, replace

import torch

from benchmarks._common import main, ratios
from d2lmini.decoding import beam_search, greedy_search
from d2lmini.models.seq2seq import Seq2Seq
from d2lmini.models.transformer_seq2seq import TransformerDecoder, TransformerEncoder


@dataclass(frozen=True)
class Sizes:
    """Sentences are as long as Multi30k's."""

    translation: tuple = (32, 16, 20, 8000, 256, 512, 4, 3)  # B, S, steps, V, h, hidden units of the FFN, heads, blocks
    beam_size: int = 4
    rounds: int = 15
    turn_s: float = 0.02  # a call is repeated until its turn lasts so long


SMOKE = replace(Sizes(), translation=(2, 3, 4, 20, 8, 8, 2, 1), rounds=2, turn_s=0.0)


def translations(sizes):
    """Greedy and beam search of a batch of sentences, from the sources to tokens: ours, and `transformers`' Marian."""
    from transformers import MarianConfig, MarianMTModel

    B, S, steps, vocab, h, ffn, heads, blocks = sizes.translation
    bos, eos, pad = vocab - 1, 1, 0
    source, lens = torch.randint(2, vocab - 1, (B, S)), S - torch.arange(B) % max(1, S // 2)
    real = torch.arange(S) < lens[:, None]
    encoder = TransformerEncoder(vocab, h, ffn, heads, blocks, use_bias=True)
    decoder = TransformerDecoder(vocab, h, ffn, heads, blocks, use_bias=True)
    ours = Seq2Seq(encoder, decoder, tgt_pad=pad, lr=1e-3).eval()
    config = MarianConfig(
        vocab_size=vocab,
        d_model=h,
        encoder_layers=blocks,
        decoder_layers=blocks,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=ffn,
        decoder_ffn_dim=ffn,
        activation_function="relu",
        pad_token_id=pad,
        eos_token_id=eos,
        decoder_start_token_id=bos,
        forced_eos_token_id=None,
        max_position_embeddings=128,
    )
    theirs = MarianMTModel(config).eval()

    def step(tokens, state):
        logits, state = ours.step(tokens, state)
        logits[:, eos] = -torch.inf  # no sentence ends before the last step
        return logits, state

    @torch.no_grad()
    def search(beam_size):
        state = ours.start(source, lens)
        if beam_size == 1:
            return greedy_search(step, state, bos, eos, steps)
        return beam_search(step, state, bos, eos, steps, beam_size)

    @torch.no_grad()
    def generate(beam_size):
        return theirs.generate(
            source,
            attention_mask=real.long(),
            num_beams=beam_size,
            do_sample=False,
            min_new_tokens=steps,
            max_new_tokens=steps,
        )

    found = {}
    for name, beam_size in (("greedy", 1), ("beam", sizes.beam_size)):
        assert search(beam_size).tokens.shape == (B, steps) and generate(beam_size).shape == (B, steps + 1)
        found[name] = {"ours": lambda k=beam_size: search(k), "transformers' Marian": lambda k=beam_size: generate(k)}
    return found


def measure(sizes):
    """Returns: dict with ``work``: of each search, the ratio to its peer."""
    torch.manual_seed(0)
    searches = translations(sizes)
    work = {"greedy search": searches["greedy"], f"beam search of {sizes.beam_size}": searches["beam"]}
    return {"work": {name: ratios(calls, sizes) for name, calls in work.items()}}


if __name__ == "__main__":
    main("translation", measure, Sizes(), SMOKE)
