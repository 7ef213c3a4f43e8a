"""The cell that the playground gives runs, learns, and trains the model of the page."""

import contextlib
import io
import itertools
import math
import re
import statistics

import pytest
import torch

from d2lmini.data.text import playground_text
from tools.bundles import bundled

torch.set_num_threads(1)  # the models are tiny
TEXT = "The cat sat on the mat. " * 100
CHOICES = {
    "task": ["copy", "reverse", "sort", "look up", "recall", "add", "text"],
    "size": [4, 3],
    "letters": [10, 6],
    "backwards": [False, True],
    "text": ["shakespeare", "own"],
    "longer": [0, 5],
    "causal": [True, False],
    "blocks": [1, 2, 3, 4],
    "heads": [1, 2, 4, 8],
    "width": [16, 32, 64],
    "positions": ["none", "learned", "sines", "rotary", "alibi"],
    "norm": ["before", "after", "none"],
    "residual": [True, False],
    "ffn": [True, False],
    "optimizer": ["sgd", "adam", "adamw"],
    "warmup": [0, 20],
    "decay": [0.01, 0.3],
    "clip": [0, 1.5],
    "batch": [4, 8, 16, 32, 64],
    "seed": [1, 7],
    "examples": [0, 50],
}


def pairwise(choices):
    """Settings in which each two choices of two keys meet, few of them: each new one takes what has most new pairs."""
    keys = list(choices)
    left = {
        frozenset({(a, x), (b, y)}) for a, b in itertools.combinations(keys, 2) for x in choices[a] for y in choices[b]
    }
    found = []
    while left:
        row = dict(min(left, key=sorted))
        for key in sorted(keys, key=lambda key: -len(choices[key])):
            if key not in row:
                gain = {x: sum(frozenset({(key, x), one}) in left for one in row.items()) for x in choices[key]}
                row[key] = max(gain, key=gain.get)
        left -= {frozenset(pair) for pair in itertools.combinations(row.items(), 2)}
        found.append({key: row[key] for key in keys})
    return found


ROWS = pairwise(CHOICES)
MODULES = "".join(
    f'export * from "./live/{name}.js";\n'
    for name in ("tensor", "learner_tasks", "playground_settings", "playground_python", "playground_tasks")
)


@pytest.fixture(scope="module")
def page(chromium):
    """A page with the runtime as `live`."""
    context = chromium.new_context()
    page = context.new_page()
    page.evaluate("code => { window.live = new Function(code)(); }", f"{bundled(MODULES, 'live')}\nreturn live;")
    yield page
    context.close()


@pytest.fixture
def cell_of(page):
    """A function that gives the cell of settings after so many steps."""
    return lambda settings, steps=0: page.evaluate(
        "([settings, steps]) => live.pythonOf({ ...live.firstSettings(), ...settings }, steps)", [settings, steps]
    )


def run(cell):
    """Runs a cell. Returns: its names, and what it prints."""
    names, printed = {}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(cell, "cell", "exec"), names)
    return names, printed.getvalue().splitlines()


def test_pairs_of_choices_all_meet():
    assert 25 < len(ROWS) < 70
    seen = {frozenset(pair) for row in ROWS for pair in itertools.combinations(row.items(), 2)}
    assert len(seen) == sum(len(CHOICES[a]) * len(CHOICES[b]) for a, b in itertools.combinations(CHOICES, 2))


