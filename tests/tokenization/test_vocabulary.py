"""Words and their ids: D2L's `Vocab`, and sentences cut into words and put together again."""

import pytest
import torch

from d2lmini.tokenization.vocabulary import Vocab, WordTokenizer, join_words, split_sentence


def test_vocab_as_d2l_has_it():
    vocab = Vocab([["b", "a", "b"], ["c", "b", "a"]], min_freq=2, reserved_tokens=["<pad>"])
    assert vocab.idx_to_token == ["<pad>", "<unk>", "a", "b"] and len(vocab) == 4
    assert vocab["b"] == 3 and vocab["c"] == vocab.unk == 1
    assert vocab[["a", "zz", "b"]] == [2, 1, 3] and vocab[[["a"], ("b", "c")]] == [[2], [3, 1]]
    assert vocab.to_tokens(2) == vocab.to_tokens(torch.tensor(2)) == "a"
    assert vocab.to_tokens([2, 3]) == vocab.to_tokens(torch.tensor([2, 3])) == ["a", "b"]
    assert vocab.to_tokens(torch.tensor([2])) == ["a"]
    assert vocab.token_freqs == [("b", 3), ("a", 2), ("c", 1)]
    assert Vocab(["x", "y", "x"]).idx_to_token == ["<unk>", "x", "y"] and len(Vocab()) == 1


def test_vocab_bad_input():
    with pytest.raises(TypeError, match="tokens is one str, expected a list of words"):
        Vocab("abc")
    for index in (-1, 2):
        with pytest.raises(IndexError, match=f"id {index} is outside the vocabulary of 2 words"):
            Vocab(["a"]).to_tokens([0, index])


@pytest.mark.parametrize(
    ("text", "words", "space_before"),
    [
        ("l'homme qu'il voit n'a pas dormi.", "l' homme qu' il voit n' a pas dormi .", "?"),
        ("est-ce que la reine dort ?", "est-ce que la reine dort ?", "?"),
        ("does the actress's cat sleep?", "does the actress 's cat sleep ?", ""),
    ],
)
def test_split_and_join(text, words, space_before):
    assert split_sentence(text) == words.split() and join_words(words.split(), space_before) == text


def test_word_tokenizer():
    tokenizer = WordTokenizer(["je l'aime.", "I see him."])
    ids = tokenizer.encode_batch(["je l'aime.", "I see her."])
    assert tokenizer.decode(ids[0]) == "je l'aime." and tokenizer.to_tokens(ids[1]) == ["I", "see", "<unk>", "."]
    assert tokenizer.decode([tokenizer["<bos>"], *ids[0], tokenizer["<eos>"], tokenizer["<pad>"]]) == "je l'aime."
