r"""Questions with short answers for a language model, and prompts that show it examples of them.

    Q: What is the capital of France?
    A: Paris

    Q: What is the capital of Kenya?
    A:

A question is its task's ``stem`` and a rest. All prompts of a draw of examples begin alike, up to the stem of the last
question, so a model reads that much once. A text is cut into tokens at a space there.
"""

import random
from typing import NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence

from d2lmini.data.capitals import capitals
from d2lmini.data.sentiment import SentencePolarity
from d2lmini.decoding import reorder
from d2lmini.experiments.bert.toy_texts import MadeReviews
from d2lmini.experiments.real_model import bases
from d2lmini.tokenization.fast_bpe import BPETokenizer

TASKS = "capitals", "sentiment", "sums of one digit", "sums of two digits"
WORDS = "negative", "positive"  # by label


class Task(NamedTuple):
    """Questions of a kind: ``pool``, of which examples are drawn, and ``asked``, lists of (rest, answer).

    What is drawn as an example is not asked. ``choices``: the answers that there are, or None.
    """

    stem: str
    pool: list
    asked: list
    choices: tuple | None = None


def make_task(name, number, made=False):
    """A `Task` of which at most so many questions are asked.

    Args:
        name: one of `TASKS`.
        number: how many questions. Capitals whose first word is in their country's name are not asked; of these and of
            sums of one digit there are fewer than 200.
        made: whether the reviews are made by rule, and need no data.

    Raises:
        ValueError: there is no such task.
        DataError: the reviews are not on this machine.
    """
    shuffled = random.Random(name)
    if name == "sentiment":
        splits = _reviews(made)
        pool, test = ([(text, WORDS[label]) for text, label in splits.examples(part)] for part in ("train", "test"))
        return Task("Is this sentence of a film review positive or negative?", pool, test[:number], WORDS)  # in turns
    if name == "capitals":
        stem = "What is the capital of"
        known = [(f"{c}?", capital) for c, capital in capitals().items() if capital.split()[0] not in c]
    elif name in TASKS:
        stem, low, high = "What is", *((0, 10) if name == "sums of one digit" else (10, 100))
        known = [(f"{a} + {b}?", str(a + b)) for a in range(low, high) for b in range(low, high)]
    else:
        raise ValueError(f"there is no task {name!r}, only {', '.join(TASKS)}")
    shuffled.shuffle(known)
    return Task(stem, known, known[:number])


def _reviews(made):
    # no token is read of them: any tokenizer will do
    tokenizer = BPETokenizer.train(["a film"], 300)
    return (MadeReviews if made else SentencePolarity)(tokenizer)


def draw_examples(task, number, seed, wrong=False):
    """Examples of a task, a list of (rest, answer).

    ``wrong``: each answer is that of a question drawn from the pool, which may be the right one by chance.
    """
    drawn = random.Random(f"examples/{seed}").sample(task.pool, number)
    if not wrong:
        return drawn
    others = random.Random(f"answers/{seed}").choices([answer for _, answer in task.pool], k=number)
    return [(rest, answer) for (rest, _), answer in zip(drawn, others, strict=True)]


def beginning(task, examples):
    """What all prompts of some examples have in common: the examples, and the stem of the question that is asked."""
    shown = "".join(f"Q: {task.stem} {rest}\nA: {answer}\n\n" for rest, answer in examples)
    return f"{shown}Q: {task.stem}"


@torch.no_grad()
def answers(model, tokenizer, task, examples, questions, at_once=16):
    """What a model answers to questions behind examples, without a token being written.

    Greedy decoding begins with the first word of the right answer if and only if each of its tokens is the likeliest
    one behind those before it; and the word ends there if what is likeliest then begins with no letter or digit. So one
    pass over question and answer tells.

    Args:
        model, tokenizer: as `bases.load` gives them.
        task: a `Task`.
        examples, questions: lists of (rest, answer).
        at_once: questions of a batch.

    Returns:
        ``exact``, a list of bool: whether the first word that is written is that of the answer; and ``chosen``, a list
        of str, the likelier one of the task's choices by the first token in which they differ, or None where it has
        none.

    Raises:
        ValueError: there is no such token.
    """
    shared = torch.tensor([bases.encode(tokenizer, beginning(task, examples))])
    read = model.extend(shared, model.empty_state(1))[1]
    exact, chosen = [None] * len(questions), [None] * len(questions)
    choices = [bases.encode(tokenizer, f" {choice}") for choice in task.choices or ()]
    common = next((i for i, tokens in enumerate(zip(*choices, strict=False)) if len(set(tokens)) > 1), 0)
    apart = [choice[common] for choice in choices]
    if len(set(apart)) < len(apart):
        raise ValueError(f"the choices {task.choices} do not differ in the same token, expected that they do")
    rows = [
        [bases.encode(tokenizer, part) for part in (f" {rest}\nA:", f" {answer.split()[0]}")]
        for rest, answer in questions
    ]
    order = sorted(range(len(rows)), key=lambda i: sum(map(len, rows[i])))  # of like length together
    for start in range(0, len(order), at_once):
        some = order[start : start + at_once]
        tokens = pad_sequence([torch.tensor([*rows[i][0], *rows[i][1]]) for i in some], batch_first=True)  # (B, T)
        logits, _ = model.extend(tokens, reorder(read, torch.zeros(len(some), dtype=torch.long)))  # (B, T, V)
        likeliest = logits.argmax(-1).tolist()
        for row, i in enumerate(some):
            asked, word = rows[i]
            *found, after = likeliest[row][len(asked) - 1 : len(asked) + len(word)]
            exact[i] = found == word and not tokenizer.decode([after])[:1].isalnum()
            if choices:
                chosen[i] = task.choices[int(logits[row, len(asked) - 1 + common, apart].argmax())]
    return exact, chosen
