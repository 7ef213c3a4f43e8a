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

**byte_pairs** ``{"kind", "tokens", "merges", "special", "max_len"}``, of `Multi30k`

    clean    as of words.
    words    the cleaned text is split at its spaces, and each word gets one space in front, the first one too.
    split    all matches in each of these, in this order of alternatives; together they are the whole word:
                  ?\p{L}+['’]?  |   ?\p{N}+  |   ?[^ \p{L}\p{N}]+  |   +     (each begins with a space that may be there)
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
    pieces   of a word of more than `max_chars` code points: ``"[UNK]"``. Else from the left, the longest piece that is a
             token; pieces that do not begin the word have ``##`` in front. Where none is found, the whole word is one
             ``"[UNK]"``, its pieces before are forgotten.
    ids      ``"[CLS]"``, the pieces, ``"[SEP]"``: both encoders, the causal one too, have read nothing else. All segments
             are 0. A place to guess has ``"[MASK]"``, put among the ids.
    text     without special tokens; the pieces joined by one space, `` ##`` taken away. (Python's decoder besides takes
             away the space before ``. ? ! ,`` and in some contractions; a page shows pieces.)

Other special ids than these are looked up in `tokens`.
"""
