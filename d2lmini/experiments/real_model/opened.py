"""Inside a real model: where its heads look, what its cache is without a position, what each block would say.

The settings are those of `real_answers.Config`.
"""

import torch
import torch.nn.functional as F

from d2lmini.cache import KeyValueCache
from d2lmini.data.text import load_text
from d2lmini.experiments.abilities import induction
from d2lmini.experiments.real_model import bases
from d2lmini.models.gpt import GPTState


def text_tokens(tokenizer, name, num_tokens):
    """The last tokens of a text, ids (1, N)."""
    ids = bases.encode(tokenizer, load_text(name)[-12 * num_tokens :])
    return torch.tensor(ids[-num_tokens:])[None]


def random_sequences(model, config):
    """Random tokens, said twice: ids (N, 2 period), no token twice in a period."""
    generator = torch.Generator().manual_seed(1_000 + config.seeds[0])
    said = torch.rand(config.sequences, model.config.vocab_size, generator=generator).argsort(-1)[:, : config.period]
    return said.repeat(1, 2)


def first_weights(maps, later):
    """Mean weight of every head on the first token: maps (L, N, H, T, T) to (L, H)."""
    return maps[..., later:, 0].mean((1, 3))


def halves_without(model, tokens, off, period):
    """Losses of the first and of the second time, without the heads ``off``: as `induction.halves`."""
    with induction.without(model, off):
        return induction.halves(induction.losses(model, tokens), period)


def looked(config):
    """Where the heads look, and the loss without some of them: a dict for JSON.

    Returns:
        dict with scores (L, H): ``induction``, ``previous``, and ``first``, by text or "random"; ``halves``, the losses
        of the first and the second time; and ``off``, by how many heads such losses: ``strongest``, a list ``others``.
    """
    model, tokenizer = bases.load(config.base)
    tokens, period = random_sequences(model, config), config.period
    maps = induction.attention_maps(model, tokens)
    scores = induction.induction_scores(maps, period)
    first = {"random": first_weights(maps, config.later)}
    for name in config.texts:
        text = text_tokens(tokenizer, name, config.num_tokens)[:, : config.read]
        first[name] = first_weights(induction.attention_maps(model, text), config.later)
    heads = [(block, head) for block in range(len(scores)) for head in range(scores.shape[1])]
    order = sorted(heads, key=lambda head: -scores[head].item())

    def losses(off):
        return halves_without(model, tokens, off, period)

    generator, off = torch.Generator().manual_seed(config.seeds[0]), {}
    for num in config.off:
        rest = order[num:]
        draws = [torch.randperm(len(rest), generator=generator)[:num].tolist() for _ in range(config.controls)]
        off[str(num)] = {
            "strongest": losses(order[:num]),
            "others": [losses([rest[place] for place in draw]) for draw in draws],
        }
    return {
        "induction": rounded(scores),
        "previous": rounded(induction.previous_scores(maps)),
        "first": {name: rounded(weights) for name, weights in first.items()},
        "halves": losses([]),
        "off": off,
    }


def rounded(scores):
    """Scores (L, H) as nested lists, of four decimals."""
    return [[round(x, 4) for x in row] for row in scores.cpu().double().tolist()]


def without_position(state, position):
    """A `GPTState` whose caches lack the keys and values of a position; later tokens are one nearer to all others."""
    kept = [place for place in range(state.length) if place != position]
    return GPTState(tuple(KeyValueCache(c.keys[:, :, kept], c.values[:, :, kept]) for c in state.caches), state.padding)


@torch.no_grad()
def first_removed(config):
    """The loss of what follows, by text, with a position of the cache taken out, "none" for none: a dict for JSON."""
    model, tokenizer = bases.load(config.base)
    found = {}
    for name in config.texts:
        tokens = text_tokens(tokenizer, name, config.num_tokens)[:, : 2 * config.read]
        _, state = model.extend(tokens[:, : config.read], model.empty_state(1))

        def loss(state, rest=tokens[:, config.read :]):
            logits, _ = model.extend(rest[:, :-1], state)
            return F.cross_entropy(logits[0], rest[0, 1:]).item()

        found[name] = {"none": loss(state)}
        found[name] |= {str(place): loss(without_position(state, place)) for place in config.removed}
    return found


@torch.no_grad()
def layers(model, tokens):
    """What every block's output would say of the next token: log-probabilities (L + 1, V), the embedding's first.

    Args:
        model: a `GPT`.
        tokens: ids (T,).

    The state of the last token goes through the model's last norm and last layer. The last row is what it does say.
    """
    states = []
    hooks = [blk.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0])) for blk in model.blks]
    hooks.append(model.norm.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0])))
    try:
        model(tokens[None])
    finally:
        for hook in hooks:
            hook.remove()
    return model.dense(model.norm(torch.cat(states)[:, -1])).log_softmax(-1)


def lens(config):
    """By prompt, after every block: ``top``, the likeliest token, its ``p``; ``right`` and ``rank``, of the right."""
    model, tokenizer = bases.load(config.base)
    found = {}
    for text, right in config.lens:
        said = layers(model, torch.tensor(bases.encode(tokenizer, text))).exp()  # (L + 1, V)
        wanted = bases.encode(tokenizer, right)[0]
        best, ids = said.max(-1)
        found[text] = {
            "top": [tokenizer.decode([i]) for i in ids.tolist()],
            "p": best.tolist(),
            "right": said[:, wanted].tolist(),
            "rank": (1 + (said > said[:, [wanted]]).sum(-1)).tolist(),
        }
    return found
