"""Cached greedy decoding of a GPT beside `transformers`' GPT-2 of the same sizes and weights.

From prompts to new tokens, which are the same for all: ours is the copy by `d2lmini.for_decoding`; beside it the model
as it is, and theirs by ``generate``. The weights are random, and no sentence may end before the last step.
"""

from dataclasses import dataclass, replace
from itertools import product

import torch

from benchmarks._common import contest, in_bf16, main
from d2lmini.decoding import greedy_search
from d2lmini.decoding.fast import for_decoding
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPTConfig
from d2lmini.models.pretrained import load_transformers_gpt2

PEER = "transformers"
AS_IT_IS = "ours, without the copy"
END = 0  # the token that is never chosen


@dataclass(frozen=True)
class Sizes:
    """A model of characters as small as they come, one of the size trained on Shakespeare, one of a few words."""

    models: tuple = ((65, 64, 4, 2), (65, 256, 4, 6), (4000, 128, 4, 4))  # V, h, heads, blocks
    new_tokens: tuple = (240,)
    sentences: tuple = (1, 32)
    prompt: int = 16
    remembered: int = 32  # new tokens while the memory is measured
    rounds: int = 7
    turn_s: float = 0.2  # a call is repeated until its turn lasts so long
    most_s: float = 12


QUICK = replace(
    Sizes(), models=((11, 8, 2, 1),), new_tokens=(3, 20), sentences=(1, 2), prompt=2, remembered=3, rounds=2, turn_s=0.0
)


def contestants(model, sentences, new_tokens, prompt, device="cpu"):
    """Functions without arguments that return the new tokens (B, new_tokens)."""
    from transformers import GPT2Config, GPT2LMHeadModel

    V, h, heads, blocks = model
    most = prompt + new_tokens
    ids = {"bos_token_id": END, "eos_token_id": END}
    config = GPT2Config(vocab_size=V, n_embd=h, n_layer=blocks, n_head=heads, n_positions=most, **ids)
    theirs = GPT2LMHeadModel(config).to(device).eval()
    theirs.generation_config.eos_token_id = None
    config = GPTConfig(vocab_size=V, max_len=most, num_hiddens=h, num_heads=heads, num_blks=blocks)
    ours = load_transformers_gpt2(GPT(config).to(device), theirs.state_dict()).eval()
    never = torch.zeros(V, device=device)
    never[END] = -torch.inf
    ours.dense.bias = theirs.lm_head.bias = torch.nn.Parameter(never)
    copy, prompts = for_decoding(ours), torch.randint(1, V, (sentences, prompt), device=device)

    @torch.no_grad()
    def search(gpt):
        _, state = gpt.extend(prompts[:, :-1], gpt.empty_state(sentences))
        return greedy_search(gpt.step, state, prompts[:, -1], END, new_tokens).tokens

    def generate():
        found = theirs.generate(prompts, do_sample=False, max_new_tokens=new_tokens, pad_token_id=END)
        return found[:, prompt:]

    return {"ours": lambda: search(copy), AS_IT_IS: lambda: search(ours), PEER: generate}


def measure(sizes, device="cpu"):
    """Returns: dict with ``contests``, as `benchmarks._common.contest` has them."""
    torch.manual_seed(0)
    contests = []
    for model, sentences, new_tokens in product(sizes.models, sizes.sentences, sizes.new_tokens):
        V, h, _, blocks = model
        what = f"GPT, {blocks} blocks of {h}, V = {V:,}, {sentences} x {new_tokens} tokens"
        with in_bf16(device):
            calls = contestants(model, sentences, new_tokens, sizes.prompt, device)
            wanted = calls[PEER]()
            assert wanted.shape == (sentences, new_tokens)
            same = all(torch.equal(call(), wanted) for call in calls.values())
            # in bf16 a tie may break either way, and all that follows is another text
            assert same or wanted.is_cuda, "they do not write the same"
            short = contestants(model, sentences, sizes.remembered, sizes.prompt, device)
            work = sentences * new_tokens
            found = contest(
                what,
                calls,
                sizes,
                unit="tokens",
                work=work,
                device=device,
                memory=short,
                sentences=sentences,
                same=same,
            )
        contests.append(found)
    return {"contests": contests}


if __name__ == "__main__":
    main("decoding", measure, Sizes(), QUICK)
