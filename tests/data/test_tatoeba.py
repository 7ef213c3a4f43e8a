"""Tatoeba: pairs are cleaned, and no sentence is in two splits."""

from itertools import chain

import pytest
from toy_pairs import chain_of_pairs, shared

from d2lmini.data.store import DataError
from d2lmini.data.tatoeba import clean, parse_pairs, sentence_key, split_by_sentence


def test_clean_and_key():
    assert clean(" Cours\u202f!\xa0 Ne\u200b\xad t'arrête  pas\t") == "Cours ! Ne t'arrête pas"
    assert sentence_key("L'Été,  c’est LONG !") == sentence_key("l'e\u0301te\u0301 c'est long") == "l été c est long"


def test_parse_pairs():
    assert parse_pairs("Go.\tVa !\nRun!\tCours\u202f!\n") == [("Go.", "Va !"), ("Run!", "Cours !")]
    for line in ("Go.", "Go.\t", "\tVa !", "Go.\tVa !\tCC-BY", ""):
        with pytest.raises(DataError, match=r"line 2 of fra\.txt is .*, expected two sentences with a tab"):
            parse_pairs(f"Hi.\tSalut.\n{line}\nRun.\tCours.\n", "fra.txt")


def test_no_sentence_is_in_two_splits():
    pairs = chain_of_pairs()
    splits = split_by_sentence(pairs)
    assert sorted(chain(*splits.values())) == sorted(pairs) and shared(splits) == set()
    for split in ("val", "test"):
        assert 0.01 < len(splits[split]) / len(pairs) < 0.03
    for part in splits.values():
        positions = [pairs.index(pair) for pair in part[:50]]
        assert positions == sorted(positions)
    by_line = {"train": pairs[:4_000], "test": pairs[4_000:]}
    assert len(shared(by_line)) > 100, "so the check sees a leak"


def test_splits_stay_when_other_pairs_come():
    before = split_by_sentence(chain_of_pairs())
    after = split_by_sentence([*chain_of_pairs(), *[(f"new {i}", f"neuf {i}") for i in range(500)]])
    for split, pairs in before.items():
        assert set(pairs) <= set(after[split])
