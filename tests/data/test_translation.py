"""Corpora as data modules: batches, splits, shared encodings; Tatoeba and Multi30k in small, and the real ones."""

import gzip
import os

import pytest
import torch
from toy_pairs import REAL, chain_of_pairs, needs, put_tatoeba, register, shared

from d2lmini.data.grammar import SPLITS
from d2lmini.data.store import DataError
from d2lmini.data.tatoeba import split_by_sentence
from d2lmini.data.translation import GrammarCorpus, Multi30k, Tatoeba
from d2lmini.tokenization.vocabulary import split_sentence

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
    for src, tgt, lens, label in batches:
        assert all(tensor.dtype == torch.int64 for tensor in (src, tgt, lens, label))
        assert len(src) * max(src.shape[1], label.shape[1]) <= data.max_tokens
        assert lens.max() == src.shape[1] and tgt.shape == label.shape
        assert torch.equal((src != padding).sum(1), lens)
        assert (src.gather(1, lens[:, None] - 1) == end).all() and (tgt[:, 0] == begin).all()
        lengths = (label != padding).sum(1)
        assert (label.gather(1, lengths[:, None] - 1) == end).all()
        for given, wanted, length in zip(tgt, label, lengths, strict=True):
            assert given[1:length].tolist() == wanted[: length - 1].tolist() and (given[length:] == padding).all()
        seen += data.decode(label)
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
    src, _, lens, label = corpus.build([s.english for s in chosen], [s.french for s in chosen])
    for sentence, source, length, target in zip(chosen, src, lens, label, strict=True):
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


# ---- the real data


@pytest.mark.slow
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
