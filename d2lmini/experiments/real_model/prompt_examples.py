"""Chapter 19: what are no, one and a few examples in the prompt worth to a real model?

It is asked for capitals, for the polarity of film reviews, and for sums, in plain prompts (`prompt_tasks`). Examples
come from several draws, and what is an example of a draw is not asked behind it. Right is an answer whose first word is
right; of reviews also the likelier one of the two words. A control has as many examples with answers of other
questions: what they still gain is gained by the form of the answers, not by their being right. The baseline always
gives the commonest answer. How small models that were trained on prompts with examples use them stands in the records
of `in_context` and `in_context_sizes`.

Source: Brown et al. 2020, section 2, for the question; Min et al. 2022, "Rethinking the role of demonstrations", for
the control.
"""

from collections import Counter
from dataclasses import dataclass, replace

from d2lmini.data import registry
from d2lmini.experiments.real_model import bases
from d2lmini.experiments.real_model.prompt_tasks import TASKS, answers, beginning, draw_examples, make_task
from d2lmini.lab import summaries
from d2lmini.lab.parts import Parts


@dataclass(frozen=True)
class Config:
    """Settings.

    ``base`` is one of `bases.BASES`; ``made`` takes reviews made by rule. Of each of the ``tasks`` at most
    ``questions`` are asked behind each number of examples in ``shots``, and behind each in ``wrong_shots`` with wrong
    answers, in each of as many draws as there are ``seeds``. Of the first ``shown`` questions the record has what is
    written, ``written`` tokens of it.
    """

    base: str = "smollm2"
    made: bool = False
    tasks: tuple = TASKS
    questions: int = 200
    shots: tuple = (0, 1, 4, 16)
    wrong_shots: tuple = (16,)
    shown: int = 1
    written: int = 12
    seeds: tuple = (0, 1, 2)


PRESETS = {
    "smoke": replace(
        Config(), base="toy", made=True, questions=6, shots=(0, 2), wrong_shots=(2,), shown=1, written=3, seeds=(0, 1)
    ),
    # without data; the weights have to be there
    "cpu": replace(
        Config(), tasks=("capitals", "sums of one digit"), questions=30, shots=(0, 4), wrong_shots=(4,), seeds=(0,)
    ),
    "laptop": Config(),
}  # fmt: skip


def check(config):
    """Raises ValueError where a setting would be found wrong only after minutes."""
    if not config.tasks or set(config.tasks) - set(TASKS):
        raise ValueError(f"tasks are {config.tasks}, expected some of {', '.join(TASKS)}")
    if not config.shots or min(config.shots) < 0 or len(set(config.shots)) < len(config.shots):
        raise ValueError(f"shots are {config.shots}, expected different numbers from 0")
    if set(config.wrong_shots) - set(config.shots) or 0 in config.wrong_shots:
        raise ValueError(f"wrong_shots are {config.wrong_shots}, expected some of the shots {config.shots}, but 0")
    if config.questions < 1 or not 0 <= config.shown <= config.questions:
        raise ValueError(
            f"there are {config.questions} questions, {config.shown} of them shown: expected 1, and no more"
        )


def ask(model, tokenizer, task, config, number, seed, wrong=False):
    """The questions of a task behind so many examples of a draw.

    Returns:
        dict for JSON: ``asked``, how many questions; ``exact``, and of a task with choices ``chosen``, each as
        `summaries.share`; ``guessed``, the shares of the choices; ``shown``, (question, what is written) of the
        first, in the first draw.
    """
    most = draw_examples(task, max(config.shots), seed)
    known = {rest for rest, _ in most}
    questions = [pair for pair in task.asked if pair[0] not in known]  # the same ones for each number of examples
    examples = draw_examples(task, max(config.shots), seed, wrong)[:number]
    exact, chosen = answers(model, tokenizer, task, examples, questions)
    told = {"asked": len(questions), "exact": summaries.share(exact), "shown": []}
    if task.choices:
        told["chosen"] = summaries.share([one == right for one, (_, right) in zip(chosen, questions, strict=True)])
        told["guessed"] = {choice: chosen.count(choice) / len(chosen) for choice in task.choices}
    for rest, _ in questions[: config.shown if seed == config.seeds[0] else 0]:
        prompt = bases.encode(tokenizer, f"{beginning(task, examples)} {rest}\nA:")
        written = model.generate([prompt], config.written, temperature=0).tokens[0]
        told["shown"].append([rest, tokenizer.decode(written.tolist())])
    return told


def run(config, device, parts=None):
    """Asks every task behind every number of examples; see `d2lmini.lab` for the arguments.

    It computes in float32 on the CPU, whatever the device.

    Returns:
        dict with ``metrics`` and ``curves`` (none) and ``data``. The metrics have by task ``stem``, ``baseline``, the
        share of the questions whose answer is the commonest one, and ``shots`` and ``wrong``: by number of examples,
        of `ask` the lists over the draws, with ``accuracy``, the mean and spread over these of ``exact`` or, where
        there are choices, of ``chosen``. Without examples there is one draw.

    Raises:
        ValueError: see `check`. DataError: the weights or the reviews are not on this machine.
    """
    check(config)
    parts, tasks, loaded = parts or Parts(), {}, []

    def work(name, *args):
        if not loaded:
            loaded.extend(bases.load(config.base))
        return ask(*loaded, make_task(name, config.questions, config.made), config, *args)

    with bases.one_thread():
        for name in config.tasks:
            task = make_task(name, config.questions, config.made)
            commonest = Counter(answer for _, answer in task.asked).most_common(1)[0][1]
            tasks[name] = {"stem": task.stem, "baseline": commonest / len(task.asked)}
            for key, numbers, wrong in (("shots", config.shots, False), ("wrong", config.wrong_shots, True)):
                tasks[name][key] = {}
                for number in numbers:
                    draws = config.seeds if number else config.seeds[:1]
                    rows = [
                        parts(f"{name}, {number} {key}, draw {seed}", work, name, number, seed, wrong) for seed in draws
                    ]
                    told = summaries.columns(rows)
                    scores = [score["accuracy"] for score in told["chosen" if task.choices else "exact"]]
                    tasks[name][key][str(number)] = told | {"accuracy": summaries.summary(scores)}
    data = bases.checksums(config.base)
    if "sentiment" in config.tasks and not config.made:
        data |= registry.checksums("rt_polarity", ["rt-polarity.neg", "rt-polarity.pos"])
    return {"metrics": {"tasks": tasks, "headline": headline(tasks, config)}, "curves": {}, "data": data}


def headline(tasks, config):
    """Accuracies by the number of examples, and with wrong answers, in a sentence."""

    def told(rows):
        return ", ".join(f"{100 * row['accuracy']['mean']:.0f} ({number})" for number, row in rows.items())

    lines = []
    for name, task in tasks.items():
        wrong = f"; with wrong answers {told(task['wrong'])}" if task["wrong"] else ""
        lines.append(f"{name} {told(task['shots'])}{wrong}")
    return f"right answers in % (behind so many examples): {' | '.join(lines)}"
