"""Experiments on encoders: pretraining, and fine-tuning on sentences, pairs, tags and questions.

What they share:

    pretraining.py  three objectives, and what a step of each costs
    lower_case.py   text as BERT reads it, in windows
    information.py  what a pretraining taught, in bits
    probing.py      what pretrained encoders know
    fine_tuning.py  encoders, parts of the data, and how the one is trained on the other
    classes.py      scores of two classes, and regressions
    toy_texts.py    made-up stand-ins for the data
"""
