"""Whole models, one file each: a configuration and an ``nn.Module`` built from the parts of the package.

seq2seq.py              Encoder, Decoder, EncoderDecoder, Seq2Seq: what models of translation share
bahdanau.py             recurrent encoder and decoders, without attention and with it
transformer_seq2seq.py  the Transformer of encoder and decoder
vit.py                  the vision Transformer
swin.py, davit.py       models of several scales; stages.py is what they share
image_gpt.py            pictures written pixel by pixel
resnet.py               a convolutional network to compare with
gpt.py                  a decoder alone
bert.py                 an encoder alone; heads.py: what stands on an encoder for a task
pretrained/             published weights, by one table of renamed parameters a model
"""
