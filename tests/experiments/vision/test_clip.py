"""Pictures and captions: what pairs are made of, what is scored, by vectors that are known; and words by lot."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from d2lmini.data.captions import ATTRIBUTES, NAMES, FashionCaptions
from d2lmini.data.images import FASHION_MNIST_LABELS
from d2lmini.experiments import clip
from d2lmini.experiments.vision.clip import PRESETS, Contestant, Pairs, Scored

CPU = torch.device("cpu")
CONFIG = PRESETS["smoke"]


@pytest.fixture(scope="module")
def data():
    return Pairs(CONFIG, CPU, 0, (0, 5), plain=True)


def test_classes_held_out_are_not_there(data):
    left = set(range(10)) - {0, 5}
    assert set(data.train.labels.tolist()) == left and set(data.val.labels.tolist()) == set(range(10))
    everything = Pairs(CONFIG, CPU)
    assert len(data.train) == torch.isin(everything.train.labels, torch.tensor(sorted(left))).sum()
    assert len(data.train.images) == len(data.train.labels) < len(everything.train)
    # what is dark or wide is told by thirds of the pictures of the training alone
    assert data.captions.thresholds != everything.captions.thresholds


def test_a_caption_is_that_of_its_picture(data):
    """Each text of a batch is what is written of the picture beside it as it was before it was shifted."""
    images, labels = data.train.images[:50, None].float() / 255, data.train.labels[:50]
    found, tokens, valid_lens = data._pair(images, labels)
    for row, n, label in zip(tokens, valid_lens, labels.tolist(), strict=True):
        words = data.captions.vocab.to_tokens(row[:n])
        assert words == ["photo", "of", *NAMES[FASHION_MNIST_LABELS[label]][0].split()]
    assert found.shape == images.shape

    drawn = Pairs(CONFIG, CPU)
    drawn.augmentation = lambda images, labels: (torch.zeros_like(images), labels)  # nothing is left to describe
    torch.manual_seed(3)
    _, tokens, _ = drawn._pair(images, labels)
    torch.manual_seed(3)
    assert torch.equal(tokens, drawn.captions.encode(drawn.captions.write(images, labels))[0])


def test_batches_hold_pairs(data):
    images, tokens, valid_lens = next(iter(data.train_dataloader()))
    assert len(images) == len(tokens) == len(valid_lens) == CONFIG.batch_size
    assert tokens.shape[1] == valid_lens.max() <= data.captions.max_len
    assert data.val_dataloader() is None


class Known:
    """A model whose vector of a picture is one of ten directions, and whose vector of a class is told by ``places``."""

    def __init__(self, captions, places):
        vocab = len(captions.vocab)
        self.text_encoder = SimpleNamespace(embedding=torch.nn.Embedding(vocab, 4))
        self.captions, self.places, self.asked = captions, places, []

    def class_vectors(self, class_texts, encode):
        self.asked.append(class_texts)
        return torch.eye(10)[[self.places(texts) for texts in class_texts]]


def scored(labels, seen, places):
    """A `Scored` of pictures that look like ``seen``."""
    found = object.__new__(Scored)
    found.captions = FashionCaptions(torch.rand(9, 1, 28, 28, generator=torch.Generator().manual_seed(0)))
    found.model, found.labels = Known(found.captions, places), torch.tensor(labels)
    found.vectors = torch.eye(10)[seen]
    found.sides = torch.tensor([[-1, 1, 0], [1, 1, 0], [-1, 1, 1], [0, 0, -1], [1, 1, 1], [0, 0, 0]])[: len(labels)]
    return found


def test_accuracy_by_hand():
    one = scored([0, 1, 1, 5, 8], [0, 1, 5, 5, 0], lambda texts: NAMES_OF[texts[0]])
    assert one.accuracy("names") == 3 / 5
    assert one.accuracy("names", classes=[1]) == 1 / 2 and one.accuracy("names", classes=[8]) == 0
    # among fewer: pictures of other classes are not asked, and no other class can be chosen
    assert one.accuracy("names", [1, 5]) == 2 / 3  # the third looks like 5
    assert one.accuracy("names", [5, 1], classes=[5]) == 1
    assert [len(texts) for texts in one.model.asked] == [10, 10, 10, 2, 2]


NAMES_OF = {texts[0]: i for i, texts in enumerate(FashionCaptions(torch.rand(3, 1, 28, 28)).class_texts("names"))}


def test_cosines_by_class_are_means():
    one = scored([0, 1, 1], [0, 1, 5], lambda texts: NAMES_OF[texts[0]])
    one.labels = torch.tensor([0, 1, 1])
    table = one.by_class("names")
    assert table[0] == [1, *[0] * 9] and table[1] == [0, 0.5, 0, 0, 0, 0.5, 0, 0, 0, 0]


def test_attributes_count_both_sides_alike():
    """Where "much" is direction 1 and "little" 0; sides are those of `scored`."""
    much = {text for name in ATTRIBUTES for text in scored([0], [0], None).captions.attribute_texts(name)[1]}
    one = scored([0, 0, 0, 1, 2, 3], [0, 0, 1, 1, 1, 0], lambda texts: int(texts[0] in much))
    found = one.attributes()
    # brightness: little are pictures 0, 2 (told 0, 1), much are 1, 4 (told 0, 1)
    assert found["brightness"] == (1 / 2 + 1 / 2) / 2
    assert found["shape"] is None  # of what is narrow there is no picture
    assert found["pattern"] == (0 / 1 + 2 / 2) / 2
    assert one.attributes([0])["brightness"] == (1 / 2 + 0) / 2 and one.attributes([3])["brightness"] is None


def test_words_by_lot_are_put_back():
    one = scored([0, 1], [0, 1], lambda texts: NAMES_OF[texts[0]])
    weight = one.model.text_encoder.embedding.weight
    before, seen = weight.detach().clone(), []
    words = ["bootee", "purse"]
    places = [one.captions.vocab[word] for word in words]
    one.accuracy = lambda *_: seen.append(weight.detach().clone()) or 0.25
    assert one.by_lot("names", [0, 1], words, 3) == [0.25] * 3
    assert torch.equal(weight, before) and len(seen) == 3
    others = [i for i in range(len(weight)) if i not in places]
    for drawn in seen:
        assert torch.equal(drawn[others], before[others])  # what was learned stays
        assert drawn[places].norm() == pytest.approx(before[places].norm().item(), rel=1e-5)
    assert not torch.allclose(seen[0][places], seen[1][places])


@pytest.mark.train
def test_a_run_says_what_it_held_out():
    metrics = clip.run(CONFIG, CPU)["metrics"]
    (rows,) = metrics["splits"].values()
    assert list(metrics["splits"]) == ["t-shirt, sandal"] and rows[0]["held_out"] == ["t-shirt", "sandal"]
    assert rows[0]["chance"] == {"among held out": 1 / 2, "among all": 1 / 10}
    assert len(rows[0]["by_lot"]) == CONFIG.draws
    assert set(rows[0]["never_seen"]["names"]) >= {"t-shirt", "sandal", "flip-flop"}
    # a class's share among all, weighted by its pictures, is that of both
    for wording, share in rows[0]["among all"].items():
        each = [one[wording] for one in rows[0]["by_class"].values()]
        assert min(each) - 1e-9 <= share <= max(each) + 1e-9
    plain = metrics["contestants"]["plain"][0]
    assert plain["repeated"] > metrics["contestants"]["captions"][0]["repeated"] and plain["floor"] > 0.1


@pytest.mark.parametrize("split", [(3,), (), (1, 1), (1, 10), (-1, 2), tuple(range(9))])
def test_a_class_list_of_one_is_no_choice(split, monkeypatch):
    monkeypatch.setattr(clip, "learn", lambda *_: pytest.fail("trained"))
    monkeypatch.setattr(clip, "classify", lambda *_: pytest.fail("trained"))
    with pytest.raises(ValueError, match="expected from 2 to 8 different labels, each from 0 to 9"):
        clip.run(replace(CONFIG, splits=(split,)), CPU)


def test_plain_captions_repeat_and_others_hardly(data):
    drawn = Pairs(CONFIG, CPU)
    torch.manual_seed(0)
    shares = [
        clip.same_texts(*next(iter(pairs.train_dataloader()))[1:]).sum(1).gt(1).float().mean().item()
        for pairs in (data, drawn)
    ]
    assert shares[0] > 0.7 > 0.4 > shares[1]
    assert Contestant("a").repeats and not Contestant("a").plain
