"""The playground: it shows what its worker says, its settings are its address, and what a reader does wrong is told."""

import html
import re
from dataclasses import dataclass

import pytest
from book_page import shown_in_book
from conftest import sphinx_extension

from d2lmini.figures import Playground
from d2lmini.figures.live.page import runtime_script, text_script
from d2lmini.figures.playground import SETTINGS, TEXTS
from tools.bundles import FIGURES

# what the worker says, from when this runs
LISTEN = """() => {
  window.heard = { asked: [], steps: [] };
  const ask = d2lminiLive.ask;
  d2lminiLive.ask = function (name, task, options, step) {
    if (task === "train") heard.asked.push({ ...options, at: performance.now() });
    return ask.call(this, name, task, options, (told) => {
      const { losses, look, ...rest } = told;
      const weights = look?.weights.map(({ data }) => [...data]);
      heard.steps.push({ ...rest, losses: [...losses], weights });
      step?.(told);
    });
  };
}"""
# at most so many steps in an answer of the worker
SLICED = """(most) => {
  const ask = d2lminiLive.ask;
  d2lminiLive.ask = function (name, task, options, step) {
    return ask.call(this, name, task, { ...options, most }, step);
  };
}"""
RUNNING = "[...document.querySelectorAll('button')].some((node) => node.textContent === 'Pause')"
FOCUSED = """(({ activeElement: one }) => one.getAttribute('aria-label') ?? one.labels?.[0]?.textContent
  ?? one.textContent)(document)"""
PUT = "(node, value) => { node.value = value; node.dispatchEvent(new Event('input', { bubbles: true })); }"


@pytest.fixture
def opened(open_figure):
    """A function that opens a playground whose worker is listened to; at the end nothing went wrong unseen."""
    pages = []

    def opened(figure=None, **options):
        page = open_figure(figure or Playground(address=True), **options)
        page.evaluate(LISTEN)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        assert page.log["errors"] == []
        assert all(url.startswith(("file:", "blob:", "data:")) for url in page.log["requests"])
        assert len([url for url in page.log["requests"] if url.startswith("file:")]) == 1


def press(page, name):
    page.get_by_role("button", name=name, exact=True).click()


def part(page, name):
    return page.locator(f"[data-part={name}]").inner_text().replace("\xa0", " ")


def go(page, address):
    page.evaluate(
        "(address) => new Promise((resolve) => { addEventListener('hashchange', () => setTimeout(resolve), "
        "{ once: true }); location.hash = address; })",
        address,
    )


def rest(page):
    """Waits until nothing is learned."""
    page.wait_for_function(f"!({RUNNING})")
    page.wait_for_timeout(150)


def step(page):
    return int(re.match(r"Step ([\d,]+)", part(page, "numbers"))[1].replace(",", ""))


def until(page, number):
    page.wait_for_function(
        "(n) => Number(/Step ([\\d,]+)/.exec(document.querySelector('[data-part=numbers]').textContent)[1]"
        ".replaceAll(',', '')) >= n",
        arg=number,
    )


def heard(page):
    return page.evaluate("heard")


