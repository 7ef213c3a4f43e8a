"""Experiments on a layer of attention: what it can look up, what its heads and positions do, what it costs.

The experiments:

    associative_recall.py     can a layer learn to look things up
    attention_cost.py         time and memory against the number of tokens
    decoding_cost.py          what the next token costs after so many
    head_count.py             the same features cut into more and more heads
    head_roles.py             what the heads of a translator learn, and what each is worth
    pooling_fashion_mnist.py  images classified by attention over stored ones
    position_encodings.py     what each encoding can learn, also past the trained length

What they share:

    image_features.py         images as vectors that are not learned
"""
