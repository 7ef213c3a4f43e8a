"""Greedy and beam search of a batch of sentences, from the sources to tokens: ours, and `transformers`' Marian.

Both have random weights and the same sizes, and write the same number of tokens.
"""

from dataclasses import dataclass, replace

import torch

from benchmarks._common import contest, in_bf16, main
from d2lmini.decoding import beam_search, greedy_search
from d2lmini.models.seq2seq import Seq2Seq
from d2lmini.models.transformer_seq2seq import TransformerDecoder, TransformerEncoder


@dataclass(frozen=True)
class Sizes:
    """Sentences are as long as Multi30k's."""

    model: tuple = (32, 16, 20, 8000, 256, 512, 4, 3)  # B, S, steps, V, h, hidden units of the FFN, heads, blocks
    beam_size: int = 4
    rounds: int = 11
    turn_s: float = 0.02  # a call is repeated until its turn lasts so long
    most_s: float = 20


QUICK = replace(Sizes(), model=(2, 3, 4, 20, 8, 8, 2, 1), rounds=2, turn_s=0.0)


def translations(sizes, device):
    """Greedy and beam search of a batch of sentences, from the sources to tokens: ours, and `transformers`' Marian."""
    from transformers import MarianConfig, MarianMTModel

    B, S, steps, vocab, h, ffn, heads, blocks = sizes.model
    bos, eos, pad = vocab - 1, 1, 0
    src = torch.randint(2, vocab - 1, (B, S), device=device)
    lens = S - torch.arange(B, device=device) % max(1, S // 2)
    mask = torch.arange(S, device=device) < lens[:, None]
    encoder = TransformerEncoder(vocab, h, ffn, heads, blocks, use_bias=True)
    decoder = TransformerDecoder(vocab, h, ffn, heads, blocks, use_bias=True)
    ours = Seq2Seq(encoder, decoder, tgt_pad=pad, lr=1e-3).to(device).eval()
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
    theirs = MarianMTModel(config).to(device).eval()

    def step(tokens, state):
        logits, state = ours.step(tokens, state)
        logits[:, eos] = -torch.inf  # no sentence ends before the last step
        return logits, state

    @torch.no_grad()
    def search(beam_size):
        state = ours.start(src, lens)
        if beam_size == 1:
            return greedy_search(step, state, bos, eos, steps)
        return beam_search(step, state, bos, eos, steps, beam_size)

    @torch.no_grad()
    def generate(beam_size):
        return theirs.generate(
            src,
            attention_mask=mask.long(),
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


def measure(sizes, device="cpu"):
    """Returns: dict with ``contests``, as `benchmarks._common.contest` has them."""
    torch.manual_seed(0)
    B, _, steps, *_ = sizes.model
    contests = []
    with in_bf16(device):
        for name, calls in translations(sizes, device).items():
            what = "greedy search" if name == "greedy" else f"beam search of {sizes.beam_size}"
            contests.append(contest(f"translation, {what}", calls, sizes, unit="tokens", work=B * steps, device=device))
    return {"contests": contests}


if __name__ == "__main__":
    main("translation", measure, Sizes(), QUICK)
