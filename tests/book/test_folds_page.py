"""Folds and predictions in Chromium, on a small book: by mouse, by keyboard, by ear, on paper, without JavaScript."""

import json
import time

import pytest
from conftest import EVERYTHING
from small_book import ANSWERS, FOLDED, OPEN, ask, fold, is_open, sees

TITLES = ["Setup: the package, and what this page imports", "Check: the package agrees", "Record: the number"]
TITLES += ["Caveats of two", "Going further"]
ONE, TWO, EXERCISES = "chapters/01_one.html", "chapters/02_two.html", "exercises/01_one.html"
BLOCKED = """Object.defineProperty(window, 'localStorage', {
  get() { throw new DOMException('blocked', 'SecurityError'); },
  configurable: true,
})"""
IN_SIGHT = "Math.abs(document.querySelector(':target')?.getBoundingClientRect().top - 100) < 100"


@pytest.fixture
def go(open_page, small_book):
    """A function that opens a page of the small book, once its script has run."""

    def go(name=ONE, base=small_book[1], **options):
        page = open_page(f"{base}/{name}", **options)
        if options.get("java_script_enabled", True):
            page.wait_for_selector("html[data-folds=ready]", state="attached")
        return page

    return go


def test_what_is_folded_is_out_of_sight_and_the_rest_is_there(go):
    page = go()
    assert sees(page, *FOLDED, *ANSWERS) == [] and sees(page, *OPEN) == list(OPEN)
    titles = page.locator("article details.fold > summary").all_text_contents()
    assert [title.strip().rstrip("#") for title in titles] == TITLES
    fold(page, "Setup").locator("> summary").click()
    assert sees(page, "gooseberry", "measured in a jiffy") == ["gooseberry", "measured in a jiffy"]
    assert fold(page, "Check").locator("pre").text_content().strip() == "assert blueberry"
    assert page.locator("article").get_by_text("@title").count() == 0
    assert sees(page, "Summary") and sees(page, "Before you touch it:")


@pytest.mark.parametrize("name", ["the inside", "the fold", "a caveat"])
@pytest.mark.parametrize("where", ["http", "file"])
def test_a_link_opens_what_it_leads_into_each_time(go, small_book, name, where):
    page = go(base=small_book[1] if where == "http" else small_book[0].as_uri())
    title = "Caveats" if name == "a caveat" else "Going further"
    for _ in range(2):  # the second time the address is the same
        assert not is_open(fold(page, title))
        page.get_by_role("link", name=name).click()
        page.wait_for_function(IN_SIGHT)
        assert is_open(fold(page, title))
        fold(page, title).evaluate("node => { node.open = false; scrollTo(0, 0); }")


@pytest.mark.parametrize("anchor", ["deep-inside", "going-further"])
def test_an_address_opens_what_it_leads_into(go, anchor):
    page = go(f"{ONE}#{anchor}")
    assert is_open(fold(page)) and not is_open(fold(page, "Setup"))
    page.wait_for_timeout(300)  # the words of a search are looked for after the page has loaded
    page.wait_for_function(IN_SIGHT)


@pytest.mark.parametrize("script", ["", "delete HTMLElement.prototype.onbeforematch"])  # without hidden=until-found
def test_a_link_from_another_page_opens_it_and_one_to_an_answer_shows_that(go, script):
    page = go(TWO, script=script)
    page.get_by_role("link", name="the first").click()
    page.wait_for_selector("#deep-inside")
    assert is_open(fold(page)) and sees(page, "huckleberry") and not sees(page, "jujube")
    page.evaluate("document.querySelector('.predict-answer li').id = 'point'")
    page.evaluate("location.hash = '#point'")
    page.wait_for_function(IN_SIGHT)
    assert sees(page, "two apricots") and not sees(page, "damson")


def test_one_switch_opens_everything_on_all_pages_until_it_is_off(go):
    page = go()
    switch = page.get_by_role("switch", name="Open everything")
    assert not switch.is_checked()
    switch.check()
    assert sees(page, *FOLDED, *ANSWERS) == [*FOLDED, *ANSWERS] and not page.locator("form:visible").count()
    page.goto(page.url.replace(ONE, TWO))
    assert switch.is_checked() and sees(page, "kiwi")
    page.goto(page.url.replace(TWO, ONE))
    page.reload()
    assert switch.is_checked() and sees(page, *FOLDED, *ANSWERS) == [*FOLDED, *ANSWERS]
    fold(page).locator("> summary").click(position={"x": 5, "y": 5})
    assert not sees(page, "hazelnut"), "one fold closes by itself"
    switch.uncheck()
    assert sees(page, *FOLDED, *ANSWERS) == []
    page.reload()
    assert not switch.is_checked() and sees(page, *FOLDED, *ANSWERS) == []


def test_the_switch_leaves_hints_of_exercises_closed(go):
    page = go(EXERCISES, everything=True)
    assert page.get_by_role("switch").count() == 0 and not sees(page, "gooseberry") and not sees(page, "lime")
    fold(page, "Setup").locator("> summary").click()
    assert sees(page, "gooseberry")


