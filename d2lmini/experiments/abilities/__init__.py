"""Experiments on what a small GPT learns to do with a prompt: repeat, regress, add in steps, follow instructions.

The experiments:

    chain_of_thought.py  does it help to write steps before an answer
    in_context.py        regression from examples in the prompt
    in_context_sizes.py  what examples in the prompt are worth, by the model's size
    induction.py         how a GPT comes to repeat what it has read, and by which head
    instruct.py          instructions, then what a judge likes, good or bad

What they share:

    fresh_data.py        batches drawn anew in every step, and contests on them
    addition.py          sums as text, with steps or without
    addition_exam.py     what a model that adds is asked
    instructions.py      instructions, right answers, and two judges
    judgements.py        answers of a model, drawn and judged
"""
