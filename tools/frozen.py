"""Do all models still give the same numbers, bit for bit? Asked before and after a change that is to change none.

    python -m tools.frozen before.json               # on the old tree: writes a checksum of every number
    python -m tools.frozen after.json before.json    # on the new one: tells what differs

Of every model: its weights as they are drawn, its outputs in evaluation and in training, the gradients, the weights
after a step of its optimizer, and what it writes with a cache. Of attention: every way to call it. Checksums hold on
one machine and one version of torch alone, so that none are kept in the repository.
"""

import hashlib
import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import d2lmini as d2l
from d2lmini.experiments.gpt import language, long_positions
from tests.gpt_forms import FORMS

B, T, S, D, H = 3, 7, 9, 8, 4


def checksum(*values):
    """Of all tensors inside of values, with their shapes and dtypes; -0 counts as 0."""
    found = hashlib.sha256()
    for x in tree_leaves(values):
        if isinstance(x, torch.Tensor):
            x = (x.detach() + 0).contiguous()
            found.update(f"{tuple(x.shape)} {x.dtype}".encode() + x.reshape(-1).view(torch.uint8).numpy().tobytes())
        else:
            found.update(repr(x).encode())
    return found.hexdigest()[:16]


def model_sums(make, inputs, writes=None):
    """Checksums of one model: drawn weights, outputs, gradients, an optimizer's step, and ``writes(model)``."""
    torch.manual_seed(1)
    model = make()
    *args, options = inputs if isinstance(inputs[-1], dict) else (*inputs, {})
    found = {"outputs": checksum(model.eval()(*args, **options))}  # first: lazy layers get their sizes
    found["weights"] = checksum(model.state_dict())
    if writes is not None:
        found["written"] = checksum(writes(model))
    torch.manual_seed(2)
    outputs = model.train()(*args, **options)
    found["trained outputs"] = checksum(outputs)
    weighted_sum(outputs).backward()
    found["gradients"] = checksum({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    if hasattr(model, "configure_optimizers"):
        model.configure_optimizers().step()
        found["stepped"] = checksum(model.state_dict())
    return found


def weighted_sum(outputs):
    """A scalar of every floating-point number in outputs, each with a factor of its own."""
    floats = [x for x in tree_leaves(outputs) if isinstance(x, torch.Tensor) and x.is_floating_point()]
    return sum((x.float() * torch.arange(x.numel()).sin().view(x.shape)).sum() for x in floats)


def tokens(batch, length, vocab_size=65):
    """Integers (batch, length), the same in every run."""
    return torch.randint(1, vocab_size, (batch, length), generator=torch.Generator().manual_seed(length))


def images(channels=1, size=28):
    """Floats (2, channels, size, size), the same in every run."""
    return torch.rand(2, channels, size, size, generator=torch.Generator().manual_seed(size))


# --- what models write with a cache


def gpt_writes(model):
    """Text in pieces and token by token, a ragged batch, drawn tokens, and the same by the copy for decoding."""
    found = []
    for each in (model, d2l.for_decoding(model)):
        state = each.empty_state(2)
        for piece in tokens(2, 12).split([5, 1, 1, 3, 2], 1):
            logits, state = each.extend(piece, state)
            found.append(logits)
        found += [list(cache) for cache in state.caches]
        if isinstance(model, long_positions.LongLearner):
            continue
        generator = torch.Generator().manual_seed(3)
        prompts = [[5, 7, 2], [9], [4, 4, 8, 1, 3]]
        found.append(each.generate(prompts, 6, temperature=0.8, generator=generator).tokens)
        found.append(each(tokens(2, 6), torch.tensor([0, 3])))
    return found


def t5_writes(model):
    """Greedily, with a beam, and drawn."""
    prompts = [[5, 7, 2], [9], [4, 4, 8, 1, 3]]
    drawn = model.generate(prompts, 6, temperature=0.8, generator=torch.Generator().manual_seed(3))
    return [model.generate(prompts, 6), model.generate(prompts, 6, beam_size=3), drawn, t5_steps(model)]


def t5_steps(model):
    state, found = model.start(tokens(2, 6, 128), torch.tensor([6, 4])), []
    for piece in tokens(2, 5, 128).split([1, 1, 3], 1):
        logits, state = model.decoder(piece, state)
        found.append(logits)
    return found


def translates(model):
    """Greedily and with a beam."""
    src, lens = tokens(3, 6), torch.tensor([6, 3, 5])
    return [model.translate(src, lens, 1, 2, 8, beam_size=size) for size in (1, 3)]


def draws_pixels(model):
    """The rest of two images, and steps of several pixels."""
    top = tokens(2, 8, 4).view(2, 2, 4)
    caches, found = model.empty_caches(2), []
    for piece in tokens(2, 9, 4).split([4, 1, 1, 3], 1):
        scores, caches = model.step(piece, caches)
        found.append(scores)
    return [found, model.complete(top, generator=torch.Generator().manual_seed(3))]


# --- the cases


def models():
    """Name to `model_sums`' arguments."""
    toy, text, padding = d2l.GPT_CONFIGS["toy"], tokens(B, 12), torch.tensor([0, 4, 1])
    for name, config in FORMS.items():
        yield f"GPT {name}", lambda c=config: d2l.GPT(c), (text,), gpt_writes
        yield f"GPT {name}, padded", lambda c=config: d2l.GPT(c), (text, padding), None
    for name, positions in long_positions.POSITIONS.items():
        recipe = language.Recipe(replace(toy, positions=positions))
        yield f"long {name}", lambda r=recipe, n=name: long_positions.LongLearner(r, n), (text,), gpt_writes

    bert, words, valid_lens = d2l.BERT_CONFIGS["toy"], tokens(B, 12, 101), torch.tensor([12, 5, 9])
    berts = {"toy": bert, "modern": d2l.BERT_CONFIGS["modern-toy"], "dropout": replace(bert, dropout=0.1)}
    berts["albert"] = replace(bert, share_blks=True, emb_size=24, activation="gelu_tanh", use_pooler=False)
    left = (torch.arange(12) >= 12 - valid_lens[:, None])[:, None]
    for name, config in berts.items():
        make = lambda c=config: d2l.BERTForPretraining(c, next_sentence=c.use_pooler)  # noqa: E731
        yield f"BERT {name}", make, (words, (words % 2), valid_lens), None
        yield f"BERT {name}, no padding", lambda c=config: d2l.BERT(c), (words,), None
        yield f"BERT {name}, padding left", lambda c=config: d2l.BERT(c), (words, {"mask": left}), None

    t5 = d2l.T5_CONFIGS["toy"]
    t5s = {"toy": t5, "v1.1": replace(t5, ffn="geglu", tie_weights=False), "dropout": replace(t5, dropout=0.1)}
    for name, config in t5s.items():
        padded = tokens(B, 9, 128) * (torch.arange(9) < torch.tensor([[9], [4], [7]]))
        yield f"T5 {name}", lambda c=config: d2l.T5(c), (padded, tokens(B, 6, 128)), t5_writes

    for norm_first, dropout in itertools.product((True, False), (0.0, 0.3)):
        config = d2l.TransformerConfig(65, 32, 48, 4, 2, dropout, norm_first)
        inputs = (tokens(B, 6), tokens(B, 5), torch.tensor([6, 3, 5]))
        name = f"Transformer, norm first {norm_first}, dropout {dropout}"
        yield name, lambda c=config: d2l.Transformer(c), inputs, translates
    pair = lambda: d2l.Seq2Seq(  # noqa: E731
        d2l.Seq2SeqEncoder(65, 16, 24, 2, 0.1), d2l.Seq2SeqAttentionDecoder(65, 16, 24, 2, 0.1), 0, 1e-3
    )
    yield "Bahdanau", pair, (tokens(B, 6), tokens(B, 5), torch.tensor([6, 3, 5])), translates

    for pooling, positions in itertools.product(("class", "mean"), ("learned", "sinusoidal", "rotary")):
        options = {"pooling": pooling, "positions": positions, "drop_path": 0.1, "num_channels": 1}
        make = lambda o=options: d2l.ViT(28, 7, 32, 64, 4, 2, 0.1, 0.1, use_bias=True, **o)  # noqa: E731
        yield f"ViT {pooling}, {positions}", make, (images(),), None
    yield "Swin", lambda: d2l.Swin(d2l.SwinConfig(dropout=0.1)), (images(),), None
    yield "DaViT", lambda: d2l.DaViT(d2l.DaViTConfig(dropout=0.1)), (images(),), None
    yield "ResNet", lambda: d2l.ResNet(((1, 8), (2, 16))), (images(),), None
    config = d2l.ImageGPTConfig(4, 4, 16, 32, 2, dropout=0.1)
    yield "ImageGPT", lambda: d2l.ImageGPT(config), (tokens(2, 16, 4).view(2, 4, 4),), draws_pixels
    for pictures in ("cnn", "vit"):
        config = d2l.CLIPConfig(vocab_size=65, pictures=pictures)
        yield f"CLIP {pictures}", lambda c=config: d2l.CLIP(c), (images(), tokens(2, 9), torch.tensor([9, 4])), None


def attention_sums():
    """Checksums of attention itself: functions and modules, with all that may hide a key, in every form of input."""
    generator = torch.Generator().manual_seed(4)
    hidden = torch.rand(T, S, generator=generator) < 0.3
    hidden[2] = True  # a row without keys
    cases = {
        "plain": {},
        "lengths": {"valid_lens": torch.tensor([9, 0, 4])},
        "lengths of queries": {"valid_lens": torch.randint(0, S + 1, (B, T), generator=generator)},
        "mask": {"mask": ~hidden},
        "both": {"mask": ~hidden, "valid_lens": torch.tensor([9, 2, 4])},
        "causal": {"causal": True},
        "causal mask": {"causal": True, "mask": ~hidden},
    }
    for heads, (name, how), dirty, drop in itertools.product((False, True), cases.items(), (False, True), (0.0, 0.4)):
        lead = (B, H) if heads else (B,)
        X = [torch.randn(*lead, n, D, generator=generator) for n in (T, S, S)]
        if dirty:  # what nobody may look at
            mask = d2l.as_mask((*lead, T, S), how.get("valid_lens"), how.get("mask"))
            if mask is None:
                continue
            unseen = ~mask.any(-2).unsqueeze(-1)
            X[1:] = (x.masked_fill(unseen[..., -S:, :], torch.nan) for x in X[1:])
        scores = {"score_bias": torch.randn(1, *lead[1:], T, S, generator=generator)}
        for extra in ({}, scores, {"scale": 0.3}, {**scores, "return_weights": True}):
            key = f"heads {heads}, {name}, dirty {dirty}, dropout {drop}, {'+'.join(extra)}"
            yield key, gradients(d2l.scaled_dot_product_attention, X, dropout_p=drop, **how, **extra)
        if heads:
            continue
        where = f"{name}, dirty {dirty}, dropout {drop}"
        if "causal" not in how:
            additive = lasting(d2l.AdditiveAttention, 6, drop, query_size=D, key_size=D)
            yield f"additive, {where}", gradients(additive, X, **how)
            yield f"bilinear, {where}", gradients(lasting(d2l.BilinearAttention, D, drop, query_size=D), X, **how)
        for options in ({}, {"bias": True, "qk_norm": nn.RMSNorm}, {"head_size": 6, "scale": 0.7}):
            module = lasting(d2l.MultiHeadAttention, D, 4, drop, **options)
            key = f"multi-head, {where}, {'+'.join(options)}"
            yield key, gradients(module, X, **how)
            yield f"{key}, turned", gradients(module, X, **how, rotary=d2l.rotary)
            with torch.autocast("cpu", torch.bfloat16):
                yield f"{key}, bf16", gradients(module, X, **how)
            with torch.no_grad():
                yield f"{key}, no gradients", checksum(module.eval()(*X, **how), module.attention.attention_weights)


def lasting(make, *args, **options):
    torch.manual_seed(5)
    return make(*args, **options)


def gradients(function, inputs, **how):
    """Checksum of the outputs of a function, of the gradients in its inputs and in its parameters."""
    torch.manual_seed(6)
    leaves = [x.clone().requires_grad_() for x in inputs]
    parameters = list(function.parameters()) if isinstance(function, nn.Module) else []
    outputs = function(*leaves, **how)
    return checksum(outputs, torch.autograd.grad(weighted_sum(outputs), leaves + parameters, allow_unused=True))


def checksums():
    """Name to checksum of everything."""
    found = dict(attention_sums())
    for name, make, inputs, writes in models():
        found |= {f"{name}: {what}": sum_ for what, sum_ in model_sums(make, inputs, writes).items()}
    return found


def differences(before, after):
    """Names whose checksums differ, or that one side lacks."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def main(path, other=None):
    """Writes the checksums to a file and, given another such file, compares the two: the exit status."""
    found = checksums()
    Path(path).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if other is None:
        print(f"{len(found)} checksums in {path}")
        return 0
    differ = differences(json.loads(Path(other).read_text(encoding="utf-8")), found)
    print("\n".join([*differ, f"{len(differ)} of {len(found)} checksums differ"]))
    return int(bool(differ))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    torch.set_num_threads(1)
    sys.exit(main(*sys.argv[1:]))