def test_what_an_exercise_asks_to_predict_hides_no_code(go):
    page = go(EXERCISES)
    assert page.locator("p.predict").count() == 1 and sees(page, "lychee = ...")
    assert page.locator(".predict-place, .predict-answer").count() == 0


def test_the_search_in_the_page_looks_into_folds_and_answers(go):
    """By a text fragment, which goes the way of Ctrl+F: headless Chromium has no such bar."""
    for words in ("huckleberry is deep", "measured in a jiffy", "They are two apricots", "here it is the jackfruit"):
        page = go(f"{ONE}#:~:text={words.replace(' ', '%20')}")
        page.get_by_text(words).first.wait_for(state="visible")
    assert not sees(page, "measured in a jiffy", "two apricots")
    assert ask(page).is_visible() and not ask(page, 3).is_visible()


def test_the_search_of_the_book_opens_and_marks_what_it_finds(go, small_book):
    for word in ("hazelnut", "apricots", "blueberry"):
        page = go(TWO)
        page.goto(f"{small_book[1]}/search.html?q={word}")
        page.locator(".book-search a").first.click()
        page.wait_for_url("**/01_one.html*")
        page.locator(".highlighted", has_text=word).first.wait_for(state="visible")
    page.goto(f"{small_book[1]}/search.html?q=forget")  # the forms are not among what is found
    page.get_by_text("Nothing in the book").wait_for()


@pytest.mark.parametrize("script", [True, False])
def test_paper_shows_everything(go, script):
    page = go(java_script_enabled=script)
    page.emulate_media(media="print")
    assert sees(page, *FOLDED, *ANSWERS) == [*FOLDED[2:], *ANSWERS], "all but the setup cell"
    assert not page.locator(".predict-place:visible, .fold-switch:visible").count()
    page.emulate_media(media="screen")
    assert sees(page, *FOLDED) == []


def test_printing_opens_and_closes_again(go):
    page = go()
    count = "document.querySelectorAll('article details:not([open])').length"
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.left = {count}; }})")
    page.pdf()
    assert page.evaluate("window.left") == 0 and sees(page, *FOLDED) == []


def test_by_keyboard(go):
    page = go()
    summary = fold(page).locator("> summary")
    page.get_by_role("switch").focus()
    for _ in range(40):
        if summary.evaluate("node => node === document.activeElement"):
            break
        page.keyboard.press("Tab")
    else:
        pytest.fail("the Tab key does not come to the fold")
    for key, opened in (("Enter", True), ("Enter", False), ("Space", True), ("Space", False)):
        page.keyboard.press(key)
        assert is_open(fold(page)) == opened
    page.get_by_role("switch").focus()
    page.keyboard.press("Space")
    assert is_open(fold(page))


def test_what_a_screen_reader_is_told(go):
    page = go()
    tree = page.context.new_cdp_session(page)

    def told(name):
        found = tree.send("Accessibility.getFullAXTree")["nodes"]
        named = [n for n in found if name in n.get("name", {}).get("value", "") and not n["ignored"]]
        roles = {n["role"]["value"]: n for n in named}
        state = {p["name"]: p["value"].get("value") for n in roles.values() for p in n.get("properties", [])}
        return roles, state

    for title in ("Going further", "Caveats of two", "Check: the package agrees", "Setup: the package"):
        roles, state = told(title)
        assert "DisclosureTriangle" in roles and state["expanded"] is False, (title, roles.keys())
        assert roles["DisclosureTriangle"]["name"]["value"].startswith(title)
    assert "heading" in told("Going further")[0]
    fold(page).evaluate("node => { node.open = true; }")
    assert told("Going further")[1]["expanded"] is True
    assert told("Open everything")[1]["checked"] == "false"
    described = page.locator(".predict-place form").first.get_attribute("aria-describedby")
    assert page.locator(f"#{described}").inner_text().startswith("Predict: how many are they")
    assert page.get_by_role("group", name="Your prediction").is_visible()


def test_without_javascript_it_reads_as_it_is_written(go, small_book):
    page = go(java_script_enabled=False)
    assert sees(page, *ANSWERS) == list(ANSWERS) and sees(page, *FOLDED) == []
    assert not page.locator(".predict-place:visible, .fold-switch:visible").count()
    fold(page).locator("> summary").click(position={"x": 5, "y": 5})
    assert sees(page, "hazelnut", "jackfruit") == ["hazelnut", "jackfruit"]
    page.goto(f"{small_book[1]}/{ONE}#deep-inside")
    page.get_by_text("huckleberry").wait_for(state="visible")


def test_where_the_script_does_not_arrive_it_reads_so_too(open_page, small_book):
    page = open_page("about:blank")
    page.route("**/folds.js*", lambda route: route.abort())
    page.goto(f"{small_book[1]}/{ONE}")
    assert sees(page, *ANSWERS) == list(ANSWERS) and not page.locator(".predict-place:visible").count()


