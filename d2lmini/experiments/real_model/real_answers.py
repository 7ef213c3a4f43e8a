"""Chapter 19: a real language model, asked and opened: what it answers, and where its heads look.

Asked, greedily and by chance, in the form of a chat or as a text to go on from; some questions have one right answer,
a word that has to occur in what the model says. Opened: its losses on texts; the induction score of every head, on
random tokens that are said twice, and the loss with the heads of highest scores switched off; the weight that every
head puts on the first token of a text; and which token each block's output would name, had it been the last one.

Without the first token's keys and values a cache is one position short, so that later tokens are one nearer to all that
is left; this is so, too, where another position is taken out, which is the control.

Source: Olsson et al. 2022 for induction heads; Xiao et al. 2024 for the first token; nostalgebraist 2020 for what a
block would name.
"""

from dataclasses import dataclass, replace
from statistics import mean

import torch

from d2lmini.experiments.abilities import induction
from d2lmini.experiments.real_model import bases, opened
from d2lmini.experiments.real_model.speculative import prompt_of
from d2lmini.lab.parts import Parts

FACTS = (
    ("What is the capital of France?", ("Paris",)),
    ("What is the capital of Italy?", ("Rome",)),
    ("What is the capital of Japan?", ("Tokyo",)),
    ("What is the capital of Egypt?", ("Cairo",)),
    ("What is the capital of Switzerland?", ("Bern",)),
    ("What is the capital of Australia?", ("Canberra",)),
    ("What is the capital of Turkey?", ("Ankara",)),
    ("What is the capital of Canada?", ("Ottawa",)),
    ("Who wrote Hamlet?", ("Shakespeare",)),
    ("Who painted the Mona Lisa?", ("Leonardo",)),
    ("Which planet is the closest to the Sun?", ("Mercury",)),
    ("Which planet is the largest?", ("Jupiter",)),
    ("How many legs does a spider have?", ("eight", "8")),
    ("How many days are in a leap year?", ("366",)),
    ("What is the chemical symbol of gold?", ("Au",)),
    ("Which gas do plants take from the air to make sugar?", ("carbon dioxide", "CO2")),
    ("At how many degrees Celsius does water boil?", ("100",)),
    ("In which year did the Second World War end?", ("1945",)),
    ("What is 17 + 25?", ("42",)),
    ("What is 9 times 8?", ("72",)),
)
PLAIN = "What is the capital of France?", "The capital of France is"
LENS = ("The capital of France is", " Paris"), ("The capital of Switzerland is", " Bern")
BEGUN = (
    ("What is the capital of France?", "The capital of France is"),
    ("What is the capital of Switzerland?", "The capital of Switzerland is"),
    ("What is 17 + 25?", "17 + 25 = "),
    ("Who wrote Hamlet?", ""),
)


@dataclass(frozen=True)
class Config:
    """Settings.

    ``base`` is one of `bases.BASES`. Answers have at most ``new_tokens`` tokens; ``draws`` are drawn of ``asked``, at
    temperature 1. Of answers that have ``begun`` the ``likeliest`` next tokens are written down. Losses are of the last
    ``num_tokens`` tokens of each of ``texts``, read at once. Heads are looked at in ``sequences`` random sequences of
    ``period`` tokens, said twice, and in the first ``read`` of those of the texts; the weight on the first token is a
    mean over queries from position ``later`` on. So many heads as ``off`` says are switched off, those of the highest
    scores, or others by chance, ``controls`` times. ``removed`` are positions that are taken out of the cache after
    ``read`` tokens.
    """

    base: str = "smollm2"
    facts: tuple = FACTS
    plain: tuple = PLAIN
    lens: tuple = LENS
    begun: tuple = BEGUN
    likeliest: int = 40
    new_tokens: int = 32
    asked: str = "What is the capital of Switzerland?"
    draws: int = 6
    texts: tuple = ("shakespeare", "book")
    num_tokens: int = 512
    period: int = 24
    sequences: int = 8
    read: int = 128
    later: int = 8
    off: tuple = (5, 10, 20, 40)
    controls: int = 3
    removed: tuple = (0, 1, 2, 4, 16, 64)
    seeds: tuple = (0,)


PRESETS = {
    "smoke": replace(
        Config(), base="toy", facts=FACTS[:2], new_tokens=4, draws=2, texts=("book",), num_tokens=40, period=6,
        likeliest=3, sequences=2, read=20, off=(2,), controls=1, removed=(0, 4),
    ),
    "cpu": replace(
        Config(), base="shakespeare", facts=FACTS[:3], num_tokens=128, read=60, off=(2, 4), removed=(0, 4, 16)
    ),
    "laptop": Config(),
}  # fmt: skip


