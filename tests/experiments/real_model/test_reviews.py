"""The experiment on adapters: what is asked, what learns, what is kept."""

import copy
from dataclasses import replace

import pytest
import torch

from d2lmini.adapters import adapt
from d2lmini.experiments.real_model import adapters, bases
from d2lmini.experiments.real_model.adapters import PRESETS, Answers, Prompts, examples, judged, learn, prompt, scores
from d2lmini.lab.parts import Parts

CONFIG = PRESETS["smoke"]
CPU = torch.device("cpu")


def rows_of(tokenizer, texts):
    return [bases.encode(tokenizer, prompt(text)) for text in texts]


def test_a_score_is_of_the_last_token_whatever_the_batch():
    model, tokenizer = bases.load("toy")
    answers, rows = Answers(model, [3, 7]), rows_of(tokenizer, ["good", "a much longer one", "bad ."])
    found = scores(answers, rows, batch_size=2)
    for row, score in zip(rows, found, strict=True):
        logits = model(torch.tensor([row]))[0, -1]
        torch.testing.assert_close(score, logits[7] - logits[3], rtol=1e-4, atol=1e-5)
    assert (found[0] - found[1]).abs() > 1e-3


def test_examples_in_the_prompt_are_read_before():
    model, tokenizer = bases.load("toy")
    answers, before = Answers(model, [3, 7]), bases.encode(tokenizer, prompt("fine", " positive") + "\n\n")
    rows = rows_of(tokenizer, ["good", "a much longer one", "bad ."])
    _, state = model.extend(torch.tensor([before]), model.empty_state(1))
    wanted = scores(answers, [[*before, *row] for row in rows])
    torch.testing.assert_close(scores(answers, rows, state, batch_size=2), wanted, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(scores(answers, rows), wanted, atol=1e-2)


def test_examples_in_turns_and_enough_of_them():
    train, test = examples(CONFIG)
    assert (len(train), len(test)) == (16, 20) and not {text for text, _ in train} & {text for text, _ in test}
    with pytest.raises(ValueError, match="test is 5000, but there are 180 sentences"):
        examples(replace(CONFIG, test=5_000))


def test_batches_hold_all_prompts_once():
    rows, labels = [[1], [2, 2, 2], [3, 3], [4, 4, 4, 4]], [0, 1, 1, 0]
    data = Prompts(rows, labels, 3)
    batches = list(data.get_dataloader(True))
    found = {
        (*row[:length].tolist(), label.item()) for batch in batches for row, length, label in zip(*batch, strict=True)
    }
    assert found == {(*row, label) for row, label in zip(rows, labels, strict=True)} and len(batches) == 2
    assert data.get_dataloader(False) is None


@pytest.mark.parametrize("contestant", ["adapters", "whole"])
def test_what_learns_and_what_is_kept(contestant):
    config = replace(CONFIG, epochs=4, lr_adapters=0.02)
    model, tokenizer = bases.load("toy")
    answers, before = Answers(model, [3, 7]), copy.deepcopy(model.state_dict())
    train, _ = examples(config)
    record = learn(contestant, answers, tokenizer, train, config, Parts(), "training", CPU)
    learned = {name for name, p in model.named_parameters() if p.requires_grad}
    changed = {name for name, x in model.state_dict().items() if name in before and not torch.equal(x, before[name])}
    assert record["steps"] == 8 and len(record["curves"]["train_loss"]) == 8
    assert record["curves"]["train_loss"][-1] < record["curves"]["train_loss"][0]
    if contestant == "adapters":
        assert not changed and all(name.endswith((".up", ".down")) for name in learned)
        assert record["learned"] == 4 * 2 * 2 * (16 + 16)
        assert 4 * record["learned"] < record["kept_bytes"] < 4 * record["learned"] + 3_000
    else:
        assert {"embedding.weight", "blks.0.attention.W_q.weight"} <= changed
        assert record["learned"] == 18_064 and record["kept_bytes"] == 4 * 18_064


def test_both_read_the_same_batches():
    train, _ = examples(CONFIG)
    seen = {}
    for contestant in ("adapters", "whole"):
        model, tokenizer = bases.load("toy")
        answers = Answers(model, [3, 7])
        answers.register_forward_pre_hook(
            lambda module, args, rows=seen.setdefault(contestant, []): rows.append(args[0].tolist())
        )
        learn(contestant, answers, tokenizer, train, CONFIG, Parts(), "training", CPU)
    assert seen["adapters"] == seen["whole"] and len(seen["whole"]) == 2


def test_judged():
    found = judged(torch.tensor([1.0, -1.0, 2.0, 3.0]), [1, 0, 0, 1])
    assert found == {"accuracy": 0.75, "error": pytest.approx((0.75 * 0.25 / 4) ** 0.5), "share": 0.75}


def test_an_adapted_model_answers_as_before_it_learns():
    model, tokenizer = bases.load("toy")
    rows = rows_of(tokenizer, ["good", "bad"])
    before = scores(Answers(model, [3, 7]), rows)
    assert torch.equal(scores(Answers(adapt(model, 2), [3, 7]), rows), before)


def test_unknown_contestant():
    with pytest.raises(ValueError, match=r"contestants \['luck'\] are none, expected some of zero, few, adapters"):
        adapters.run(replace(CONFIG, contestants=("luck",)), CPU)
