r"""Several tasks in one minibatch

T5 translates, judges a review and shortens an article, all with the same weights: the input says what to do, and every
answer is a text. Can a minibatch hold examples of several tasks, then? And how would it be with GPT-2?

An example is a task's name, a source and a target, as `("sentiment", [17, 4], [9])`. `names` has for each task the ids
that tell the model what to do, as those of *"sentiment:"*.
"""

from d2lmini.exercises.ch14 import d2l_11_9_1b, d2l_11_9_1c, d2l_11_9_1d
from d2lmini.exercises.engine import Choice, Exercise, Option

EXERCISE = Exercise(
    key="d2l-11.9.1",
    doc=__doc__,
    source="D2L 11.9, exercise 1",
    parts=[
        Choice(
            key="d2l-11.9.1a",
            prompt="Can T5 be fine-tuned with minibatches that hold examples of several tasks?",
            hints=["What differs between the tasks: the layers, the loss, or the texts alone?"],
            options=[
                Option(
                    "No: a batch needs one loss to go down, and each task has a loss of its own.",
                    "Each task *is* text to text here, and the loss is the cross-entropy of the target's tokens for "
                    "all of them.",
                ),
                Option(
                    "Only if all of their inputs have one length, and all of their targets, too.",
                    "Padding evens out lengths, within a task as between tasks. It costs time where lengths differ "
                    "much, and that is all.",
                ),
                Option(
                    "Yes: one loss serves all, but how much each task counts must be decided.",
                    "The input says which task it is, and weights, outputs and loss are the same for all. But an "
                    "average over all labels of the batch lets the task with the long targets count most: one of 200 "
                    "tokens as much as 100 judgements of one token, each with its end. Hence the proportions of the "
                    "mixture, or a weight for each task, as in part c. GPT-2 can do it, too (part d).",
                    right=True,
                ),
                Option(
                    "Yes, if each task gets a last layer of its own on top of the shared ones.",
                    "That would be needed for BERT, whose heads differ. A decoder that writes text needs none.",
                ),
                Option(
                    "T5 can, but GPT-2 cannot: it has no encoder to read which task it is.",
                    "GPT-2 reads the task in the same sequence in which it then writes. It takes care with the labels, "
                    "that is all.",
                ),
            ],
        ),
        d2l_11_9_1b.PART,
        d2l_11_9_1c.PART,
        d2l_11_9_1d.PART,
    ],
)
