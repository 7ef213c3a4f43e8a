"""Experiments on encoders: pretraining, and fine-tuning on sentences, pairs, tags and questions.

The experiments:

    bert_pretrain.py   masked, next or replaced tokens, at equal compute
    bert_sentiment.py  film reviews: for or against
    bert_pairs.py      do two sentences mean the same
    bert_tagging.py    names of persons, places and things
    bert_qa.py         where in a passage an answer is

What they share:

    pretraining.py     three objectives, and what a step of each costs
    lower_case.py      text as BERT reads it, in windows
    information.py     what a pretraining taught, in bits
    probing.py         what pretrained encoders know
    fine_tuning.py     encoders, parts of the data, and how the one is trained on the other
    classes.py         scores of two classes, and regressions
    toy_texts.py       made-up stand-ins for the data
"""