# ---- settings


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fly": 1}, "there is no setting 'fly', expected of task, size"),
        ({"task": "fly"}, "task is 'fly', expected of copy, reverse"),
        ({"blocks": 5}, "blocks is 5, expected a whole number from 1 to 4"),
        ({"blocks": 1.5}, "blocks is 1.5, expected a whole number"),
        ({"rate": 11}, "rate is 11, expected 1e-05 to 10"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"causal": 1}, "causal is 1, expected of False, True"),
        ({"heads": True}, "heads is True, expected of 1, 2, 4, 8"),
        ({"batch": 5}, "batch is 5, expected of 4, 8"),
    ],
)
def test_settings_are_checked(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Playground(**wrong)


def test_settings_of_python_are_those_at_first(opened):
    page = opened(Playground(task="sort", blocks=1, rate=0.0025, heads=4))
    assert page.get_by_role("combobox", name="task").input_value() == "sort"
    assert page.get_by_role("combobox", name="heads").input_value() == "4"
    assert page.locator("label:has(> [aria-label=rate]) output").inner_text() == "0.0025"
    press(page, "One step")
    rest(page)
    options = heard(page)["asked"][0]
    assert options["data"] == {"name": "sort", "size": 6, "batch": 16, "letters": 10}
    assert options["optimizer"]["rate"] == 0.0025 and options["model"]["num_blks"] == 1
    assert page.evaluate("location.hash") == ""


# ---- what is seen


def test_what_it_shows_is_what_the_worker_says(opened):
    page = opened(Playground(address=True, longer=8))
    assert part(page, "numbers") == "Step 0 · 0.0 s of training."
    press(page, "Train")
    until(page, 101)
    press(page, "Pause")
    rest(page)
    told = heard(page)["steps"]
    last = [one for one in told if one.get("losses")][-1]
    held = [one["heldOut"] for one in told if one.get("heldOut")]
    seconds = sum(one["milliseconds"] for one in told if one.get("losses")) / 1000
    numbers = part(page, "numbers")
    assert step(page) == last["step"] == sum(len(one["losses"]) for one in told)
    assert f"{seconds:.1f} s of training" in numbers and f"{last['parameters']:,} parameters" in numbers
    recent = [loss for one in told for loss in one["losses"]][-20:]
    assert f"loss {sum(recent) / len(recent):.3f}" in numbers
    for one in (held[-1], *held[-1]["longer"]):
        assert f"{100 * one['tokens']:.1f} % of tokens right, {100 * one['sequences']:.1f} % of whole" in numbers
    assert "at 8: " in numbers
    rings = page.locator("[data-part=lines] circle").evaluate_all("all => all.map((node) => +node.dataset.loss)")
    assert rings == pytest.approx([one["loss"] for one in held], abs=1e-6)
    for name in ("embedding", "scores"):
        value = last["gradients"]["embedding" if name == "embedding" else "head"]
        page.get_by_text(re.sub(r"e([+-])0", r"e\1", f"{value:.2e}")).first.wait_for()
    weights = last["weights"]
    page.get_by_role("img", name="weights of block 1, head 1").focus()
    for key in ["ArrowDown"] * 3 + ["ArrowRight"]:
        page.keyboard.press(key)
    T = 13 + 2 * 0 - 1
    assert f"weight {weights[0][3 * T + 1]:.3f}." in part(page, "weights")
    page.get_by_role("button", name="block 2, head 2").click()
    assert f"weight {weights[1][T * T + 3 * T + 1]:.3f}." in part(page, "weights")


def test_answers_have_a_sign_and_wrong_tokens_a_line(opened):
    page = opened()
    press(page, "One step")
    rest(page)
    rows = page.locator("[data-part=examples] tbody tr")
    rows.nth(0).locator("u").first.wait_for()

    def look():
        for row in rows.all():
            sign, asked, right, guess = row.locator("th, td").all_inner_texts()
            assert right == asked[-2::-1] and asked[-1] == ">"
            wrong = row.locator("u").all_inner_texts()
            assert sign == ("✗" if wrong else "✓") and (guess == right) == (not wrong)
            assert sum(a != b for a, b in zip(guess, right, strict=True)) == len("".join(wrong))

    look()
    press(page, "Train")
    page.wait_for_function("document.querySelectorAll('[data-part=examples] th[aria-label=right]').length >= 5")
    press(page, "Pause")
    rest(page)
    look()


def test_the_reader_edits_the_example_of_the_heads(opened):
    page = opened()
    press(page, "Ten steps")
    rest(page)
    field = page.get_by_role("textbox", name="example")
    field.fill("abc>")
    page.wait_for_function("document.querySelectorAll('svg[role=img] text').length === 8")
    page.get_by_role("img", name="weights of").focus()
    for _ in range(9):
        page.keyboard.press("ArrowDown")
    assert "position 4, “>”, looks at position 1, “a”" in part(page, "weights")
    for text, said in (
        ("abZ", "“Z”" if False else '"Z" is none of the tokens of this task'),
        ("🙂", '"🙂" is none'),
        ("<img src=x onerror=alert(1)>", '"<" is none'),
        ("", "at least one token"),
        ("abcdefabcdefabc", "reads at most 12 tokens"),
    ):
        field.fill(text)
        assert said in part(page, "unread")
        assert page.locator("svg[role=img] text").count() == 8
    field.fill("ab")
    assert part(page, "unread") == ""


def test_earlier_runs_stay_behind_with_what_differs(opened):
    page = opened()
    go(page, "seed=2")
    for key in ("ArrowLeft", None):
        press(page, "Ten steps")
        rest(page)
        if key:
            page.get_by_role("slider", name="rate").press(key)
    assert page.locator("[data-part=lines] path").count() == 1, "another rate goes on with the model"
    assert step(page) == 20
    page.get_by_role("combobox", name="blocks").select_option("1")
    assert step(page) == 0
    press(page, "Ten steps")
    rest(page)
    legend = page.locator("[data-part=legend] li").all_inner_texts()
    assert len(legend) == 2 and legend[0].startswith("Run 1: blocks 2; held out ")
    assert "rate 0.003 → 0.002 at step 10" in legend[0] and legend[1].startswith("This run: blocks 1; held out")
    assert page.locator("[data-part=lines] path").count() == 2
    press(page, "Forget earlier runs")
    assert page.locator("[data-part=lines] path").count() == 1
    assert not page.get_by_role("button", name="Forget earlier runs").is_visible()


def test_a_link_begins_anew_and_another_task_forgets_the_runs(opened):
    page = opened()
    press(page, "Ten steps")
    rest(page)
    go(page, "rate=0.001")
    page.get_by_text("Step 0 ·").wait_for()
    assert page.locator("[data-part=lines] path").count() == 1  # the run before
    page.get_by_role("combobox", name="task").select_option("copy")
    assert page.locator("[data-part=lines] path").count() == 0


def test_letters_that_are_given_are_pale_and_a_finger_points(opened):
    page = opened()
    go(page, "task=recall&longer=10")
    press(page, "Ten steps")
    rest(page)
    assert "Pale ones are given" in page.inner_text("body")
    assert page.locator("[data-part=examples] td span").count() > 5
    assert page.locator("[data-part=lines] rect").count() > 0, "the loss of longer examples"
    image = page.get_by_role("img", name="weights of block 1, head 1")
    box = image.bounding_box()
    image.dispatch_event(
        "pointerdown", {"clientX": box["x"] + box["width"] - 3, "clientY": box["y"] + box["height"] - 3}
    )
    assert "position 1," not in part(page, "weights")


# ---- buttons and pace


def test_pause_step_ten_and_start_over(opened):
    page = opened()
    press(page, "One step")
    rest(page)
    assert step(page) == 1
    press(page, "Ten steps")
    rest(page)
    assert step(page) == 11
    press(page, "Train")
    until(page, 30)
    press(page, "Pause")
    rest(page)
    count = step(page)
    page.wait_for_timeout(400)
    assert step(page) == count, "it goes on after Pause"
    first = [loss for one in heard(page)["steps"] for loss in one["losses"]]
    page.get_by_role("button", name="Start over").click()
    assert step(page) == 0
    press(page, "Ten steps")
    rest(page)
    again = [loss for one in heard(page)["steps"] for loss in one["losses"]][len(first) :]
    assert again == first[:10], "the same seed learns the same"
    page.get_by_role("slider", name="seed").press("ArrowRight")
    press(page, "One step")
    rest(page)
    other = heard(page)["steps"][-1]
    assert other["step"] == 1 and other["losses"] != first[:1]


def test_the_screen_sets_the_pace_unless_asked(opened):
    page = opened()
    page.evaluate("""() => {
      window.changes = 0;
      new MutationObserver(() => changes++).observe(
        document.querySelector("[data-part=numbers]"), { childList: true, characterData: true, subtree: true });
    }""")
    press(page, "Train")
    until(page, 5)
    before = page.evaluate("[changes, performance.now(), heard.asked.length]")
    page.wait_for_timeout(2000)
    after = page.evaluate("[changes, performance.now(), heard.asked.length]")
    seconds = (after[1] - before[1]) / 1000
    assert (after[0] - before[0]) / seconds <= 10.5 and (after[2] - before[2]) / seconds <= 10.5
    page.get_by_role("combobox", name="pace").select_option("slow")
    page.wait_for_timeout(600)
    count = step(page)
    page.wait_for_timeout(2000)
    assert 2 <= step(page) - count <= 5
    page.get_by_role("combobox", name="pace").select_option("full")
    start = page.evaluate("heard.steps.length")
    page.wait_for_timeout(2500)
    press(page, "Pause")
    rest(page)
    told = heard(page)["steps"][start:]
    assert sum(one["milliseconds"] for one in told) > 1000, "it waits at full speed"


def test_what_is_changed_while_it_learns(opened):
    page = opened()
    press(page, "Train")
    until(page, 15)
    page.get_by_role("slider", name="rate").press("ArrowRight")
    count = step(page)
    until(page, count + 5)
    assert heard(page)["asked"][-1]["optimizer"]["rate"] == 0.005
    page.get_by_role("combobox", name="positions").select_option("none")
    page.wait_for_function("heard.asked.at(-1).model.positions === null && heard.steps.at(-1).step < 15")
    until(page, 5)
    assert page.locator("[data-part=lines] path").count() == 2
    press(page, "Pause")
    rest(page)


# ---- the address


def test_the_address_round_trip(opened):
    page = opened()
    page.get_by_role("combobox", name="task").select_option("look up")
    page.get_by_role("slider", name="rate").press("ArrowRight")
    page.get_by_label("residual connections").click()
    page.wait_for_function("location.hash.includes('residual')")
    address = page.evaluate("location.hash")
    assert address == "#task=look+up&residual=false&rate=0.005"
    other = opened()
    go(other, address[1:])
    assert other.get_by_role("combobox", name="task").input_value() == "look up"
    assert not other.get_by_label("residual connections").is_checked()
    assert part(other, "remark") == ""
    go(other, "blocks=3&fly=1&heads=3&rate=lots&width=16#x")
    assert other.get_by_role("combobox", name="blocks").input_value() == "3"
    assert part(other, "remark") == (
        "Left out, it is no setting of the playground: fly=1, heads=3, rate=lots, width=16#x."
    )
    go(other, "a-heading")
    assert other.get_by_role("combobox", name="blocks").input_value() == "3"
    other.evaluate("history.replaceState(null, '', '#blocks=4')")
    other.reload()
    other.wait_for_selector("d2lmini-playground[data-ready=yes]")
    other.wait_for_function("document.querySelector('[aria-label=blocks]').value === '4'")
    assert len([url for url in other.log["requests"] if url.startswith("file:")]) == 2
    other.log["requests"].clear()
    other.log["requests"].append("file:")


def test_a_challenge_is_shown_at_the_figure(opened):
    page = opened()
    page.evaluate("""() => { const node = document.createElement("section");
      node.id = "challenge-depth"; node.dataset.challenge = "Depth: find the head."; document.body.append(node); }""")
    go(page, "blocks=1&challenge=depth")
    assert part(page, "challenge") == "Depth: find the head." and part(page, "remark") == ""
    page.get_by_role("combobox", name="blocks").select_option("2")
    page.wait_for_function("location.hash === '#challenge=depth'")
    go(page, "blocks=4&challenge=%3Cimg%20src%3Dx%3E")
    assert part(page, "challenge") == ""


@dataclass
class Fake:
    name: str = "depth"
    title: str = "How deep <b>"
    task_for_reader: str = 'Train "both".'
    find: str = "Two & more."
    steps: int = 1000

    def __post_init__(self):
        self.addresses = {"one block": "blocks=1&task=sort", "as it is": ""}

    def found(self):
        return self.find


def test_a_challenge_is_taken_over_without_a_reload(open_page, tmp_path):
    shown = sphinx_extension("playground_page").challenges([Fake(), Fake("other", find=None)])
    file = tmp_path / "page.html"
    figure = Playground(address=True)._repr_html_()
    file.write_text(f'<!doctype html><meta charset="utf-8">{figure}{shown}', encoding="utf-8")
    page = open_page(file.as_uri())
    page.wait_for_selector("d2lmini-playground[data-ready=yes]")
    assert page.locator("section h3").all_inner_texts() == ["How deep <b>"] * 2
    assert page.locator("details:has-text('should find')").count() == 1
    assert not page.get_by_text("Two & more.").is_visible()
    page.get_by_text("What you should find").click()
    assert page.get_by_text("Two & more.").is_visible()
    page.evaluate("window.same = true")
    page.get_by_role("link", name="one block").first.click()
    page.wait_for_function("document.querySelector('[aria-label=blocks]').value === '1'")
    assert page.get_by_role("combobox", name="task").input_value() == "sort"
    assert part(page, "challenge") == 'How deep <b>. Train "both". Train for some 1,000 steps.' and page.evaluate(
        "same"
    )
    parts = set(page.evaluate("location.hash").removeprefix("#").split("&"))  # soon in another order
    assert parts == {"blocks=1", "task=sort", "challenge=depth"}
    page.get_by_role("link", name="as it is").nth(1).click()
    page.wait_for_function("document.querySelector('[aria-label=blocks]').value === '2'")
    assert page.locator("[data-part=challenge]").evaluate("node => node.getBoundingClientRect().top >= 0")
    assert page.log["errors"] == [] and len(page.log["requests"]) == 1


def test_copies(opened):
    page = opened()
    page.evaluate(
        "() => { window.copied = []; Object.defineProperty(navigator, 'clipboard', { configurable: true, value: "
        "{ writeText: async (text) => { copied.push(text); } } }); }"
    )
    go(page, "task=add&size=3")
    press(page, "Copy link")
    press(page, "Copy as Python")
    link, code = page.evaluate("copied")
    assert link.startswith("file://") and link.endswith("#task=add&size=3")
    assert 'd2l.PlaygroundData("add"' in code
    compile(code, "cell", "exec")
    page.evaluate("() => { navigator.clipboard.writeText = async () => { throw new Error('not allowed'); }; }")
    press(page, "Copy link")
    assert page.get_by_role("textbox", name="to be copied").input_value() == link


@pytest.mark.parametrize("address", ["task=text", "task=reverse", "optimizer=sgd&rate=10&norm=none"])
def test_the_numbers_of_a_step_are_the_same_whatever_slices_it_came_in(opened, address):
    shown = []
    for most in (1, 1000):
        page = opened()
        page.evaluate(SLICED, most)
        go(page, address)
        for _ in range(3):
            press(page, "Ten steps")
            rest(page)
        shown.append([re.search("Step [0-9]+|$", part(page, "numbers"))[0], part(page, "numbers").partition("loss")[2]])
        shown[-1] += [part(page, "remark"), page.locator("[data-part=lines]").inner_html()]
    assert shown[0] == shown[1] and (shown[0][1] or "exploded" in shown[0][2])


# ---- bad input


def test_a_rate_that_explodes_is_told_and_it_goes_back(opened):
    page = opened()
    go(page, "optimizer=sgd&rate=0.1")
    press(page, "Ten steps")
    rest(page)
    go(page, "optimizer=sgd&rate=10&norm=none")
    press(page, "Train")
    page.wait_for_function("document.querySelector('[data-part=remark]').textContent.includes('exploded')")
    rest(page)
    said = part(page, "remark")
    found = re.search(r"at step (\d+): the gradients had a norm of ([\d.e+]+), the rate is 10\.", said)
    back = int(re.search(r"The model is back at step (\d+)", said)[1])
    assert found and float(found[2]) > 0 and back <= int(found[1]) and step(page) == back
    page.wait_for_function("!/NaN|^$/.test(document.querySelector('[data-part=weights]').textContent)")
    assert page.locator("[data-part=lines] text", has_text="✕").count() == 1
    page.get_by_role("slider", name="rate").evaluate(PUT, "3")
    assert part(page, "remark") == ""
    press(page, "One step")
    rest(page)
    loss = heard(page)["steps"][-1]["losses"][0]
    assert loss < 3 and step(page) == back + 1, "it is back at weights that are as good as at the start"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("task=look+up&size=12", "12 pairs to look up, but only 10 letters in the alphabet"),
        ("task=look+up&size=4&longer=11", "size is 11, expected an integer from 1 to 10"),
        ("task=add&size=16", "size is 16, expected an integer from 1 to 15"),
        ("task=copy&size=1&letters=2", "there are too few examples of size 1"),
        ("task=text&text=own", "Paste a text of your own"),
    ],
)
def test_what_does_not_fit_is_told_before_training(opened, address, said):
    page = opened()
    go(page, address)
    assert said in part(page, "remark")
    assert page.get_by_role("button", name="Train").get_attribute("aria-disabled") == "true"
    for name in ("Train", "One step"):
        page.get_by_role("button", name=name, exact=True).click(force=True)
    page.wait_for_timeout(200)
    assert heard(page)["asked"] == []
    go(page, "task=sort")
    assert part(page, "remark") == ""
    press(page, "One step")
    rest(page)
    assert step(page) == 1


