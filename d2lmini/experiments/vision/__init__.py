"""Experiments on images: networks that classify them, images as texts, images and their captions.

The experiments:

    clip.py            images and captions, told apart by a small CLIP
    data_size.py       how much each architecture learns from how many images
    image_gpt.py       images as texts of grey values
    vision_cnn.py      a residual network of the size of `vision_vit`
    vision_d2l.py      D2L's vision Transformer with its settings
    vision_davit.py    DaViT
    vision_swin.py     Swin
    vision_vit.py      the vision Transformer

What they share:

    classification.py  one recipe of training for every network, and what is written down of it
"""
