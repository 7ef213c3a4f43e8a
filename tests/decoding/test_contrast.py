"""Contrastive search: greedy at its two ends, and between them what its equation says."""

import pytest
import torch

import d2lmini as d2l
from d2lmini.decoding import contrastive_search


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = d2l.GPT(d2l.GPTConfig(13, 40, 16, 2, 2, dropout=0.0, positions="rotary")).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


@pytest.mark.parametrize("options", [{"alpha": 0}, {"k": 1}])
def test_without_a_penalty_or_a_choice_it_is_greedy(model, options):
    greedy = model.generate([[3, 1, 4]], 12, temperature=0).tokens[0]
    assert torch.equal(contrastive_search(model, [3, 1, 4], 12, **options), greedy)


@torch.no_grad()
@pytest.mark.parametrize("alpha", [0.3, 0.6, 1.0])
def test_each_token_is_the_best_by_the_equation(model, alpha):
    text = [3, 1, 4]
    found = contrastive_search(model, torch.tensor(text), 10, k=4, alpha=alpha).tolist()
    for chosen in found:
        p = model(torch.tensor([text]))[0, -1].softmax(-1)
        scores = {}
        for token in p.argsort(descending=True)[:4].tolist():
            *before, new = model.features(torch.tensor([[*text, token]]))[0]
            similar = max((new @ old / new.norm() / old.norm()).item() for old in before)
            scores[token] = (1 - alpha) * p[token].item() - alpha * similar
        assert scores[chosen] >= max(scores.values()) - 1e-5
        text.append(chosen)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([], 3), {}, "the prompt"),
        (([1], 0), {}, "max_new_tokens is 0"),
        (([1], 3), {"k": 0}, "k is 0"),
        (([1], 3), {"k": 14}, "k is 14"),
        (([1], 3), {"alpha": 1.5}, "alpha is 1.5"),
        (([1], 3), {"alpha": float("nan")}, "alpha is nan"),
        (([1], 3), {"alpha": True}, "alpha is True, expected a number from 0 to 1"),
        (([1], 3), {"k": 2.0}, "k is 2.0, expected an integer"),
        (([1], True), {}, "max_new_tokens is True, expected an integer"),
    ],
)
def test_wrong_arguments(model, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        contrastive_search(model, *arguments, **options)


@pytest.mark.parametrize("prompt", [[1.9], [True], "1", 1, [[1]], torch.tensor([1.0]), torch.tensor([[1]])], ids=repr)
def test_what_is_no_prompt(model, prompt):
    with pytest.raises(TypeError, match=r"(ids are|an id is) .*expected"):
        contrastive_search(model, prompt, 2)
