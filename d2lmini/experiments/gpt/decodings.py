"""What a way of decoding does to what a trained GPT writes: how likely the texts are, how varied, how repetitive."""

from statistics import mean, median

import torch

from d2lmini.decoding import beam_search, diverse_beam_search
from d2lmini.diversity import distinct_n, repetition_rate, self_bleu
from d2lmini.utils import in_float64

# beams by width (and groups); the others are filters of `GPT.generate`
METHODS = {
    "greedy": {"beam_size": 1},
    "beam 4": {"beam_size": 4},
    "beam 16": {"beam_size": 16},
    "diverse beam 8": {"beam_size": 8, "num_groups": 4, "diversity_penalty": 0.5},
    "sampling": {},
    "temperature 0.5": {"temperature": 0.5},
    "temperature 0.7": {"temperature": 0.7},
    "temperature 1.3": {"temperature": 1.3},
    "top-k 5": {"top_k": 5},
    "top-k 50": {"top_k": 50},
    "nucleus 0.5": {"top_p": 0.5},
    "nucleus 0.9": {"top_p": 0.9},
    "nucleus 0.95": {"top_p": 0.95},
    "greedy, penalty 1.2": {"temperature": 0, "repetition_penalty": 1.2},
    "nucleus 0.9, penalty 1.2": {"top_p": 0.9, "repetition_penalty": 1.2},
}
ROWS = 64  # texts that are read at once: the logits of more would be large


def passages(tokens, num, before, after, begins=None):
    """Places of a text, about equally far apart: contexts (num, before) and what follows each, (num, after).

    ``begins``, (V,), says which tokens may come first in what follows, as those that begin a word; None: all.
    """
    ends = torch.linspace(before, len(tokens) - after, num).long()
    if begins is not None:  # the next such place, or the last one
        allowed = begins[tokens[before : len(tokens) - after + 1].long()].nonzero()[:, 0] + before
        ends = allowed[torch.searchsorted(allowed, ends).clamp(max=len(allowed) - 1)]
    windows = torch.stack([tokens[end - before : end + after] for end in ends.tolist()]).long()
    return windows[:, :before], windows[:, before:]


@torch.no_grad()
def write(model, prompts, num, method, num_texts, seed=0):
    """Continuations of prompts.

    Args:
        model: a `GPT` in evaluation mode.
        prompts: integers (P, n).
        num: tokens of a continuation.
        method: a value of `METHODS`.
        num_texts: how many for each prompt; what always writes the same gives one, a beam no more than it holds.
        seed: of what is drawn.

    Returns:
        integers (P, K, num); those of a search with the likeliest first.
    """
    method = dict(method)
    if "beam_size" in method:
        _, state = model.extend(prompts[:, :-1], model.empty_state(len(prompts)))
        start = (model.step, state, prompts[:, -1], None, num)
        if "num_groups" not in method:
            return beam_search(*start, **method, num_return=min(num_texts, method["beam_size"])).tokens
        beams = diverse_beam_search(*start, **method)
        order = beams.scores[..., 0].argsort(dim=1, descending=True)[..., None]  # the best of each group, (P, G, 1)
        return beams.tokens[:, :, 0].gather(1, order.expand(-1, -1, num))[:, :num_texts]
    if method.get("temperature") == 0:
        num_texts = 1
    generator = torch.Generator().manual_seed(seed)
    return model.generate(prompts, num, num_samples=num_texts, generator=generator, **method).tokens


@torch.no_grad()
def read(model, contexts, texts, beyond=()):
    """What a model thinks of texts that follow contexts.

    Args:
        model: a `GPT`.
        contexts: integers (n, m), m at least 1.
        texts: integers (n, L).
        beyond: numbers k, for each of which the mass of all but the k likeliest tokens is told.

    Returns:
        dict of tensors (n, L): ``log_prob`` of each token, in nats; ``rank``, how many tokens were likelier;
        ``entropy`` of the distribution that it was taken from, in nats; and ``beyond``, a dict of them by k.
    """
    rows = []
    for context, text in zip(contexts.split(ROWS), texts.split(ROWS), strict=True):
        logits = model(torch.cat([context, text], 1)[:, :-1])[:, -text.shape[1] :]
        log_probs = logits.float().log_softmax(-1)  # (n, L, V)
        chosen = log_probs.gather(-1, text[..., None])  # (n, L, 1)
        row = [chosen[..., 0], (log_probs > chosen).sum(-1), -(log_probs.exp() * log_probs).sum(-1)]
        if beyond:
            ordered = in_float64(log_probs).exp().sort(dim=-1, descending=True)[0]
            row += [ordered[..., k:].sum(-1) for k in beyond]
        rows.append(row)
    log_prob, rank, entropy, *tails = map(torch.cat, zip(*rows, strict=True))
    return {"log_prob": log_prob, "rank": rank, "entropy": entropy, "beyond": dict(zip(beyond, tails, strict=True))}


