"""What can be tested of prose: how many words, how long a paragraph, which turns the style does without."""

import re

_FENCE = re.compile(r"^(```|~~~|:::).*?^\1 *$", re.M | re.S)
_FORMULA = re.compile(r"\$\$.*?\$\$", re.S)
_INLINE = re.compile(r"\$[^$\n]+(?:\n[^$\n]+)?\$|`[^`]+`")
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)")
_TABLE = re.compile(r"^ *\|.*$", re.M)
_GENERATED = re.compile(r"^\*Core \d+ min, .*$|^\*\*Read before:\*\*.*$", re.M)
_MARKS = re.compile(r"[*_#>]+|<[^>]+>")
_ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +", re.M)
_PREDICT = re.compile(r"\*\*Predict:?\*\*:?\s*(.*?)(?=\n\s*\n|\Z)", re.S)
_CHOICES = re.compile(r"\(a\) ")
_BRACKETED = re.compile(r"(?:^|(?<=[.!?:]) )\((?=[A-Z])[^()]*[.!?]\)")
LONGEST = 80  # words of a paragraph
ASKED = 25  # words of a question, its choices left out
OPENINGS = 3  # sentences of a piece that may begin with So or And

# the turns that the style does without, and what to write
BANNED = {
    r"stands?\b(?! for\b)|stood": "is, appears",
    r"tells?|told": "shows, reports",
    r"beside": "next to",
    r"in place of": "instead of",
    r"th(?:ose|at) of": "repeat the noun",
    r"alike": "similar",
    r"by heart": "memorised",
    r"nobody": "no model, no reader",
    r"inside of": "in",
    r"too(?=[.!?](?:\s|$))": "also",
    r"trainings|an?(?: \w+)? training(?=[.,;:)])": "a training run",
    r"the whole of it": "a heading that says the idea",
}
_BANNED = {re.compile(rf"\b(?:{words})\b", re.I): instead for words, instead in BANNED.items()}


def plain(markdown):
    """Markdown as running text: inline formulas and code are a word, tables and generated lines gone. Returns: str."""
    for pattern, instead in ((_FENCE, ""), (_FORMULA, ""), (_TABLE, ""), (_GENERATED, ""), (_INLINE, "X")):
        markdown = pattern.sub(instead, markdown)
    return _MARKS.sub("", _LINK.sub(r"\1", markdown))


def count(markdown):
    """How many words of prose. Returns: int."""
    return len(re.findall(r"[^\W_][\w'’.,%-]*", plain(markdown)))


def paragraphs(markdown):
    """Paragraphs and items of lists, as running text. Returns: list of str."""
    blocks = re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )", plain(_ITEM.sub(lambda item: f"\n{item[0]}", markdown)))
    return [" ".join(block.split()) for block in blocks if block.strip()]


def items(markdown):
    """The lines of numbered lists. Returns: list of str."""
    return re.findall(r"^ *\d+\. +(.+)$", markdown, re.M)


def predictions(markdown):
    """The questions that a reader is asked to predict. Returns: list of str."""
    return [" ".join(found[1].split()) for found in _PREDICT.finditer(markdown)]


def faults(markdown, strict=True):
    """What the style does not allow.

    Args:
        markdown: str.
        strict: whether the limits of a core count, too: of paragraphs, of predictions, and sentences in brackets.

    Returns:
        list of str, empty where nothing is wrong.
    """
    found = []
    for paragraph in paragraphs(markdown):
        start = " ".join(paragraph.split()[:6])
        for pattern, instead in _BANNED.items():
            found += [f'"{word[0]}" in "{start} ...": write {instead}' for word in pattern.finditer(paragraph)]
        if not strict:
            continue
        if (size := count(paragraph)) > LONGEST:
            found.append(f'a paragraph of {size} words, at most {LONGEST}: "{start} ..."')
        found += [f"a sentence in brackets: {sentence[0].strip()}" for sentence in _BRACKETED.finditer(paragraph)]
    if len(re.findall(r"(?:^|[.!?:] )(?:So|And)\b", "\n".join(paragraphs(markdown)), re.M)) > OPENINGS:
        found.append(f"more than {OPENINGS} sentences begin with So or And")
    for question in predictions(markdown) if strict else ():
        asked = _CHOICES.split(question)[0]
        if count(asked) > ASKED:
            found.append(f'a question of {count(asked)} words, at most {ASKED}: "{asked}"')
        if question.count("?") != 1:
            found.append(f'{question.count("?")} questions in one prediction: "{question}"')
    return found
