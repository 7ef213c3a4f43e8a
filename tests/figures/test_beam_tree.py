"""The beam tree: the record is the package's search, and the page shows its numbers and sequences."""

import pytest
import torch

import d2lmini as d2l
from d2lmini import results
from d2lmini.figures import BeamTree

WORDS = ["<bos>", "<eos>", "the", "a", "black", "cat", "dog", "sleeps", "eats", "extraordinarily", "now", "here"]


def model(seed):
    """Scores of the next token given the last one."""
    logits = 1.5 * torch.randn(12, 12, generator=torch.Generator().manual_seed(seed))
    logits[:, 0] = logits[0, 1] = -9
    return lambda tokens, state: (logits[tokens], state), logits.log_softmax(-1)


def tree(seed=64, max_len=6, **options):
    step, log_probs = model(seed)
    return BeamTree.of(step, (), 0, 1, max_len, WORDS, **options), step, log_probs


def sequence(search, t, i):
    """The tokens of the sequence that ends at place i of column t, counted from 1."""
    place, word, *_ = search["columns"][t - 1][i]
    return [*(sequence(search, t - 1, place) if t > 1 else []), word]


@pytest.mark.parametrize("seed", [1, 3, 8, 64, 333])
@pytest.mark.parametrize("length_penalty", [0.0, 0.8])
def test_the_record_is_the_search_of_the_package(seed, length_penalty):
    shown, step, log_probs = tree(seed, length_penalty=length_penalty)
    greedy = d2l.greedy_search(step, (), torch.tensor([0]), 1, 6)
    want = [WORDS[i] for i in greedy.tokens[0]]
    assert shown.state["searches"]["1"]["best"] == want[: want.index("<eos>") + 1 if "<eos>" in want else None]
    for size, search in shown.state["searches"].items():
        found = d2l.beam_search(step, (), torch.tensor([0]), 1, 6, int(size), length_penalty)
        assert search["best"] == [WORDS[i] for i in found.tokens[0][: found.valid_lens[0] + 1]]
        assert search["score"] == pytest.approx(found.scores.item(), abs=1e-4)
        for t, column in enumerate(search["columns"], start=1):
            totals = [total for _, _, total, _ in column]
            assert totals == sorted(totals, reverse=True) and len(column) == max(6, 2 * int(size))
            fates = [fate for *_, fate in column]
            ends = [word == "<eos>" for _, word, *_ in column]
            going = [i for i in range(2 * int(size)) if not ends[i]][: int(size)]
            assert [i for i, fate in enumerate(fates) if fate == "kept"] == going
            assert [i for i, fate in enumerate(fates) if fate == "ended"] == [i for i in range(int(size)) if ends[i]]
            for i, (parent, _, total, _) in enumerate(column):
                ids = [0, *(WORDS.index(word) for word in sequence(search, t, i))]
                assert total == pytest.approx(sum(log_probs[a, b].item() for a, b in zip(ids, ids[1:])), abs=1e-4)  # noqa: B905, RUF007
                assert t == 1 or search["columns"][t - 2][parent][3] == "kept"


def test_it_ends_where_the_search_ends():
    columns = {size: len(search["columns"]) for size, search in tree(64)[0].state["searches"].items()}
    assert columns["1"] == 6 and columns["4"] < 6  # a short sequence wins, and nothing can catch up
    fates = [fate for column in tree(64)[0].state["searches"]["4"]["columns"] for *_, fate in column]
    assert "ended" in fates


