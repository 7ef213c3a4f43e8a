"""Encoder and decoder: what all models of translation share, whatever is inside the two.

A decoder's state is any nesting of tuples of tensors with the batch first, and is never changed: `step` returns a new
one. That is what `d2lmini.decoding` asks for. (States that are not, as in D2L's own notebooks, work in
`predict_step`.)
"""

import torch
import torch.nn.functional as F
from torch import nn

from ..decoding import beam_search, greedy_search
from ..modes import evaluating
from ..training import Classifier
from ..utils import PropertiesHeard, Unavailable


class Encoder(PropertiesHeard, nn.Module):
    """Base class: tokens (B, S) and their valid lengths (B,) to whatever the decoder's ``init_state`` takes.

    Source: D2L section 10.6.1.
    """

    def forward(self, X, *args):
        raise NotImplementedError(f"{type(self).__name__} has no forward(X, valid_lens)")


class Decoder(nn.Module):
    """Base class: from a state and tokens (B, T) to logits (B, T, V) and a new state.

    Source: D2L section 10.6.2.
    """

    def init_state(self, enc_all_outputs, *args):
        """The state before the first token, from what the encoder returned and the arguments it had."""
        raise NotImplementedError(f"{type(self).__name__} has no init_state(enc_all_outputs, valid_lens)")

    def forward(self, X, state):
        raise NotImplementedError(f"{type(self).__name__} has no forward(X, state)")


class AttentionDecoder(PropertiesHeard, Decoder):
    """Base class of decoders that can show where they looked.

    Source: D2L section 11.4.2.
    """

    @property
    def attention_weights(self):
        """Weights of the last call; their form is the subclass's."""
        raise Unavailable(f"{type(self).__name__} has no attention_weights: a subclass says what they are")


class EncoderDecoder(Classifier):
    """An encoder and a decoder, trained together.

    Args:
        encoder: an `Encoder`.
        decoder: a `Decoder`.

    Source: D2L section 10.6.3.
    """

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, enc_X, dec_X, *args):
        """Teacher forcing: source (B, S), target shifted by one (B, T), source lengths (B,) to logits (B, T, V)."""
        return self.decoder(dec_X, self.start(enc_X, *args))[0]

    def start(self, enc_X, *args):
        """The decoder's state before the first token, for sources (B, S) and their lengths (B,)."""
        return self.decoder.init_state(self.encoder(enc_X, *args), *args)

    def step(self, tokens, state):
        """One token of each example: (B,) to logits (B, V) and the next state, as `d2lmini.decoding` wants it."""
        logits, state = self.decoder(tokens[:, None], state)
        return logits[:, -1], state

    @torch.no_grad()
    def predict_step(self, batch, device, num_steps, save_attention_weights=False):
        """Greedy decoding of ``num_steps`` tokens, ended sentences too, in evaluation mode.

        Args:
            batch: D2L's tuple (src, tgt, lens, label); of the target only the first token is used.
            device: where to run; the model moves there.
            num_steps: tokens to choose.
            save_attention_weights: whether to keep ``decoder.attention_weights`` of each step.

        Returns:
            Tokens (B, num_steps), and the list of what was kept.

        Source: D2L section 10.7.7.
        """
        self.to(device)
        with evaluating(self):
            src, tgt, lens = (x.to(device) for x in batch[:3])
            tokens, state = tgt[:, 0], self.start(src, lens)
            chosen, kept = [], []
            for _ in range(num_steps):
                logits, state = self.step(tokens, state)
                tokens = logits.argmax(-1)
                chosen.append(tokens)
                if save_attention_weights:
                    kept.append(self.decoder.attention_weights)
        return torch.stack(chosen, 1), kept


class Seq2Seq(EncoderDecoder):
    """Translation: cross-entropy over the target's tokens, padding left out.

    Args:
        encoder: an `Encoder`.
        decoder: a `Decoder`.
        tgt_pad: id of the padding token in the target vocabulary.
        lr: learning rate of Adam.
        label_smoothing: share of the target distribution spread over all tokens, in training alone.

    Source: D2L section 10.7.4; Szegedy et al. 2016 for label smoothing.
    """

    def __init__(self, encoder, decoder, tgt_pad, lr, *, label_smoothing=0.0):
        super().__init__(encoder, decoder)
        self.save_hyperparameters(ignore=["encoder", "decoder"])

    def loss(self, Y_hat, Y, averaged=True):
        """Cross-entropy of logits (B, T, V) and tokens (B, T); with ``averaged=False`` (B * T,), 0 at padding.

        The mean over no token at all is 0.
        """
        nats = F.cross_entropy(
            Y_hat.flatten(0, 1),
            Y.flatten(),
            ignore_index=self.tgt_pad,
            reduction="sum" if averaged else "none",
            label_smoothing=self.label_smoothing if self.training else 0.0,
        )
        return nats / (self.tgt_pad != Y).sum().clamp(min=1) if averaged else nats

    def accuracy(self, Y_hat, Y, averaged=True):
        """Share of the tokens (B, T), padding left out, that logits (B, T, V) rank first."""
        mask = self.tgt_pad != Y
        right = (Y_hat.argmax(2) == Y)[mask].float()
        return right.mean() if averaged else right

    def batch_weight(self, batch):
        """How many target tokens the loss is the mean of."""
        return int((batch[-1] != self.tgt_pad).sum())

    def validation_step(self, batch):
        *inputs, labels = batch
        self.plot("loss", self.loss(self(*inputs), labels), train=False)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)

    @torch.no_grad()
    def translate(self, src, src_valid_len, bos, eos, max_len, *, beam_size=1, length_penalty=0.6):
        """Translates sources (B, S) of lengths (B,), in evaluation mode.

        Args:
            src, src_valid_len: as the encoder takes them, on the model's device.
            bos, eos: ids of the first and the last token.
            max_len: the most tokens to choose, <eos> included.
            beam_size: 1: greedily.
            length_penalty: of `d2lmini.decoding.beam_search`.

        Returns:
            `d2lmini.decoding.Decoded`.
        """
        with evaluating(self):
            state = self.start(src, src_valid_len)
            if beam_size == 1:
                return greedy_search(self.step, state, bos, eos, max_len)
            return beam_search(self.step, state, bos, eos, max_len, beam_size, length_penalty)


def init_seq2seq(module):
    """Xavier's uniform initialisation of linear and recurrent weights, for ``model.apply(init_seq2seq)``.

    A lazy layer is initialised at its first call, when it gets its size.

    Source: D2L section 10.7.2; Glorot and Bengio 2010.
    """
    if isinstance(module, nn.LazyLinear) and nn.parameter.is_lazy(module.weight):

        def once(layer, args):
            handle.remove()
            nn.init.xavier_uniform_(layer.weight)

        handle = module.register_forward_pre_hook(once)  # runs after the hook that gives the size
    elif isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
    elif isinstance(module, nn.RNNBase):
        for name, parameter in module.named_parameters():
            if "weight" in name:
                nn.init.xavier_uniform_(parameter)