def test_an_address_opened_while_the_page_writes_its_own_is_followed(opened):
    page = opened()
    go(page, "task=add&size=16")
    assert part(page, "remark") != ""
    page.wait_for_function("location.hash.includes('size=16')")
    page.evaluate("""() => {
      const own = location.href;
      location.hash = "task=sort";
      history.replaceState(history.state, "", own);
    }""")
    page.wait_for_function("document.querySelector('[data-part=remark]').textContent === ''")
    page.wait_for_function("location.hash.includes('task=sort')")


RTL = "שלום עולם, זה טקסט מימין לשמאל. " * 20
PASTED = [
    ("short", "the text has 5 characters, expected at least 200"),
    ("a" * 5000, "one character alone"),
    ("ab" * 500_001, "1,000,002 characters, expected at most 1,000,000"),
    ("".join(map(chr, range(0x4E00, 0x5200))), "expected at most 250"),
    ("the cat 🙂 sat on 👩‍👩‍👧 the mat. " * 40, ""),
    (RTL, ""),
    ('<img src="x" onerror="document.title=1">' * 30, ""),
    ("x\r\ny\r\n" * 300, ""),
]


@pytest.mark.parametrize(("text", "said"), PASTED)
def test_a_text_of_ones_own(opened, text, said):
    page = opened()
    go(page, "task=text&text=own")
    page.get_by_role("textbox", name="your text").evaluate(PUT, text)
    assert said in part(page, "remark") and (said or not part(page, "remark"))
    if not said:
        press(page, "Ten steps")
        rest(page)
        assert step(page) == 10 and page.locator("[data-part=sample] [dir=auto]").inner_text() != ""
        assert page.locator("d2lmini-playground img").count() == 0 and page.title() == ""
    assert text[:20] not in page.evaluate("decodeURIComponent(location.hash)")


