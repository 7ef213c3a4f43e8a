"""Experiments on what a small GPT learns to do with a prompt: repeat, regress, add in steps, follow instructions.

What they share:

    fresh_data.py     batches drawn anew in every step, and contests on them
    addition.py       sums as text, with steps or without
    addition_exam.py  what a model that adds is asked
    instructions.py   instructions, right answers, and two judges
    judgements.py     answers of a model, drawn and judged
"""
