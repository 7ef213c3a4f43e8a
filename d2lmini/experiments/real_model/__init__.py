"""Experiments with a real language model: what it knows, costs and learns, and what rewards teach a small one.

The experiments:

    adapters.py          a classifier of reviews: the prompt alone, low-rank changes, the whole model, other weights
    prompt_examples.py   what examples in the prompt are worth
    quantized.py         weights in 8 and 4 bits: bytes, losses, seconds
    real_answers.py      what it answers, and where its heads look
    repeating_heads.py   which heads it needs to repeat what it has read
    speculative.py       drafts from the text, from the first blocks, from fewer bits
    verifiable.py        rewards that a program can check, next to right answers to imitate

What they share:

    bases.py             the model of a preset, with its tokenizer, and the processor's time
    checked_answers.py   groups of answers of a model that sums, checked, and what they cost
    opened.py            inside a model: heads, a cache without a position, what each block would say
    prompt_tasks.py      questions with short answers, and prompts that show examples of them
    reward_training.py   a model that sums, stopped early, and how it goes on
"""
