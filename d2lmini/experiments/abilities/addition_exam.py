"""What a model that adds is asked: its likeliest response, samples that vote, and false steps (`chain_of_thought`)."""

from statistics import mean

import torch

from d2lmini.decoding.votes import vote_accuracy
from d2lmini.experiments.abilities import addition
from d2lmini.experiments.abilities.addition import adds_up
from d2lmini.lab import summaries

SPARE = 8  # tokens that a response may have beyond the right one before it counts as endless


@torch.no_grad()
def ask(model, sums, prompts, max_new, **options):
    """Responses to questions.

    Args:
        model: an `Adder`.
        sums: a `Sums`.
        prompts: tokens (B, n), with fillers where the model is given them.
        max_new: tokens after which a response that has no end counts as endless.
        options: of `GPT.generate`, such as ``temperature`` and ``num_samples``.

    Returns:
        for each question the tokens of its response, or with ``num_samples`` those of each sample, up to the end.

    Raises:
        ValueError: the question with its response is longer than the context.
    """
    if prompts.shape[1] + max_new > model.config.max_len:
        raise ValueError(
            f"a question of {prompts.shape[1]} tokens and a response of {max_new} do not fit into the context of "
            f"{model.config.max_len}: there are more summands than {sums.longest}, for which it was made"
        )
    return model.eval().generate(prompts, max_new, stop=addition.END, **options).tokens.tolist()


def test_questions(sums, num, count):
    """Summands (count, num) of a test, the same for all models."""
    return sums.draw(count, num, torch.Generator().manual_seed(10_000 + num))


def prompts_of(sums, summands, form):
    """Questions (B, n) with the fillers that a model of that form is given, and the tokens that a response may have."""
    response, given = sums.responses(summands, form)
    return torch.cat([sums.questions(summands), response[:, :given]], 1), response.shape[1] - given + SPARE


def examine(model, form, sums, num, config, seed):
    """What a model answers to questions with ``num`` summands.

    Returns:
        dict of ``greedy`` (``accuracy``, its standard ``error``, ``unread``: the share of responses that are none; with
        steps ``steps_add_up``, the share of the written numbers that are the one before them and the next summand, and
        ``right_with_wrong_steps``, the share of the right answers behind steps that are not all right) and ``votes``,
        by temperature and number of votes what `vote_accuracy` returns; and the samples at the last temperature.
    """
    summands = test_questions(sums, num, config.questions)
    right = summands.sum(1).tolist()
    prompts, max_new = prompts_of(sums, summands, form)
    chains = [sums.read(tokens) for tokens in ask(model, sums, prompts, max_new, temperature=0)]
    hits = [bool(numbers) and numbers[-1] == truth for numbers, truth in zip(chains, right, strict=True)]
    scores = {"greedy": summaries.share(hits) | {"unread": chains.count(None) / len(chains)}}
    if form == "steps":
        scores["greedy"] |= _steps(summands.tolist(), chains, hits)
    scores["votes"], drawn = {}, None
    for temperature in config.temperatures:
        drawn = samples(model, form, sums, summands[: config.voted], temperature, config.samples, seed)
        answers = [[numbers and numbers[-1] for numbers in row] for row in drawn]
        scores["votes"][str(temperature)] = {
            str(n): vote_accuracy(answers, right[: config.voted], n) for n in config.votes
        }
    return scores, drawn


def samples(model, form, sums, summands, temperature, number, seed):
    """Samples for each question, as `Sums.read` reads them."""
    prompts, max_new = prompts_of(sums, summands, form)
    generator = torch.Generator().manual_seed(seed)
    drawn = ask(model, sums, prompts, max_new, temperature=temperature, num_samples=number, generator=generator)
    return [[sums.read(tokens) for tokens in row] for row in drawn]


def _steps(summands, chains, hits):
    sound = [adds_up(*pair) for pair in zip(summands, [numbers or [] for numbers in chains], strict=True)]
    right = [all(row) for row, hit in zip(sound, hits, strict=True) if hit]
    every = [step for row in sound for step in row]
    return {
        "steps_add_up": mean(map(float, every)) if every else None,
        "right_with_wrong_steps": 1 - mean(map(float, right)) if right else None,
    }


def falsify(model, sums, num, config):
    """Does a model that was given false steps follow them? The last running sum before the answer is another one.

    Returns:
        dict of shares of the answers: ``follows``, those that add the last summand to the false sum, and ``right``,
        those that are right all the same.
    """
    summands = test_questions(sums, num, config.questions)
    generator, running = torch.Generator().manual_seed(20_000 + num), summands.cumsum(1)[:, 1:]
    others = sums.draw(*summands.shape, generator).cumsum(1)[:, 1:]
    false = torch.where(others == running, others + 1, others)[:, -2]
    numbers = torch.cat([running[:, :-2], false[:, None], running[:, -1:]], 1)
    steps = sums.written(numbers)[:, : -sums.width - 1]
    responses = ask(model, sums, torch.cat([sums.questions(summands), steps], 1), sums.width + 1, temperature=0)
    answers = [numbers and numbers[-1] for numbers in map(sums.read, responses)]
    wanted = {"follows": (false + summands[:, -1]).tolist(), "right": running[:, -1].tolist()}
    return {key: mean(float(a == b) for a, b in zip(answers, values, strict=True)) for key, values in wanted.items()}


def show(summands, drawn, number):
    """Questions with all their samples, for `VoteExplorer`: of those on which samples differ the first, then others.

    Args:
        summands: (B, num). drawn: what `samples` gives for them. number: how many to show.
    """
    cards = [
        {"summands": question, "right": sum(question), "samples": row}
        for question, row in zip(summands.tolist(), drawn, strict=True)
    ]
    return sorted(cards, key=lambda card: len({str(numbers) for numbers in card["samples"]}) < 2)[:number]
