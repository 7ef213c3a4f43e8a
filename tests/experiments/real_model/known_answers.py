"""A stand-in for a language model on characters: it answers as a function says."""

from types import SimpleNamespace

import torch
import torch.nn.functional as F

from d2lmini.tokenization.characters import CharacterTokenizer

CHARACTERS = "".join(map(chr, (10, *range(32, 127))))
TOKENIZER = CharacterTokenizer(CHARACTERS)


class Known:
    """After "A:" it writes ``respond(text of the prompt)``, character by character; elsewhere it expects "?".

    Its state is what it has read, (B, S); ``read`` counts the tokens of all passes.
    """

    def __init__(self, respond):
        self.respond, self.read = respond, 0

    def empty_state(self, batch):
        return torch.zeros(batch, 0, dtype=torch.long)

    def extend(self, tokens, state):
        self.read += tokens.numel()
        state = torch.cat([state, tokens], 1)
        first = state.shape[1] - tokens.shape[1]
        texts = [TOKENIZER.decode(row.tolist()) for row in state]
        likeliest = [[self._next(text[: place + 1]) for place in range(first, state.shape[1])] for text in texts]
        ids = torch.tensor([TOKENIZER.encode("".join(row)) for row in likeliest])
        return F.one_hot(ids, len(CHARACTERS)).float(), state

    def _next(self, text):
        prompt, found, written = text.rpartition("A:")
        answer = self.respond(prompt) if found else ""
        return answer[len(written)] if answer.startswith(written) and answer != written else "?"

    def generate(self, prompts, most, temperature):
        assert temperature == 0
        text = TOKENIZER.decode(prompts[0])
        for _ in range(most):
            text += self._next(text)
        return SimpleNamespace(tokens=torch.tensor([TOKENIZER.encode(text[-most:])]))
