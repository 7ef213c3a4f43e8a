"""The tasks of the playground in Python are those of the page: tokens, answers, layout, held-out prompts."""

import random

import pytest
import torch

import d2lmini as d2l
from d2lmini.data import playground_tasks
from d2lmini.data.playground import kept_back
from tests.playground_answers import RIGHT
from tools.bundles import bundled

COUNTS = "size", "letters", "batch_size", "num_batches", "num_val", "num_train", "seed"

torch.set_num_threads(1)  # the models are tiny
TEXT = "".join(chr(0x4E00 + i % 211) for i in range(1000)) + "e\u0301\r\nﬀ🙂\ue000\r" * 30 + "🙂" * 112
TASKS = {
    "copy": {"size": 5},
    "reverse": {"letters": 26, "size": 3},
    "sort": {},
    "look up": {"size": 5},
    "recall": {"letters": 8},
    "add": {"size": 3},
    "text": {"text": TEXT, "size": 8},
}
CASES = [(name, options, causal) for name, options in TASKS.items() for causal in (True, False)]
CASES += [("add", {"size": 15, "backwards": True}, True), ("look up", {"size": 1, "letters": 26}, False)]


@pytest.fixture(scope="module")
def page(chromium):
    """A page with the page's own tasks as `tasks`."""
    context = chromium.new_context()
    page = context.new_page()
    code = bundled('export * from "./live/playground_tasks.js";\nexport * from "./live/filters.js";', "tasks")
    page.evaluate("code => { window.tasks = new Function(code)(); }", f"{code}\nreturn tasks;")
    yield page
    context.close()


def test_there_are_no_others(page):
    assert list(TASKS) == page.evaluate("tasks.PLAYGROUND_TASKS")


@pytest.mark.parametrize(("name", "options", "causal"), CASES)
def test_tokens_and_layout_are_the_pages(page, name, options, causal):
    data = d2l.PlaygroundData(name, causal=causal, **options)
    drawn = page.evaluate(
        """([options, causal]) => {
            const task = new tasks.PlaygroundTask(options), random = tasks.randomNumbers(1);
            const examples = [false, true].flatMap((heldOut) =>
              Array.from({ length: 100 }, () => task.example(random, { heldOut })));
            const { tokens, targets } = task.lay(examples, causal);
            const { size, most } = task, length = task.lengthOf(undefined, causal);
            return { names: task.tokens, size, most, length, examples, tokens: [...tokens], targets: [...targets] };
        }""",
        [{"name": name, **options}, causal],
    )
    assert data.tokens == drawn["names"] and data.size == drawn["size"] and data.length() == drawn["length"]
    prompts, answers = (torch.tensor([one[part] for one in drawn["examples"]]) for part in ("prompt", "answer"))
    given = torch.tensor([one.get("given", [False] * len(one["answer"])) for one in drawn["examples"]])
    tokens, targets = data.lay(prompts, answers, given)
    _, drawn_answers, drawn_given = data.draw(500, held_out=True)
    assert drawn_answers.shape[1:] == drawn_given.shape[1:] == answers.shape[1:]
    assert drawn_given.double().mean(0).tolist() == pytest.approx(given.double().mean(0).tolist(), abs=0.15)
    assert tokens.shape == targets.shape == (200, drawn["length"])
    assert tokens.flatten().tolist() == drawn["tokens"] and targets.flatten().tolist() == drawn["targets"]
    with pytest.raises(ValueError, match=f"size is {drawn['most'] + 1}, expected an integer from 1 to {drawn['most']}"):
        data.held_out(drawn["most"] + 1)


PROMPTED = [name for name in TASKS if name != "text"]


@pytest.mark.parametrize("name", PROMPTED)
@pytest.mark.parametrize("size", [4, 6])
def test_held_out_prompts_are_those_of_the_page(page, name, size):
    data = d2l.PlaygroundData(name, letters=20 if name in ("look up", "recall") else 10)
    prompts = torch.cat([data.draw(500, size, held_out=held_out)[0] for held_out in (False, True)])
    got = page.evaluate("prompts => prompts.map(tasks.keptBack)", prompts.tolist())
    assert got == kept_back(prompts).tolist() == [False] * 500 + [True] * 500
    fresh = torch.randint(30, (1000, 9), generator=torch.Generator().manual_seed(0))
    got = page.evaluate("prompts => prompts.map(tasks.keptBack)", fresh.tolist())
    assert got == kept_back(fresh).tolist() and 90 < sum(got) < 160


def test_what_is_recalled_follows_in_the_word():
    data = d2l.PlaygroundData("recall", 5)
    word, answers, given = data.draw(300)
    place = (answers[:, :, None] == word[:, None]).double().argmax(2)  # (N, A)
    assert torch.equal(word.gather(1, place), answers) and given[:, 0].all() and 0.3 < given.double().mean() < 0.6
    assert (place[:, 1:] == place[:, :-1] + 1)[~given[:, 1:]].all() and {*place[given].tolist()} == {0, 1, 2, 3, 4}
    assert given[:, 1:][place[:, :-1] == 4].all()


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("size", [3, 6])
def test_answers_are_right(name, size):
    data = d2l.PlaygroundData(name, size)
    prompts, answers, _ = data.draw(300)
    found = [(data.decode(prompt), data.decode(answer)) for prompt, answer in zip(prompts, answers, strict=True)]
    assert len(set(found)) > 200 and all(RIGHT[name](*one) for one in found)
    assert {letter for one in found for letter in "".join(one)} == set(data.tokens[:-1])
    assert data.encode(found[0][0]) == prompts[0].tolist()


def test_a_sum_is_written_backwards():
    prompts, answers, _ = d2l.PlaygroundData("add").draw(50)
    same, backwards, _ = d2l.PlaygroundData("add", backwards=True).draw(50)
    assert torch.equal(prompts, same) and torch.equal(answers.flip(1), backwards)