def test_a_step_that_is_not_a_function_is_found_out():
    _, log_probs = model(1)

    def dropping(tokens, state):
        return log_probs[tokens] + torch.randn(12), state

    with pytest.raises(ValueError, match=r"beam_search .*: does step change the state"):
        BeamTree.of(dropping, (), 0, 1, 6, WORDS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_sizes": (1, 5)}, "expected numbers from 1 to 4"),
        ({"beam_sizes": ()}, "nothing to show"),
        ({"beam_sizes": (1, 2), "beam_size": 3}, "no search of beam size 3, only 1, 2"),
        ({"shown": 7}, "shown is 7, expected 0 to"),
        ({"max_len": 0}, "max_len is 0"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tree(**options)


def test_a_record_that_is_none_is_refused():
    search = {"columns": [[[-1, "a", -1.0, "kept"]], [[1, "b", -2.0, "kept"]]], "best": ["a", "b"], "score": -2.0}
    with pytest.raises(ValueError, match="step 2 of beam size 1 has a parent 1, expected 0 to 0"):
        BeamTree({1: search})
    with pytest.raises(ValueError, match="beam size 1 lacks best, score"):
        BeamTree({1: {"columns": search["columns"]}})
    search["columns"][1][0] = [0, "b", -2.0, "lost"]
    with pytest.raises(ValueError, match="says 'lost'"):
        BeamTree({1: search})
    with pytest.raises(ValueError, match="0 steps, but its best sequence 2 tokens"):
        BeamTree({1: {**search, "columns": []}})


def test_the_fallback_compares_the_widths():
    shown = tree(64)[0]
    text, searches = shown.fallback(), shown.state["searches"]
    for size, search in searches.items():
        row = f'<th scope="row">{size}</th><td>{" ".join(search["best"])}</td><td>{search["score"]:.2f}</td>'
        assert row.replace("<eos>", "&lt;eos&gt;") in text
    assert text.count("<td>never</td>") == 1  # greedy parts with itself never


def test_it_is_small():
    assert len(tree(1)[0]._repr_html_()) < 38_000


def test_the_page_grows_the_tree(open_figure):
    shown = tree(64)[0]
    page = open_figure(shown)
    assert "The search is over" in page.locator(".d2lmini-note").inner_text()
    note, sign = page.locator(".d2lmini-note"), lambda x: f"{x:.2f}".replace("-", "−")

    def names():
        return page.locator("svg [role=button]").evaluate_all(
            "all => all.map((node) => node.getAttribute('aria-label'))"
        )

    for size in ("4", "2", "1"):
        page.get_by_role("combobox", name="beam").select_option(size)
        page.get_by_role("slider", name="step").press("Home")
        search, want = shown.state["searches"][size], ["start, <bos>"]
        assert names() == want and "Nothing is chosen yet" in note.inner_text()
        for t, column in enumerate(search["columns"], start=1):
            page.get_by_role("button", name="next").click()
            want += [
                f"token {t}, rank {i}: {word}, {sign(total)}, {fate}"
                for i, (_, word, total, fate) in enumerate(column, start=1)
            ]
            assert [name[max(name.find("token "), 0) :] for name in names()] == want  # behind what is written there
            fates = [fate for *_, fate in column]
            assert f"Step {t}: {fates.count('kept')} kept, {fates.count('ended')} ended" in note.inner_text()
        assert f"“{' '.join(search['best'])}” is best, with {sign(search['score'])}." in note.inner_text()
        lit = page.locator("svg [aria-pressed=true]").evaluate_all(
            "all => all.map((n) => n.getAttribute('aria-label'))"
        )
        assert [label.split(": ")[1].split(",")[0] for label in lit[1:]] == search["best"]
        parting = page.locator(".d2lmini-parting").inner_text()
        greedy = shown.state["searches"]["1"]["best"]
        first = next((i for i, (a, b) in enumerate(zip(greedy, search["best"], strict=False), 1) if a != b), None)
        assert parting == "" if size == "1" else parting.endswith(f"they part at token {first}.")
    assert page.locator("svg circle").count() == 1 + 6 - 1  # greedy's own path has a dot everywhere

    # pointing at a continuation tells its sequence; keys go through the tree
    page.get_by_role("combobox", name="beam").select_option("3")
    page.get_by_role("slider", name="step").press("End")
    search = shown.state["searches"]["3"]
    page.get_by_role("button", name="token 2, rank 3").hover()
    _, _, total, fate = search["columns"][1][2]
    assert note.inner_text().startswith(f"“{' '.join(sequence(search, 2, 2))}”: −")
    assert note.inner_text().endswith(f"= {sign(total)}, rank 3 of step 2: {fate}.")
    page.mouse.move(1, 1)
    assert "The search is over" in note.inner_text()
    page.get_by_role("button", name="start").focus()
    for keys, where in (("ArrowRight", (1, 0)), ("ArrowDown", (1, 1)), ("ArrowRight", None), ("ArrowLeft", (1, 1))):
        page.keyboard.press(keys)
        label = page.locator(":focus").get_attribute("aria-label")
        if where is None:  # to the first child
            i = next(i for i, (parent, *_) in enumerate(search["columns"][1]) if parent == 1)
            where = (2, i)
        assert f", token {where[0]}, rank {where[1] + 1}:" in label
        if where != (1, 0):
            assert f"“{' '.join(sequence(search, *where))}”" in note.inner_text()
    assert page.log["errors"] == []


def test_the_keyboard_reaches_a_tree_that_is_wider_than_the_screen(open_figure):
    page = open_figure(tree(64, beam_size=1, shown=6)[0], width=1280)
    box = page.locator(".d2lmini-scroll")
    assert box.evaluate("node => node.tabIndex") == -1  # nothing to scroll to, nothing to stop at
    page.set_viewport_size({"width": 320, "height": 900})
    page.wait_for_function("document.querySelector('.d2lmini-scroll').tabIndex === 0")
    page.evaluate("document.querySelector('.d2lmini-scroll').scrollLeft = 0")
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('.d2lmini-scroll').scrollLeft > 0")


RECORDED = {int(k): search for k, search in results.load("gpt_gutenberg", "laptop")["metrics"]["tree"].items()}
PROMPT = results.load("gpt_gutenberg", "laptop")["metrics"]["next"]["contexts"][0]


GAPS = """all => all.flatMap((node) => {
  const [word, number] = [...node.querySelectorAll('text')].map((text) => text.getBoundingClientRect());
  return number ? [number.left - word.right] : []; })"""  # between the words and their numbers


def test_the_fallback_spells_words():
    text = BeamTree(RECORDED, start=PROMPT, beam_size=2).fallback()
    assert "<td>I know.</td>" in text and "<td>I&#x27;ll tell you what you</td>" in text and "▁" not in text
    assert PROMPT.split()[-1] + "”" in text


@pytest.mark.parametrize("width", [390, 768])
def test_the_first_state_teaches_and_fits(open_figure, width):
    """The finished tree of chapter 16, with the prompt, the best sequence and where greedy decoding parts from it."""
    page = open_figure(BeamTree(RECORDED, start=PROMPT, beam_size=2), width=width)
    page.evaluate("document.body.style.cssText = 'margin: 0 16px; font-family: system-ui'")
    figure, box, cue = (page.locator(name) for name in (".d2lmini-figure", ".d2lmini-scroll", ".d2lmini-cue"))
    assert f"Prompt: {PROMPT} …" in figure.inner_text()
    assert page.locator("svg text").all_text_contents()[0] == f"…{PROMPT.split()[-1]}"  # the root
    assert "“I know.” is best, with −7.45" in page.locator(".d2lmini-note").inner_text()
    assert "they part at token 3" in page.locator(".d2lmini-parting").inner_text()
    lit = page.locator("svg [aria-pressed=true]").evaluate_all("all => all.map((n) => n.getAttribute('aria-label'))")
    assert [label.split(": ")[1].split(",")[0] for label in lit[1:]] == ["I", "know", "."]
    assert cue.inner_text() == ("→" if width == 390 else "")  # on a phone it scrolls, and says so
    for size in ("2", "1", "3", "4"):
        page.get_by_role("combobox", name="beam").select_option(size)
        assert "The search is over" in page.locator(".d2lmini-note").inner_text()
        assert figure.bounding_box()["height"] <= (900 if width == 390 else 680)
        wider = box.evaluate("node => node.scrollWidth > node.clientWidth")
        assert wider == (width == 390)
        assert min(page.locator("svg g[role=button]").evaluate_all(GAPS)) >= 3
    assert page.evaluate("document.documentElement.scrollWidth") == width and page.log["errors"] == []
