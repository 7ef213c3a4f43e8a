"""Translation data: D2L's module, splits without leaks, batches within a budget, bad input. Real data where it is."""

import dataclasses
import gzip
import hashlib
import os
import random
import zipfile
from itertools import chain, pairwise

import pytest
import torch

from d2lmini.data import registry, store
from d2lmini.data.batching import TokenBatches, pad
from d2lmini.data.fra_eng import MTFraEng
from d2lmini.data.grammar import SPLITS
from d2lmini.data.store import DataError, DataFile
from d2lmini.data.tatoeba import clean, parse_pairs, sentence_key, split_by_sentence
from d2lmini.data.translation import GrammarCorpus, Multi30k, Tatoeba
from d2lmini.tokenization.vocabulary import Vocab, WordTokenizer, join_words, split_sentence

REAL = [name for name in ("multi30k", "tatoeba_enfr") if any((f / name).is_dir() for f in store.data_folders())]


def needs(name):
    return pytest.mark.skipif(name not in REAL, reason=f"REAL {name.upper()} NOT TESTED: it is not in D2LMINI_DATA")


# ---- words


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


# ---- batches

LENGTHS = [random.Random(0).randint(1, 30) for _ in range(500)]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("max_tokens", [30, 64, 1_000, 10**6])
def test_batches_hold_each_example_once_within_the_budget(shuffle, max_tokens):
    batches = TokenBatches(LENGTHS, max_tokens, shuffle)
    for epoch in range(3):
        batches.set_epoch(epoch)
        made = list(batches)
        assert len(made) == len(batches)
        assert sorted(index for batch in made for index in batch) == list(range(500))
        assert all(len(batch) * max(LENGTHS[i] for i in batch) <= max_tokens for batch in made)
    padded = sum(len(batch) * max(LENGTHS[i] for i in batch) for batch in made)
    assert padded < 1.2 * sum(LENGTHS) or max_tokens > 1_000


def test_batches_are_as_large_as_they_may_be():
    batches = [[LENGTHS[i] for i in batch] for batch in TokenBatches(LENGTHS, 100)]
    for batch, following in pairwise(batches):
        assert max(batch) <= min(following)
        assert (len(batch) + 1) * min(following) > 100, "the next one would have fitted in"


def test_the_order_is_of_seed_and_epoch_alone():
    def order(seed, epoch):
        batches = TokenBatches(LENGTHS, 64, True, seed)
        batches.set_epoch(epoch)
        random.seed(epoch)
        torch.manual_seed(epoch)
        return list(batches)

    state = random.getstate()
    first = order(0, 3)
    assert first == order(0, 3)
    assert first != order(0, 4) and first != order(1, 3) and order(0, 1) != order(1, 0)
    # other examples meet, not only the same batches in another order
    assert {frozenset(batch) for batch in first} != {frozenset(batch) for batch in order(0, 4)}
    assert order(0, 0) != list(TokenBatches(LENGTHS, 64))
    random.setstate(state)
    list(TokenBatches(LENGTHS, 64, True))
    assert random.getstate() == state, "global random numbers were drawn"


def test_batches_bad_input():
    with pytest.raises(ValueError, match="no examples"):
        TokenBatches([], 10)
    with pytest.raises(
        ValueError, match=f"max_tokens is {max(LENGTHS) - 1}, but the longest example needs {max(LENGTHS)}"
    ):
        TokenBatches(LENGTHS, max(LENGTHS) - 1)


def test_pad():
    assert pad([[1, 2], [3], []], 9).tolist() == [[1, 2], [3, 9], [9, 9]]


# ---- splits


def test_clean_and_key():
    assert clean(" Cours\u202f!\xa0 Ne\u200b\xad t'arrête  pas\t") == "Cours ! Ne t'arrête pas"
    assert sentence_key("L'Été,  c’est LONG !") == sentence_key("l'e\u0301te\u0301 c'est long") == "l été c est long"