def test_a_text_is_cut_into_training_and_the_last_tenth():
    text = "".join(random.Random(0).choices("abcdefgh", k=970)) + "e\u0301\r\n" * 10 + "\r" * 10
    data = d2l.PlaygroundData("text", 8, text=text, causal=False)  # a text is always read causally
    normal = text.replace("e\u0301\r\n", "é\n").replace("\r", "\n")
    assert len(normal) == 1000 and set(data.tokens) == set("abcdefghé\n_")
    for held_out, part in {False: normal[:900], True: normal[900:]}.items():
        windows = {data.decode(row) for row in torch.cat(data.draw(8000, held_out=held_out)[:2], 1)}
        assert all(len(window) == 9 and window in part for window in windows)
        assert {part[:9], part[-9:]} <= windows
    X, Y = data.held_out(20)
    assert torch.equal(X[:, 1:], Y[:, :-1]) and X.shape == (64, 20)


def epoch(data, number=0):
    loader = data.train_dataloader()
    loader.dataset.set_epoch(number)
    return torch.cat([torch.cat(batch, 1) for batch in loader])


def test_few_examples_to_train_on_are_the_same_in_each_epoch():
    data = d2l.PlaygroundData("add", num_train=20, num_batches=30)
    epochs = [torch.cat([X for X, _ in data.get_dataloader(train=True)]) for _ in range(2)]
    shown = [{data.decode(row) for row in rows} for rows in epochs]
    assert 10 < len(shown[0]) <= 20 and shown[0] == shown[1]
    with pytest.raises(ValueError, match="num_train is not of a text"):
        d2l.PlaygroundData("text", text="the cat sat. " * 60, num_train=5)
    with pytest.raises(ValueError, match="num_train"):
        d2l.PlaygroundData("add", num_train=0)


def test_training_examples_are_fresh_and_follow_the_seed():
    data = d2l.PlaygroundData(num_batches=20, batch_size=8, seed=1)
    first = epoch(data)
    assert first.shape == (160, 2 * data.length()) and len(first.unique(dim=0)) > 155
    assert torch.equal(first, epoch(data)) and not torch.equal(first, epoch(data, 1))
    assert not torch.equal(first, epoch(d2l.PlaygroundData(num_batches=20, batch_size=8, seed=2)))
    assert not kept_back(first[:, :7]).any() and kept_back(data.held_out()[0][:, :7]).all()
    assert sum(len(X) for X, _ in data.val_dataloader()) == 64


def test_a_trainer_learns_it_and_goes_on_from_a_checkpoint(tmp_path):
    data = d2l.PlaygroundData("copy", 3, letters=5, num_batches=50)

    def trained(folder, **options):
        torch.manual_seed(0)
        config = d2l.TinyConfig(len(data.tokens), data.length(), num_hiddens=16, num_heads=2)
        model = d2l.TinyTransformer(config, lr=1e-2)
        trainer = d2l.Trainer(4, checkpoint=tmp_path / folder, resume=True, seed=0, **options)
        trainer.fit(model, data)
        return model, trainer.history

    trained("cut", max_steps=70)
    model, history = trained("cut")
    assert history["train_loss"][0] > 1.5 and history["val_loss"][-1] < 0.1 and len(history["step"]) == 200
    X, Y = data.held_out()
    assert (model(X).argmax(-1) == Y)[Y >= 0].float().mean() > 0.97
    assert trained("whole")[1]["train_loss"] == history["train_loss"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "fly"}, "there is no task 'fly', expected one of copy, reverse, sort, look up, recall, add, text"),
        ({"size": 0}, "size is 0, expected an integer from 1 to 256"),
        ({"size": 2.5}, "size is 2.5, expected an integer from 1 to 256"),
        ({"letters": 27}, "letters is 27, expected an integer from 2 to 26"),
        *(({"task": task, "letters": 99}, "letters is 99, expected") for task in playground_tasks.TASKS),
        *(({name: True}, f"{name} is True, expected an integer") for name in COUNTS),
        *(({name: "3"}, f"{name} is '3', expected an integer") for name in COUNTS),
        ({"task": "look up", "size": 11}, "size is 11, expected an integer from 1 to 10"),
        ({"task": "add", "size": 16}, "size is 16, expected an integer from 1 to 15"),
        ({"size": 1, "letters": 2}, "too few examples of size 1: none is left for a test"),
        ({"batch_size": 0}, "batch_size is 0, expected an integer, at least 1"),
        ({"task": "text"}, "the text has 0 characters, expected at least 660"),
        ({"task": "text", "text": "ab" * 500_001}, "the text has 1,000,002 characters, expected at most 1,000,000"),
        ({"task": "text", "text": "a" * 1000}, "the text is one character alone"),
        ({"task": "text", "text": "".join(map(chr, range(0x4E00, 0x5200)))}, "1,024 different characters, expected"),
        ({"task": "text", "text": "ab" * 500, "size": 200}, "the text has 1,000 characters, expected at least 4,020"),
    ],
)
def test_what_does_not_fit_is_told(options, message):
    with pytest.raises(ValueError, match=message):
        d2l.PlaygroundData(**options)


def test_a_letter_that_is_no_token_is_told():
    data = d2l.PlaygroundData()
    with pytest.raises(ValueError, match='"z" is none of the tokens'):
        data.encode("az")
    for wrong in (-1, len(data.tokens)):
        with pytest.raises(ValueError, match=f"id {wrong} is outside the vocabulary of 12 tokens"):
            data.decode([wrong])
    for wrong in ([1.0], [True], "12", torch.tensor([[1]])):
        with pytest.raises(TypeError, match="expected"):
            data.decode(wrong)
