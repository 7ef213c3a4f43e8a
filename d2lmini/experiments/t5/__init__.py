"""Experiments on encoder-decoders that read and write text: T5's pretraining and its tasks.

The experiments:

    t5_pretrain.py      what T5 may be pretrained with, and what each is worth
    t5_tasks.py         one model for several tasks beside one for each

What they share:

    text_to_text.py     tokens with sentinels, a recipe, training on pairs of texts, answers
    text_objectives.py  what T5 may be pretrained with
    text_tasks.py       tasks as text to text
    answer_scores.py    how answers are scored, with standard errors
"""