def test_a_choice_opens_the_answer_and_is_kept(go):
    page = go()
    assert ask(page).get_by_role("radio").count() == 3
    ask(page).get_by_role("button", name="Commit").click()
    assert not sees(page, "two apricots"), "nothing is chosen yet"
    ask(page).get_by_label("(c)").check()
    ask(page).get_by_role("button", name="Commit").click()
    for _ in range(2):
        assert sees(page, *ANSWERS) == list(ANSWERS[:4])
        assert ask(page).get_by_role("status").inner_text() == "You predicted (c)"
        assert ask(page, 1).get_by_role("status").inner_text() == ""
        page.reload()
    page.get_by_role("switch").check()
    assert ask(page).get_by_role("status").is_visible() and not ask(page, 1).is_visible()
    page.get_by_role("switch").uncheck()
    ask(page).get_by_role("button", name="Forget it").click()
    assert sees(page, *ANSWERS) == [] and not ask(page).locator("input:checked").count()
    page.reload()
    assert sees(page, *ANSWERS) == []


def test_a_number_is_typed_and_nothing_is_not_taken_for_one(go):
    page = go()
    field = ask(page, 1).get_by_label("Your prediction")
    for nothing in ("", "   "):
        field.fill(nothing)
        field.press("Enter")
        assert not sees(page, "damson")
    field.fill(" 3.5 <b>")
    field.press("Enter")
    assert sees(page, "cherry = 4", "damson") and not sees(page, "two apricots")
    assert ask(page, 1).get_by_role("status").inner_text() == "You predicted 3.5 <b>"
    assert page.evaluate("document.activeElement.matches('.predict-answer')")
    kept = json.loads(page.evaluate("JSON.stringify(Object.entries(localStorage))"))
    assert [value for name, value in kept if name.startswith("d2lmini:predict-")] == ["3.5 <b>"]
    ask(page, 1).get_by_role("button", name="Forget it").click()
    assert page.evaluate("document.activeElement.name") == "said" and field.input_value() == ""


def test_an_answer_is_shown_without_a_prediction_and_asked_for_again(go):
    page = go()
    ask(page, 2).get_by_role("button", name="Show it").click()
    assert sees(page, *ANSWERS) == ["by the fig"] and not ask(page, 2).is_visible()
    page.reload()
    assert sees(page, *ANSWERS) == []


def test_where_storage_is_blocked_it_works_as_long_as_the_page_is_open(go):
    page = go(script=BLOCKED)
    ask(page).get_by_label("(b)").check()
    ask(page).get_by_role("button", name="Commit").click()
    assert sees(page, *ANSWERS) == list(ANSWERS[:4])
    assert ask(page).get_by_role("status").inner_text() == "You predicted (b)"
    page.get_by_role("switch").check()
    assert sees(page, *FOLDED, *ANSWERS) == [*FOLDED, *ANSWERS]
    modes = []
    for _ in range(3):
        page.get_by_role("button", name="Color mode").click()
        modes.append(page.evaluate("document.documentElement.dataset.mode"))
    assert sorted(modes) == ["auto", "dark", "light"] and page.log["errors"] == []


@pytest.mark.parametrize("everything", [False, True])
def test_nothing_jumps(open_page, small_book, everything):
    page = open_page("about:blank", everything=everything)
    page.route("**/mathjax/**", lambda route: route.abort())  # formulas do
    page.route("**/folds.js*", lambda route: (time.sleep(0.5), route.continue_()))  # on a slow line
    page.goto(f"{small_book[1]}/{ONE}")
    page.wait_for_timeout(300)
    moved = page.evaluate("""new Promise((done) => new PerformanceObserver((list) => done(
        list.getEntries().reduce((sum, { value }) => sum + value, 0))).observe({ type: 'layout-shift', buffered: true })
        || setTimeout(() => done(0), 500))""")
    assert moved < 0.03  # the theme moves a little, as its icons arrive


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
@pytest.mark.parametrize("everything", [False, True])
def test_axe_finds_nothing_and_nothing_is_too_wide(go, theme, width, everything):
    from axe_playwright_python.sync_playwright import Axe

    page = go(theme=theme, width=width, everything=everything)
    if not everything:
        ask(page, 1).get_by_label("Your prediction").fill("w" * 120)
        ask(page, 1).get_by_role("button", name="Commit").click()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0 and page.log["errors"] == []
    small = page.locator(
        ":is(.predict-place, .fold-switch) :is(button, input:not([type=radio], [type=checkbox]), label)"
    )
    assert small.evaluate_all("all => all.filter((n) => n.offsetWidth && n.offsetHeight < 24).length") == 0
    found = Axe().run(page, context="article").response["violations"]
    assert [(rule["id"], node["html"][:120]) for rule in found for node in rule["nodes"]] == []
    assert (page.evaluate(f"localStorage.getItem({json.dumps(EVERYTHING)})") == "yes") == everything
