"""How texts are cut into batches and how language models are scored: against the slow way."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from d2lmini.decoding import Sampled
from d2lmini.experiments.gpt import language
from d2lmini.experiments.gpt.language import Recipe
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS

RECIPE = Recipe(model=replace(GPT_CONFIGS["toy"], vocab_size=11, max_len=8, num_hiddens=8, num_heads=2), batch_size=3)


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = GPT(RECIPE.model).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def text(n):
    return torch.randint(11, (n,), dtype=torch.uint8, generator=torch.Generator().manual_seed(n))


def test_windows_are_inputs_and_what_follows():
    tokens = torch.arange(20, dtype=torch.uint8)
    windows = language.Windows(tokens, 8)
    X, Y = windows.__getitems__([0, 11])
    assert len(windows) == 12 and X.tolist() == [[*range(8)], [*range(11, 19)]] and torch.equal(Y, X + 1)
    with pytest.raises(ValueError, match="has 8 tokens, too few for windows of 8"):
        language.Windows(tokens[:8], 8)


def test_epochs_go_once_through_the_text():
    torch.manual_seed(0)
    starts = list(language.Pieces(93, 8, 24))
    for epoch in (starts[:11], starts[12:23]):
        assert len({start % 8 for start in epoch}) == 1 and len(set(epoch)) == 11 and epoch != sorted(epoch)


@pytest.mark.parametrize("n", [9, 10, 30, 47])
@pytest.mark.parametrize("stride", [1, 3, 8, None])
def test_each_token_of_the_whole_is_scored_once(model, n, stride):
    tokens = text(n)
    total, scored = language.loss_on_whole(model, tokens, RECIPE, stride)
    assert scored == n - 1
    slow, reach = 0.0, 8 - (stride or 2)
    for i in range(1, n):
        # the window that scores token i: the first one in which it is new
        start = 0 if i <= 8 else min(-(-(i - 8) // (stride or 2)) * (stride or 2), n - 9)
        assert i <= 8 or i - start >= reach
        logits = model(tokens[None, start:i].long())[0, -1]
        slow += F.cross_entropy(logits, tokens[i].long()).item()
    assert total == pytest.approx(slow, rel=1e-4)


def test_loss_on_crops_is_a_mean_over_crops(model):
    few = replace(RECIPE, final_batches=4)
    found = language.loss_by_place(model, text(9), few)  # there is one crop alone
    X = text(9)[None].long()
    assert found.shape == (8,) and found[0] == pytest.approx(model.loss(model(X[:, :1]), X[:, 1:2]).item(), rel=1e-5)
    assert found.mean().item() == pytest.approx(model.loss(model(X[:, :-1]), X[:, 1:]).item(), rel=1e-5)


def test_recalled_counts_to_the_first_difference():
    class Echo:
        """Goes on as the text does for two tokens."""

        def generate(self, prompts, num, temperature):
            assert temperature == 0
            wrong = torch.arange(num) >= 2
            return Sampled((prompts[:, -1:] + torch.arange(1, num + 1)) % 8 + 8 * wrong, *[None] * 4)

    tokens = torch.arange(8, dtype=torch.uint8).repeat(3)
    found = language.recalled(Echo(), tokens, (1, 3), 4, 5)
    assert found == {"mean": [2.0, 2.0], "all": [0.0, 0.0]}
    assert language.recalled(Echo(), tokens, (1, 3), 2, 5)["all"] == [1.0, 1.0]


def test_bits_per_byte():
    assert language.bits_per_byte(8 * 0.6931471805599453, "\u00e9ab") == pytest.approx(2.0)
