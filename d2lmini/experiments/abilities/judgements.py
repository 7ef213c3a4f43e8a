"""Answers of a policy to instructions, drawn and judged: what `instruct` measures its models by."""

import torch

from d2lmini.experiments.abilities import instructions as rules
from d2lmini.lab import summaries
from d2lmini.objectives.preferences import answer_batch, best_of_n_kl, expected_best_of, sequence_log_probs


@torch.no_grad()
def log_probs(model, prompts, answers, at_once=256):
    """Log-probabilities (N,) of answers to prompts, lists of N lists of ids, on the CPU."""
    device, batches = model.embedding.weight.device, []
    for i in range(0, len(prompts), at_once):
        inputs, labels = answer_batch(prompts[i : i + at_once], answers[i : i + at_once])
        batches.append(sequence_log_probs(model(inputs.to(device)), labels.to(device)).cpu())
    return torch.cat(batches)


def draw_answers(model, prompts, num, tokens, config, seed):
    """Answers as the model gives them, at temperature 1: of each prompt a list of ``num`` lists of ids."""
    model.eval()
    generator, answers = torch.Generator().manual_seed(seed), []
    for i in range(0, len(prompts), max(1, 1_024 // num)):
        group = prompts[i : i + max(1, 1_024 // num)]
        drawn = model.generate(group, config.answer_len, stop=tokens[rules.EOS], num_samples=num, generator=generator)
        for rows, valid_lens in zip(drawn.tokens.tolist(), drawn.valid_lens.tolist(), strict=True):
            # with its <eos>, if it came so far
            answers.append([row[: length + 1] for row, length in zip(rows, valid_lens, strict=True)])
    return answers


def judged(tokens, examples, answers, config):
    """What the judges say of answers: dict of (B, n) for "followed", each of the judges, and "words", the length."""
    rows = [[tokens.words(answer) for answer in row] for row in answers]
    rights = [example.answer for example in examples]

    def each(score):
        scores = [[score(answer, right) for answer in row] for row, right in zip(rows, rights, strict=True)]
        return torch.tensor(scores, dtype=torch.float64)

    return {
        "followed": each(rules.follows),
        "honest": each(rules.honest),
        "flattered": each(lambda answer, right: rules.flattered(answer, right, config.bonus)),
        "words": each(lambda answer, right: len(answer)),
    }


def measure(model, reference, tokens, examples, config):
    """A policy on unseen instructions, by one answer each.

    Returns:
        dict with the means of what `judged` tells, ``kl`` from the reference in nats (None: there is none), ``forms``
        (of each the share that is followed) and ``samples``.
    """
    prompts = [tokens.prompt(example) for example in examples]
    answers = draw_answers(model, prompts, 1, tokens, config, seed=10_000)
    scores = judged(tokens, examples, answers, config)
    measured = {name: score.mean().item() for name, score in scores.items()}
    measured["error"] = summaries.standard_error(scores["followed"][:, 0].tolist())
    if reference is None:
        measured["kl"] = None
    else:
        firsts = [row[0] for row in answers]
        measured["kl"] = (
            (log_probs(model, prompts, firsts) - log_probs(reference, prompts, firsts)).cpu().double().mean().item()
        )
    measured["forms"] = {
        form: scores["followed"][[example.form == form for example in examples]].mean().item() for form in config.forms
    }
    measured["samples"] = [
        {
            "prompt": " ".join(example.prompt[:-1]),
            "right": " ".join(example.answer),
            "answer": " ".join(tokens.words(row[0])),
        }
        for example, row in zip(examples[: config.shown], answers, strict=False)
    ]
    return measured


def best_of(model, tokens, examples, config):
    """The best of n answers by each judge: dict of lists with a value for each n, and ``kl_bound``."""
    answers = draw_answers(
        model, [tokens.prompt(example) for example in examples], max(config.best_of), tokens, config, 20_000
    )
    scores = judged(tokens, examples, answers, config)
    return {
        "n": list(config.best_of),
        "kl_bound": [best_of_n_kl(n) for n in config.best_of],
        **{
            judge: {
                name: [expected_best_of(scores[judge], values, n).mean().item() for n in config.best_of]
                for name, values in scores.items()
            }
            for judge in config.judges
        },
    }