def loop(tokens, times=3):
    """The period of the loop that a text ends in: the fewest tokens that its end repeats so often; None: it does not.

    Args:
        tokens: list.
        times: how often they have to stand there, side by side.
    """
    for period in range(1, len(tokens) // times + 1):
        end = tokens[-times * period :]
        if end[period:] == end[:-period]:
            return period
    return None


def turns(model, contexts, num, least=4):
    """How probable the tokens of a loop are, turn by turn, where greedy decoding ends in one.

    Args:
        model: a `GPT` in evaluation mode.
        contexts: integers (P, n).
        num: tokens to write.
        least: turns that a loop must have to count in the mean.

    Returns:
        dict for JSON: ``loops``, how many of the P texts end in one; ``lengths``, their tokens; ``counted``, how many
        have so many turns; ``probability``, the mean over these of their tokens' in the first, second ... turn, or
        None where there are none.
    """
    texts = write(model, contexts, num, METHODS["greedy"], 1)[:, 0]  # (P, num)
    probability = read(model, contexts, texts)["log_prob"].exp()
    lengths, rows = [], []
    for text, each in zip(texts.tolist(), probability, strict=True):
        if period := loop(text):
            lengths.append(period)
            start = num - period
            while start and text[start - 1] == text[start - 1 + period]:
                start -= 1
            if (num - start) // period >= least:
                rows.append(each[start : start + least * period].view(least, period).mean(1))
    mean_row = torch.stack(rows).mean(0).tolist() if rows else None
    return {"loops": len(lengths), "lengths": lengths, "counted": len(rows), "probability": mean_row}


def looks(texts, searched):
    """How varied texts are and how much they repeat themselves.

    Args:
        texts: integers (P, K, L), K for each of P prompts.
        searched: whether they are the result of a search: then the first of each prompt counts as its text, else all.

    Returns:
        dict for JSON: ``distinct_1``, ``distinct_2`` and ``self_bleu`` of P texts, one a prompt, in the mean over the
        K where all count; ``repetition``, the share of 4-grams that repeat one of the same text; ``loops``, the share
        of texts that end in a loop, and ``loop_length``, the median of its tokens, or None; ``among``, the self-BLEU of
        the K texts of a prompt, or None.
    """
    each = [texts[:, i].tolist() for i in range(1 if searched else texts.shape[1])]  # of (P, L)
    flat = [text for group in each for text in group]
    periods = [period for period in map(loop, flat) if period]
    among = [self_bleu(group.tolist()) for group in texts] if texts.shape[1] > 1 else []
    return {
        "distinct_1": mean(distinct_n(group, 1) for group in each),
        "distinct_2": mean(distinct_n(group, 2) for group in each),
        "self_bleu": mean(map(self_bleu, each)),
        "repetition": repetition_rate(flat, 4),
        "loops": len(periods) / len(flat),
        "loop_length": median(periods) if periods else None,
        "among": mean(among) if among else None,
    }


def compare(model, tokens, config, decode, begins=None):
    """Every way of decoding from the same prompts, beside what the author wrote.

    Args:
        model: a `GPT` in evaluation mode.
        tokens: the validation text, integers (N,).
        config: has ``prompts`` (their number), ``prompt_length``, ``length``, ``texts`` (for each prompt), ``shown``
            (prompts whose texts are kept), ``beyond`` and ``seeds``.
        decode: from ids to a text.
        begins: as for `passages`.

    Returns:
        dict for JSON: ``methods``, for each and "the author" what `looks` gives and ``log_prob``, the mean over tokens;
        ``tail``, for the author's text and for drawn text: by k the mean ``mass`` beyond the k likeliest tokens, the
        share of tokens ``drawn`` from there, and the share of texts ``without`` any; ``entropy``, the model's for each
        place of a text; ``written``, texts.
    """
    contexts, truth = passages(tokens, config.prompts, config.prompt_length, config.length, begins)
    methods, tail, entropy, written = {}, {}, {}, {"prompt": [decode(row) for row in contexts[: config.shown]]}
    for name, method in {"the author": None, **METHODS}.items():
        searched = "beam_size" in (method or {})
        options = (config.length, method, config.texts, config.seeds[0])
        texts = truth[:, None] if method is None else write(model, contexts, *options)  # (P, K, L)
        judged = texts[:, :1] if searched else texts
        rows = contexts.repeat_interleave(judged.shape[1], 0)
        readings = read(model, rows, judged.flatten(0, 1), config.beyond if name in ("the author", "sampling") else ())
        methods[name] = {"log_prob": readings["log_prob"].mean().item(), **looks(texts, searched)}
        entropy[name] = [round(x, 4) for x in readings["entropy"].mean(0).tolist()]
        written[name] = [after(*pair, decode) for pair in zip(contexts[: config.shown], texts[:, 0], strict=False)]
        if readings["beyond"]:
            tail[name] = {
                "k": list(config.beyond),
                "mass": [readings["beyond"][k].mean().item() for k in config.beyond],
                "drawn": [(readings["rank"] >= k).cpu().double().mean().item() for k in config.beyond],
                "without": [(readings["rank"] < k).all(1).cpu().double().mean().item() for k in config.beyond],
            }
    return {"methods": methods, "tail": tail, "entropy": entropy, "written": written}


def after(context, text, decode):
    """The text of ids (L,) as it stands after those of a context: with the space that it begins with, if it does."""
    return decode(torch.cat([context, text]))[len(decode(context)) :]


def repeated(model, sentences, times):
    """How probable a passage is after copies of itself, and after as many other passages.

    The first token of each is left out: that of the first copy has nothing before it.

    Args:
        model: a `GPT`.
        sentences: the passages, integers (n, L), n at least ``times``.
        times: copies.

    Returns:
        dict for JSON: ``probability``, the mean over tokens, for each copy from the first to the last; ``log_prob``
        likewise; ``others``, the mean probability of the same passages in that place after other ones;
        ``rises``, the share of passages that are more probable than in the copy before.
    """
    after_others = torch.stack([sentences.roll(-i, 0) for i in range(times)], 1)  # (n, times, L)
    log_probs = {}
    for name, rows in (("copies", sentences[:, None].expand(-1, times, -1)), ("others", after_others)):
        flat = rows.flatten(1)
        log_prob = read(model, flat[:, :1], flat[:, 1:])["log_prob"]
        log_prob = torch.cat([torch.zeros(len(flat), 1), log_prob.cpu()], 1).unflatten(1, (times, -1))
        log_probs[name] = log_prob[:, :, 1:]  # (n, times, L - 1)
    by_copy = log_probs["copies"].mean(2)  # (n, times)
    return {
        "probability": log_probs["copies"].exp().mean((0, 2)).tolist(),
        "log_prob": by_copy.mean(0).tolist(),
        "others": log_probs["others"].exp().mean((0, 2)).tolist(),
        "rises": (by_copy.diff(dim=1) > 0).cpu().double().mean(0).tolist(),
    }


def swapped(model, tokens, lengths, num, before, after, seed=0):
    """The loss on true tokens after a context whose end is not the author's.

    Of ``before`` tokens the last m are the author's; or the model's own, drawn after those before them; or the author's
    from another place; or they are left out. What is scored are always the same ``after`` tokens that come next.

    Args:
        model: a `GPT` in evaluation mode.
        tokens: a text, integers (N,).
        lengths: numbers m, from 0, below ``before``.
        num: how many places of the text.
        before, after: tokens of context, and tokens to score.
        seed: of what is drawn.

    Returns:
        dict of lists, a mean loss in nats for each m: ``own``, ``elsewhere``, ``left_out``; and ``lengths``.
    """
    contexts, truth = passages(tokens, num, before, after)
    losses = {"lengths": list(lengths), "own": [], "elsewhere": [], "left_out": []}
    for m in lengths:
        start, end = contexts[:, : before - m], contexts[:, before - m :]
        own = write(model, start, m, {}, 1, seed)[:, 0] if m else end
        ends = {"own": own, "elsewhere": end.roll(1, 0) if m else end, "left_out": end[:, :0]}
        for name, tail in ends.items():
            log_prob = read(model, torch.cat([start, tail.cpu()], 1), truth)["log_prob"]
            losses[name].append(-log_prob.mean().item())
    return losses


def next_scores(model, contexts):
    """The logits after contexts (n, m), each as hundredths below the greatest: lists of integers, short in JSON."""
    with torch.no_grad():
        logits = model(contexts)[:, -1].float()  # (n, V)
    return ((logits.amax(1, keepdim=True) - logits) * 100).round().long().tolist()
