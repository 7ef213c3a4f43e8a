r"""Tokenizers in files of weights, as JSON: `as_json` writes one, `from_json` makes it again.

Whoever writes one in another language gets the same ids from what is said here. `tokens` always lists the tokens by id.
Texts are sequences of code points, not of UTF-16 units. A lone surrogate is no character: Python's tokenizers refuse
it, a page puts U+FFFD in its place first. No text is ever taken for a special token: ``"<eos>"`` typed by a reader is
five characters. Nothing below normalises a text but where it is said.

**characters** ``{"kind", "tokens"}``

    ids      each code point is a token. One that is not in `tokens` is unknown: Python raises a ValueError.
    text     the tokens, put together. No special tokens.

**words** ``{"kind", "tokens", "special", "max_len"}``, of `GrammarCorpus`

    clean    U+200B and U+00AD are left out; the text is split at runs of white space, ends are cut off, and the words
             are joined by one space. White space is Python's ``str.isspace``: U+0009 to U+000D, U+001C to U+0020,
             U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000. (Of these JavaScript's
             ``\s`` lacks U+001C to U+001F and U+0085, and it has U+FEFF, which is none here.)
             Nothing left: the text is empty, an error.
    split    all matches, from left to right, of the expression below, where w is ``[\p{L}\p{N}_]`` (no marks); what
             matches nothing is left out, which after `clean` is the space alone. Alternatives are tried in this order:
                 's(?!w)  |  w+(?:-w+)*(?='s(?!w))  |  w+(?:-w+)*'?  |  [^w ]
             Only the plain apostrophe U+0027 counts. Capitals stay: ``The`` and ``the`` are two tokens.
    ids      the index in `tokens`; of what is not there that of ``"<unk>"``.
    source   the ids, then ``"<eos>"``. With it at most `max_len` of them: else an error.
    target   begins with ``"<bos>"``; written until ``"<eos>"``, or 2 * S + 10 tokens, S being the length of the source
             with its ``"<eos>"``.
    text     ids up to the first ``"<eos>"``; without ``"<pad>"``, ``"<bos>"``, ``"<eos>"``; joined by one space; then a
             space is taken away before each of ``. , !`` and before ``'s(?!w)`` (not before ``?``: it is French), and
             then every ``"' "`` becomes ``"'"``.

**byte_pairs** ``{"kind", "tokens", "merges", "special", "max_len"}``, of `Multi30k` and `Tatoeba`

    clean    as of words.
    words    the cleaned text is split at its spaces, and each word gets one space in front, the first one too.
    split    all matches in each of these, in this order of alternatives, where _ is a space; they are all of
             the word:
                 _?\p{L}+['’]?  |  _?\p{N}+  |  _?[^_\p{L}\p{N}]+  |  _+
    bytes    the UTF-8 bytes of a match, each written as one character, as GPT-2 does: the bytes 33 to 126, 161 to 172
             and 174 to 255 as the code point of the same number; the others, in rising order (0 to 32, 127 to 160,
             173), as U+0100, U+0101, ... So a space is ``Ġ``. The characters of `tokens` from id 4 on are such bytes.
    merge    a match begins as a list of one-character tokens. `merges` lists pairs of ids, ``[left, right]``; the first
             has the highest rank. Again and again, of all neighbours that are a pair in it, the pair of highest rank is
             merged, where it occurs several times the leftmost first; the merged token is ``tokens[left] +
             tokens[right]``. No merge reaches over a match.
    ids      of the tokens that are left. Nothing is unknown.
    source, target   as of words.
    text     ids up to the first ``"<eos>"``, ids 0 to 3 left out; the tokens put together, back to bytes, decoded as
             UTF-8, where what is none becomes U+FFFD; one space at the beginning is taken away.

**wordpiece** ``{"kind", "tokens", "special", "lower_case", "max_chars", "classes"}``, of the encoders

    `classes` has lists of ranges of code points, ``[first, last]`` inclusive: what the library takes for white space,
    for ideographs, ... (its tables are older than a browser's, so `as_json` asks it for every code point).

    clean    each code point of ``classes.dropped`` is left out, each of ``classes.spaces`` becomes a space, each of
             ``classes.ideographs`` gets a space before and after it.
    accents  the text in the normal form NFD; then each code point of ``classes.marks`` is left out.
    lower    each code point by itself in lower case (a whole text would give the final sigma).
    split    at spaces, which are left out; and each code point of ``classes.punctuation`` is a word of its own.
    pieces   of a word of more than `max_chars` code points: ``"[UNK]"``. Else from the left, the longest piece that is
             a token; pieces that do not begin the word have ``##`` in front. Where none is found, the whole word is one
             ``"[UNK]"``, its pieces before are forgotten.
    ids      ``"[CLS]"``, the pieces, ``"[SEP]"``: both encoders, the causal one too, have read nothing else. All
             segments are 0. A place to guess has ``"[MASK]"``, put among the ids.
    text     without special tokens; the pieces joined by one space, `` ##`` taken away. (Python's decoder besides takes
             away the space before ``. ? ! ,`` and in some contractions; a page shows pieces.)

Other special ids than these are looked up in `tokens`.
"""

