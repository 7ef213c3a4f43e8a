"""From text to ids and back.

vocabulary.py  D2L's `Vocab` of whole words, and the special tokens that every tokenizer here has
characters.py  characters as tokens, the smallest vocabulary
bpe.py         byte-pair encoding by hand, to be read
fast_bpe.py    a byte-pair encoding, fast, by the tokenizers library
subwords.py    byte-pair encoding, WordPiece and unigram by that library, for comparing them
chat.py        the byte pairs of a published chat model, its special tokens and its template
"""

from .bpe import BytePairEncoding
from .chat import ChatTokenizer
from .fast_bpe import BPETokenizer
from .subwords import SubwordTokenizer
from .vocabulary import SPECIAL_TOKENS, Vocab, WordTokenizer

__all__ = [
    "SPECIAL_TOKENS",
    "BPETokenizer",
    "BytePairEncoding",
    "ChatTokenizer",
    "SubwordTokenizer",
    "Vocab",
    "WordTokenizer",
]
