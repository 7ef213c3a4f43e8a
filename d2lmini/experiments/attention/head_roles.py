"""Chapter 05: what the heads of a small translator learn, what each is worth, and how many can be switched off.

The model is the Transformer of chapter 07, with one or two blocks on each side. It translates the grammar corpus, whose
true word alignments are known, so that a map can be called right or wrong. Heads are looked at and ranked on the
validation split; pruning is scored on the test split. Both have sentence patterns that training has not.
"""

import random
from dataclasses import dataclass, replace
from itertools import takewhile

import torch
import torch.nn.functional as F

from d2lmini.data.translation import GrammarCorpus
from d2lmini.hooks import capture_attention, head_masks
from d2lmini.lab import summaries
from d2lmini.lab.fit import fit_part
from d2lmini.lab.parts import Parts
from d2lmini.models.transformer_seq2seq import Transformer, TransformerConfig
from d2lmini.multi_head import MultiHeadAttention
from d2lmini.training import WarmupCosine

# where a head can look, for each kind of attention; the position is that of the query
ROLES = {
    "encoder": ("itself", "previous", "next", "end"),
    "decoder": ("itself", "previous", "begin"),
    "cross": ("word to write", "word just read", "end"),
}


@dataclass(frozen=True)
class Config:
    """Settings; ``max_tokens`` counts positions in a batch, ``num_sentences`` those looked at in each split."""

    num_pairs: int = 4000
    max_tokens: int = 512
    num_hiddens: int = 64
    num_heads: int = 4
    num_blks: int = 1
    lr: float = 5e-3
    max_epochs: int = 6
    max_steps: int | None = None
    num_sentences: int = 150
    random_orders: int = 2
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(Config(), num_pairs=1000, max_steps=2, num_sentences=8, num_heads=2, random_orders=1),
    "cpu": Config(),
    "laptop": replace(Config(), num_pairs=6000, num_blks=2, max_epochs=5, num_sentences=200, seeds=(0, 1, 2)),
}