from functools import cache
from itertools import groupby

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from ...tokenization import SPECIAL_TOKENS, BPETokenizer, WordTokenizer
from ...tokenization.characters import CharacterTokenizer

_MAX_CHARS = 100  # of a word, as the library has it
_BERT = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"


def as_json(tokenizer, max_len=None):
    """What a file says of a tokenizer.

    Args:
        tokenizer: a `CharacterTokenizer`, a `WordTokenizer`, a `BPETokenizer`, or a ``tokenizers.Tokenizer`` of word
            pieces without capitals, as `experiments.bert.lower_case` makes it.
        max_len: most tokens of a source, ``<eos>`` included.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(tokenizer, CharacterTokenizer):
        return {"kind": "characters", "tokens": tokenizer.idx_to_token}
    if isinstance(tokenizer, WordTokenizer):
        special = {"special": list(SPECIAL_TOKENS), "max_len": max_len}
        return {"kind": "words", "tokens": tokenizer.idx_to_token, **special}
    if isinstance(tokenizer, BPETokenizer):
        tokens = tokenizer.byte_tokens
        ids = {token: index for index, token in enumerate(tokens)}
        merges = [[ids[left], ids[right]] for left, right in tokenizer.merges]
        special = {"special": list(SPECIAL_TOKENS), "max_len": max_len}
        return {"kind": "byte_pairs", "tokens": tokens, "merges": merges, **special}
    if isinstance(tokenizer, Tokenizer) and isinstance(tokenizer.model, models.WordPiece):
        return {
            "kind": "wordpiece",
            "tokens": [tokenizer.id_to_token(index) for index in range(tokenizer.get_vocab_size())],
            "special": list(_BERT),
            "lower_case": True,
            "max_chars": tokenizer.model.max_input_chars_per_word,
            "classes": classes(),
        }
    raise TypeError(f"a {type(tokenizer).__name__} is no tokenizer that a file of weights can hold")


def from_json(said):
    """The tokenizer of which `as_json` told; None: there is none.

    Raises:
        ValueError: it is of no known kind, or its tokens do not fit it.
    """
    if said is None:
        return None
    kind, tokens = said.get("kind"), said.get("tokens", [])
    if kind == "characters":
        made = CharacterTokenizer("".join(tokens))
        made_tokens = made.idx_to_token
    elif kind == "words":
        made = WordTokenizer([token for token in tokens if token not in SPECIAL_TOKENS])
        made_tokens = made.idx_to_token
    elif kind == "byte_pairs":
        made = BPETokenizer.of(tokens, [(tokens[left], tokens[right]) for left, right in said["merges"]])
        made_tokens = made.byte_tokens
    elif kind == "wordpiece":
        ids = {token: index for index, token in enumerate(tokens)}
        made = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=said["max_chars"]))
        made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), _WORDS
        made.decoder = decoders.WordPiece()
        made.add_special_tokens(list(_BERT))
        made_tokens = [made.id_to_token(index) for index in range(made.get_vocab_size())]
    else:
        raise ValueError(f"the tokenizer is of kind {kind!r}, expected characters, words, byte_pairs or wordpiece")
    if made_tokens != tokens:
        raise ValueError(f"the tokens of the {kind} do not make the same tokenizer again")
    return made


_WORDS = pre_tokenizers.BertPreTokenizer()


@cache
def classes():
    """The ranges of code points that the library treats alike when it cleans and splits, as the text above names them.

    It is asked for each code point, between two letters.
    """
    off = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    steps = {key: normalizers.BertNormalizer(**off | {key: True}) for key in off if key != "lowercase"}
    found = {"dropped": [], "spaces": [], "ideographs": [], "marks": [], "punctuation": []}
    for point in (*range(0xD800), *range(0xE000, 0x110000)):
        between = f"a{chr(point)}b"
        cleaned = steps["clean_text"].normalize_str(between)
        if cleaned == "ab":
            found["dropped"].append(point)
        elif cleaned == "a b":
            found["spaces"].append(point)
        elif len(steps["handle_chinese_chars"].normalize_str(between)) > 3:
            found["ideographs"].append(point)
        elif steps["strip_accents"].normalize_str(between) == "ab":
            found["marks"].append(point)
        elif len(_WORDS.pre_tokenize_str(between)) == 3:
            found["punctuation"].append(point)
    return {name: _ranges(points) for name, points in found.items()}


def _ranges(points):
    runs = groupby(enumerate(points), lambda pair: pair[1] - pair[0])
    runs = ([point for _, point in run] for _, run in runs)
    return [[run[0], run[-1]] for run in runs]
