"""Tasks as text: what their examples are, how they are mixed, and what is refused."""

import pytest
import torch

from d2lmini.data.grammar import make_sentences
from d2lmini.experiments.t5 import text_tasks, text_to_text
from d2lmini.experiments.t5.text_to_text import Pairs, Recipe, Tokens
from d2lmini.models.t5 import T5

NAMES = "translate", "form", "summarise"


@pytest.fixture(scope="module")
def tasks():
    return text_tasks.tasks_of(NAMES, 1_000, 0)


@pytest.fixture(scope="module")
def tokens(tasks):
    return Tokens.train(text_tasks.texts_of(tasks), 600)


def test_telegrams():
    made = {s.english: s for s in make_sentences(2_000)["train"]}
    for told, telegram in {
        "my girl who walks can send her key to our queens.": "girl who walks can send key to queens.",
        "these princesses and her girl help your sad dog.": "princesses and girl help dog.",
        "her beautiful happy cat must thank this happy man here.": "cat must thank man.",
        "three cows who sing admire his happy friend with the woman.": "cows who sing admire friend.",
        "this big tired cow wants to be happy.": "cow wants to be happy.",  # no noun follows
    }.items():
        assert text_tasks.telegram(made[told]) == telegram


def test_a_summary_has_the_statements_alone(tasks):
    forms = dict(tasks["form"].examples["train"])
    longest = 0
    for story, told in tasks["summarise"].examples["train"]:
        sentences = [part for part in forms if part in story]
        assert told and "?" not in told and not {"not", "never", "cannot"} & set(told.replace(".", "").split())
        assert set(told.replace(".", "").split()) <= set(story.replace(".", "").split())
        longest = max(longest, len(sentences))
    assert longest >= 3
    assert set(forms.values()) == {"question", "denial", "statement"}


def test_no_test_pattern_in_training(tasks):
    for task in tasks.values():
        assert not {text for text, _ in task.examples["train"]} & {text for text, _ in task.examples["test"]}


def test_entities_as_text():
    words = ["Ann", "Lee", "saw", "Paris", "and", "Rome"]
    tags = ["B-person", "I-person", "O", "B-location", "O", "I-location"]
    assert text_tasks.named(words[:5], tags[:5]) == "person: Ann Lee; location: Paris"
    assert text_tasks.named(words[2:3], tags[2:3]) == "none"
    assert text_tasks.named(words, tags).endswith("; location: Rome")  # I- after O begins an entity


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("positive", "sentiment"),
        ("denial", "form"),
        ("none", "tag"),
        ("person: Ann; location: Paris", "tag"),
        ("elle ne montre pas de chapeaux.", "translate"),
        ("est-ce que l'homme dort ?", "translate"),
        ("cows who sing admire friend.", "summarise"),
        ("", "none of these"),
        ("person: Ann; whatever", "none of these"),
    ],
)
def test_kinds_of_answers(answer, kind):
    assert text_tasks.kind_of(answer) == kind


def test_the_right_answers_are_of_their_kinds(tasks):
    for name, task in tasks.items():
        assert {text_tasks.kind_of(answer) for _, answer in task.examples["test"]} == {name}


def test_mixing_rates():
    assert text_tasks.mixing_rates([100, 300]) == [0.25, 0.75]
    assert text_tasks.mixing_rates([100, 300], limit=100) == [0.5, 0.5]
    assert text_tasks.mixing_rates([1, 4], temperature=2) == pytest.approx([1 / 3, 2 / 3])
    assert text_tasks.mixing_rates([1, 10_000], temperature=1e6) == pytest.approx([0.5, 0.5], abs=1e-4)
    for wrong in ({"sizes": [0, 1]}, {"sizes": []}, {"sizes": [1], "limit": 0}, {"sizes": [1], "temperature": 0}):
        with pytest.raises(ValueError, match="above 0"):
            text_tasks.mixing_rates(**wrong)