@pytest.mark.parametrize("name", TEXTS)
def test_the_texts_that_come_with_it(opened, name):
    page = opened()
    go(page, f"task=text&text={name}&size=16")
    press(page, "Ten steps")
    rest(page)
    asked = heard(page)["asked"][-1]["data"]
    from d2lmini.data.text import playground_text

    assert asked["text"] == playground_text(name) and step(page) == 10
    rows = page.locator("[data-part=examples] tbody tr")
    assert rows.count() == 3
    letters = rows.first.locator("td").nth(1).inner_text()
    assert letters.replace("↵", "\n").replace("␣", " ") in playground_text(name)


def test_a_tab_that_nobody_sees_rests(opened):
    page = opened()
    press(page, "Train")
    until(page, 5)
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', { configurable: true, value: hidden });" \
           " document.dispatchEvent(new Event('visibilitychange')); }"  # fmt: skip
    page.evaluate(hide, True)
    rest(page)
    count = step(page)
    page.wait_for_timeout(500)
    assert step(page) == count == heard(page)["steps"][-1]["step"]
    page.evaluate(hide, False)
    until(page, count + 5)
    press(page, "Pause")
    rest(page)
    page.evaluate(hide, True)
    page.evaluate(hide, False)
    page.wait_for_timeout(300)
    assert not page.evaluate(RUNNING), "a paused one stays so"


