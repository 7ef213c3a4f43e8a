"""Diagrams: what is drawn is what a real call does, and it can be read by everybody."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
import torch
from torch import nn

import d2lmini as d2l
from d2lmini.figures import diagrams
from d2lmini.figures.diagrams import layout
from d2lmini.figures.diagrams.drawing import Diagram
from d2lmini.figures.diagrams.multiscale import attended
from d2lmini.figures.diagrams.position import ways
from d2lmini.figures.diagrams.shapes import shapes_of
from d2lmini.models.davit import ChannelAttention
from d2lmini.models.swin import Swin, SwinConfig
from d2lmini.vision.windows import WindowAttention

ALL = [
    diagrams.encoder_block(),
    diagrams.encoder_block(norm_first=True),
    diagrams.decoder_block(),
    diagrams.decoder_block(norm_first=True),
    diagrams.transformer(),
    diagrams.gpt(),
    diagrams.gpt(norm_first=False, tied=False),
    diagrams.shifted_targets(),
    diagrams.decoding_loop(),
    diagrams.t5(),
    diagrams.long_sequences(),
    diagrams.residual_forms(),
    diagrams.switch(),
    diagrams.text_to_embeddings(),
    diagrams.bert(),
    diagrams.masked_targets(),
    diagrams.task_heads(),
    diagrams.budget(),
    diagrams.alignment(),
    diagrams.clip(),
    diagrams.multi_head(),
    diagrams.sequence_to_sequence(),
    diagrams.compare_normalize_mix(),
    diagrams.vision_transformer(),
    diagrams.masked_scoring(),
    diagrams.mixing_layers(),
    diagrams.turned_pairs(),
    diagrams.pyramid(),
    diagrams.pyramid(side=28, num_stages=3),
    diagrams.shifted_windows(),
    diagrams.attention_both_ways(),
    diagrams.self_attention(),
    diagrams.todays_block(),
]


def svg(diagram):
    page = diagram._repr_html_()
    return ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])


def words(diagram):
    return ["".join(node.itertext()).replace("\u200b", "") for node in svg(diagram).iter() if node.tag.endswith("text")]


@pytest.mark.parametrize("diagram", ALL, ids=lambda d: d.title)
def test_it_says_what_it_shows_and_takes_the_colour_of_the_page(diagram):
    tags = [node.tag.split("}")[1] for node in svg(diagram)]
    assert tags[:2] == ["title", "desc"]
    page = diagram._repr_html_()
    assert "currentColor" in page and diagram.description in page
    assert not re.search(r'(src|href)="|@import|url\((?!#)', page)


@pytest.mark.parametrize("diagram", ALL, ids=lambda d: d.title)
def test_nothing_is_drawn_outside_of_the_picture(diagram):
    picture = svg(diagram)
    left, top, width, height = map(float, picture.get("viewBox").split())
    for node in picture.iter():
        if node.tag.endswith("}text"):
            text = "".join(node.itertext()).replace("\u200b", "")
            half = 3.6 * len(text)
            start = {"middle": -half, "start": 0, "end": -2 * half}[node.get("text-anchor")]
            x = float(node.get("x")) + start
            assert left <= x and x + 2 * half <= left + width, text
            assert top < float(node.get("y")) < top + height, text


@pytest.mark.parametrize("diagram", ALL, ids=lambda d: d.title)
def test_the_column_of_the_book_shows_it_whole_with_letters_of_11_pixels(diagram):
    column = 737  # pixels of the theme; letters of 12 may shrink to 0.92 of that
    assert 0.92 * diagram.picture().width <= column


SCROLL = {  # what a phone cannot show whole: most have panels side by side
    "A pair of features, turned by its position",
    "A pyramid of stages",
    "T5, an encoder and a decoder",
    "Three ways to mix a sequence",
    "Two ways to attend in one matrix",
    "Windows and their shift",
    "an encoder-decoder without and with attention",
}


@pytest.mark.parametrize("diagram", ALL, ids=lambda d: d.title)
def test_a_phone_shows_it_whole_or_says_that_it_scrolls(diagram):
    small = layout.narrow(diagram)
    fits = 0.92 * (small or diagram).picture().width <= 390 - 2 * 16  # margins
    assert fits == (diagram.title not in SCROLL)
    assert ('class="narrow"' in diagram._repr_html_()) == (small is not None)


@pytest.mark.parametrize("diagram", ALL, ids=lambda d: d.title)
def test_no_arrow_goes_through_a_word(diagram):
    for drawn in filter(None, (diagram, layout.narrow(diagram))):
        words = {name: place for name, place in drawn.places.items() if place.height < 100}
        for arrow in drawn.arrows:
            corners, _ = drawn._path(arrow)
            for (x0, y0), (x1, y1) in pairwise(corners):
                for name, place in words.items():
                    if name not in (arrow.start, arrow.end):
                        (left, y), (right, _), half = place.edge("left"), place.edge("right"), place.height / 2 - 2
                        apart = max(x0, x1) <= left + 2 or min(x0, x1) >= right - 2
                        assert apart or max(y0, y1) <= y - half or min(y0, y1) >= y + half, (arrow, name)


def test_words_are_cut_between_words_and_not_in_brackets():
    assert layout.lines("compare: score a(q, k)", 100) == ["compare:", "score a(q, k)"]
    assert layout.lines("Q (T, D), K (S, D)", 60) == ["Q (T, D),", "K (S, D)"]
    assert layout.lines("one longword", 1) == ["one", "longword"] and layout.lines("a b", 99) == ["a b"]


# of each diagram: which of its drawings is seen, the smallest letters, what is beyond its edge, the height of the cue
SEEN = """all => all.map((figure) => {
  const drawing = [...figure.querySelectorAll('svg')].filter((node) => node.checkVisibility());
  const box = drawing[0].getBoundingClientRect(), scale = box.width / drawing[0].viewBox.baseVal.width;
  const letters = [...drawing[0].querySelectorAll('text')].map((t) => parseFloat(getComputedStyle(t).fontSize) * scale);
  const scroller = figure.querySelector('.d2lmini-scroll'), cue = figure.querySelector('.d2lmini-more');
  return {
    seen: drawing.length, smallest: Math.min(...letters), left: box.left - figure.getBoundingClientRect().left,
    beyond: scroller.scrollWidth - scroller.clientWidth, cue: cue ? cue.getBoundingClientRect().height : 0,
  };
})"""


@pytest.fixture
def show(open_page, tmp_path):
    def show(*shown, width):
        path = tmp_path / "diagrams.html"
        head = '<!doctype html><meta charset="utf-8"><body style="margin: 0 auto; max-width: 737px; padding: 0 16px">'
        path.write_text(head + "".join(diagram._repr_html_() for diagram in shown), encoding="utf-8")
        return open_page(path.as_uri(), width=width)

    return show


@pytest.mark.parametrize("width", [1280, 390])
def test_on_a_page_letters_have_11_pixels_and_all_begin_at_the_left(show, width):
    for diagram, found in zip(ALL, show(*ALL, width=width).locator("figure").evaluate_all(SEEN), strict=True):
        scrolls = width == 390 and diagram.title in SCROLL
        assert found["seen"] == 1 and found["smallest"] >= 10.95 and abs(found["left"]) < 1, diagram.title
        assert (found["beyond"] > 1) == scrolls == (found["cue"] > 10), (diagram.title, found)


def test_the_keyboard_scrolls_what_is_too_wide(show):
    page = show(diagrams.pyramid(), width=390)
    page.keyboard.press("Tab")
    scroller = page.locator(".d2lmini-scroll:focus")
    assert scroller.get_attribute("aria-label") == diagrams.pyramid().title
    assert scroller.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 5")


def test_two_diagrams_on_a_page_do_not_share_ids():
    both = diagrams.transformer()._repr_html_() + diagrams.transformer()._repr_html_()
    ids = re.findall(r' id="([^"]+)"', both)
    assert len(ids) == 2 == len(set(ids))


def test_the_shapes_of_masked_scoring_are_those_of_a_call():
    layer = d2l.DotProductAttention()
    inputs = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6), torch.tensor([2, 5])
    shown = words(diagrams.masked_scoring().on(layer, *inputs))
    assert {"(2, 3, 4)", "(2, 5, 4)", "(2, 5, 6)", "(2)", "(2, 3, 6)"} <= set(shown)
    assert shown.count("(2, 3, 5)") == 2 and layer.attention_weights.shape == (2, 3, 5)


def test_the_shapes_of_todays_block_are_those_of_a_call():
    block = d2l.TransformerEncoderBlock(
        12, 20, 6, norm_first=True, norm=nn.RMSNorm, ffn=d2l.GatedFFN(20, 12, num_inputs=12), num_kv_heads=2
    )
    shown = words(diagrams.todays_block().on(block, torch.randn(2, 5, 12)))
    assert "(2, 5, 12)" in shown and not any("(B" in text for text in shown)
    drawn, parts = diagrams.todays_block().places, dict(block.named_modules())
    assert {"addnorm1", "attention", "addnorm2", "ffn"} <= set(drawn) & set(parts)
    assert isinstance(parts["ffn"], d2l.GatedFFN) and isinstance(parts["addnorm1.ln"], nn.RMSNorm)


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_shapes_of_the_encoder_block_are_those_of_a_call(norm_first):
    block = d2l.TransformerEncoderBlock(8, 16, 2, norm_first=norm_first)
    shown = words(diagrams.encoder_block(norm_first).on(block, torch.randn(2, 5, 8), torch.tensor([5, 3])))
    assert "(2, 5, 8)" in shown and not any("(B" in text for text in shown)
    parts = dict(block.named_modules())
    drawn = diagrams.encoder_block(norm_first).places
    assert {"attention", "ffn", "addnorm1", "addnorm2"} <= drawn.keys() & parts.keys()


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_shapes_of_the_decoder_block_are_those_of_a_call(norm_first):
    block = d2l.TransformerDecoderBlock(8, 16, 2, norm_first=norm_first)
    state = d2l.DecoderState.start(torch.randn(2, 7, 8), None, 1)
    diagram = diagrams.decoder_block(norm_first).on(block, torch.randn(2, 4, 8), state)
    assert words(diagram).count("(2, 4, 8)") == 4
    assert diagram.places.keys() >= {"attention1", "attention2", "ffn"} <= dict(block.named_modules()).keys()


def test_the_transformer_has_a_norm_after_each_stack_and_fits_on_a_phone():
    model = d2l.Transformer(d2l.TransformerConfig(50, 8, 16, num_heads=2, num_blks=2))
    diagram = diagrams.transformer()
    places = diagram.places
    for side in ("encoder", "decoder"):
        assert isinstance(model.get_submodule(f"{side}.norm"), nn.LayerNorm)
        assert places[f"{side}.norm"].y < places[f"{side} ffn"].y  # above the blocks
    assert places["dense"].y < places["decoder.norm"].y and words(diagram).count("layer norm") == 2
    shown = words(diagram.on(model, torch.randint(50, (2, 7)), torch.randint(50, (2, 5)), torch.tensor([7, 4])))
    assert {"(2, 7)", "(2, 5)", "memory (2, 7, 8)", "(2, 5, 8)", "(2, 5, 50)"} <= set(shown)
    assert 0.92 * float(svg(diagram).attrib["width"]) <= 390 - 3 * 16  # margins


def test_in_the_transformer_a_residual_connection_leads_around_every_attention_and_network():
    around = {(arrow.start, arrow.end) for arrow in diagrams.transformer().arrows if arrow.around}
    assert around == {
        ("encoder positions", "encoder attention +"),
        ("encoder attention +", "encoder ffn +"),
        ("decoder positions", "decoder attention +"),
        ("decoder attention +", "cross +"),
        ("cross +", "decoder ffn +"),
    }


@pytest.mark.parametrize(
    "diagram",
    [
        diagrams.compare_normalize_mix(),
        diagrams.masked_scoring(),
        diagrams.sequence_to_sequence(),
        diagrams.multi_head(),
        diagrams.encoder_block(),
        diagrams.decoder_block(norm_first=True),
        diagrams.transformer(),
    ],
    ids=lambda diagram: diagram.title,
)
def test_a_colour_has_a_meaning_that_the_caption_tells(diagram):
    drawn = diagram.picture().svg
    assert [f"{colour}:" in diagram.caption for colour in ("Blue", "Orange")] == [
        f"var(--{colour})" in drawn for colour in ("blue", "orange")
    ]


def test_kernels_are_not_called_scores():
    diagram = diagrams.compare_normalize_mix("kernel of the distance", "divide by the sum", ("new", "stored", "values"))
    assert "score" not in diagram.description and "softmax" not in diagram.description


class SmallGPT(nn.Module):
    """A decoder-only model whose parts have the names that the diagram has."""

    def __init__(self, norm_first, tied):
        super().__init__()
        self.embedding, self.pos_embedding = nn.Embedding(11, 8), nn.Embedding(9, 8)
        self.blks = nn.ModuleList(d2l.TransformerEncoderBlock(8, 16, 2, norm_first=norm_first) for _ in range(2))
        self.norm = nn.LayerNorm(8) if norm_first else None
        self.dense = nn.Linear(8, 11, bias=False)
        if tied:
            self.dense.weight = self.embedding.weight

    def forward(self, tokens):
        X = self.embedding(tokens) + self.pos_embedding(torch.arange(tokens.shape[1]))
        for blk in self.blks:
            X = blk(X, causal=True)
        return self.dense(X if self.norm is None else self.norm(X))


@pytest.mark.parametrize(("norm_first", "tied"), [(True, True), (False, False), (True, False)])
def test_the_shapes_of_gpt_are_those_of_a_call(norm_first, tied):
    model = SmallGPT(norm_first, tied)
    diagram = diagrams.gpt(norm_first, tied)
    shown = words(diagram.on(model, torch.randint(11, (2, 5))))
    assert {"(2, 5)", "(2, 5, 8)", "(2, 5, 11)"} <= set(shown) and not any("(B" in text for text in shown)
    parts = dict(model.named_modules())
    for name in ("embedding", "pos_embedding", "dense", *(["norm"] if norm_first else [])):
        assert name in diagram.places.keys() & parts.keys()
    for name in ("attention", "addnorm1", "ffn", "addnorm2"):
        assert name in diagram.places and f"blks.0.{name}" in parts
    assert ("same matrix" in shown) == tied and shown.count("layer norm") == (3 if norm_first else 2)


class Product(nn.Module):
    def forward(self, left, right):
        return left @ right


class ThreeSteps(nn.Module):
    """Attention whose steps have the names that the diagram has."""

    def __init__(self):
        super().__init__()
        self.compare, self.normalize, self.mix = Product(), nn.Softmax(dim=-1), Product()

    def forward(self, queries, keys, values):
        return self.mix(self.normalize(self.compare(queries, keys.mT)), values)


def test_the_shapes_of_the_three_steps_are_those_of_a_call():
    diagram = diagrams.compare_normalize_mix("a kernel", "divide by the sum", ("dates", "days", "prices"))
    shown = words(diagram.on(ThreeSteps(), torch.randn(4, 3), torch.randn(6, 3), torch.randn(6, 2)))
    assert {"(4, 3)", "(6, 3)", "(6, 2)", "(4, 6)", "(4, 2)"} <= set(shown)
    assert {"compare: a kernel", "normalise: divide by the sum", "dates Q", "days K", "prices V"} <= set(shown)


def test_the_shapes_of_the_vision_transformer_are_those_of_a_call():
    model = d2l.ViT(12, 4, 8, 16, 2, 2, 0.0, 0.0, num_channels=3)
    diagram = diagrams.vision_transformer()
    shown = words(diagram.on(model, torch.randn(2, 3, 12, 12)))
    assert {"(2, 3, 12, 12)", "(2, 8, 3, 3)", "(2, 10, 8)", "(2, 10)"} <= set(shown)
    assert not any("(B" in text for text in shown)
    parts = dict(model.named_modules())
    assert {"patch_embedding.conv", "head"} <= diagram.places.keys() & parts.keys()
    assert all(name in diagram.places and f"blks.0.{name}" in parts for name in ("ln1", "attention", "ln2", "mlp"))


def test_targets_are_the_tokens_shifted_by_one():
    diagram = diagrams.shifted_targets(["a", "b", "c", "d"])
    shown = words(diagram)
    assert shown.count("a") == shown.count("d") == 1 and shown.count("b") == shown.count("c") == 2
    for i, target in enumerate("bcd", start=1):
        place, above = diagram.places[f"place {i}"], diagram.places[f"target {i}"]
        assert place.x == above.x == diagram.places[f"token {i}"].x
        at = next(n for n in svg(diagram).iter() if n.text == target and float(n.get("y")) < place.y)
        assert float(at.get("x")) == pytest.approx(above.x)
    assert "reads 1 to 3" in shown
    with pytest.raises(ValueError, match="two or more"):
        diagrams.shifted_targets(["a"])


def test_the_shapes_of_bert_are_those_of_a_call():
    config = d2l.BERTConfig(vocab_size=11, max_len=9, num_hiddens=8, num_heads=2, num_blks=2)
    model, tokens = d2l.BERTForPretraining(config), torch.randint(11, (3, 5))
    chosen = torch.zeros(3, 5, dtype=torch.bool).index_fill(1, torch.tensor([1, 3]), True)
    diagram = diagrams.bert()
    shown = words(diagram.on(model, tokens, chosen=chosen))
    assert {"(3, 5)", "(3, 5, 8)", "(6, 8)", "(6, 11)", "(3, 8)", "(3, 2)"} <= set(shown)
    assert not any("(B" in text or "(M" in text for text in shown)
    parts = dict(model.named_modules())
    dotted = {name for name in diagram.places if "." in name} | {"nsp"}
    assert dotted <= parts.keys() and "bert.pooler" in dotted
    assert parts["mlm.decoder"].weight is parts["bert.embedding"].weight
    for name in ("attention", "addnorm1", "ffn", "addnorm2"):
        assert name in diagram.places and f"bert.blks.0.{name}" in parts


def test_only_hidden_places_have_a_target():
    diagram = diagrams.masked_targets(["a", "b", "c", "d"], hidden=(2, 4))
    shown = words(diagram)
    assert shown.count("[MASK]") == 2 and shown.count("loss") == 2
    assert [shown.count(word) for word in "abcd"] == [1, 1, 1, 1] and shown.count("reads 1 to 4") == 4
    assert diagram.places["target 4"].x == diagram.places["token 4"].x
    for hidden in ((), (0,), (5,)):
        with pytest.raises(ValueError, match="from 1 to 4"):
            diagrams.masked_targets("abcd", hidden=hidden)


def test_the_shapes_of_the_heads_are_those_of_a_call():
    body = d2l.BERT(d2l.BERTConfig(vocab_size=11, max_len=9, num_hiddens=8, num_heads=2, num_blks=1))
    tokens, segments = torch.randint(11, (3, 5)), torch.tensor([[0, 0, 1, 1, 1]]).expand(3, 5)
    arrows = {(arrow.start, arrow.end): arrow.shape for arrow in diagrams.task_heads().arrows}
    heads = {
        "text": d2l.TextHead(body, 4),
        "pair": d2l.PairHead(body, 4),
        "tagging": d2l.TaggingHead(body, 4),
        "span": d2l.SpanHead(body),
    }
    for name, head in heads.items():
        found = shapes_of(head, tokens, segments)
        for part, key in (("dropout", (f"{name} body", f"{name} head")), ("", (f"{name} head", f"{name} softmax"))):
            letters = arrows[key].strip("()").split(", ")
            sizes = {"B": 3, "T": 5, "h": 8, "C": 4, "2": 2}
            assert found[part] == tuple(sizes[letter] for letter in letters), key


def test_the_loop_of_decoding_closes():
    arrows = {(arrow.start, arrow.end) for arrow in diagrams.decoding_loop().arrows}
    order = ["new", "model", "temperature", "top k", "top p", "softmax", "draw", "append", "new"]
    assert set(pairwise(order)) <= arrows and {("model", "cache"), ("cache", "model")} <= arrows


def test_the_shapes_of_the_embeddings_are_those_of_a_call():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(11, 8)

        def forward(self, ids):
            return self.embedding(ids)

    shown = words(diagrams.text_to_embeddings().on(Model(), torch.tensor([[3, 1, 2]])))
    assert "(1, 3)" in shown and "(1, 3, 8)" in shown and not any("(B" in text for text in shown)


def test_a_shape_that_does_not_fit_its_letters_is_refused():
    block = d2l.TransformerEncoderBlock(8, 16, 2)
    X = torch.randn(2, 5, 8)
    wrong = Diagram("t", "d").text("X", (0, 0)).box("ffn", (0, 2))
    wrong.arrow("X", "ffn", "(B, T, B)", of="ffn")
    with pytest.raises(ValueError, match=r"B is 2 elsewhere, but 8 in ffn: \(2, 5, 8\)"):
        wrong.on(block, X)
    wrong.arrows[0].shape = "(B, T)"
    with pytest.raises(ValueError, match=r"ffn gives \(2, 5, 8\), which is not \(B, T\)"):
        wrong.on(block, X)
    wrong.arrows[0].of = "mlp"
    with pytest.raises(ValueError, match="TransformerEncoderBlock has no part 'mlp'"):
        wrong.on(block, X)


def test_names_are_unique_and_known():
    diagram = Diagram("t", "d").box("a", (0, 0))
    with pytest.raises(ValueError, match="there is already a 'a'"):
        diagram.text("a", (0, 1))
    with pytest.raises(ValueError, match="nothing in this diagram is called 'b', only a"):
        diagram.arrow("a", "b")


def test_subscripts():
    assert "W<tspan" in Diagram("t", "d").box("q", (0, 0), "W_q")._repr_html_()


def test_shapes_of_leaves_no_hook_behind():
    block = d2l.TransformerEncoderBlock(8, 16, 2)
    found = shapes_of(block, torch.randn(2, 5, 8))
    assert found["ffn.dense1"] == (2, 5, 16) and found["input 0"] == found[""] == (2, 5, 8)
    assert not any(part._forward_hooks for part in block.modules())
    with pytest.raises(ValueError):
        shapes_of(block, torch.randn(2, 5, 9))
    assert not any(part._forward_hooks for part in block.modules())


def test_the_shapes_of_t5_are_those_of_a_call():
    model = d2l.T5(d2l.T5_CONFIGS["toy"]).eval()
    shown = words(diagrams.t5().on(model, torch.randint(2, 128, (3, 7)), torch.randint(2, 128, (3, 5))))
    assert {"(3, 7)", "(3, 5)", "(3, 7, 48)", "(3, 5, 48)", "(3, 5, 128)", "memory (3, 7, 48)"} <= set(shown)
    assert not any("(B" in text for text in shown)
    assert {"I X this Y", "start X love Y red car", "X love Y red car Z"} <= set(shown)
    with pytest.raises(ValueError, match="expected a word"):
        diagrams.t5(given=())


def test_each_expert_that_is_drawn_is_a_part_of_the_layer():
    drawn = diagrams.switch(4).places
    assert {"router", "experts.0", "experts.3"} <= drawn.keys() & dict(d2l.SwitchFFN(8, 4, 4).named_modules()).keys()
    for number in (1, 5):
        with pytest.raises(ValueError, match="expected 2 to 4"):
            diagrams.switch(number)


def test_the_shapes_of_clip_are_those_of_a_call():
    model = d2l.CLIP(d2l.CLIPConfig(vocab_size=9, max_len=6, num_embed=5)).eval()
    shown = words(diagrams.clip().on(model, torch.rand(3, 1, 28, 28), torch.randint(9, (3, 6))))
    assert {"(3, 1, 28, 28)", "(3, 6)", "(3, 5)", "(3, 3)"} <= set(shown)


def test_the_forms_of_a_residual_block_carry_the_sizes_that_are_given():
    sizes = {form: ([1.0, 5, 2.5], [0.5, 5, 0.25]) for form in ("post-norm", "pre-norm", "residual weight")}
    diagram = diagrams.residual_forms(sizes | {"pre-norm": ([1.0, 4.26], [0.75, 0.031])})
    shown = words(diagram)
    assert shown.count("stream 1.00, gradient 0.50") == shown.count("stream 2.50, gradient 0.25") == 2
    assert "stream 4.26, gradient 0.03" in shown and "stream 4.26, gradient 0.03" in diagram.description
    assert shown.count("LN") == 2 and shown.count("branch f") == 3 and shown.count("α") == 1
    places = diagram.places  # rows go up
    assert places["post-norm norm"].y < places["post-norm plus"].y < places["post-norm branch"].y
    assert places["pre-norm plus"].y < places["pre-norm branch"].y < places["pre-norm norm"].y
    with pytest.raises(ValueError, match="expected post-norm, pre-norm, residual weight"):
        diagrams.residual_forms({"post-norm": ([1], [1])})


def test_the_shapes_of_multi_head_attention_are_those_of_a_call():
    layer = d2l.MultiHeadAttention(12, 3)
    shown = words(diagrams.multi_head(3, 4).on(layer, torch.rand(2, 5, 12), *torch.rand(2, 2, 7, 12)))
    assert {"(2, 5, 12)", "(2, 7, 12)", "(2, 3, 5, 4)", "(2, 3, 7, 4)", "(2, 3, 5, 7)"} <= set(shown)
    assert "in each of 3 heads" in shown


def test_self_attention_draws_the_weights_and_the_shares_of_a_call():
    queries, keys = ((0.5, 1.0), (1.5, 0.0), (0.0, 0.0)), ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.5))
    diagram = diagrams.self_attention(("one", "two", "three"), queries, keys)
    q, k = torch.tensor(queries)[None], torch.tensor(keys)[None]
    expected = d2l.scaled_dot_product_attention(q, k, torch.eye(3)[None], scale=1.0)[0]  # the weights themselves
    shown = [float(text) for text in words(diagram) if re.fullmatch(r"\d\.\d\d", text)]
    assert shown == pytest.approx(expected.flatten().tolist(), abs=0.005)
    discs = [node for node in svg(diagram).iter() if node.tag.endswith("circle")]
    areas = torch.tensor([float(disc.get("r")) ** 2 for disc in discs]).view(3, 3)
    torch.testing.assert_close(areas / areas.sum(dim=1, keepdim=True), expected, atol=2e-3, rtol=0)
    bars = [node for node in svg(diagram).iter() if node.tag.endswith("rect") and node.get("rx") == "0"]
    shares = torch.tensor([float(bar.get("width")) for bar in bars]).view(3, 3)
    torch.testing.assert_close(shares / shares.sum(dim=1, keepdim=True), expected, atol=2e-3, rtol=0)
    assert "one: 0.31 of one, 0.51 of two" in diagram.description
    for wrong in (("one", "two"), ("one", "two", "too long")):
        with pytest.raises(ValueError, match="three words of at most six letters"):
            diagrams.self_attention(wrong)


class TwoTranslators(nn.Module):
    """One encoder with both decoders of chapter 04, under the names that the diagram has."""

    def __init__(self):
        super().__init__()
        self.encoder = d2l.Seq2SeqEncoder(11, 4, 8, 1)
        self.plain, self.attention = d2l.Seq2SeqDecoder(13, 4, 8, 1), d2l.Seq2SeqAttentionDecoder(13, 4, 8, 1)

    def forward(self, src, tgt):
        encoded = self.encoder(src)
        return [decoder(tgt, decoder.init_state(encoded))[0] for decoder in (self.plain, self.attention)]


def test_the_shapes_of_the_encoder_decoders_are_those_of_a_call():
    model, diagram = TwoTranslators().eval(), diagrams.sequence_to_sequence()
    shown = words(diagram.on(model, torch.randint(11, (2, 5)), torch.randint(13, (2, 6))))
    assert {"(5, 2, 8)", "(2, 1, 8)", "(2, 8)"} <= set(shown) and shown.count("(2, 6, 13)") == 2
    assert not any("(B" in text for text in shown)
    parts = dict(model.named_modules())
    assert {"encoder", "plain", "attention", "attention.attention"} <= diagram.places.keys() & parts.keys()


@pytest.mark.parametrize("width", [3, 5])
def test_layers_read_what_is_drawn(width):
    edges, way = ways(6, width)["convolution"]
    conv, X = nn.Conv1d(1, 1, width, padding="same", bias=False), torch.eye(6)[:, None]  # (6, 1, 6): one input each
    reads = (conv(X)[:, 0] != 0).tolist()  # of input i, which outputs see it
    assert {(i, j) for (row, i), (_, j) in edges if row == 0} == {
        (i, j) for i in range(6) for j in range(6) if reads[i][j]
    }
    assert len(way) == -(-5 // (width // 2)) and len(ways(6)["recurrent"][1]) == 6
    assert len(ways(6)["self-attention"][1]) == 1 and len(ways(6)["self-attention"][0]) == 36
    for edges, way in ways(6, width).values():
        assert set(way) <= set(edges) and all(a[1] == b[0] for a, b in pairwise(way))
        assert way[0][0] == (0, 0) and way[-1][1][1] == 5
    page = diagrams.mixing_layers(6, width)._repr_html_()
    assert page.count("var(--orange)") == sum(len(way) for _, way in ways(6, width).values())
    with pytest.raises(ValueError, match="odd number"):
        diagrams.mixing_layers(5, 4)


def test_pairs_are_turned_as_the_package_turns_them():
    diagram = diagrams.turned_pairs(query=(1.0, 0.0), key=(0.0, 1.0), query_at=1, key_at=2, later=3)
    where = {name: (place.x, -place.y) for name, place in diagram.places.items()}
    centre = [where[f"circle {i}"] for i in range(3)]
    for panel, label, pair, position in (
        (0, "3", (1, 0), 3),
        (1, "q", (1, 0), 1),
        (2, "q", (1, 0), 4),
        (2, "k", (0, 1), 5),
    ):
        x, y = (a - b for a, b in zip(where[f"{panel} {label}"], centre[panel], strict=True))
        expected = d2l.rotary(torch.tensor([[pair]], dtype=torch.float), offset=position)[0, 0]
        torch.testing.assert_close(torch.tensor([x, y]) / (1.17 * 88), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("img_size", "num_stages"), [(28, 2), (56, 3)])
def test_the_shapes_of_the_pyramid_are_those_of_a_call(img_size, num_stages):
    config = SwinConfig(img_size, num_hiddens=8, num_blks=(2,) * num_stages, num_heads=(1, 2, 4)[:num_stages])
    model, side = Swin(config).eval(), img_size // 2
    diagram = diagrams.pyramid(side, 7, num_stages)
    shown = words(diagram.on(model, torch.rand(3, 1, img_size, img_size)))
    last = f"7, 7, {8 * 2 ** (num_stages - 1)}"
    assert {f"(3, {side}, {side}, 8)", f"(3, {last})", "(3, 10)"} <= set(shown) and not any("(B" in x for x in shown)
    parts = dict(model.named_modules())
    drawn = {name for name in diagram.places if name.startswith(("stages.", "merging."))} | {"ln_patches", "head"}
    assert drawn <= parts.keys() and len(drawn) == 2 * num_stages + 1
    assert "1 window" in shown and shown.count("blocks in one window") == 1
    bars = [diagram.places[f"map {i}: bar"].width for i in range(num_stages)]
    assert bars == [bars[0] * 2**i for i in range(num_stages)]
    for wrong in (dict(num_stages=4), dict(side=15), dict(side=14, window_size=4)):
        with pytest.raises(ValueError, match=r"expected 2 or 3|cannot be merged|do not divide"):
            diagrams.pyramid(**wrong)


@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize("patch", [(3, 3), (7, 7), (0, 6)])
def test_patches_attend_as_they_are_drawn(patch, shift):
    layer, X = WindowAttention(6, 2, 4, shift).double(), torch.randn(1, 8, 8, 6, dtype=torch.float64)
    X.requires_grad_()
    layer(X)[0][patch].sum().backward()  # what one output reads
    reads = X.grad[0].abs().amax(-1) > 0
    assert torch.equal(reads, attended(8, 4, shift, patch))


def test_the_pieces_of_shifted_windows_are_what_a_patch_may_attend_to():
    diagram = diagrams.shifted_windows(8, 4, 2)
    shown, page = words(diagram), diagram._repr_html_()
    assert all(shown.count(str(number)) == 2 for number in range(9))  # in two panels
    light = [int(attended(8, 4, shift, patch).sum()) for shift in (0, 2, 2) for patch in ((3, 3), (7, 7))]
    assert light == [16, 16, 16, 4, 16, 4] and page.count('fill-opacity="0.3"') == sum(light)
    with pytest.raises(ValueError, match="shift is 0"):
        diagrams.shifted_windows(shift=0)


def test_the_sizes_of_both_attentions_are_those_of_a_call():
    diagram = diagrams.attention_both_ways(8, 6, 4, 2)
    channel, spatial = ChannelAttention(6, 2), d2l.MultiHeadAttention(6, 1)
    with d2l.capture_attention(channel) as channels, d2l.capture_attention(spatial) as patches:
        channel(torch.randn(1, 8, 6))
        spatial(*[torch.randn(2, 4, 6)] * 3)  # two windows of four patches
    for name, (calls,) in (("channel", channels.values()), ("spatial", patches.values())):
        drawn = [place for key, place in diagram.places.items() if key.startswith(f"{name} weights")]
        weights = calls[0]
        assert len(drawn) == weights.shape[:2].numel()
        assert {(place.height / 16, place.width / 16) for place in drawn} == {tuple(weights.shape[2:])}
    with pytest.raises(ValueError, match="divide"):
        diagrams.attention_both_ways(8, 6, 3, 2)


def test_a_reward_model_is_drawn_between_the_judge_and_the_policy():
    drawn = diagrams.alignment()
    arrows = [(arrow.start, arrow.end, arrow.shape) for arrow in drawn.arrows]
    assert ("judge", "reward model", "pairs") in arrows and ("reward model", "for the reward", "reward") in arrows
    assert "DPO has no reward model" in drawn.caption and "reward model" in drawn.description
