"""Learning in the page: losses and gradients are torch's, for every setting; steps, and what is asked of them.

The tasks themselves: tests/javascript/playground.test.js.
"""

import json
import math

import pytest
import torch
from torch.testing import assert_close

from benchmarks._equality import COMPARE, FIFTY, POSITIONS, RUN, cases_of, fifty_steps, page_of_learning
from d2lmini.models.tiny import TinyConfig, TinyTransformer


@pytest.fixture
def page(open_page, tmp_path):
    """A page with the runtime's learning as `live`, and `LIVE`, which has it in a worker."""
    file = tmp_path / "page.html"
    file.write_text(page_of_learning(), encoding="utf-8")
    page = open_page(file.as_uri())
    yield page
    assert page.log["errors"] == []
    assert all(url == file.as_uri() or url.startswith("blob:") for url in page.log["requests"])


@pytest.mark.parametrize("positions", POSITIONS)
def test_loss_and_gradients_are_torchs_for_every_setting(page, positions):
    cases = cases_of(positions)
    for simd, some in ((True, cases), (False, cases[::7])):
        off = page.evaluate(COMPARE, {"cases": some, "simd": simd})
        wrong = [one["model"] for one, far in zip(some, off, strict=True) if not far < max(1e-4, 2 * one["off"])]
        assert not wrong, wrong[0]
        assert sum(far < 1e-4 for far in off) >= 0.95 * len(off)


@pytest.mark.parametrize(("changes", "optimizer"), FIFTY)
def test_fifty_steps_give_torchs_losses_and_no_memory_grows(page, changes, optimizer):
    options, want = fifty_steps(changes, optimizer)
    got = page.evaluate(RUN, options)
    assert_close(torch.tensor(got["losses"]), torch.tensor(want), rtol=1e-3, atol=0)
    assert got["losses"][-1] < got["losses"][0]
    assert len(set(got["memory"][5:])) == 1


MODEL = {
    "num_hiddens": 16,
    "num_heads": 2,
    "num_blks": 2,
    "causal": True,
    "positions": "learned",
    "norm": "layer",
    "norm_place": "before",
    "residual": True,
    "ffn": "relu",
}
ASK = """async ({ task, options, stopAfter }) => {
  await d2lminiLive.open();
  const steps = [];
  const asked = d2lminiLive.ask(null, task, options, (step) => {
    steps.push({ ...step, losses: step.losses && [...step.losses] });
    if (steps.length === stopAfter) asked.stop();
  });
  try {
    const plain = (_, value) => (ArrayBuffer.isView(value) ? [...value] : value);
    return JSON.parse(JSON.stringify({ done: await asked.done, steps }, plain));
  } catch (error) {
    return { error: error.message };
  }
}"""


def options(**changes):
    data = {"name": "copy", "size": 4, "letters": 5, "batch": 8}
    return {"model": MODEL, "optimizer": {"name": "adamw", "rate": 3e-3}, "data": data, "steps": 5, **changes}


@pytest.fixture
def ask(page):
    return lambda task, options, stop_after=None: page.evaluate(
        ASK, {"task": task, "options": options, "stopAfter": stop_after}
    )


def losses(answer):
    return [loss for step in answer["steps"] for loss in step["losses"]]


def test_a_learner_stays_until_it_is_reset(ask):
    whole = ask("train", options(steps=8))
    assert whole["done"] == {"step": 8} and len(losses(whole)) == 8
    assert whole["steps"][0]["heldOut"]["loss"] == pytest.approx(math.log(7), rel=0.05)
    again = ask("train", options(steps=3, reset=True))
    assert losses(again) == losses(whole)[:3]
    assert losses(ask("train", options(steps=5, most=1))) == losses(whole)[3:]
    slower = options(steps=1, optimizer={"name": "adamw", "rate": 1e-3})
    assert ask("train", slower)["steps"][-1]["rate"] == 1e-3 and ask("weights", {})["done"]["steps"] == 9
    other = ask("train", options(steps=2, seed=1))  # other numbers to begin with: another learner
    assert other["done"] == {"step": 2} and losses(other) != losses(whole)[:2]