def test_a_figure_that_is_gone_stops(opened):
    page = opened()
    press(page, "Train")
    until(page, 5)
    page.evaluate("document.querySelector('d2lmini-playground').remove()")
    page.wait_for_timeout(700)
    count = page.evaluate("heard.steps.length")
    page.wait_for_timeout(500)
    assert page.evaluate("heard.steps.length") == count


def test_reset_brings_back_the_settings_and_stops(opened):
    page = opened(Playground(address=True, blocks=1))
    go(page, "blocks=4&task=copy")
    press(page, "Train")
    until(page, 3)
    page.get_by_role("button", name="Reset").click()
    assert page.get_by_role("combobox", name="blocks").input_value() == "1" and step(page) == 0
    page.wait_for_timeout(700)
    count = page.evaluate("heard.steps.length")
    page.wait_for_timeout(400)
    assert page.evaluate("heard.steps.length") == count and not page.evaluate(RUNNING)
    assert page.evaluate("location.hash") == "#blocks=1"


def test_a_worker_that_dies_is_told_and_train_begins_anew(opened):
    page = opened(script="""
      const Real = Worker;
      window.Worker = class extends Real { constructor(url) { super(url); window.worker = this; } };""")  # fmt: skip
    press(page, "Train")
    until(page, 15)
    page.evaluate("worker.onerror(new ErrorEvent('error', { message: 'out of memory' }))")
    page.wait_for_function("document.querySelector('[data-part=remark]').textContent.includes('stopped')")
    assert re.search(
        "The model has stopped: .*(out of memory|lost|learned yet). Train begins anew", part(page, "remark")
    )
    assert step(page) == 0
    press(page, "Train")
    until(page, 3)
    press(page, "Pause")
    rest(page)