def test_batches_are_mixed_at_their_rates(tasks, tokens):
    groups = [text_tasks.pairs_of(task, "train", tokens) for task in tasks.values()]
    groups[1] = groups[1][:50]  # a small group is drawn no less
    rates, recipe = [0.6, 0.1, 0.3], Recipe(batch_size=50, steps=60, checks=1)
    data = Pairs(tokens, groups, groups, rates, recipe)
    begins = {tuple(tokens.encode_batch([task.prefix])[0][:2]): number for number, task in enumerate(tasks.values())}
    assert len(begins) == 3
    drawn = torch.zeros(3)
    torch.manual_seed(0)
    for inputs, _, _, _ in data.train_dataloader():
        kinds = [begins[tuple(row)] for row in inputs[:, :2].tolist()]
        assert len(set(kinds)) > 1  # inside of each batch
        drawn += torch.bincount(torch.tensor(kinds), minlength=3)
    assert drawn.sum() == 3_000
    error = (torch.tensor(rates) * (1 - torch.tensor(rates)) / 3_000).sqrt()
    assert ((drawn / 3_000 - torch.tensor(rates)).abs() < 4 * error).all()
    first, again = (next(iter(data.val_dataloader())) for _ in range(2))
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    with pytest.raises(ValueError, match="3 groups, 3 to validate with and 2 rates"):
        Pairs(tokens, groups, groups, rates[:2], recipe)
    with pytest.raises(ValueError, match="a group of pairs is empty"):
        Pairs(tokens, [*groups[:2], []], groups, rates, recipe)


def test_a_batch_of_several_tasks(tasks, tokens):
    examples = [("translate", "he sleeps.", "il dort."), ("form", "does he sleep?", "question")]
    inputs, shifted, valid_lens, targets = text_tasks.build(tasks, tokens, examples, max_len=40)
    assert [tokens.decode(row) for row in inputs] == ["translate English to French: he sleeps.", "form: does he sleep?"]
    assert [tokens.decode(row) for row in targets] == ["il dort.", "question"]
    assert inputs.gather(1, valid_lens[:, None] - 1).eq(tokens.eos).all() and (shifted[:, 0] == tokens.start).all()
    ends = targets[:, 1:] == tokens.pad  # the shorter one's <eos> is given to nobody
    assert torch.equal(shifted[:, 1:], targets[:, :-1].masked_fill(ends, tokens.pad))
    model = T5(text_to_text.with_tokens(Recipe().model, tokens))
    assert model(inputs, shifted, valid_lens).shape == (*targets.shape, len(tokens))


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (
            [("form", "a", "statement"), ("sing", "a", "b")],
            "example 1 is of the task 'sing', expected one of translate",
        ),
        ([("form", "he sleeps. " * 20, "statement")], "the input of example 0 has .* but max_len is 30"),
        ([("translate", "he sleeps.", "il dort. " * 20)], "the answer of example 0 has .* but max_len is 30"),
        ([("form", "  ", "statement")], "example 0 has an empty text"),
        ([("form", "a", "")], "example 0 has an empty answer"),
        ([], "there are no examples"),
    ],
)
def test_bad_batches(tasks, tokens, examples, message):
    with pytest.raises(ValueError, match=message):
        text_tasks.build(tasks, tokens, examples, max_len=30)


def test_long_examples_are_left_out_of_training(tasks, tokens):
    whole = text_tasks.pairs_of(tasks["summarise"], "train", tokens)
    short = text_tasks.pairs_of(tasks["summarise"], "train", tokens, max_len=30)
    assert 0 < len(short) < len(whole) and max(max(map(len, pair)) for pair in short) <= 30
    (first, _), (other, _) = (text_tasks.pairs_of(tasks["form"], "test", tokens, prefix=p)[0] for p in (None, ""))
    assert tokens.decode(first) == f"form: {tokens.decode(other)}"


def test_unknown_tasks_are_refused():
    with pytest.raises(ValueError, match="there is no task 'sing', expected one of translate, form"):
        text_tasks.tasks_of(("sing",), 1_000, 0)
