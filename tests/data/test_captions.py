"""Captions by rule: what they measure against loops, that they tell the truth, and which words no caption has."""

import pytest
import torch

from d2lmini.data import captions
from d2lmini.data.captions import ATTRIBUTES, FACTS, NAMES, NEW_TEMPLATES, FashionCaptions
from d2lmini.data.images import FASHION_MNIST_LABELS, fashion_mnist


@pytest.fixture(scope="module")
def data():
    images, labels = fashion_mnist("test", "shipped")
    return images[:300, None].float() / 255, labels[:300]


@pytest.fixture(scope="module")
def written(data):
    return FashionCaptions(data[0])


def test_attributes_by_loops(data):
    images = data[0][:20]
    for image, bright, shape, contrast in zip(
        images[:, 0],
        captions.brightness(images).tolist(),
        captions.width_over_height(images).tolist(),
        captions.contrast(images).tolist(),
        strict=True,
    ):
        ink = [(r, c) for r in range(28) for c in range(28) if image[r, c] > 0]
        assert bright == pytest.approx(sum(float(image[p]) for p in ink) / len(ink), rel=1e-4)
        rows, columns = zip(*ink, strict=True)
        assert shape == pytest.approx((max(columns) - min(columns) + 1) / (max(rows) - min(rows) + 1))
        steps = [abs(float(image[r, c] - image[r, c + 1])) for r, c in ink if (r, c + 1) in set(ink)]
        assert contrast == pytest.approx(sum(steps) / len(steps), rel=1e-4)
    empty = torch.zeros(1, 1, 28, 28)
    assert [measure(empty).item() for _, _, measure in ATTRIBUTES.values()] == [0, 0, 0]


def test_thirds(data, written):
    images = data[0]
    for name, side in written.sides(images).items():
        # a picture that has just the value of a threshold is in no outer third; a shape is a ratio of few whole numbers
        value = ATTRIBUTES[name][2](images)
        for outer, threshold in zip((-1, 1), written.thresholds[name], strict=True):
            share, ties = (found.double().mean().item() for found in (side == outer, value == threshold))
            assert 1 / 3 - ties - 0.01 < share < 1 / 3 + 0.01, name
            assert ties < (0.1 if name == "shape" else 0.01)
    with pytest.raises(ValueError, match="there are 2 images, expected at least 3"):
        FashionCaptions(data[0][:2])


def test_captions_tell_the_truth(data, written):
    images, labels = data
    sides = written.sides(images)
    texts = written.write(images, labels, generator=torch.Generator().manual_seed(0))
    every = {word: (name, side) for name, (low, high, _) in ATTRIBUTES.items() for word, side in ((low, -1), (high, 1))}
    said = named = described = 0
    for i, (text, label) in enumerate(zip(texts, labels.tolist(), strict=True)):
        words = set(written.vocab.to_tokens(written.encode([text])[0][0]))
        for word in words & every.keys():
            name, side = every[word]
            assert sides[name][i] == side, (text, word)
            said += 1
        own = FASHION_MNIST_LABELS[label]
        told = text.split(", ")[1:]  # a dress is for two places: a fact of two parts
        for part in {part for facts in FACTS.values() for fact in facts for part in fact.split(", ")} & set(told):
            assert part in ", ".join(FACTS[own]).split(", "), text
            described += 1
        named += any(name in text for name in NAMES[own][:-1])
        assert any(name in text for name in NAMES[own][:-1]) or any(f", {fact}" in text for fact in FACTS[own])
    assert min(said, named, described) > 100 and len(set(texts)) > 250
    assert texts == written.write(images, labels, generator=torch.Generator().manual_seed(0))
    assert texts != written.write(images, labels, generator=torch.Generator().manual_seed(1))


def test_plain_captions_are_one_a_class(data, written):
    texts = written.write(*data, plain=True)
    assert len(set(texts)) == 10 and len(set(zip(texts, data[1].tolist(), strict=True))) == 10


def test_no_two_classes_are_told_alike(written):
    assert len(set(FACTS.values())) == 10 == len(FACTS) and FACTS.keys() == NAMES.keys() == set(FASHION_MNIST_LABELS)
    for wording in captions.WORDINGS:
        texts = [text for one in written.class_texts(wording) for text in one]
        assert len(set(texts)) == len(texts)
    with pytest.raises(ValueError, match="wording is 'name', expected one of 'names'"):
        written.class_texts("name")


def test_what_no_caption_has(data, written):
    every = list(range(10))
    assert written.never_written(every, "names") == written.never_written(every, "descriptions") == []
    assert written.never_written(every, "new words") == sorted(names[-1] for names in NAMES.values())
    bag, boot = FASHION_MNIST_LABELS.index("bag"), FASHION_MNIST_LABELS.index("ankle boot")
    others = [i for i in every if i not in (bag, boot)]
    assert written.never_written(others, "names", [boot]) == ["ankle", "boot", "winter"]
    assert written.never_written(others, "descriptions", [boot]) == []  # known words, put together anew
    assert written.never_written(others, "descriptions", [bag]) == ["hand", "strap"]
    # it is so: a thousand captions have none of these words
    images, labels = data
    kept = ~torch.isin(labels, torch.tensor([bag, boot]))
    seen = set()
    for _ in range(4):
        seen |= {i for row in written.vocab.encode_batch(written.write(images[kept], labels[kept])) for i in row}
    for wording in ("names", "new words", "descriptions"):
        for word in written.never_written(others, wording, [bag, boot]):
            assert written.vocab[word] not in seen and written.vocab[word] != written.vocab.unk
    new = written.never_written(every, "new sentences")
    assert new == ["a", "at", "black", "catalogue", "look", "on", "page", "table", "this"]  # "with" is of a fact, too
    assert set(new) < {word for text in NEW_TEMPLATES for word in text.split()}
    assert all(written.vocab[word] not in seen and written.vocab[word] != written.vocab.unk for word in new)


def test_tokens(written):
    tokens, lens = written.encode(["photo of bag", "bag, closed, thick"])
    assert lens.tolist() == [3, 5] and tokens.shape == (2, 5)
    assert written.vocab.to_tokens(tokens[0]) == ["photo", "of", "bag", "<pad>", "<pad>"]
    every = [text for wording in captions.WORDINGS for one in written.class_texts(wording) for text in one]
    assert written.vocab.unk not in written.encode(every)[0] and written.encode(every)[0].shape[1] <= written.max_len
    assert written.attribute_texts("shape")[1][0] == "wide item"
