"""Records what the figure `RealModel` shows before a reader loads the model: d2lmini/figures/real_model/recorded.json.

Greedy answers with the likeliest next tokens, where two heads look, the losses of a text; computed by the package in
float32. Without the weights there is nothing to write or to compare, and a line says so.

    python -m tools.real_model_answers            writes the file
    python -m tools.real_model_answers --check    compares: tokens exactly, numbers to 1e-3
"""

import argparse
import json
import sys

import torch
import torch.nn.functional as F

from d2lmini.data.store import DataError
from d2lmini.figures.packing import pack
from d2lmini.hooks import capture_attention
from tools._generated import ROOT, put

PATH = ROOT / "d2lmini" / "figures" / "real_model" / "recorded.json"
LENGTH, TOP = 40, 5  # tokens of an answer, and next tokens that are told
_REVIEWS = (
    "Review: a joy from start to finish\nSentiment: positive\n\nReview: dull and far too long\nSentiment: negative\n\n"
)
PAIRS = {
    "capitals": ["Egypt:", "Germany: Berlin\nItaly: Rome\nJapan: Tokyo\nEgypt:"],
    "sentiment": [f"{shown}Review: a waste of two hours\nSentiment:" for shown in ("", _REVIEWS)],
}
# title, prompt, whether it is put into the chat template
PROMPTS = [
    ("A question, as a chat", "What is the capital of France?", True),
    ("A question that it answers wrongly, as a chat", "Why is the sky blue? Answer in one sentence.", True),
    ("The beginning of a story", "Once upon a time, in a small village by the sea,", False),
    ("A question, without the chat template", "What is the capital of France?", False),
    *(
        (f"{subject.capitalize()}, {how} examples", prompt, False)
        for subject, prompts in PAIRS.items()
        for how, prompt in zip(("without", "with"), prompts, strict=True)
    ),
]
# a name that is said twice: its second half can be looked up
HEADS_TEXT = "The lighthouse keeper Alva Brennick wrote long letters. Alva Brennick wrote"
LOSSES_TEXT = "The capital of France is Paris. The capital of Italy is Rome. The capital of Egypt is Vienna."


def _names(tokenizer, ids):
    return [tokenizer.decode([int(index)], special=True) for index in ids]


def _likeliest(tokenizer, logits, most=TOP):
    """[name, probability] of the likeliest next tokens, of logits (V,)."""
    p, ids = logits.softmax(-1).topk(most)
    return [[name, round(share, 4)] for name, share in zip(_names(tokenizer, ids), p.tolist(), strict=True)]


def answer(model, tokenizer, title, prompt, chat):
    """What is written after a prompt, greedily, with the next tokens from the prompt's last place on."""
    ids = tokenizer.encode_chat([{"role": "user", "content": prompt}]) if chat else tokenizer.encode(prompt)
    new = model.generate([ids], LENGTH, stop=tokenizer.stop, temperature=0).tokens[0].tolist()
    if tokenizer.stop in new:
        new = new[: new.index(tokenizer.stop) + 1]
    logits = model(torch.tensor([ids + new]))[0, len(ids) - 1 :]
    return {
        "title": title,
        "prompt": prompt,
        "tokens": _names(tokenizer, ids + new),
        "given": len(ids),
        "next": [_likeliest(tokenizer, row) for row in logits],
    }


def heads(model, tokenizer):
    """The head that most looks at what came after the same token before, and the one that most rests on the first."""
    ids = tokenizer.encode(HEADS_TEXT)
    with capture_attention(model) as seen:
        model(torch.tensor([ids]))
    maps = torch.stack([seen[f"blks.{b}.attention.attention"][0][0] for b in range(model.config.num_blks)])  # (n,H,T,T)
    earlier = [(t, s + 1) for t in range(len(ids)) for s in range(t) if ids[s] == ids[t] and s + 1 < t]
    induction = sum(maps[:, :, t, s] for t, s in earlier) / len(earlier)
    resting = maps[:, :, 1:, 0].mean(-1)
    found = []
    for scores, what in ((induction, "what came after this token before"), (resting, "the first token")):
        block, head = divmod(int(scores.argmax()), scores.shape[1])
        found.append({"block": block, "head": head, "what": what, "weights": pack(maps[block, head])})
    return {"tokens": _names(tokenizer, ids), "heads": found}


def losses(model, tokenizer):
    """[token, nats, next tokens expected there] of each token of a text; the first has no loss."""
    ids = tokenizer.encode(LOSSES_TEXT)
    logits, names = model(torch.tensor([ids]))[0], _names(tokenizer, ids)
    nats = F.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
    rows = [[names[0], None, []]]
    rows += [
        [name, round(loss, 4), _likeliest(tokenizer, row, 3)]
        for name, loss, row in zip(names[1:], nats.tolist(), logits, strict=False)
    ]
    return {"rows": rows, "nats": round(nats.mean().item(), 4)}


def about(model):
    """What the page says of the model before it is there."""
    from d2lmini.models.weights.model_pieces import cached_pieces

    manifest = json.loads((cached_pieces() / "manifest.json").read_text(encoding="utf-8"))
    return {
        "title": manifest["title"],
        "bytes": manifest["bytes"],
        "pieces": len(manifest["pieces"]),
        "memory": manifest["memory"],
        "blocks": model.config.num_blks,
        "heads": model.config.num_heads,
        "notice": manifest["licence"]["notice"],
    }


@torch.no_grad()
def recorded():
    """All of it, a dict for JSON. Raises: `DataError`, the weights are not on this machine."""
    from d2lmini.models.weights.smollm2 import load_smollm2

    model, tokenizer = load_smollm2()
    return {
        "model": about(model),
        "answers": [answer(model, tokenizer, *one) for one in PROMPTS],
        "heads": heads(model, tokenizer),
        "losses": losses(model, tokenizer),
        "pairs": PAIRS,
    }


def differences(old, new, path=""):
    """Where two records differ: numbers by more than 1e-3, packed weights not compared. Returns: list of paths."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return [one for key in old if key != "weights" for one in differences(old[key], new[key], f"{path}/{key}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = zip(old, new, strict=True)
        return [one for i, pair in enumerate(pairs) for one in differences(*pair, f"{path}/{i}")]
    if isinstance(old, float) and isinstance(new, float):
        return [] if abs(old - new) <= 1e-3 else [path]
    return [] if old == new else [path]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="record what the figure RealModel shows; --check only compares")
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    try:
        now = recorded()
    except DataError as error:
        print(f"not compared: {error}" if check else f"not written: {error}")
        sys.exit(0 if check else 1)
    if check:
        found = differences(json.loads(PATH.read_text(encoding="utf-8")), now)
        if found:
            sys.exit(f"{PATH.name} differs at {', '.join(found[:5])}; mend with: python -m tools.real_model_answers")
    else:
        put(PATH, json.dumps(now, ensure_ascii=False, separators=(",", ":")) + "\n", check=False)