def train(config, seed, device="cpu", parts=None, name="training"):
    """A model trained on the grammar corpus; ``parts`` and ``name`` are those of `fit_part`.

    Returns:
        the `Transformer`, in evaluation mode, the `GrammarCorpus`, and the training losses, each of 10 steps.
    """
    data = GrammarCorpus(config.num_pairs, max_tokens=config.max_tokens, seed=seed)
    steps = config.max_epochs * len(data.get_dataloader(train=True))
    torch.manual_seed(seed)
    size = (config.num_hiddens, 2 * config.num_hiddens, config.num_heads, config.num_blks)
    settings = TransformerConfig(len(data.tgt_vocab), *size, dropout=0.0, label_smoothing=0.0, lr=config.lr)
    model = Transformer(settings, data.tgt_vocab["<pad>"])
    history = fit_part(
        model,
        data,
        torch.device(device),
        config.max_epochs,
        parts=parts,
        name=name,
        gradient_clip_val=1,
        schedule=WarmupCosine(min(100, steps // 10 + 1), steps),
        seed=seed,
        max_steps=config.max_steps,
    )
    return model, data, summaries.means(history["train_loss"], 10)


def batches_of(data, split, number, device="cpu", size=50):
    """The first sentences of a split in batches of like length: a list of pairs of `Sentence` list and batch."""
    chosen = sorted(data.sentences(split)[:number], key=lambda s: len(s.source))
    groups = [chosen[i : i + size] for i in range(0, len(chosen), size)]
    built = [data.build([s.english for s in group], [s.french for s in group]) for group in groups]
    return [(group, [x.to(device) for x in batch]) for group, batch in zip(groups, built, strict=True)]


def attentions(model):
    """Names of the attention modules of a `Transformer`, each with its kind and block: ("cross", 1)."""
    places = {}
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            kind = "encoder" if name.startswith("encoder") else "decoder" if name.endswith("attention1") else "cross"
            places[name] = kind, int(name.split(".")[2]) + 1
    return places


def heads(model):
    """All heads, as ("cross 1.2", name of the module, index in it): kind, block and head, both counted from 1."""
    size = model.config.num_heads
    return [(f"{kind} {i}.{h + 1}", name, h) for name, (kind, i) in attentions(model).items() for h in range(size)]


@torch.no_grad()
def attention_maps(model, batch):
    """Weights of every attention on a batch, with teacher forcing: dict from module name to (B, H, T, S)."""
    with capture_attention(model) as record:
        model(*batch[:-1])
    return {name: record[f"{name}.attention"][0] for name in attentions(model)}


def targets(sentences, batch):
    """Where a head of each role would look.

    Returns:
        dict from kind to (allowed, roles): booleans (B, T, S), and a dict from role to booleans of that shape. A row
        without any True is not asked: padding, or a word that has nothing before it.
    """
    src, tgt, lens, _ = (x.cpu() for x in batch)
    S, T = src.shape[1], tgt.shape[1]
    written = torch.tensor([len(s.target) + 1 for s in sentences])  # with <eos>
    source, target = torch.arange(S) < lens[:, None], torch.arange(T) < written[:, None]  # (B, S), (B, T)
    aligned = torch.zeros(len(src), T + 1, S, dtype=torch.bool)
    for b, sentence in enumerate(sentences):
        for s, t in sentence.alignment:
            aligned[b, t, s] = True
    end = torch.arange(S) == lens[:, None] - 1  # (B, S)

    def offset(n, k):
        return torch.ones(n, n, dtype=torch.bool).tril(k).triu(k)  # (n, n): key = query + k

    encoder = source[:, :, None] & source[:, None]  # (B, S, S)
    decoder = target[:, :, None] & torch.ones(T, T, dtype=torch.bool).tril()  # (B, T, T)
    cross = target[:, :, None] & source[:, None]  # (B, T, S)
    read = torch.cat([torch.zeros_like(aligned[:, :1]), aligned[:, : T - 1]], 1)
    roles = {
        "encoder": (encoder, [offset(S, 0), offset(S, -1), offset(S, 1), end[:, None]]),
        "decoder": (decoder, [offset(T, 0), offset(T, -1), torch.arange(T) == 0]),
        "cross": (cross, [aligned[:, :T], read, end[:, None]]),
    }
    return {
        kind: (allowed, {role: allowed & where for role, where in zip(ROLES[kind], places, strict=True)})
        for kind, (allowed, places) in roles.items()
    }


def roles(model, groups):
    """Where the mass of each head goes.

    Returns:
        dict from head to a dict from role to the mean mass there, over the queries that have such a key; and the same
        for a head that spreads its weight evenly, by kind.
    """
    sums, counts = {}, {}

    def add(head, role, weights, where):
        asked = where.any(-1)  # (B, T)
        sums[head, role] = sums.get((head, role), 0) + (weights * where).sum(-1)[asked].sum().item()
        counts[head, role] = counts.get((head, role), 0) + int(asked.sum())

    for sentences, batch in groups:
        wanted, maps = targets(sentences, batch), attention_maps(model, batch)
        for kind, (allowed, places) in wanted.items():
            even = allowed / allowed.sum(-1, keepdim=True).clamp(min=1)
            for role, where in places.items():
                add(kind, role, even, where)
        for label, name, h in heads(model):
            for role, where in wanted[attentions(model)[name][0]][1].items():
                add(label, role, maps[name][:, h].cpu(), where)
    mass = {}
    for (head, role), total in sums.items():
        mass.setdefault(head, {})[role] = total / counts[head, role]
    return mass, {kind: mass.pop(kind) for kind in ROLES}


def sentence_losses(model, batch):
    """Cross-entropy of each sentence, summed over its tokens (B,), with its gradient; and how many are right (B,)."""
    logits, label = model(*batch[:-1]), batch[-1]
    losses = F.cross_entropy(logits.mT, label, ignore_index=model.tgt_pad, reduction="none")  # (B, T)
    right = (logits.argmax(-1) == label) & (label != model.tgt_pad)
    return losses.sum(1), right.sum(1)


@torch.no_grad()
def evaluate(model, groups, off=(), factor=0.0):
    """Mean loss of a target token, and the share of tokens ranked first, with some heads switched off.

    Args:
        model, groups: a model, and what `batches_of` gives.
        off: pairs of module name and head.
        factor: of the outputs of these heads.
    """
    masks = {}
    for name, head in off:
        masks.setdefault(name, torch.ones(model.config.num_heads, device=groups[0][1][0].device))[head] = factor
    loss = right = tokens = 0
    with head_masks(model, masks):
        for _, batch in groups:
            losses, hits = sentence_losses(model, batch)
            loss, right = loss + losses.sum().item(), right + int(hits.sum())
            tokens += int((batch[-1] != model.tgt_pad).sum())
    return loss / tokens, right / tokens


def ablation_importance(model, groups):
    """How much the loss of a token grows when a head is switched off, the others as they are: dict from head."""
    whole = evaluate(model, groups)[0]
    return {label: evaluate(model, groups, [(name, h)])[0] - whole for label, name, h in heads(model)}


def gradient_importance(model, groups):
    """Mean over sentences of |dL / dm|, m being the factor of a head's output, at 1: dict from head.

    One backward pass serves all heads and all sentences of a batch. L is the summed loss of a sentence, divided by the
    mean number of tokens to be on the scale of `ablation_importance`.

    Source: Michel et al. 2019, section 4.1.
    """
    total, tokens = 0, 0
    names = list(attentions(model))
    for _, batch in groups:
        masks = {n: torch.ones(len(batch[0]), model.config.num_heads, device=batch[0].device) for n in names}  # (B, H)
        for mask in masks.values():
            mask.requires_grad_()
        with head_masks(model, masks):
            losses, _ = sentence_losses(model, batch)
        # a sentence's mask acts on its own loss alone: the gradient of the sum has each sentence's in its row
        gradients = torch.autograd.grad(losses.sum(), list(masks.values()))
        total = total + torch.stack(gradients).abs().sum(1)  # (modules, H)
        tokens += int((batch[-1] != model.tgt_pad).sum())
    values = (total / tokens).flatten().tolist()
    return {label: value for (label, _, _), value in zip(heads(model), values, strict=True)}


def correlation(first, second, ranks=False):
    """Pearson's correlation of two dicts with the same keys, or, with ``ranks``, Spearman's."""
    pair = torch.tensor([[d[key] for key in first] for d in (first, second)], dtype=torch.float64)
    if ranks:
        pair = pair.argsort(1).argsort(1).cpu().double()  # measured values: no ties
    return torch.corrcoef(pair)[0, 1].item()


def prune(model, groups, order):
    """Loss and accuracy as heads are switched off one after another: a list of pairs, from none to all of ``order``."""
    places = {label: (name, h) for label, name, h in heads(model)}
    off = [places[label] for label in order]
    return [evaluate(model, groups, off[:k]) for k in range(len(off) + 1)]


def free_heads(accuracies, points=0.01):
    """How many heads of a pruning curve go before the accuracy falls by so much below its start."""
    return sum(1 for _ in takewhile(lambda a: a > accuracies[0] - points, accuracies)) - 1


def last_heads(model, groups):
    """By attention module: the loss with its best head alone, with none of its heads, and with all."""
    whole, result = evaluate(model, groups)[0], {}
    for name, (kind, block) in attentions(model).items():
        everyone = [(name, h) for h in range(model.config.num_heads)]
        alone = [evaluate(model, groups, [pair for pair in everyone if pair != kept])[0] for kept in everyone]
        result[f"{kind} {block}"] = {"all": whole, "best": min(alone), "none": evaluate(model, groups, everyone)[0]}
    return result


def study(model, data, config, device="cpu"):
    """Everything above of one model: a dict, as `run` records it."""
    val, test = (batches_of(data, split, config.num_sentences, device) for split in ("val", "test"))
    mass, even = roles(model, val)
    gradient, ablation = gradient_importance(model, val), ablation_importance(model, val)
    orders = {"gradient": sorted(gradient, key=gradient.get), "ablation": sorted(ablation, key=ablation.get)}
    orders["best first"] = orders["ablation"][::-1]
    for i in range(config.random_orders):
        orders[f"random {i}"] = random.Random(i).sample(list(gradient), len(gradient))
    loss, accuracy = evaluate(model, test)
    return {
        "test_loss": loss,
        "test_accuracy": accuracy,
        "mass": mass,
        "even_mass": even,
        "gradient": gradient,
        "ablation": ablation,
        "pearson": correlation(gradient, ablation),
        "spearman": correlation(gradient, ablation, ranks=True),
        "last_heads": last_heads(model, val),
        "pruned_accuracy": {name: [pair[1] for pair in prune(model, test, order)] for name, order in orders.items()},
    }


def run(config, device, parts=None):
    """Trains a model and studies it for each seed; ``parts`` are those of `Parts`.

    Returns:
        dict with metrics, by seed, and curves.
    """
    parts = parts or Parts()

    def learn(seed, name):
        model, data, losses = train(config, seed, device, parts, name)
        return {"losses": losses, "study": study(model, data, config, device)}

    metrics, curves = {"seeds": {}}, {}
    for seed in config.seeds:
        name = f"seed-{seed}"
        record = parts(name, learn, seed, name)
        curves[f"train_loss_{seed}"], metrics["seeds"][str(seed)] = record["losses"], record["study"]
    studies = list(metrics["seeds"].values())
    metrics["free_heads"] = [free_heads(study["pruned_accuracy"]["gradient"]) for study in studies]
    mean = {name: sum(study[name] for study in studies) / len(studies) for name in ("test_accuracy", "spearman")}
    free, number = ", ".join(map(str, metrics["free_heads"])), len(studies[0]["gradient"])
    metrics["headline"] = (
        f"of {number} heads {free} (by seed) can be switched off for less than one point of "
        f"{mean['test_accuracy']:.1%} token accuracy; rank correlation of gradient importance and ablation "
        f"{mean['spearman']:.2f}"
    )
    return {"metrics": metrics, "curves": curves}