def test_it_goes_on_until_it_is_stopped_and_learns(ask):
    answer = ask("train", options(steps=None, most=10, every=100, longer=[6]), stop_after=40)
    assert answer["done"] is None and 200 < answer["steps"][-1]["step"] < 1000
    scores = [step["heldOut"] for step in answer["steps"] if step["heldOut"]]
    assert scores[-1]["tokens"] > 0.9 > scores[0]["tokens"]
    assert [one["size"] for one in scores[-1]["longer"]] == [6]
    last = answer["steps"][-1]
    assert len(last["gradients"]["blocks"]) == 2 and last["norm"] == pytest.approx(
        math.hypot(last["gradients"]["embedding"], last["gradients"]["head"], *last["gradients"]["blocks"]), rel=1e-4
    )


def test_what_it_looks_at_is_what_python_looks_at(ask):
    import d2lmini as d2l

    ask("train", options(steps=3))
    learned = ask("weights", {})["done"]
    model = TinyTransformer(TinyConfig(**learned["config"]))
    weights = {name: torch.tensor(one["data"]).view(one["shape"]) for name, one in learned["weights"].items()}
    model.load_state_dict(weights)
    tokens = [0, 3, 1, 2, 5, 0]
    with d2l.capture_attention(model) as captured, torch.no_grad():
        want = model(torch.tensor([tokens])).softmax(-1)
    got = ask("look", {"tokens": tokens})["done"]
    assert_close(torch.tensor(got["probabilities"]).view(6, -1), want[0], rtol=1e-4, atol=1e-6)
    for block, seen in zip(got["weights"], captured.values(), strict=True):
        assert_close(torch.tensor(block["data"]).view(2, 6, 6), seen[0][0], rtol=1e-4, atol=1e-6)


def test_a_rate_that_explodes_goes_back_and_says_when(ask):
    sgd = {"name": "sgd", "rate": 1e20}
    answer = ask("train", options(steps=100, optimizer=sgd))
    exploded = answer["done"]["exploded"]
    assert "no number any more at step" in exploded["why"] and answer["done"]["step"] <= exploded["step"]
    again = ask("train", options(steps=2))
    assert all(math.isfinite(loss) and loss < 5 for loss in losses(again))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {**MODEL, "num_heads": 3}}, "16 features cannot be cut into 3 heads"),
        ({"model": {**MODEL, "num_heads": 16, "positions": "rotary"}}, "1 features of a head are not even"),
        ({"data": {"name": "fly"}}, "there is no task fly"),
        ({"data": {"name": "copy", "size": 0}}, "size is 0, expected an integer from 1"),
        ({"data": {"name": "look up", "size": 11}}, "size is 11, expected an integer from 1 to 10"),
        ({"data": {"name": "copy", "size": 1, "letters": 2}}, "too few examples of size 1"),
        ({"data": {"name": "text", "text": "short"}}, "5 characters, expected at least 660"),
        ({"data": {"name": "text", "text": "a" * 1000}}, "one character alone"),
        ({"data": {"name": "text", "text": "ab" * 500_001}}, "1,000,002 characters, expected at most 1,000,000"),
        ({"data": {"name": "text", "text": "".join(map(chr, range(0x4E00, 0x5200)))}}, "expected at most 250"),
        ({"optimizer": {"name": "luck"}}, "there is no optimizer luck"),
    ],
)
def test_bad_settings_are_told_in_a_sentence(ask, changes, message):
    assert message in ask("train", options(**changes))["error"]
    assert "nothing has been learned yet" in ask("look", {"learner": "nobody", "tokens": [0]})["error"]


def test_a_text_is_written_while_it_learns(ask):
    data = {"name": "text", "text": "the cat sat on the mat. " * 60, "size": 16, "batch": 8}
    sample = {"tokens": [1, 2], "length": 30, "every": 10}
    answer = ask("train", options(steps=20, data=data, sample=sample, look={"tokens": [1, 2, 3]}))
    written = [step["sample"] for step in answer["steps"] if step["sample"]]
    assert [len(text) for text in written] == [30, 30]
    described = ask("describe", {"data": data})["done"]
    assert described["length"] == 16 and described["tokens"][-1] == "_" and json.dumps(described["examples"][0])
    assert len(answer["steps"][0]["look"]["weights"]) == 2
