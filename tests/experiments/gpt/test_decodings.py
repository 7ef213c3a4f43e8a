"""What is measured of texts that a model writes: against the slow way, and on toys whose answer is known."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch

from d2lmini.experiments.gpt import decodings
from d2lmini.models.gpt import GPT
from d2lmini.models.gpt_config import GPT_CONFIGS


@pytest.fixture
def model():
    torch.manual_seed(0)
    model = GPT(replace(GPT_CONFIGS["modern-toy"], vocab_size=61, max_len=32, num_hiddens=8, num_heads=2)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def tokens(*shape, seed=0):
    return torch.randint(61, shape, generator=torch.Generator().manual_seed(seed))


def test_passages_are_contexts_and_what_follows():
    contexts, truth = decodings.passages(torch.arange(50, dtype=torch.int32), 4, 6, 3)
    assert torch.equal(torch.cat([contexts, truth], 1), contexts[:, :1] + torch.arange(9))
    assert contexts[0, 0] == 0 and truth[-1, -1] == 49 and contexts.dtype == torch.long


def test_passages_end_where_a_word_begins():
    text = torch.tensor([0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1])  # 0 begins one
    contexts, truth = decodings.passages(text, 4, 2, 3, begins=torch.tensor([True, False]))
    assert truth.tolist() == [[0, 1, 1], [0, 1, 1], [0, 1, 1], [0, 1, 1]]
    assert contexts.tolist() == [[1, 1], [1, 1], [1, 1], [1, 1]]
    every, _ = decodings.passages(torch.arange(30), 4, 2, 3, begins=torch.ones(30, dtype=torch.bool))
    assert torch.equal(every, decodings.passages(torch.arange(30), 4, 2, 3)[0])


def test_reading_is_scoring_token_by_token(model, monkeypatch):
    monkeypatch.setattr(decodings, "ROWS", 2)
    contexts, texts = tokens(5, 3), tokens(5, 4, seed=1)
    found = decodings.read(model, contexts, texts, beyond=(1, 4))
    for i in range(5):
        for t in range(4):
            p = model(torch.cat([contexts[i], texts[i, :t]])[None])[0, -1].double().softmax(0)
            chosen = p[texts[i, t]]
            ordered = sorted(p.tolist(), reverse=True)
            assert found["log_prob"][i, t].item() == pytest.approx(chosen.log().item(), rel=1e-4)
            assert found["rank"][i, t].item() == ordered.index(chosen.item())
            assert found["entropy"][i, t].item() == pytest.approx(-(p * p.log()).sum().item(), rel=1e-4)
            for k in (1, 4):
                assert found["beyond"][k][i, t].item() == pytest.approx(sum(ordered[k:]), rel=1e-4)


@pytest.mark.parametrize("name", decodings.METHODS)
def test_each_method_writes(model, name):
    contexts, method = tokens(3, 4), decodings.METHODS[name]
    texts = decodings.write(model, contexts, 6, method, 3)
    one = method.get("beam_size") == 1 or method.get("temperature") == 0
    assert texts.shape == (3, 1 if one else 3, 6)
    assert torch.equal(texts, decodings.write(model, contexts, 6, method, 3))
    if "beam_size" in method:  # the likeliest first
        read = [decodings.read(model, contexts, texts[:, i])["log_prob"].sum(1) for i in range(texts.shape[1])]
        assert all((a > b - 1e-4).all() for a, b in pairwise(read))


def test_more_search_finds_likelier_texts(model):
    contexts = tokens(8, 4)
    widths = [decodings.METHODS[name] for name in ("greedy", "beam 4", "beam 16")]
    texts = [decodings.write(model, contexts, 8, method, 1)[:, 0] for method in widths]
    scores = [decodings.read(model, contexts, text)["log_prob"].mean().item() for text in texts]
    assert scores[0] < scores[1] <= scores[2] + 1e-6


@pytest.mark.parametrize(
    ("text", "period"),
    [("abcabcabc", 3), ("xyabababab", 2), ("aaa", 1), ("aa", None), ("abcabc", None), ("abababx", None), ("", None)],
)
def test_loop(text, period):
    assert decodings.loop(list(text)) == period


def test_turns_of_a_loop(monkeypatch):
    written = torch.tensor([[5, *[7, 8, 9] * 4, 7], [3] * 14, [*range(14)], [1, 2] * 3 + [4, 6] * 4])
    monkeypatch.setattr(decodings, "write", lambda *args: written[:, None])
    chances = torch.arange(1, 15).log().expand(4, 14)
    monkeypatch.setattr(decodings, "read", lambda *args: {"log_prob": chances})
    found = decodings.turns(None, None, 14)
    assert found["loops"] == 3 and found["lengths"] == [3, 1, 2] and found["counted"] == 3
    rows = torch.tensor([[3.0, 6, 9, 12], [1, 2, 3, 4], [7.5, 9.5, 11.5, 13.5]])
    assert found["probability"] == pytest.approx(rows.mean(0).tolist())
    monkeypatch.setattr(decodings, "write", lambda *args: written[2:3, None])
    monkeypatch.setattr(decodings, "read", lambda *args: {"log_prob": chances[:1]})
    assert decodings.turns(None, None, 14) == {"loops": 0, "lengths": [], "counted": 0, "probability": None}


def test_looks_of_texts_that_are_known():
    texts = torch.tensor([[[1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5]], [[6, 7, 8, 9, 6, 7], [0, 1, 2, 3, 4, 5]]])
    searched, drawn = decodings.looks(texts, True), decodings.looks(texts, False)
    assert searched["distinct_1"] == 5 / 12 and drawn["distinct_1"] == (5 / 12 + 6 / 12) / 2
    assert searched["loops"] == 0.5 and drawn["loops"] == 0.25 and drawn["loop_length"] == 1
    assert searched["repetition"] == pytest.approx(1 / 3) and drawn["repetition"] == pytest.approx(2 / 3 / 4)
    assert searched["self_bleu"] < 0.2 < 0.5 < drawn["self_bleu"]  # the second texts are alike
    assert searched["among"] == drawn["among"] < 0.5
    assert decodings.looks(texts[:, 1:], False)["among"] is None
    assert decodings.looks(texts[:, 1:], False)["loop_length"] is None


class Copier:
    """Expects the token that stood L places before, as far as it has seen one; else all alike."""

    def __init__(self, length, num_tokens=40):
        self.length, self.num_tokens = length, num_tokens

    def __call__(self, X):
        logits = torch.zeros(*X.shape, self.num_tokens)
        back = self.length - 1  # the next token's twin
        if X.shape[1] > back:
            logits[:, back:].scatter_(2, X[:, : X.shape[1] - back, None], 20.0)
        return logits


def test_copies_are_probable_to_what_copies_and_others_are_not():
    sentences = torch.arange(36).reshape(6, 6)
    found = decodings.repeated(Copier(6), sentences, 3)
    assert found["probability"] == pytest.approx([1 / 40, 1, 1], abs=1e-4)
    assert found["others"] == pytest.approx([1 / 40, 0, 0], abs=1e-4)
    assert found["rises"] == [1.0, 0.0] and found["log_prob"][0] == pytest.approx(torch.tensor(1 / 40).log().item())


def test_swapped_contexts(model, monkeypatch):
    text, seen = tokens(200), []

    def spy(model, contexts, texts, beyond=()):
        seen.append((contexts, texts))
        return original(model, contexts, texts, beyond)

    original = decodings.read
    monkeypatch.setattr(decodings, "read", spy)
    found = decodings.swapped(model, text, (0, 3), 7, 8, 4)
    contexts, truth = decodings.passages(text, 7, 8, 4)
    assert found["own"][0] == found["elsewhere"][0] == found["left_out"][0]  # nothing swapped
    assert len({found[name][1] for name in ("own", "elsewhere", "left_out")}) == 3
    assert all(torch.equal(scored, truth) for _, scored in seen)
    own, elsewhere, left_out = (given for given, _ in seen[3:])
    assert all(torch.equal(given[:, :5], contexts[:, :5]) for given in (own, elsewhere, left_out))
    assert own.shape == contexts.shape and not torch.equal(own, contexts)
    assert torch.equal(elsewhere[1:, 5:], contexts[:-1, 5:]) and left_out.shape == (7, 5)


def test_scores_travel_as_hundredths(model):
    contexts = tokens(2, 5)
    found = torch.tensor(decodings.next_scores(model, contexts)) / -100
    torch.testing.assert_close(found.softmax(1), model(contexts)[:, -1].softmax(1), rtol=0.02, atol=1e-3)


def test_compare_tells_of_all_methods_alike(model):
    config = SimpleNamespace(prompts=4, prompt_length=5, length=12, texts=2, shown=1, beyond=(1, 3), seeds=(0,))
    found = decodings.compare(model, tokens(300), config, lambda row: " ".join(map(str, row.tolist())))
    assert found["methods"].keys() == {"the author", *decodings.METHODS} == found["entropy"].keys()
    assert found["written"].keys() == {"prompt", *found["methods"]}
    assert found["methods"]["greedy"]["log_prob"] > found["methods"]["sampling"]["log_prob"]
    tail = found["tail"]["sampling"]
    assert tail["mass"][0] > tail["mass"][1] > 0 and tail["drawn"] == pytest.approx(tail["mass"], abs=0.2)
    assert tail["without"][0] <= tail["without"][1]
    assert len(found["entropy"]["greedy"]) == 12
