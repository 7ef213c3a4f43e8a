"""Figure of chapters 15 and 16: a GPT writes in the page, and shows what it goes by."""

from ..models.weights.trained import trained
from ..tokenization.characters import CharacterTokenizer
from .live.page import LiveFigure, check_sliders

PARTS = "attention", "cache"
LENGTH = 60  # of what is recorded


class LiveWriter(LiveFigure):
    """A trained GPT that reads characters writes on from any prompt, and the reader steps in.

    Beside the text are the probabilities of the next character: the model's own, and those that are drawn from. The
    reader sets temperature, top-k, nucleus and min-p, puts another character into the text, or goes back in it. Of a
    text that is longer than the context of training, the model reads the end: when the context is full, its oldest
    quarter goes. Characters that the model does not know are left out of a prompt and named; an empty one is a line
    break.

    Args:
        weights: name of an exported GPT over characters.
        prompt: at first.
        parts: what is shown besides: "attention", where a head looks, which a reader chooses; "cache", what each
            character costs with a cache of keys and values, and without.
        temperature, top_k, top_p, min_p: at first, as `Filters` of `d2lmini.decoding.filters` takes them.
        seed: of the page's own random numbers at first, 1 to 50.
        recorded: prompts; what the model writes after each without chance is shown before it is loaded.

    Raises:
        WeightsError: the file of weights is damaged, or of another version.
        ValueError: there are no such weights, they are not a GPT over characters, or an argument is out of range.
    """

    name = "live_writer"
    title = "Write with the model"
    hint = (
        "Change the prompt and press Write. Choose another next character, or a letter of the text, and the model goes "
        "on from there."
    )

    def __init__(
        self,
        weights="gpt_shakespeare",
        prompt="ROMEO:\n",
        parts=("attention",),
        temperature=0.8,
        top_k=None,
        top_p=None,
        min_p=None,
        seed=1,
        recorded=("ROMEO:\n", "KING RICHARD:\nMy lord, the night", "O, "),
    ):
        model = trained(weights)
        tokenizer = getattr(model, "tokenizer", None)
        if not isinstance(tokenizer, CharacterTokenizer) or not hasattr(model, "generate"):
            raise ValueError(f"{weights} is a {type(model).__name__}, expected a GPT over characters")
        if unknown := set(parts) - set(PARTS):
            raise ValueError(f"parts has {', '.join(sorted(unknown))}, expected of {', '.join(PARTS)}")
        V = len(tokenizer)
        top_k, top_p, min_p = (off if set_ is None else set_ for set_, off in ((top_k, V), (top_p, 1.0), (min_p, 0.0)))
        check_sliders(
            temperature=(temperature, 0, 2),
            top_k=(top_k, 1, V),
            top_p=(top_p, 0.05, 1),
            min_p=(min_p, 0, 0.5),
            seed=(seed, 1, 50),
        )
        ids = [tokenizer.encode(text) for text in recorded]
        written = model.generate(ids, LENGTH, temperature=0).tokens
        rows = [[_line(text), _line(tokenizer.decode(row))] for text, row in zip(recorded, written, strict=True)]
        caption = f"The likeliest next character, {LENGTH} times: what the model writes at temperature 0."
        super().__init__(
            "A GPT writes on from a prompt, character by character, with the probabilities of the next one.",
            weights,
            (caption, ["prompt", "continued"], rows),
            tokens=tokenizer.idx_to_token,
            context=model.config.max_len,
            blocks=model.config.num_blks,
            heads=model.config.num_heads,
            parts=list(parts),
            prompt=prompt,
            temperature=float(temperature),
            top_k=top_k,
            top_p=float(top_p),
            min_p=float(min_p),
            seed=seed,
            block=0,
            head=0,
            cache=True,
        )


def _line(text):
    return text.replace("\n", "↵")