@pytest.mark.parametrize("part", range(6))
def test_cells_run_and_learn(cell_of, part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text(TEXT, encoding="utf-8")
    for row in ROWS[part::6]:
        settings = {**row, "rate": 0.03 if row["optimizer"] == "sgd" else 0.003}
        cell = cell_of(settings)
        assert "max_epochs=10" in cell and max(map(len, cell.splitlines())) <= 88
        names, printed = run(cell.replace("max_epochs=10", "max_epochs=1, max_steps=60"))
        assert is_that_of(settings, **names), cell
        losses = names["trainer"].history["train_loss"]
        assert statistics.mean(losses[-10:]) < losses[0] - 0.05, cell
        shown = [re.search(r"loss (\d+\.\d+), (\d+\.\d)% of tokens right$", line) for line in printed]
        assert len(shown) == 1 + bool(row["longer"])
        assert float(shown[0][1]) == pytest.approx(names["trainer"].history["val_loss"][-1], abs=6e-4)


def is_that_of(settings, model, data, trainer, **_):
    """Whether what a cell made is what the settings say."""
    config, optimizer, text = model.config, trainer.optim, settings["task"] == "text"
    wanted = {
        "num_blks": settings["blocks"],
        "num_heads": settings["heads"],
        "num_hiddens": settings["width"],
        "causal": text or settings["causal"],
        "positions": None if settings["positions"] == "none" else settings["positions"],
        "norm_place": None if settings["norm"] == "none" else settings["norm"],
        "norm": "layer",
        "residual": settings["residual"],
        "ffn": "relu" if settings["ffn"] else None,
    }
    assert {key: getattr(config, key) for key in wanted} == wanted
    sizes = {settings["size"], settings["longer"] or settings["size"]}
    assert config.max_len == max(map(data.length, sizes)) and config.vocab_size == len(data.tokens)
    of_data = "task", "size", "seed"
    assert {key: getattr(data, key) for key in of_data} == {key: settings[key] for key in of_data}
    assert data.batch_size == settings["batch"] and data.causal == config.causal
    if text:
        read = TEXT if settings["text"] == "own" else playground_text(settings["text"])
        assert data.tokens[:-1] == sorted(set(read))
    elif settings["task"] == "add":
        assert data.backwards == settings["backwards"]
    else:
        assert data.letters == settings["letters"]
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[settings["optimizer"]]
    optimizer = getattr(optimizer, "optimizer", optimizer)
    assert type(optimizer) is kind
    groups = optimizer.param_groups
    assert all(group["initial_lr"] == settings["rate"] for group in groups)
    if kind is torch.optim.AdamW:
        assert groups[0]["weight_decay"] == settings["decay"]
    if kind is torch.optim.SGD:
        assert all(group["momentum"] == 0.9 and group["weight_decay"] == 0 for group in groups)
    assert trainer.gradient_clip_val == settings["clip"]
    rates = trainer.history["lr"]
    growing = [settings["rate"] * min(1, (step + 1) / max(1, settings["warmup"])) for step in range(len(rates))]
    assert rates == pytest.approx(growing)
    return True


def test_as_many_steps_as_the_page_has_made_and_at_least_a_thousand(cell_of):
    assert "Trainer(max_epochs=10)" in cell_of({}, 30) and "Trainer(max_epochs=10)" in cell_of({}, 1000)
    assert "Trainer(max_epochs=13, max_steps=1234)" in cell_of({}, 1234)
    names, _ = run(cell_of({"size": 3}).replace("max_epochs=10", "max_epochs=2, max_steps=123"))
    assert names["trainer"].step == 123


def test_what_does_not_matter_is_not_written(cell_of):
    first = cell_of({})
    for change in ({"backwards": True}, {"text": "own"}, {"longer": 6}, {"warmup": 1}):
        assert cell_of(change) == first
    adam = cell_of({"optimizer": "adam"})
    assert cell_of({"optimizer": "adam", "decay": 1}) == adam != first
    written = cell_of({"task": "text"})
    assert cell_of({"task": "text", "causal": False, "letters": 4}) == written
    assert not re.search("letters|backwards|gradient_clip|schedule|longer|causal", written)


def test_names_and_small_rates_are_written(cell_of):
    assert 'playground_text("names")' in cell_of({"task": "text", "text": "names"})
    assert "lr=0.00001," in cell_of({"rate": 1e-5})


TRAINED = """async ([settings, steps]) => {
  await live.prepare();
  const options = { ...live.trainOptions({ ...live.firstSettings(), ...settings }), steps, every: steps, reset: true };
  let last = null;
  for (const { heldOut } of live.trainTask(null, options)) last = heldOut ?? last;
  return [last.loss, last.tokens];
}"""


def test_page_and_cell_learn_the_same(page, cell_of):
    """The logarithms of the held-out losses of four seeds each, of which the means are as near as chance allows."""
    steps, settings = 600, {"task": "reverse"}
    pages, cells = [], []
    for seed in (1, 2, 3, 4):
        loss, _ = page.evaluate(TRAINED, [{**settings, "seed": seed}, steps])
        pages.append(math.log(loss))
        cell = cell_of({**settings, "seed": seed}).replace("max_epochs=10", f"max_epochs={steps // 100}")
        names, _ = run(cell)
        cells.append(math.log(names["trainer"].history["val_loss"][-1]))

    spread = max(statistics.stdev(pages), statistics.stdev(cells), 0.1)
    assert abs(statistics.mean(pages) - statistics.mean(cells)) < 2 * spread
    assert max(pages + cells) < math.log(1.0)  # a guess has log 10
