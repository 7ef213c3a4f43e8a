"""CLIP: its loss by hand, both ways alike, a learned temperature that has a limit, and classes by their names."""

import math
import warnings

import pytest
import torch
from torch import nn

from d2lmini.models.clip import CLIP, MAX_SCALE, CLIPConfig, repeats_floor, same_texts
from d2lmini.training import DataModule, Trainer

CONFIG = CLIPConfig(
    vocab_size=11, max_len=6, num_embed=5, arch=((1, 3), (1, 4)), num_hiddens=8, num_heads=2, num_blks=1, img_size=14
)
VIT = CLIPConfig(**{**CONFIG.__dict__, "pictures": "vit"})
WORDS = ["<pad>", "a", "bag", "boot", "coat", "photo", "of"]


def encode(texts):
    rows = [[WORDS.index(word) for word in text.split()] for text in texts]
    valid_lens = torch.tensor([len(row) for row in rows])
    return torch.tensor([row + [0] * (max(valid_lens) - len(row)) for row in rows]), valid_lens


def batch(B=4, T=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(B, 1, 14, 14, generator=generator)
    return images, torch.randint(1, 11, (B, T), generator=generator), torch.tensor([6, 3, 2, 5])[:B]


def make(config=CONFIG, **options):
    torch.manual_seed(0)
    return CLIP(config, **options).eval()


@pytest.mark.parametrize("config", [CONFIG, VIT], ids=["cnn", "vit"])
def test_the_loss_by_hand(config):
    model = make(config)
    images, texts = (vectors.detach() for vectors in model(*batch()))
    assert images.shape == texts.shape == (4, 5)
    assert torch.allclose(images.norm(dim=1), torch.ones(4)) and torch.allclose(texts.norm(dim=1), torch.ones(4))
    total = 0.0
    for n in range(4):
        forth = [math.exp(float(images[n] @ texts[m]) / 0.07) for m in range(4)]
        back = [math.exp(float(images[m] @ texts[n]) / 0.07) for m in range(4)]
        total -= math.log(forth[n] / sum(forth)) / 8 + math.log(back[n] / sum(back)) / 8
    assert model.loss(images, texts).item() == pytest.approx(total, rel=1e-4)
    assert model.loss(texts, images).item() == pytest.approx(total, rel=1e-4)


def test_padding_says_nothing():
    model, (_, tokens, valid_lens) = make(), batch()
    want = model.embed_texts(tokens[1:2, :3])
    tokens[1, 3:] = 7
    assert torch.allclose(model.embed_texts(tokens, valid_lens)[1:2], want, atol=1e-6)
    assert not torch.allclose(model.embed_texts(tokens)[1:2], want, atol=1e-3)


def test_the_gradient_of_the_temperature():
    model = make().double()
    images, texts = (torch.randn(4, 5, generator=torch.Generator().manual_seed(s)) for s in (1, 2))

    def loss():
        return model.loss(images, texts)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a learned temperature is no number that lost its gradient
        loss().backward()
    with torch.no_grad():
        model.log_scale += 1e-2
        above = loss().item()
        model.log_scale -= 2e-2
        below = loss().item()
    assert model.log_scale.grad.item() == pytest.approx((above - below) / 2e-2, rel=1e-3)
    assert abs(model.log_scale.grad.item()) > 0.1


def test_the_temperature_has_a_limit_and_comes_back_from_it():
    model = make()
    model.plot = lambda *_, **__: None
    with torch.no_grad():
        model.log_scale.fill_(7.0)
    assert model.temperature.item() == pytest.approx(1 / MAX_SCALE)
    model.training_step(batch()).backward()  # of random vectors: so sharp a choice is a wrong one
    assert model.log_scale.item() == pytest.approx(math.log(MAX_SCALE)) and model.log_scale.grad.item() > 0


def test_the_loss_is_not_rounded():
    images, texts = make()(*batch())
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(make().loss(images, texts), make().loss(images, texts).float())
        low = make().loss(images, texts).item()
    assert low == make().loss(images, texts).item()


def test_repeated_texts():
    tokens = torch.tensor([[1, 2, 0], [1, 2, 5], [1, 3, 0], [1, 2, 0]])
    lens = torch.tensor([2, 2, 2, 3])
    same = same_texts(tokens, lens)
    assert same.int().tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert same_texts(tokens).int().sum() == 6
    assert repeats_floor(same) == pytest.approx(math.log(2) / 2)
    # the floor is reached: each picture is its text, nothing else is near
    places = torch.tensor([0, 0, 1, 2])
    model = make()
    vectors = torch.eye(3)[places]
    assert model.loss(vectors, vectors).item() == pytest.approx(repeats_floor(same), abs=1e-4)
    assert model.loss(vectors, vectors, ~same).item() == pytest.approx(0, abs=1e-4)


def test_repeats_may_be_left_out():
    images, tokens, _ = batch()
    tokens[2] = tokens[0]
    plain, masked = make(), make(repeats=False)
    negatives = torch.ones(4, 4, dtype=torch.bool)
    negatives[0, 2] = negatives[2, 0] = False
    want = plain.loss(*plain(images, tokens), negatives)
    assert masked._loss((images, tokens)).item() == pytest.approx(want.item())
    assert plain._loss((images, tokens)).item() > want.item() + 0.01


def test_zero_shot():
    model, (images, *_) = make(), batch()
    texts = ["a bag", ["a boot", "photo of a boot"], "a coat"]
    scores = model.zero_shot(images, texts, encode)
    assert scores.shape == (4, 3)
    boots = torch.cat([model.embed_texts(*encode([text])) for text in texts[1]]).mean(0)
    vectors = [
        model.embed_texts(*encode(["a bag"]))[0],
        boots / boots.norm(),
        model.embed_texts(*encode(["a coat"]))[0],
    ]
    want = model.embed_images(images) @ torch.stack(vectors).T / 0.07
    assert torch.allclose(scores, want, atol=1e-4)
    assert torch.allclose(model.zero_shot(images, texts[::-1], encode), scores.flip(1), atol=1e-5)


def test_encoders_of_ones_own():
    model = make(image_encoder=nn.Sequential(nn.Flatten(), nn.Linear(14 * 14, 5)))
    assert model.loss(*model(*batch())) > 0


@pytest.mark.train
def test_it_learns_a_handful():
    class Data(DataModule):
        def get_dataloader(self, train):
            images = torch.ones(4, 1, 14, 14)
            for n in range(4):
                images[n, :, :, 3 * n + 1 :] = 0  # bars of four widths
            return [(images, *batch()[1:])] * (60 if train else 1)

    torch.manual_seed(0)
    model, data = CLIP(CONFIG, lr=1e-2), Data()
    trainer = Trainer(1)
    trainer.fit(model, data)
    assert trainer.history["train_loss"][0] > 1 and trainer.history["train_loss"][-1] < 0.1


def test_bad_input():
    model, (images, tokens, lens) = make(), batch()
    with pytest.raises(ValueError, match="there are 4 images and 3 texts, expected as many of each"):
        model.loss(*model(images, tokens[:3], lens[:3]))
    with pytest.raises(ValueError, match="the batch is 1"):
        model.loss(*model(images[:1], tokens[:1]))
    for texts, message in (
        (["a bag"], "there are 1 classes, expected at least 2: one alone is always chosen"),
        ([], "there are 0 classes"),
        (["a bag", []], "class 1 has no wording"),
        (["a bag", ["a coat", "a bag"]], "classes 0 and 1 are both called 'a bag'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.zero_shot(images, texts, encode)
    with pytest.raises(TypeError, match="class_texts is one text"):
        model.zero_shot(images, "a bag", encode)
    for options, message in (
        ({"pictures": "rnn"}, "pictures is 'rnn', expected one of 'cnn', 'vit'"),
        ({"num_embed": 0}, "num_embed is 0, expected an integer, at least 1"),
        ({"temperature": 0.001}, "temperature is 0.001"),
    ):
        with pytest.raises(ValueError, match=message):
            CLIPConfig(**options)
