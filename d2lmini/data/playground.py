"""The tasks of the playground: a prompt of tokens, and the tokens that answer it; or the next letter of a text.

Tokens, answers and held-out prompts are those of the page.
"""

import torch
from torch.utils.data import DataLoader, Dataset

from ..arguments import check_integer, checked_ids
from ..objectives.masking import IGNORE_INDEX
from ..training import DataModule
from .playground_tasks import TASKS

_BLANK = "_"  # what stands where a model that sees everything is to write
_HELD_OUT = 8  # one prompt of so many is never trained on, one tenth of a text


class PlaygroundData(DataModule):
    """A task of the playground, to train a `d2lmini.TinyTransformer` on.

    A batch is tokens (B, T) and targets (B, T), int64; a target is `IGNORE_INDEX` where nothing is to be guessed. A
    causal model reads the answer as it writes it, each token the target of the place before it. One that sees
    everything has blanks in its place. Training examples are drawn anew in each epoch, unless ``num_train`` says
    otherwise; one prompt of eight, or the last tenth of a text, is held out.

    Args:
        task: "copy", "reverse" or "sort" letters; "look up" the value of each key; "recall" what comes after a letter
            of a word; "add" two numbers; "text": the next letter.
        size: letters, pairs, digits of a number, or characters of a text at a time; None: 6, of pairs 4, digits 2,
            characters 32.
        letters: how many different ones there are, from 2 to 26.
        backwards: of "add": whether the sum is written from its last digit on.
        text: of "text": str, whose characters are the tokens.
        causal: whether no token sees what comes after it; of "text" always.
        batch_size: B.
        num_batches: training batches in an epoch.
        num_val: examples that are held out to validate with.
        num_train: how many examples there are to train on, from which batches are drawn; None: any number. Not of
            "text".
        seed: of all examples.

    Raises:
        ValueError: there is no such task, a number is out of its range, the task has too few prompts to hold some out,
            or the text is too short, too long, or has one character or more than 250 different ones.

    Attributes:
        tokens: list of str, what each token is written as; the last is the blank.
    """

    def __init__(
        self,
        task="reverse",
        size=None,
        letters=10,
        backwards=False,
        text="",
        causal=True,
        batch_size=16,
        num_batches=100,
        num_val=64,
        num_train=None,
        seed=0,
    ):
        super().__init__()
        self.save_hyperparameters(ignore=["text"])
        if task not in TASKS:
            raise ValueError(f"there is no task {task!r}, expected one of {', '.join(TASKS)}")
        for name in ("batch_size", "num_batches", "num_val", *(["num_train"] if num_train is not None else [])):
            check_integer(name, getattr(self, name), 1)
        if size is not None:
            check_integer("size", size, 1, 256)
        check_integer("letters", letters, 2, 26)
        check_integer("seed", seed)
        if not isinstance(text, str):
            raise TypeError(f"text is a {type(text).__name__}, expected str")
        options = {"size": size, "letters": letters, "backwards": backwards, "text": text}
        self._task = TASKS[task](**{name: value for name, value in options.items() if value is not None})
        self.size = check_integer("size", self._task.size, 1, self._task.most)
        self.causal = causal or self._task.held_out_place
        if num_train is not None and self._task.held_out_place:
            raise ValueError(
                "num_train is not of a text, which is cut into a part to train on and one that is held out"
            )
        self.tokens = [*self._task.tokens, _BLANK]
        for held_out in (False, True):
            self.draw(1, held_out=held_out)

    def get_dataloader(self, train):
        """Batches of fresh training examples, or of those of `held_out`."""
        if train:
            return DataLoader(_Drawn(self), self.batch_size, collate_fn=lambda batch: batch)
        return self.get_tensorloader(self.held_out(), train=False)

    def held_out(self, size=None):
        """Examples that are never trained on, the same at each call.

        Args:
            size: of the task; None: that of training.

        Returns:
            tokens (N, T) and targets (N, T), N = ``num_val``.

        Raises:
            ValueError: the task has no examples of that size.
        """
        return self.lay(*self.draw(self.num_val, size, held_out=True))

    def draw(self, number, size=None, held_out=False, generator=None):
        """Prompts with their answers.

        Args:
            number: N.
            size: of the task; None: that of training.
            held_out: whether they are none of those that are trained on.
            generator: a ``torch.Generator``; None: one made from ``seed``.

        Returns:
            prompts (N, P) and answers (N, A), int64; given (N, A), bool: which of the answer are asked, not guessed.

        Raises:
            ValueError: the task has no examples of that size.
        """
        size = self.size if size is None else check_integer("size", size, 1, self._task.most)
        generator = torch.Generator().manual_seed(self.seed) if generator is None else generator
        if self._task.held_out_place:
            return self._task.draw(generator, number, size, held_out)
        found = []
        for _ in range(100):
            drawn = self._task.draw(generator, (_HELD_OUT if held_out else 1) * number + 100, size)
            kept = kept_back(drawn[0]) == held_out
            found.append([part[kept] for part in drawn])
            if sum(len(parts[0]) for parts in found) >= number:
                return tuple(torch.cat(parts)[:number] for parts in zip(*found, strict=True))
        use = "a test" if held_out else "training"
        raise ValueError(f"there are too few examples of size {size}: none is left for {use}")

    def lay(self, prompts, answers, given):
        """What a model reads, and what it is to guess.

        Args:
            prompts, answers, given: as `draw` gives them.

        Returns:
            tokens (N, T) and targets (N, T). A causal model has T = P + A - 1, another one P + A.
        """
        written = answers[:, :-1] if self.causal else answers.where(given, torch.tensor(len(self.tokens) - 1))
        nothing = prompts.new_full((len(prompts), prompts.shape[1] - self.causal), IGNORE_INDEX)
        guessed = answers.where(~given, torch.tensor(IGNORE_INDEX))
        return torch.cat([prompts, written], 1), torch.cat([nothing, guessed], 1)  # (N, T)

    def length(self, size=None):
        """T, the tokens of a sequence; ``size`` as in `held_out`."""
        return self.held_out(size)[0].shape[1]

    def encode(self, text):
        """The tokens of what is written. Returns: list of int.

        Raises:
            ValueError: a character is none of the tokens.
        """
        for letter in text:
            if letter not in self.tokens:
                raise ValueError(f'"{letter}" is none of the tokens of this task')
        return [self.tokens.index(letter) for letter in text]

    def decode(self, tokens):
        """What tokens (T,) are written as, a str.

        Raises:
            TypeError: a token is no integer.
            ValueError: it is none of this task.
        """
        return "".join(self.tokens[token] for token in checked_ids(tokens, len(self.tokens)))


def kept_back(prompts):
    """Which prompts are kept from training: those whose mixed FNV-1a hash is a multiple of eight.

    Args:
        prompts: integers (N, P).

    Returns:
        bool (N,).
    """
    hashes = torch.full((len(prompts),), 0x811C9DC5)
    for tokens in prompts.T:
        hashes = ((hashes ^ tokens) * 0x01000193) & 0xFFFFFFFF  # 57 bits before they are cut to 32
    return (hashes ^ (hashes >> 15)) % _HELD_OUT == 0


class _Drawn(Dataset):
    """Training examples of an epoch: the numbers of a batch's examples and the epoch decide what they are."""

    def __init__(self, data):
        self.data, self.epoch = data, 0
        self.few = None if data.num_train is None else data.draw(data.num_train)

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.data.num_batches * self.data.batch_size

    def __getitems__(self, indices):
        seed = hash((self.data.seed, self.epoch, indices[0])) % 2**62
        generator, number = torch.Generator().manual_seed(seed), len(indices)
        if self.few is None:
            return self.data.lay(*self.data.draw(number, generator=generator))
        chosen = torch.randint(self.data.num_train, (number,), generator=generator)
        return self.data.lay(*(part[chosen] for part in self.few))