def test_parse_pairs():
    assert parse_pairs("Go.\tVa !\nRun!\tCours\u202f!\n") == [("Go.", "Va !"), ("Run!", "Cours !")]
    for line in ("Go.", "Go.\t", "\tVa !", "Go.\tVa !\tCC-BY", ""):
        with pytest.raises(DataError, match=r"line 2 of fra\.txt is .*, expected two sentences with a tab"):
            parse_pairs(f"Hi.\tSalut.\n{line}\nRun.\tCours.\n", "fra.txt")


def chain_of_pairs(number=3_000):
    """Pairs of which many share a side, some only but for case and punctuation."""
    draw = random.Random(1)
    texts = [f"word{i} {i % 7}" for i in range(number)]
    pairs = [(text, f"mot {text}") for text in texts]
    pairs += [(draw.choice(texts).upper() + "!", f"autre {i}") for i in range(number // 3)]
    pairs += [(f"other {i}", "Mot " + draw.choice(texts)) for i in range(number // 3)]
    draw.shuffle(pairs)
    return pairs


def shared(splits):
    """Sentences that are in two splits, by key and side."""
    found = set()
    for side in (0, 1):
        keys = [{sentence_key(pair[side]) for pair in pairs} for pairs in splits.values()]
        found |= {key for i, one in enumerate(keys) for other in keys[:i] for key in one & other}
    return found


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


# ---- the grammar corpus as a data module


@pytest.fixture(scope="module")
def corpus():
    return GrammarCorpus(num_pairs=2_000, max_tokens=512)


def check_batches(data, split):
    """A loader gives every pair of the split once, as D2L's tuple."""
    begin, end, padding = (data.tgt_vocab[token] for token in ("<bos>", "<eos>", "<pad>"))
    seen = []
    loader = data.loader(split)
    batches = list(loader)
    assert len(batches) == len(loader) == len(loader.batch_sampler)
    for src, tgt_in, src_valid_len, tgt_out in batches:
        assert all(tensor.dtype == torch.int64 for tensor in (src, tgt_in, src_valid_len, tgt_out))
        assert len(src) * max(src.shape[1], tgt_out.shape[1]) <= data.max_tokens
        assert src_valid_len.max() == src.shape[1] and tgt_in.shape == tgt_out.shape
        assert torch.equal((src != padding).sum(1), src_valid_len)
        assert (src.gather(1, src_valid_len[:, None] - 1) == end).all() and (tgt_in[:, 0] == begin).all()
        lengths = (tgt_out != padding).sum(1)
        assert (tgt_out.gather(1, lengths[:, None] - 1) == end).all()
        for given, wanted, length in zip(tgt_in, tgt_out, lengths, strict=True):
            assert given[1:length].tolist() == wanted[: length - 1].tolist() and (given[length:] == padding).all()
        seen += data.decode(tgt_out)
    assert sorted(seen) == sorted(target for _, target in data.pairs(split))
    return batches


@pytest.mark.parametrize("split", SPLITS)
def test_grammar_batches(corpus, split):
    check_batches(corpus, split)


def test_train_and_validation_loaders(corpus):
    train, again = corpus.train_dataloader(), corpus.get_dataloader(True)
    assert all(torch.equal(a, b) for x, y in zip(train, again, strict=True) for a, b in zip(x, y, strict=True))
    train.batch_sampler.set_epoch(1)
    assert [x[0].shape for x in train] != [x[0].shape for x in again]
    widths = [batch[0].shape[1] for batch in corpus.val_dataloader()]
    assert sum(len(batch[0]) for batch in corpus.val_dataloader()) == len(corpus.pairs("val")) and len(widths) > 1


def test_positions_are_the_indices_of_the_alignment(corpus):
    for split in SPLITS:
        pairs, sentences = corpus.pairs(split), corpus.sentences(split)
        assert [(s.english, s.french) for s in sentences] == pairs
    chosen = corpus.sentences("test")[:32]
    src, _, src_valid_len, tgt_out = corpus.build([s.english for s in chosen], [s.french for s in chosen])
    for sentence, source, length, target in zip(chosen, src, src_valid_len, tgt_out, strict=True):
        assert corpus.src_vocab.to_tokens(source[: length - 1]) == list(sentence.source)
        assert corpus.tgt_vocab.to_tokens(target)[: len(sentence.target) + 1] == [*sentence.target, "<eos>"]


def test_encode_source_and_decode(corpus):
    src, valid_lens = corpus.encode_source(["I  sleep.", "the cat sees him."])
    assert src.shape == (2, 6) and valid_lens.tolist() == [4, 6]
    assert corpus.src_vocab.to_tokens(src[0]) == ["I", "sleep", ".", "<eos>", "<pad>", "<pad>"]
    ids = corpus.tgt_vocab[["le", "chat", "l'", "aime", ".", "<eos>", "chat", "<pad>"]]
    assert corpus.decode(ids) == corpus.decode(torch.tensor(ids)) == "le chat l'aime."
    assert (
        corpus.decode([ids, ids[:2]]) == ["le chat l'aime.", "le chat"] == corpus.decode([torch.tensor(ids), ids[:2]])
    )
    assert corpus.decode([]) == "" and corpus.decode(torch.tensor([], dtype=torch.long)) == ""


def test_references_and_shared_vocabulary(corpus):
    sources, references = corpus.references("test")
    assert list(zip(sources, (several[0] for several in references), strict=True)) == corpus.pairs("test")
    assert corpus.src_vocab is corpus.tgt_vocab is corpus.tokenizer
    used = {word for pair in corpus.pairs("train") for text in pair for word in split_sentence(text)}
    assert used | {"<pad>", "<bos>", "<eos>", "<unk>"} == set(corpus.tokenizer.idx_to_token)


def test_bad_sentences(corpus):
    with pytest.raises(ValueError, match="there is no split 'valid', only train, val, test"):
        corpus.pairs("valid")
    for ask in (corpus.loader, corpus.references, corpus.sentences):
        with pytest.raises(ValueError, match="there is no split 'dev'"):
            ask("dev")
    with pytest.raises(TypeError, match="got one str: put it into a list"):
        corpus.encode_source("I sleep.")
    with pytest.raises(TypeError, match="sentence 1 is a NoneType, expected str"):
        corpus.encode_source(["I sleep.", None])
    with pytest.raises(ValueError, match="there are no sentences"):
        corpus.encode_source([])
    with pytest.raises(ValueError, match="sentence 1 is empty"):
        corpus.encode_source(["I sleep.", " \u200b\n"])
    with pytest.raises(ValueError, match="sentence 0 has 101 tokens with <eos>, but max_len is 64: 'cat cat"):
        corpus.encode_source(["cat " * 100])
    with pytest.raises(ValueError, match="there are 1 source but 2 target sentences"):
        corpus.build(["I sleep."], ["je dors.", "je ris."])
    with pytest.raises(ValueError, match="max_tokens is 5, but the longest example needs"):
        GrammarCorpus(1_000, max_tokens=5).train_dataloader()


def test_too_long_pairs_are_left_out_of_training_alone():
    data = GrammarCorpus(1_000, max_len=12)
    kept = sum(len(batch[0]) for batch in data.train_dataloader())
    long = sum(max(len(s.source), len(s.target)) + 1 > 12 for s in data.sentences("train"))
    assert data.left_out == {"longer than max_len": long} and long > 0 and kept == len(data.pairs("train")) - long
    with pytest.raises(ValueError, match="but max_len is 12"):
        data.loader("test")


# ---- Tatoeba and Multi30k, in small


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("D2LMINI_DATA", str(tmp_path))
    monkeypatch.setenv("D2LMINI_CACHE", str(tmp_path / "cache"))
    return tmp_path


def register(monkeypatch, name, path, content, unpacked):
    """Make the registry expect what lies at ``path``."""
    old = registry.get(name)
    file = DataFile(path.name, hashlib.sha256(unpacked).hexdigest(), len(unpacked), (), content)
    files = tuple(file if known.name == path.name else known for known in old.files)
    monkeypatch.setitem(registry.SETS, name, dataclasses.replace(old, files=files))


def put_tatoeba(folder, monkeypatch, text):
    path = folder / "fra-eng.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__MACOSX/._fra.txt", b"junk")
        archive.writestr("fra-eng/fra.txt", text.encode())
    register(monkeypatch, "tatoeba_enfr", path, "zip:fra.txt", text.encode())


def test_small_tatoeba(folder, monkeypatch):
    pairs = [*chain_of_pairs(600), *[("Word5 5", f"encore {i}") for i in range(3)]]
    put_tatoeba(folder, monkeypatch, "".join(f"{source}\t{target}\n" for source, target in pairs))
    data = Tatoeba(vocab_size=300, max_tokens=300, download=False)
    assert sum(len(data.pairs(split)) for split in data.splits) == len(pairs)
    assert shared({split: data.pairs(split) for split in data.splits}) == set()
    for split in ("train", "test"):
        check_batches(data, split)
        sources, references = data.references(split)
        assert len(set(sources)) == len(sources)
        grouped = [(source, one) for source, several in zip(sources, references, strict=True) for one in several]
        assert sorted(grouped) == sorted(data.pairs(split))
    assert any(len(several) > 1 for several in data.references("train")[1])


def test_the_encoding_is_learnt_from_training_alone(folder, monkeypatch):
    pairs = chain_of_pairs(600)
    held = {pair for split in ("val", "test") for pair in split_by_sentence(pairs)[split]}
    put_tatoeba(folder, monkeypatch, "".join(f"{a}\t{b}\n" for a, b in pairs))
    whole = Tatoeba(vocab_size=400, download=False)
    put_tatoeba(folder, monkeypatch, "".join(f"{a}\t{b}\n" for a, b in pairs if (a, b) not in held))
    part = Tatoeba(vocab_size=400, download=False)
    assert part.pairs("train") == whole.pairs("train") and not part.pairs("test")
    texts = [text for pair in pairs for text in pair]
    assert part.tokenizer.encode_batch(texts) == whole.tokenizer.encode_batch(texts)


MULTI30K = {
    "train": (["A dog runs.", "Two men sing.", "A cat  sleeps.", "A girl reads."],
              ["Un chien court.", "Deux hommes chantent.", "Un chat dort.", "Une fille lit."]),
    "val": (["Two men SING"], ["Deux messieurs chantent."]),
    "test_2016_flickr": (["A cow eats.", "A cow eats."], ["Une vache mange.", "Une vache broute."]),
    "test_2017_flickr": (["A daughter reads."], ["une fille lit"]),
    "test_2017_mscoco": (["A bus."], ["Un bus."]),
    "test_2018_flickr": (["A tram."], ["Un tram."]),
}  # fmt: skip


def put_multi30k(folder, monkeypatch, **changes):
    for name, sides in {**MULTI30K, **changes}.items():
        for language, lines in zip(("en", "fr"), sides, strict=True):
            path, content = folder / f"{name}.{language}.gz", "".join(f"{line}\n" for line in lines).encode()
            path.write_bytes(gzip.compress(content))
            register(monkeypatch, "multi30k", path, "gzip", content)


def test_small_multi30k(folder, monkeypatch):
    put_multi30k(folder, monkeypatch)
    data = Multi30k(vocab_size=300, max_tokens=200, download=False)
    assert data.splits == ("train", "val", "test2016", "test2017", "mscoco", "test2018")
    # one is in val in English, one in test2017 in French
    assert data.pairs("train") == [("A dog runs.", "Un chien court."), ("A cat sleeps.", "Un chat dort.")]
    assert data.left_out == {"in a held-out set": 2}
    assert data.pairs("val") == [("Two men SING", "Deux messieurs chantent.")], "no other change of the text"
    # an official line stays a line, also where a source comes twice
    assert data.references("test2016") == (["A cow eats."] * 2, [["Une vache mange."], ["Une vache broute."]])
    for split in data.splits:
        check_batches(data, split)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((["A cow.", "A bull."], ["Une vache."]), "val of multi30k has 2 lines in English but 1 in French"),
        ((["A cow.", " "], ["Une vache.", "Rien."]), "line 2 of val of multi30k is empty in one language"),
    ],
)
def test_files_that_do_not_fit(folder, monkeypatch, change, message):
    put_multi30k(folder, monkeypatch, val=change)
    with pytest.raises(DataError, match=message):
        Multi30k(vocab_size=300, download=False)


def test_no_data(folder):
    with pytest.raises(DataError, match=r"train\.en\.gz of multi30k is not on this machine"):
        Multi30k(download=False)
    with pytest.raises(DataError, match=r"fra-eng\.zip of tatoeba_enfr is not on this machine"):
        Tatoeba(download=False)


def test_third_column(folder, monkeypatch):
    put_tatoeba(folder, monkeypatch, "Go.\tVa !\tCC-BY 2.0\n")
    with pytest.raises(DataError, match=r"line 1 of fra\.txt .* have a third column"):
        Tatoeba(download=False)


# ---- D2L's module

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
    src, tgt_in, src_valid_len, tgt_out = small.build(["Hi.", "run !"], ["salut !", "Zut ."])
    assert small.src_vocab.to_tokens(src[0]) == ["hi", ".", "<eos>", "<pad>", "<pad>", "<pad>"]
    assert small.tgt_vocab.to_tokens(tgt_in[1])[:4] == ["<bos>", "<unk>", ".", "<eos>"]
    assert src_valid_len.tolist() == [3, 3] and torch.equal(tgt_in[:, 1:], tgt_out[:, :-1])
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


# ---- the real data


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


@needs("multi30k")
def test_real_multi30k():
    data = Multi30k(download=False)
    sizes = {split: len(data.pairs(split)) for split in data.splits}
    held_out = {"val": 1014, "test2016": 1000, "test2017": 1000, "mscoco": 461, "test2018": 1071}
    assert sizes == {"train": 29_000 - data.left_out["in a held-out set"], **held_out}
    assert data.left_out["in a held-out set"] == 6 and len(data.tokenizer) == 8_000
    test = [pair for split in data.splits[1:] for pair in data.pairs(split)]
    assert shared({"train": data.pairs("train"), "test": test}) == set()
    for split in data.splits:
        ids = data.tokenizer.encode_batch([text for pair in data.pairs(split)[:300] for text in pair])
        assert [data.tokenizer.decode(i) for i in ids] == [text for pair in data.pairs(split)[:300] for text in pair]
    for split in data.splits[1:]:
        assert sum(len(batch[0]) for batch in data.loader(split)) == sizes[split]


@needs("tatoeba_enfr")
@pytest.mark.slow
def test_real_tatoeba():
    data = Tatoeba(download=False)
    splits = {split: data.pairs(split) for split in data.splits}
    assert sum(map(len, splits.values())) == 167_130 and shared(splits) == set()
    assert len({source for pairs in splits.values() for source, _ in pairs}) > 116_000
    assert min(len(splits["val"]), len(splits["test"])) > 3_000 and len(data.tokenizer) == 16_000
    assert sum(len(batch[0]) for batch in data.loader("test")) == len(data.pairs("test"))
    assert data.train_dataloader() and data.left_out == {"longer than max_len": 0}
    texts = [text for pair in data.pairs("test") for text in pair]
    assert list(map(data.tokenizer.decode, data.tokenizer.encode_batch(texts))) == texts


def test_real_data_is_tested_where_it_is_named():
    """Naming a folder that has none of the sets would skip all of the above without a word."""
    if os.environ.get("D2LMINI_DATA"):
        assert REAL, "D2LMINI_DATA names folders, but neither multi30k nor tatoeba_enfr is in them"
