"""Prompts as the tokenizer of a GPT over characters reads them, and what is said of the rest."""

from d2lmini.models.weights.trained import trained
from d2lmini.tokenization.characters import CharacterTokenizer

TEXT = "ROMEO:\nIt is the east, and Juliet's - the sun."
BREAK = "No prompt is left, so the text begins with a line break."


def shown(characters):
    return " ".join(f"\u2068{one}\u2069" for one in characters)


def cases():
    tokenizer = trained("gpt_shakespeare").tokenizer
    left_out, replaced = "Left out, the model does not know them: ", "Replaced by what looks like it: "
    arabic = f"{left_out}{shown('مرحبا')}. {BREAK}"
    odd = f"{left_out}{shown('😀👩')} U+200D {shown('👧é')}."
    for prompt, read, said in (
        ("ROMEO:\r\nO, where", "ROMEO:\nO, where", ""),
        ("", "\n", BREAK),
        ("مرحبا", "\n", arabic),
        ("😀👩\u200d👩\u200d👧 é", " ", odd),
        ("it’s — so\t\u00a0", "it's - so  ", f"{replaced}{shown('’—')} U+9 U+A0."),
        ("é" + "a" * 999, "a" * 999, f"{left_out}{shown('é')}. A prompt has at most 1000 characters."),
        ("0123456789", "3", f"{left_out}{shown('01245678')} …."),
    ):
        yield "readable", [prompt, tokenizer.idx_to_token], {"ids": tokenizer.encode(read), "said": said}
    own = CharacterTokenizer("abc").idx_to_token  # it knows no line break
    yield "readable", ["", own], {"ids": [0], "said": BREAK}

    everything = {"temperature": 0.8, "top_k": 65, "top_p": 1.0, "min_p": 0.0}
    yield "filtersOf", [everything, 65], {"temperature": 0.8, "top_k": None, "top_p": None, "min_p": None}
    some = {"temperature": 0, "top_k": 3, "top_p": 0.9, "min_p": 0.1}
    yield "filtersOf", [some, 65], some

    yield "lettersBack", [list(TEXT[:9]), 5], ["“:” (3 back)", "“↵” (2 back)", "“I” (1 back)", "“t” (itself)"]
    yield "letterName", [" "], "␣"
    told = "The model was trained on 8 at a time"
    for i, first, said in (
        (3, 0, ""),
        (8, 0, f"{told}, and the text is longer now."),
        (9, 2, f"{told} and reads the last 8, not the paler ones."),
    ):
        place = {"i": i, "first": first, "given": 5, "context": 8}
        yield "whereIs", [place], f"Character {i + 1}, the prompt has 5. {said}"
    yield "meanCosts", [{"characters": 4, "positions": 10, "milliseconds": 3}], ["4", "2.5", "0.8"]
    yield "meanCosts", [{"characters": 0, "positions": 0, "milliseconds": 0}], ["0", "–", "–"]
