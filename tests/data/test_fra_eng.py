"""D2L's module of English and French: its arrays, loaders and own sentences; the real data and its faults."""

import pytest
import torch
from toy_pairs import needs, put_tatoeba

from d2lmini.data.fra_eng import MTFraEng

LINES = [
    "Go.\tVa !", "Hi.\tSalut\u202f!", "Hi.\tSalut.", "Run!\tCours !", "Run!\tCourez\xa0!", "Wow!\tÇa alors !",
    "Go on.\tContinue.",
    "Hello!!\tBonjour!!", "I see.\tJe comprends.",
    "I see.\tAh, je vois donc très bien ce que tu veux dire là.", "No?\tNon ?",
    "Go.\tMarche.", "Hi.\tÇa va, toi ?", "Run!\tFuyez, vite.",
]  # fmt: skip


def by_character(text):
    """D2L's preprocessing as its text describes it."""
    text = text.replace("\u202f", " ").replace("\xa0", " ")
    out = ""
    for i, character in enumerate(text.lower()):
        out += " " + character if i and character in ",.!?" and text[i - 1] != " " else character
    return out


@pytest.fixture
def small(folder, monkeypatch):
    put_tatoeba(folder, monkeypatch, "\n".join(LINES) + "\n")
    return MTFraEng(batch_size=4, num_steps=6, num_train=8, num_val=3)


def test_arrays_as_d2l_describes_them(small):
    rows = [[[*side.split(), "<eos>"] for side in by_character(line).split("\t")] for line in LINES[:12]]
    for side, vocab in ((0, small.src_vocab), (1, small.tgt_vocab)):
        cut = [(row[side] + ["<pad>"] * 6)[:6] for row in rows]
        words = [word for row in cut for word in row] + (["<bos>"] * 12 if side else [])
        expected = sorted({"<unk>", *(word for word in words if words.count(word) >= 2)})
        assert vocab.idx_to_token == expected
        ids = torch.tensor([[expected.index(w if w in expected else "<unk>") for w in row] for row in cut])
        assert torch.equal(small.arrays[0 if side == 0 else 3], ids)
        if side:
            shifted = torch.cat([torch.full((12, 1), vocab["<bos>"]), ids[:, :-1]], dim=1)
            assert torch.equal(small.arrays[1], shifted)
        else:
            assert small.arrays[2].tolist() == [min(6, len(row[0])) for row in rows]
    assert by_character("\n".join(LINES)) == small._preprocess("\n".join(LINES))
    assert "<eos>" not in small.tgt_vocab.to_tokens(small.arrays[3][9]), "a sentence that is cut has no end"


def test_loaders_of_d2l(small):
    train, val = list(small.train_dataloader()), list(small.val_dataloader())
    assert sum(len(batch[0]) for batch in train) == 8 and sum(len(batch[0]) for batch in val) == 4  # 3 and one more
    assert [tuple(tensor.shape) for tensor in train[0]] == [(4, 6), (4, 6), (4,), (4, 6)]
    assert torch.equal(torch.cat([batch[0] for batch in val]), small.arrays[0][8:])


def test_build(small):
    src, tgt, lens, label = small.build(["Hi.", "run !"], ["salut !", "Zut ."])
    assert small.src_vocab.to_tokens(src[0]) == ["hi", ".", "<eos>", "<pad>", "<pad>", "<pad>"]
    assert small.tgt_vocab.to_tokens(tgt[1])[:4] == ["<bos>", "<unk>", ".", "<eos>"]
    assert lens.tolist() == [3, 3] and torch.equal(tgt[:, 1:], label[:, :-1])
    for src, tgt, error, message in [
        ("Hi.", ["salut"], TypeError, "got one str: put it into a list"),
        (["a", "b"], ["a"], ValueError, "there are 2 source but 1 target sentences"),
        ([], [], ValueError, "there are 0 sentences, expected 1 to 12"),
        (["a"] * 13, ["a"] * 13, ValueError, "there are 13 sentences, expected 1 to 12"),
        (["a", " "], ["a", "b"], ValueError, "sentence 1 is ' ', expected words on one line without tabs"),
        (["a"], ["b\tc"], ValueError, r"sentence 0 is 'b\\tc'"),
        (["a\nb"], ["c"], ValueError, r"sentence 0 is 'a\\nb'"),
    ]:
        with pytest.raises(error, match=message):
            small.build(src, tgt)


def test_d2l_bad_sizes(folder, monkeypatch):
    put_tatoeba(folder, monkeypatch, "\n".join(LINES) + "\n")
    for name in ("batch_size", "num_steps", "num_train", "num_val"):
        with pytest.raises(ValueError, match=f"{name} is 0, expected at least 1"):
            MTFraEng(**{"batch_size": 2, name: 0})


@needs("tatoeba_enfr")
def test_real_d2l_and_its_faults():
    data = MTFraEng(batch_size=128)
    assert [tuple(array.shape) for array in data.arrays] == [(641, 9), (641, 9), (641,), (641, 9)]
    assert (len(data.src_vocab), len(data.tgt_vocab)) == (194, 214)
    assert [len(batch[0]) for batch in data.val_dataloader()] == [128, 1]
    src, _, _, tgt = data.arrays
    train = {tuple(row) for row in tgt[:512].tolist()}
    assert sum(tuple(row) in train for row in tgt[512:].tolist()) == 42, "validation targets that are training targets"
    pairs = {tuple(row) for row in torch.cat([src, tgt], 1)[:512].tolist()}
    assert sum(tuple(row) in pairs for row in torch.cat([src, tgt], 1)[512:].tolist()) == 4
    words = tgt[tgt != data.tgt_vocab["<pad>"]]
    assert round((words == data.tgt_vocab.unk).double().mean().item(), 3) == 0.133
    assert round(1 - len(words) / tgt.numel(), 2) == 0.52
