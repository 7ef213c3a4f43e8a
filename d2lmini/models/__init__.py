"""Whole models, one file each: a configuration and an ``nn.Module`` built from the parts of the package.

Translation:

    seq2seq.py              Encoder, Decoder, EncoderDecoder, Seq2Seq: what models of translation share
    bahdanau.py             recurrent encoder and decoders, without attention and with it
    transformer_seq2seq.py  the Transformer of encoder and decoder

Text:

    gpt.py                  a decoder alone
    gpt_config.py           what makes a GPT, and the published ones by name
    bert.py                 an encoder alone
    bert_config.py          what makes a BERT, and the published ones by name
    t5.py                   encoder and decoder, every task as text to text
    t5_config.py            what makes a T5, and the published ones by name
    tiny.py                 a small one whose parts can be switched off, as in the page
    heads.py                what stands on an encoder for a task: texts, pairs, tags
    span_head.py            what stands on it for questions: where the answer begins and ends

Images:

    vit.py                  the vision Transformer
    swin.py                 windows that shift, on maps of several scales
    davit.py                windows and channels in turns, on maps of several scales
    stages.py               what models of several scales share
    image_gpt.py            images written pixel by pixel
    resnet.py               a convolutional network to compare with
    clip.py                 images and texts in one space

For all of them:

    named_parts.py          norms, activations and networks by name, and how weights begin
    tokens.py               tokens checked, embedded and padded
    pretrained/             published weights, by one table of renamed parameters a model
    weights/                models with published weights, by name
"""
