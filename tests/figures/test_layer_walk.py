"""The walk through an encoder block: what Python computes and refuses, and that the page shows it."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

import d2lmini as d2l
from d2lmini.figures import LayerWalk
from d2lmini.models.weights.trained import trained

TOKENS = ["the", "black", "cat", "sleeps"]
TITLES = ["input", "queries", "keys", "values", "scores", "weights", "what the head brings", "after W_o"]
TITLES += ["first residual", "first norm", "hidden layer", "network's output", "second residual", "second norm"]
NORM_FIRST = ["input", "first norm", *TITLES[1:9], "second norm", *TITLES[10:13]]
PER_HEAD = range(2, 8)  # stages that every head has of its own


def make(**options):
    torch.manual_seed(0)
    block = d2l.TransformerEncoderBlock(8, 12, 2, dropout=0.5, use_bias=True, **options)
    for ln in (block.addnorm1.ln, block.addnorm2.ln):  # learned, so that they matter
        nn.init.normal_(ln.weight, 1, 0.3)
        nn.init.normal_(ln.bias, 0, 0.3)
    return block, torch.randn(4, 8)


def figure(norm_first=False, **changes):
    block, X = make(norm_first=norm_first)
    return LayerWalk(**{**dict(block=block, tokens=TOKENS, X=X), **changes}), block.eval(), X


def near(got, want):
    torch.testing.assert_close(got, want.detach(), rtol=0, atol=6e-4)  # the page has three decimals


def test_the_first_stage_is_the_input_and_the_last_is_the_output_of_the_block():
    shown, block, X = figure()
    assert [stage["title"] for stage in shown.state["stages"]] == TITLES
    near(shown.numbers(1), X)
    near(shown.numbers(14), block(X[None])[0])


def test_the_weights_are_those_that_the_block_uses():
    shown, block, X = figure()
    with d2l.capture_attention(block) as weights:
        block(X[None])
    (used,) = weights.values()
    for head in (1, 2):
        near(shown.numbers(6, head), used[0][0, head - 1])
        near(shown.numbers(5, head).softmax(-1), used[0][0, head - 1])


def test_the_stages_between_are_those_of_torch():
    shown, block, X = figure()
    outputs = {}
    for name in ("attention", "attention.attention", "addnorm1", "ffn.activation", "ffn"):
        block.get_submodule(name).register_forward_hook(lambda m, a, out, name=name: outputs.update({name: out[0]}))
    block(X[None])
    fetched, thought = outputs["addnorm1"], outputs["ffn"]
    near(shown.numbers(8), outputs["attention"])
    near(shown.numbers(9), X + outputs["attention"])
    near(shown.numbers(10), fetched)
    near(shown.numbers(11), outputs["ffn.activation"])
    near(shown.numbers(12), thought)
    near(shown.numbers(13), fetched + thought)
    for head, own in ((1, slice(0, 4)), (2, slice(4, 8))):
        for stage, W in ((2, block.attention.W_q), (3, block.attention.W_k), (4, block.attention.W_v)):
            near(shown.numbers(stage, head), W(X)[:, own])
        near(shown.numbers(7, head), outputs["attention.attention"][head - 1])


def test_with_the_norm_first_the_stages_are_those_of_torch():
    shown, block, X = figure(norm_first=True)
    assert [stage["title"] for stage in shown.state["stages"]] == NORM_FIRST
    outputs = {}
    for name in ("addnorm1.ln", "addnorm2.ln", "attention", "attention.attention", "ffn.activation", "ffn"):
        block.get_submodule(name).register_forward_hook(lambda m, a, out, name=name: outputs.update({name: out[0]}))
    with d2l.capture_attention(block) as weights:
        output = block(X[None])[0]
    near(shown.numbers(1), X)
    near(shown.numbers(2), outputs["addnorm1.ln"])
    for head, own in ((1, slice(0, 4)), (2, slice(4, 8))):
        for stage, W in ((3, block.attention.W_q), (4, block.attention.W_k), (5, block.attention.W_v)):
            near(shown.numbers(stage, head), W(outputs["addnorm1.ln"])[:, own])
        near(shown.numbers(7, head), weights["attention.attention"][0][0, head - 1])
        near(shown.numbers(6, head).softmax(-1), shown.numbers(7, head))
        near(shown.numbers(8, head), outputs["attention.attention"][head - 1])
    near(shown.numbers(9), outputs["attention"])
    near(shown.numbers(10), X + outputs["attention"])
    near(shown.numbers(11), outputs["addnorm2.ln"])
    near(shown.numbers(12), outputs["ffn.activation"])
    near(shown.numbers(13), outputs["ffn"])
    near(shown.numbers(14), output)


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_shapes_said_are_the_shapes_shown(norm_first):
    shown = figure(norm_first)[0]
    for i, stage in enumerate(shown.state["stages"], start=1):
        said = tuple(map(int, re.search(r"= \((\d+), (\d+)\)$", stage["shape"]).groups()))
        assert tuple(shown.numbers(i).shape) == said
        assert (torch.tensor(stage["numbers"]).dim() == 3) == (i - norm_first in PER_HEAD)


def test_the_block_stays_as_it_was():
    block, X = make()
    before = {name: value.clone() for name, value in block.state_dict().items()}
    LayerWalk(block.train(), TOKENS, X[None].requires_grad_())
    assert block.training and all(torch.equal(before[name], value) for name, value in block.state_dict().items())


def test_it_is_small():
    assert len(figure()[0]._repr_html_()) < 40_000


def test_the_fallback_walks_too():
    shown = figure(head=2)[0]
    text = shown.fallback()
    assert text.count("<tr>") == 15 and "6. weights" in text and "head 2" in text
    row = ", ".join(f"{x:.2f}" for x in shown.numbers(6, 2)[0].tolist())
    assert f"<td>(T, T) = (4, 4)</td><td>{row}</td>" in text


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_row_is_made_from_the_rows_that_the_page_says(norm_first):
    shown, block, X = figure(norm_first)
    stages = shown.state["stages"]
    moved = X.clone()
    moved[2] += torch.linspace(-1, 1, 8)  # another third token
    other = LayerWalk(block, TOKENS, moved)

    def meets(i):
        """Whether rows of other tokens are somewhere below a stage."""
        return any(which == "all rows" or meets(n) for n, which in stages[i - 1]["uses"])

    for i in range(1, 15):
        changed = [t for t in (0, 1, 3) if not torch.equal(shown.numbers(i)[t], other.numbers(i)[t])]
        assert bool(changed) == meets(i), stages[i - 1]["title"]
    assert not meets(4 + norm_first) and meets(5 + norm_first)


class Other(d2l.TransformerEncoderBlock):
    def forward(self, X, *args, **kwargs):
        return 2 * super().forward(X, *args, **kwargs)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"block": nn.Linear(8, 8)}, TypeError, "is a Linear"),
        ({"block": Other(8, 12, 2)}, ValueError, "miss its output"),
        ({"tokens": TOKENS[:3]}, ValueError, r"X has shape \(4, 8\), expected \(3, 8\)"),
        ({"X": torch.zeros(2, 4, 8)}, ValueError, r"expected \(4, 8\)"),
        ({"X": torch.full((4, 8), torch.nan)}, ValueError, "not finite"),
        ({"tokens": ["a", "a", "b", "c"]}, ValueError, "must differ"),
        ({"stage": 15}, ValueError, "expected 1 to 14 and 1 to 2"),
        ({"head": 0}, ValueError, "stage 1 and head 0"),
    ],
)
def test_bad_input_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        figure(**changes)


def same_shades(page, numbers):
    """Of each number a rectangle: its colour is the sign, its opacity the size."""
    shades = page.locator("tbody td svg rect").evaluate_all(
        "all => all.map((n) => [n.getAttribute('fill'), Number(n.getAttribute('fill-opacity'))])"
    )
    sizes = numbers.abs() / numbers.abs().max()
    assert [shade for _, shade in shades] == pytest.approx(sizes.flatten().tolist(), abs=6e-3)
    signs = ["var(--orange)" if x < 0 else "var(--blue)" for x in numbers.flatten().tolist()]
    assert [fill for fill, _ in shades] == signs


def test_it_says_whether_the_weights_were_trained(open_figure):
    assert "not trained" in open_figure(figure()[0]).locator(".d2lmini-key").inner_text()
    walk = LayerWalk.of_translator("the black cat sleeps .", stage=7)
    page = open_figure(walk)
    assert "The weights are trained: block 1 of 2" in page.locator(".d2lmini-key").inner_text()
    page.get_by_role("button", name="stage 12,").click()
    same_shades(page, walk.numbers(12))
    assert page.locator("thead th").all_inner_texts() == ["token", "features 1 to 128"]


@pytest.mark.parametrize("block", [1, 2])
def test_the_translators_block_computes_what_it_computes_in_the_model(block):
    walk = LayerWalk.of_translator("the black cat sleeps.", block)
    assert walk.state["tokens"] == ["the", "black", "cat", "sleeps", ".", "<eos>"]
    model = trained("translator_grammar")
    ids = torch.tensor([model.tokenizer[walk.state["tokens"]]])
    with torch.no_grad(), d2l.capture_attention(model.encoder) as weights:
        output = model.encoder(ids)[0]
    used = list(weights.values())[block - 1][0][0]
    for head in range(4):
        near(walk.numbers(7, head + 1), used[head])
    if block == 2:
        torch.testing.assert_close(model.encoder.norm(walk.numbers(14)), output, rtol=0, atol=0.02)


def test_the_translators_block_is_small():
    assert len(LayerWalk.of_translator("the black cat sleeps .")._repr_html_()) < 68_000


def test_there_is_no_third_block():
    with pytest.raises(ValueError, match="block is 3, expected 1 to 2"):
        LayerWalk.of_translator("the cat sleeps", 3)


@pytest.mark.parametrize("norm_first", [False, True])
def test_every_stage_is_a_part_of_the_formulas(norm_first):
    def stages(parts):
        return [n for part in parts if isinstance(part, list) for n in (part[0], *stages(part[1:]))]

    lines = figure(norm_first)[0].state["equations"]
    assert sorted(n for line in lines for n in stages(line)) == list(range(1, 15))


def written(parts):
    return "".join(part if isinstance(part, str) else written(part[1:]) for part in parts)


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_the_formulas_have_the_biases_of_the_block(norm_first, use_bias):
    block = d2l.TransformerEncoderBlock(8, 12, 2, use_bias=use_bias, norm_first=norm_first)
    shown = LayerWalk(block, TOKENS, torch.randn(4, 8))
    lines = " ".join(written(line) for line in shown.state["equations"])
    assert [f"b_{x}" in lines for x in "qkvo12"] == [use_bias] * 4 + [True] * 2
    assert ["plus a bias" in shown.state["stages"][i + norm_first]["text"] for i in (1, 2, 3, 7)] == [use_bias] * 4


def test_the_letters_are_those_of_the_chapter():
    text = (Path(__file__).parents[2] / "chapters/07_transformer.ipynb").read_text(encoding="utf-8")
    (equation,) = [line for line in text.split("$$") if "MHA}(" in line and "FFN}" in line]
    chapter = re.findall(r"mathbf{(\w)}('?) =", equation)
    figure_s = [written(line).split(" =")[0] for line in figure(norm_first=True)[0].state["equations"]]
    assert [letter + prime.replace("'", "′") for letter, prime in chapter] == [x for x in figure_s if x[0] not in "QO"]


def test_the_page_walks_by_mouse_and_by_keyboard(open_figure):
    shown = figure()[0]
    page = open_figure(shown, width=390)

    def cells():
        return [float(text.replace("−", "-")) for text in page.locator("tbody td").all_inner_texts()]

    def sees(stage, head=1):
        numbers = shown.numbers(stage, head)
        if numbers.shape[1] > 8:  # shades, of which none is cut off
            same_shades(page, numbers)
        else:
            assert cells() == pytest.approx(numbers.flatten().tolist(), abs=6e-3)
        lit = page.locator(".d2lmini-formulas [aria-current=step]")
        assert [node.get_attribute("data-stage") for node in lit.all()] == [str(stage)]
        assert page.locator(".d2lmini-note").inner_text().startswith(f"{stage} of 14: {TITLES[stage - 1]}")

    following = page.get_by_role("button", name="next")
    page.get_by_role("combobox", name="head").select_option("2")
    for stage in range(1, 14):
        sees(stage, 2 if stage in PER_HEAD else 1)
        following.click()
    assert following.get_attribute("aria-disabled") == "true"
    following.focus()
    page.keyboard.press("Enter")
    sees(14)  # there is no further one
    page.get_by_role("button", name="previous").click()
    sees(13)
    page.get_by_role("button", name="stage 6,").click()
    sees(6, 2)
    assert page.locator("thead th").all_inner_texts() == ["token", *TOKENS]
    page.get_by_role("combobox", name="head").select_option("1")
    sees(6, 1)

    # a token is followed through the stages, by keyboard and by mouse
    page.get_by_role("button", name="follow black").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("tr.chosen th").inner_text() == "cat"
    following.focus()
    for _ in range(10):
        page.keyboard.press("Enter")
    sees(14)
    assert page.locator("tr.chosen th").inner_text() == "cat"
    page.get_by_role("button", name="previous").focus()
    page.keyboard.press("Enter")
    sees(13)
    page.locator("tbody td").first.hover()
    assert page.locator("tr.chosen th").inner_text() == "the"

    # the drawing: a stage by mouse and by keyboard, and what the row is made from
    boxes = page.locator("figure svg")

    def made():
        assert boxes.locator("[aria-pressed=true]").count() == 1
        return page.locator(".d2lmini-made").inner_text()

    page.get_by_role("button", name="stage 7").click()
    sees(7)
    assert "“the” is made from its own row of weights and all rows of values: here tokens meet" in made()
    page.keyboard.press("ArrowDown")
    sees(6)
    assert "its own row of scores: no other row" in made()
    assert page.get_by_role("button", name="stage 6").get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="stage 9,").click()
    assert "its own row of input and its own row of after W_o: no other row" in made()
    assert page.get_by_role("button", name="stage 9").get_attribute("aria-pressed") == "true"

    # a phone: the widest stage has room
    page.get_by_role("button", name="stage 11,").click()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator(".d2lmini-scroll").evaluate("node => node.scrollWidth <= node.clientWidth")
    assert page.log["errors"] == []


def test_the_page_draws_the_norm_where_it_is(open_figure):
    page = open_figure(figure(norm_first=True)[0], width=390)

    def height(stage):
        return page.locator(f"[aria-label^='stage {stage},'] rect").first.bounding_box()["y"]

    heights = [height(stage) for stage in range(1, 15)]
    assert heights[0] > heights[1] > heights[2] == heights[3] == heights[4] > heights[5]
    assert heights[4:] == sorted(heights[4:], reverse=True) and len(set(heights)) == 12
    page.get_by_role("button", name="stage 2").click()
    assert "its own row of input: no other row" in page.locator(".d2lmini-made").inner_text()
    page.get_by_role("button", name="stage 14,").click()
    assert (
        "its own row of first residual and its own row of network's output"
        in page.locator(".d2lmini-made").inner_text()
    )
    assert page.log["errors"] == []


@pytest.mark.parametrize("norm_first", [False, True])
def test_every_box_is_inside_of_its_picture(open_figure, norm_first):
    page = open_figure(figure(norm_first)[0])
    height = page.locator("svg").first.evaluate("svg => svg.viewBox.baseVal.height")
    tops = page.locator("svg [role=button] > rect:first-child").evaluate_all("all => all.map(r => r.y.baseVal.value)")
    assert len(tops) == 14 and min(tops) >= 1 and max(tops) + 26 <= height