@torch.no_grad()
def answers(model, tokenizer, prompt, config, **options):
    """What a model says after a prompt of ids, with the options of `GPT.generate`: list of str."""
    found = model.generate([prompt], config.new_tokens, stop=getattr(tokenizer, "stop", None), **options)
    rows = found.tokens.reshape(-1, found.tokens.shape[-1]).tolist()
    return [tokenizer.decode(row[:n]) for row, n in zip(rows, found.valid_lens.flatten().tolist(), strict=True)]


def is_right(answer, accepted):
    """Whether one of the words occurs in an answer, capitals and all."""
    return any(word in answer for word in accepted)


def asked(config):
    """Answers to questions: a dict for JSON."""
    model, tokenizer = bases.load(config.base)
    facts = []
    for question, accepted in config.facts:
        (said,) = answers(model, tokenizer, prompt_of(tokenizer, question), config, temperature=0)
        facts.append({"question": question, "answer": said, "right": is_right(said, accepted)})
    plain = {
        text: answers(model, tokenizer, bases.encode(tokenizer, text), config, temperature=0)[0]
        for text in config.plain
    }
    generator = torch.Generator().manual_seed(config.seeds[0])
    drawn = answers(
        model, tokenizer, prompt_of(tokenizer, config.asked), config, num_samples=config.draws, generator=generator
    )
    return {"facts": facts, "plain": plain, "drawn": {"question": config.asked, "answers": drawn}}


@torch.no_grad()
def expected(config):
    """What the model expects next in the middle of some answers: a dict for JSON.

    Returns:
        dict with ``contexts``, and of all tokens that are among the ``likeliest`` of one of them ``tokens`` and
        ``log_probs``, a list a context; the last of the tokens is the sum of all others.
    """
    model, tokenizer = bases.load(config.base)
    said = []
    for question, beginning in config.begun:
        prompt = prompt_of(tokenizer, question) + bases.encode(tokenizer, beginning)
        said.append(model(torch.tensor([prompt]))[0, -1].cpu().double().log_softmax(-1))
    said = torch.stack(said)  # (n, V)
    ids = said.topk(config.likeliest).indices.unique()
    others = (1 - said[:, ids].exp().sum(-1)).clamp(min=1e-9).log()
    return {
        "contexts": [f"{question} {beginning}".strip() for question, beginning in config.begun],
        "tokens": [*(tokenizer.decode([index]) for index in ids.tolist()), "all others"],
        "log_probs": torch.cat([said[:, ids], others[:, None]], 1).mul(1e4).round().div(1e4).tolist(),
    }


def text_losses(config):
    """By text ``nats`` a token and ``nats_byte``, and how many ``bytes`` its tokens have."""
    model, tokenizer = bases.load(config.base)
    found = {}
    for name in config.texts:
        tokens = opened.text_tokens(tokenizer, name, config.num_tokens)
        losses = induction.losses(model, tokens)
        size = len(tokenizer.decode(tokens[0, 1:].tolist()).encode())
        found[name] = {"nats": losses.mean().item(), "nats_byte": losses.sum().item() / size, "bytes": size}
    return found


def run(config, device, parts=None):
    """Asks the model and looks into it; see `d2lmini.lab` for the arguments.

    Returns:
        dict with ``metrics`` (what `asked` and `opened.looked` give, ``losses``, ``removed``, ``next``, ``lens``), no
        ``curves``, and ``data``.
    """
    parts = parts or Parts()
    with bases.one_thread():
        metrics = parts("asked", asked, config) | parts("looked", opened.looked, config)
        metrics |= {
            "losses": parts("losses", text_losses, config),
            "removed": parts("removed", opened.first_removed, config),
            "next": parts("next", expected, config),
            "lens": parts("lens", opened.lens, config),
        }
    metrics["headline"] = headline(metrics)
    data = bases.checksums(config.base)
    for name in config.texts:
        data |= bases.text_checksums(name)
    return {"metrics": metrics, "curves": {}, "data": data}


def headline(metrics):
    """How many answers are right, and where the heads look, in a sentence."""
    facts, scores = metrics["facts"], [score for row in metrics["induction"] for score in row]
    first = mean(mean(mean(row) for row in weights) for weights in metrics["first"].values())
    new, again = metrics["halves"]
    strong = sum(score > 0.5 for score in scores)
    return (
        f"{sum(fact['right'] for fact in facts)} of {len(facts)} answers are right; the first token has {first:.0%} of "
        f"all weight; random tokens cost {new:.2f} nats, the second time {again:.2f}; {strong} of {len(scores)} "
        f"heads have an induction score above 0.5, the highest {max(scores):.2f}"
    )
