"""Novels as tokens: what is cut, and what is counted."""

import pytest
import torch

from d2lmini.experiments import gpt_gutenberg
from d2lmini.experiments.gpt import decodings
from d2lmini.tokenization.fast_bpe import BPETokenizer

NOVEL = "I\n  \n\nIt was  late,\n  and it rained.\n\nShe went out. He did not. Why?\nNo one\nknew."


def test_lines_are_joined_and_paragraphs_are_not():
    assert gpt_gutenberg.unwrapped(NOVEL) == (
        "I\n\nIt was late, and it rained.\n\nShe went out. He did not. Why? No one knew."
    )


def test_a_text_is_divided_between_paragraphs():
    text = gpt_gutenberg.unwrapped(NOVEL)
    train, val = gpt_gutenberg.divided(text, 0.1)
    assert train == "I\n\nIt was late, and it rained." and val.startswith("She went out.")
    assert gpt_gutenberg.divided(text, 0.9) == ("I", text[3:])
    with pytest.raises(ValueError, match="no paragraph that ends before"):
        gpt_gutenberg.divided("one line", 0.5)


@pytest.mark.slow
def test_the_ids_are_the_text():
    texts = gpt_gutenberg.read("book", 0.1)
    tokenizer, *ids = gpt_gutenberg.encoded(texts, 300)
    assert [tokenizer.decode(row) for row in ids] == ["\n\n".join(part) for part in texts]
    assert 0.09 < len(texts[1][0]) / len(texts[0][0]) < 0.15


def test_a_text_keeps_the_space_that_it_begins_with():
    tokenizer = BPETokenizer.train(["to be or not"], 261)
    context, text = (torch.tensor(tokenizer.encode(part)) for part in ("to", "be"))
    assert decodings.after(context, text, tokenizer.decode) == " be" and tokenizer.decode(text) == "be"
    assert decodings.after(context, text[1:], tokenizer.decode) == "be"


def test_sentences_are_cut_to_one_length():
    text = gpt_gutenberg.unwrapped(NOVEL)
    tokenizer = BPETokenizer.train([text], 280)
    found = gpt_gutenberg.sentences_of(text, tokenizer, 5, 9)
    assert [tokenizer.decode(row)[0] for row in found] == ["H", "W"]  # those that follow another one
    assert found.shape == (2, 5) and found.dtype == torch.long
    assert len(gpt_gutenberg.sentences_of(text, tokenizer, 5, 1)) == 1
    with pytest.raises(ValueError, match="has 500 tokens"):
        gpt_gutenberg.sentences_of(text, tokenizer, 500, 9)
