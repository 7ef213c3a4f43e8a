"""ImageGPT: grey levels there and back, causality, the cache, what completing keeps, and what is refused."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from d2lmini.experiments import image_gpt
from d2lmini.hooks import capture_attention
from d2lmini.models.image_gpt import GreyQuantizer, ImageGPT, ImageGPTConfig

HEIGHT, WIDTH, K = 5, 4, 6


@pytest.fixture
def model():
    """Small, not square, and with weights large enough that pixels matter."""
    torch.manual_seed(0)
    model = ImageGPT(ImageGPTConfig((HEIGHT, WIDTH), K, 12, 20, 3, 2)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def draw(num_images=3, rows=HEIGHT, seed=1):
    return torch.randint(K, (num_images, rows, WIDTH), generator=torch.Generator().manual_seed(seed))


# ---- grey levels


@pytest.mark.parametrize("quantizer", [GreyQuantizer.even(7), GreyQuantizer([0.0, 0.1, 0.5, 0.55, 1.0])])
def test_levels_there_and_back(quantizer):
    pixels = torch.arange(len(quantizer)).repeat(2, 3, 1)
    images = quantizer.decode(pixels)
    assert images.shape == (2, 1, 3, len(quantizer)) and images.dtype == torch.float32
    assert torch.equal(quantizer.encode(images), pixels)


def test_each_pixel_takes_the_nearest_level():
    quantizer = GreyQuantizer([-0.2, 0.1, 0.5, 0.9])
    images = torch.rand(3, 1, 6, 5, generator=torch.Generator().manual_seed(0)) * 1.6 - 0.4
    want = (images[:, 0, :, :, None] - quantizer.levels).abs().argmin(-1)
    got = quantizer.encode(images)
    assert torch.equal(got, want) and set(got.flatten().tolist()) == {0, 1, 2, 3}
    assert torch.equal(quantizer.encode(images.double()), want)


def test_even_levels():
    torch.testing.assert_close(GreyQuantizer.even(5).levels, torch.tensor([0, 0.25, 0.5, 0.75, 1]))


def test_fitted_levels_are_where_the_pixels_are():
    torch.manual_seed(0)
    images = torch.cat([0.02 * torch.rand(1, 1, 10, 50), 0.6 + 0.3 * torch.rand(1, 1, 10, 50)])
    fitted, even = GreyQuantizer.fit(images, 5), GreyQuantizer.even(5)

    def lost(quantizer):
        return (quantizer.decode(quantizer.encode(images)) - images).square().mean()

    assert lost(fitted) < lost(even) / 5
    pixels = fitted.encode(images)
    for k in range(5):  # each level is the mean of its pixels, which is what k-means ends at
        torch.testing.assert_close(fitted.levels[k], images[:, 0][pixels == k].mean())
    few = torch.tensor([0.0, 0.5, 1.0])[torch.randint(3, (2, 1, 4, 4))]
    torch.testing.assert_close(GreyQuantizer.fit(few, 3).levels, torch.tensor([0.0, 0.5, 1.0]))
    with pytest.raises(ValueError, match="3 different values, which cannot make 4 levels"):
        GreyQuantizer.fit(few, 4)


@pytest.mark.parametrize("levels", [[0.5], [0.0, 0.0, 1.0], [1.0, 0.0], [[0.0, 1.0]]])
def test_bad_levels(levels):
    with pytest.raises(ValueError, match="expected at least two in rising order"):
        GreyQuantizer(levels)


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (torch.zeros(2, 1, 4, 4, dtype=torch.uint8), TypeError, "uint8, expected floats"),
        (torch.zeros(2, 3, 4, 4), ValueError, "3 channels, expected 1"),
        (torch.zeros(2, 4, 4), ValueError, "expected \\(N, channels"),
    ],
)
def test_images_that_have_no_levels(images, error, message):
    with pytest.raises(error, match=message):
        GreyQuantizer.even(4).encode(images)


def test_pixels_that_are_no_levels():
    with pytest.raises(ValueError, match="pixels are 0 to 4, expected 0 to 3: were they encoded"):
        GreyQuantizer.even(4).decode(torch.arange(5).view(1, 1, 5))


# ---- the model


def test_the_number_of_parameters_by_hand(model):
    attention, ffn, norms = 4 * 12 * 12, 12 * 20 + 20 + 20 * 12 + 12, 2 * 2 * 12
    embeddings = (K + 1) * 12 + HEIGHT * 12 + WIDTH * 12
    assert model.num_parameters == embeddings + 2 * (attention + ffn + norms) + 2 * 12 + 12 * K + K


def test_a_new_model_knows_nothing():
    torch.manual_seed(0)
    model = ImageGPT(ImageGPTConfig(6, 8, 32, 64, 4, 3))
    pixels = torch.randint(8, (4, 6, 6))
    assert model.loss(model(pixels), pixels).item() == pytest.approx(3, abs=0.05)  # bits, for 8 levels


def test_the_loss_is_in_bits():
    probabilities = torch.tensor([0.5, 0.25, 0.125, 0.125])
    scores = probabilities.log().expand(1, 1, 4, 4)
    pixels = torch.tensor([[[0, 1, 2, 3]]])
    model = ImageGPT(ImageGPTConfig(4, 4, 8, 8, 2, 1))
    assert model.loss(scores, pixels).item() == pytest.approx((1 + 2 + 3 + 3) / 4)


def test_no_pixel_sees_itself_or_a_later_one(model):
    """Change a pixel: the scores up to its own stay, all that come after it move."""
    pixels = draw()
    before = model(pixels)
    assert before.shape == (3, HEIGHT, WIDTH, K)
    for place in range(HEIGHT * WIDTH):
        changed = pixels.clone()
        changed[:, place // WIDTH, place % WIDTH] += 1
        changed %= K
        moved = (model(changed) - before).abs().amax(-1).flatten(1) > 1e-6  # (N, T)
        assert not moved[:, : place + 1].any(), place
        assert moved[:, place + 1 :].all(), place


def test_it_is_causal_in_training_too():
    torch.manual_seed(0)
    model = ImageGPT(ImageGPTConfig((HEIGHT, WIDTH), K, 12, 20, 3, 2)).train()
    pixels = draw()
    changed = pixels.clone()
    changed[:, 2, 1] = (changed[:, 2, 1] + 1) % K
    moved = (model(changed) - model(pixels)).abs().amax(-1).flatten(1) > 0
    assert not moved[:, : 2 * WIDTH + 2].any() and moved[:, 2 * WIDTH + 2 :].any()


def test_places_matter(model):
    """The same pixels in a row say other things about what follows in another row, or another column."""
    pixels = torch.zeros(1, HEIGHT, WIDTH, dtype=torch.long)
    scores = model(pixels)[0].flatten(0, 1)
    assert torch.cdist(scores, scores).fill_diagonal_(9).min() > 1e-4


def test_the_first_rows_alone_have_the_same_scores(model):
    pixels = draw()
    for rows in (1, 3):
        torch.testing.assert_close(model(pixels[:, :rows]), model(pixels)[:, :rows])


def test_one_by_one_with_the_cache_is_all_at_once(model):
    pixels = draw()
    want = model(pixels).flatten(1, 2)  # (N, T, K)
    inputs = F.pad(pixels.flatten(1), (1, -1), value=K)
    for sizes in ([1] * 20, [7, 1, 12]):
        caches, got = model.empty_caches(3), []
        for part in inputs.split(sizes, 1):
            before = [cache.length for cache in caches]
            scores, grown = model.step(part, caches)
            assert [cache.length for cache in caches] == before  # not changed
            got.append(scores)
            caches = grown
        torch.testing.assert_close(torch.cat(got, 1), want)


def test_attention_can_be_captured(model):
    with capture_attention(model) as weights:
        model(draw())
    last = weights["blks.1.attention.attention"][0]  # (N, H, T, T)
    assert last.shape == (3, 3, 20, 20) and (last.triu(1) == 0).all()
    torch.testing.assert_close(last.sum(-1), torch.ones(3, 3, 20))


# ---- completing


@pytest.mark.parametrize("rows", [0, 2, HEIGHT])
def test_completing_keeps_what_is_given(model, rows):
    top = draw(rows=rows)
    images, probabilities = model.complete(top, return_probabilities=True)
    assert images.shape == (3, HEIGHT, WIDTH) and torch.equal(images[:, :rows], top)
    assert images.min() >= 0 and images.max() < K
    assert probabilities.shape == (3, (HEIGHT - rows) * WIDTH, K)
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(3, (HEIGHT - rows) * WIDTH))


def test_it_draws_from_what_the_whole_image_says(model):
    """The probabilities that came step by step are those of the finished image, scored at once."""
    images, probabilities = model.complete(draw(rows=2), temperature=0.7, return_probabilities=True)
    want = (model(images) / 0.7).softmax(-1)[:, 2:].flatten(1, 2)
    torch.testing.assert_close(probabilities, want)


def test_it_draws_each_value_as_often_as_it_says(model):
    images = model.sample(4000, generator=torch.Generator().manual_seed(0))
    shares = F.one_hot(images[:, 0, 0], K).double().mean(0)
    torch.testing.assert_close(shares, model(images[:1])[0, 0, 0].softmax(-1).double(), rtol=0, atol=0.03)


def test_the_generator_decides(model):
    def once(seed):
        return model.sample(4, generator=torch.Generator().manual_seed(seed))

    torch.manual_seed(5)
    state = torch.get_rng_state()
    assert torch.equal(once(1), once(1)) and not torch.equal(once(1), once(2))
    assert torch.equal(torch.get_rng_state(), state)  # the global numbers are left alone


def test_temperature_and_top_k(model):
    top = draw(rows=1)
    best = model.complete(top, temperature=0)
    assert torch.equal(best, model.complete(top, top_k=1))
    assert torch.equal(best, model.complete(top, temperature=1e-4))
    assert torch.equal(best[:, 1:], model(best)[:, 1:].argmax(-1))  # each is the likeliest after those before
    images, probabilities = model.complete(top, top_k=2, return_probabilities=True)
    assert ((probabilities > 0).sum(-1) == 2).all()
    raw = model(images)[:, 1:].flatten(1, 2)
    assert torch.equal((probabilities > 0), torch.zeros_like(raw).scatter(-1, raw.topk(2).indices, 1) > 0)

    def entropy(temperature):
        p = model.complete(top, temperature=temperature, return_probabilities=True)[1][:, 0]
        return -(p * p.log()).sum()

    assert entropy(0.5) < entropy(1.0) < entropy(2.0) < 3 * math.log(K)


@pytest.mark.parametrize(
    ("top", "options", "message"),
    [
        (torch.zeros(2, 2, WIDTH), {}, "float32, expected integers: GreyQuantizer.encode"),
        (torch.zeros(2, WIDTH, dtype=torch.long), {}, r"shape \(2, 4\), expected \(N, 0 to 5 rows, 4\)"),
        (torch.zeros(2, 1, 3, dtype=torch.long), {}, r"\(2, 1, 3\)"),
        (torch.zeros(2, 6, WIDTH, dtype=torch.long), {}, r"\(2, 6, 4\)"),
        (torch.full((2, 2, WIDTH), K), {}, "pixels are 6 to 6, expected 0 to 5"),
        (torch.full((2, 2, WIDTH), -1), {}, "pixels are -1 to -1"),
        (draw(rows=1), {"temperature": -1}, "temperature is -1"),
        (draw(rows=1), {"temperature": math.nan}, "temperature is nan"),
        (draw(rows=1), {"top_k": 0}, "top_k is 0, expected an integer from 1 to 6"),
        (draw(rows=1), {"top_k": 7}, "top_k is 7"),
    ],
)
def test_bad_input(model, top, options, message):
    with pytest.raises(ValueError, match=message):
        model.complete(top, **options)


@pytest.mark.train
def test_it_learns():
    """Stripes: all is certain but the first pixel."""
    torch.manual_seed(0)
    first = torch.randint(4, (64, 1, 1))
    pixels = (first + torch.arange(4)[:, None] + torch.arange(4)) % 4  # (64, 4, 4)
    model = ImageGPT(ImageGPTConfig(4, 4, 32, 64, 2, 2, lr=5e-3))
    optimizer = model.configure_optimizers()
    for _ in range(60):
        loss = model.loss(model(pixels), pixels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 2 / 16 + 0.05  # two bits for the first of sixteen
    completed = model.eval().complete(pixels[:4, :1], temperature=0)
    assert torch.equal(completed, pixels[:4])


# ---- the experiment


def test_bits_of_a_table_of_counts():
    train_contexts, train = torch.tensor([[0, 0, 0, 1]]), torch.tensor([[1, 1, 0, 2]])
    test_contexts, test = torch.tensor([[0, 1]]), torch.tensor([[1, 0]])
    first, second = 2.1 / 3.3, 0.1 / 1.3  # a tenth of a count is added to each of three
    want = -(math.log2(first) + math.log2(second)) / 2
    assert image_gpt.table_bits(train_contexts, train, test_contexts, test, 3) == pytest.approx(want)


def test_baselines_know_the_place_and_the_neighbours():
    generator = torch.Generator().manual_seed(0)
    even = torch.randint(4, (4000, 3, 3), generator=generator)
    found = image_gpt.baselines(even[:2000], even[2000:], 4)
    assert found["even"] == 2 and found["place"] == pytest.approx(2, abs=0.02)
    placed = torch.arange(9).view(1, 3, 3).expand(2000, -1, -1) % 4  # the place says all
    assert image_gpt.baselines(placed, placed, 4)["place"] < 0.01
    copied = even[:, :1].expand(-1, 3, -1)  # two rows of three are what stands above, which only neighbours tell
    found = image_gpt.baselines(copied[:2000], copied[2000:], 4)
    assert found["place"] > 1.9 and found["left_and_above"] < 1


def test_pixels_are_means_of_squares():
    config = replace(image_gpt.PRESETS["smoke"], flip=0.0)
    data = image_gpt.Pixels(config, torch.device("cpu"))
    pixels = data.all_pixels(train=False)
    assert pixels.shape == (1000, 7, 7) and set(pixels.flatten().tolist()) == {0, 1, 2, 3}
    mean = data.val.images[5, 8:12, 12:16].double().mean() / 255
    assert pixels[5, 2, 3] == (data.quantizer.levels - mean).abs().argmin()
    X, Y = next(iter(data.val_dataloader()))
    assert torch.equal(X, Y) and torch.equal(X, pixels[: len(X)])