WEAK = {
    "memory": "Object.defineProperty(navigator, 'deviceMemory', { value: 0.5 });",
    "SIMD": "const real = WebAssembly.validate; WebAssembly.validate = () => false;",
}


@pytest.mark.parametrize("what", WEAK)
def test_a_weak_machine_begins_small(opened, what):
    page = opened(script=WEAK[what])
    assert page.get_by_role("combobox", name="blocks").input_value() == "1"
    assert page.get_by_role("combobox", name="width").input_value() == "16"
    assert what in part(page, "remark") and "one block of width 16" in part(page, "remark")
    press(page, "One step")
    rest(page)
    assert step(page) == 1


def test_this_browser_has_simd(opened):
    assert part(opened(), "remark") == ""


# ---- for everybody


def test_by_keyboard_alone(opened):
    page = opened()
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name = page.evaluate(FOCUSED)
        reached.append(name)
        if name == "task":
            page.keyboard.press("ArrowUp")
        if name == "Train":
            page.keyboard.press("Enter")
            break
    assert page.get_by_role("combobox", name="task").input_value() == "copy"
    until(page, 5)
    page.keyboard.press("Enter")
    rest(page)
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
    for name in ("rate", "example that the heads look at", "block 1, head 1", "pace", "seed", "causal"):
        assert any(name in one for one in reached), name
    assert sum(one.startswith("block ") for one in reached) <= 2, "one stop for all heads"
    said = page.locator(".d2lmini-said").inner_text()
    assert said.startswith("Paused at step ")


def test_it_speaks_seldom(opened):
    page = opened()
    page.evaluate("""() => {
      window.said = [];
      new MutationObserver(() => said.push(document.querySelector(".d2lmini-said").textContent)).observe(
        document.querySelector(".d2lmini-said"), { childList: true, characterData: true, subtree: true });
    }""")
    press(page, "Train")
    page.wait_for_timeout(11_500)
    press(page, "Pause")
    rest(page)
    said = page.evaluate("said")
    assert len(said) == 3 and said[0] == "Learning from step 0." and said[1].startswith("Step ")
    assert said[2].startswith("Paused at step ")


def test_a_reader_who_wants_no_motion(opened):
    page = opened(reduced_motion="reduce")
    page.evaluate("""() => {
      window.changes = 0;
      new MutationObserver(() => changes++).observe(
        document.querySelector("[data-part=lines]"), { childList: true });
    }""")
    press(page, "Train")
    until(page, 1)
    before = page.evaluate("changes")
    page.wait_for_timeout(3000)
    assert page.evaluate("changes") - before <= 4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_has_the_curve_and_train_on_one_screen(opened, theme):
    page = opened(width=390, theme=theme)
    assert page.locator("details[open]").count() == 0
    press(page, "Ten steps")
    rest(page)
    go(page, "task=text&size=64&blocks=4&heads=8&longer=100")
    press(page, "One step")
    rest(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for node in (page.get_by_role("button", name="Train"), page.locator("svg").first):
        box = node.bounding_box()
        top = page.locator("d2lmini-playground").bounding_box()["y"]
        assert box["y"] + box["height"] - top <= 900


def test_enlarged_to_400_per_cent_all_controls_are_in_the_column(opened):
    page = opened(width=1280)
    page.set_viewport_size({"width": 320, "height": 900})
    assert page.locator("details[open]").count() >= 3
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_nothing_is_loaded_before_train(open_page, tmp_path):
    """In the book: the runtime and a text are files that come when they are needed."""
    shown = shown_in_book(tmp_path, Playground(address=True))
    folder = tmp_path / "_static" / "live"
    folder.mkdir(parents=True)
    (folder / "runtime.js").write_text(runtime_script(), encoding="utf-8")
    for name in TEXTS:
        (folder / f"text_{name}.js").write_text(text_script(name), encoding="utf-8")
    file = tmp_path / "page.html"
    file.write_text(f'<!doctype html><html data-content_root="./"><meta charset="utf-8">{shown}', encoding="utf-8")
    page = open_page(file.as_uri())
    page.wait_for_selector("d2lmini-playground[data-ready=yes]")
    go(page, "task=text&text=names&size=8")
    assert len(page.log["requests"]) == 3
    press(page, "Ten steps")
    rest(page)
    assert step(page) == 10
    names = [url.rpartition("/")[2].partition("?")[0] for url in page.log["requests"] if url.startswith("file:")]
    assert (
        names == ["page.html", "base.js", "playground.js", "runtime.js", "text_names.js"] and page.log["errors"] == []
    )


def test_without_javascript_a_table_says_what_can_be_set(open_page, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(f'<!doctype html><meta charset="utf-8">{Playground()._repr_html_()}', encoding="utf-8")
    page = open_page(file.as_uri(), java_script_enabled=False)
    text = page.locator("d2lmini-playground").inner_text()
    assert "which needs JavaScript" in text and "learning rate" in text
    assert page.locator("tbody tr").count() == len(SETTINGS)
    assert html.escape(SETTINGS["rate"][2]) in text


def test_no_html_is_written_from_what_comes_in():
    files = list(FIGURES.glob("playground/*.js"))
    assert files and not [file for file in files if "innerHTML" in file.read_text(encoding="utf-8")]
