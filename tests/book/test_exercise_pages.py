"""Pages of exercises in a browser: choices that answer, ticks, what is kept, and how one gets there and away."""

import json
import re
from itertools import cycle
from types import SimpleNamespace

import pytest
from conftest import BOOK, sphinx_extension
from docutils import nodes
from sphinx import addnodes

from d2lmini.exercises.engine import registry
from tools import exercise_places, site

NAME = "03_attention_scoring"
PAGE = f"exercises/{NAME}.html"
KEY = "udl-12.5b"
OPTIONS = registry.find(KEY)[1].lettered
RIGHT = next(letter for letter, option in OPTIONS.items() if option.right)
WRONG, OTHER = [letter for letter in OPTIONS if letter != RIGHT][:2]
FORBIDDEN = (
    "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no'); }, configurable: true })"
)


def option(page, letter):
    return page.locator(f".choice[data-part='{KEY}'] .option[data-letter={letter}]")


def status(page):
    return page.locator(f".choice[data-part='{KEY}'] [role=status]").inner_text()


def tally(page):
    return page.locator(".exercise-tally").inner_text()


def kept(page):
    text = page.evaluate("localStorage.getItem('d2lmini:progress')")
    return json.loads(text)["parts"] if text else {}


def check(page, letter, on="> p"):
    """Select an option by a click on its text or its button, and check it."""
    option(page, letter).locator(on).click()
    page.get_by_role("button", name="Check my choice").click()


def why(page, letter):
    """Whether the explanation of an option can be read: None, closed or open."""
    fold = option(page, letter).locator(".why")
    return None if not fold.is_visible() else "open" if fold.evaluate("node => node.open") else "closed"


def test_the_button_answers_and_the_answer_is_kept(open_page, exercise_base):
    page = open_page(f"{exercise_base}/{PAGE}")
    assert {why(page, letter) for letter in OPTIONS} == {None} and status(page) == ""
    check(page, WRONG)
    assert status(page).startswith(f"{WRONG} is wrong.") and OPTIONS[WRONG].why[:20] in option(page, WRONG).inner_text()
    assert why(page, WRONG) == "open" and why(page, OTHER) is None and why(page, RIGHT) is None
    check(page, RIGHT, "input")
    assert status(page).startswith(f"{RIGHT} is right.") and why(page, RIGHT) == "open" and why(page, OTHER) == "closed"
    entry = {"tries": 2, "passed": True, "last": "passed", "review": "", "ticked": False, "chosen": WRONG + RIGHT}
    assert kept(page) == {KEY: entry}
    check(page, OTHER)  # to read on is no try
    assert status(page).startswith(f"{OTHER} is wrong.") and kept(page) == {KEY: entry}
    page.reload()
    page.get_by_role("status").filter(has_text=f"{RIGHT} is right.").wait_for()  # a busy browser is late
    assert option(page, RIGHT).locator("input").is_checked()
    assert why(page, OTHER) == "closed" and "Choices answered right: 1 of 1." in tally(page)
    page.get_by_role("button", name="Forget my answer").click()
    assert kept(page) == {} and status(page) == "" and why(page, RIGHT) is None
    assert page.locator(f".choice[data-part='{KEY}'] input:checked").count() == 0 and page.log["errors"] == []


def test_to_select_is_no_answer(open_page, exercise_book):
    page = open_page(f"{exercise_book.as_uri()}/{PAGE}", has_touch=True)
    group = page.get_by_role("group", name="Choose one:")
    radios = group.get_by_role("radio")
    first = next(iter(OPTIONS))
    assert radios.count() == len(OPTIONS) and radios.first.evaluate(
        "node => document.getElementById(node.getAttribute('aria-labelledby')).innerText"
    ).startswith(f"{first}. {OPTIONS[first].text[:10]}")
    ways = [
        lambda letter: option(page, letter).locator("> p").click(),
        lambda letter: option(page, letter).locator("input").click(),
        lambda letter: option(page, letter).locator("> p").tap(),
        lambda letter: option(page, letter).locator("input").tap(),
    ]
    for letter, select in zip(cycle(OPTIONS), ways):
        select(letter)
        assert option(page, letter).locator("input").is_checked() and status(page) == "" and kept(page) == {}
    radios.first.focus()
    for key, selected in (("Space", 0), ("Space", 0), ("ArrowDown", 1), ("Space", 1), ("ArrowUp", 0)):
        page.keyboard.press(key)
        assert radios.nth(selected).is_checked() and status(page) == "" and kept(page) == {}


def test_enter_answers_where_one_is_selected(open_page, exercise_book):
    page = open_page(f"{exercise_book.as_uri()}/{PAGE}")
    option(page, WRONG).locator("> p").click()
    page.keyboard.press("Enter")
    assert status(page).startswith(f"{WRONG} is wrong.") and kept(page)[KEY]["tries"] == 1


def test_the_same_letter_twice_running_is_one_try(open_page, exercise_book):
    page = open_page(f"{exercise_book.as_uri()}/{PAGE}")
    tries = []
    for letter in (WRONG, WRONG, "reload", WRONG, OTHER, WRONG):
        page.reload() if letter == "reload" else check(page, letter)
        tries.append(kept(page)[KEY]["tries"])
    assert tries == [1, 1, 1, 1, 2, 3] and status(page).startswith(f"{WRONG} is wrong.")


def test_where_nothing_can_be_kept_the_page_answers_and_says_so(open_page, exercise_base):
    page = open_page(f"{exercise_base}/{PAGE}", script=FORBIDDEN)
    check(page, RIGHT)
    assert status(page).startswith(f"{RIGHT} is right.")
    assert "Choices answered right: 1 of 1." in tally(page)
    assert "keeps nothing" in tally(page)


def test_a_tick_is_kept_and_is_no_pass(open_page, exercise_book):
    page = open_page(f"{exercise_book.as_uri()}/{PAGE}")
    box = page.locator(".tick[data-part='d2l-11.3.1']").get_by_role("checkbox", name="I solved this")
    box.check()
    assert kept(page)["d2l-11.3.1"]["ticked"] and not kept(page)["d2l-11.3.1"]["passed"]
    page.reload()
    assert box.is_checked() and "Code and other parts you ticked: 1 of 4." in tally(page)
    assert "passed" not in page.locator("article").inner_text().casefold()


def test_a_solution_is_behind_one_fold_with_its_check(open_page, exercise_book):
    page = open_page(f"{exercise_book.as_uri()}/{PAGE}")
    fold = page.locator("details.solution").first
    assert not fold.locator("pre").first.is_visible()
    page.get_by_text("Show the solution", exact=True).first.click()
    assert "def distance_attention" in fold.inner_text() and "PASSED d2l-11.3.1" in fold.inner_text()
    names = page.locator("article summary").all_inner_texts()
    assert not any("Show code cell" in name for name in names)
    assert page.locator("article :is(.tag_setup, .fold)").count() == 0


def test_without_javascript_everything_can_be_unfolded(open_page, exercise_book):
    page = open_page(f"{exercise_book.as_uri()}/{PAGE}", java_script_enabled=False)
    page.get_by_text(f"Check {RIGHT}", exact=True).click()
    assert OPTIONS[RIGHT].why[:20] in option(page, RIGHT).inner_text()
    assert page.locator("article input").count() == 0


def test_without_javascript_the_top_says_what_is_missing(open_page, exercise_book):
    line = "Without JavaScript figures are tables, and nothing can be moved, ticked or kept."
    for path in (PAGE, f"chapters/{NAME}.html"):
        said = open_page(f"{exercise_book.as_uri()}/{path}", java_script_enabled=False).locator("article h1 + noscript")
        assert said.inner_text() == line
        assert not open_page(f"{exercise_book.as_uri()}/{path}").get_by_text(line).is_visible()
    page = open_page(f"{exercise_book.as_uri()}/troubleshooting.html", java_script_enabled=False)
    assert page.get_by_text(line).count() == 0  # nothing moves there


def test_links_of_the_intro_lead_to_the_first_choice_and_to_a_copy(open_page, exercise_book):
    page = open_page(f"{exercise_book.as_uri()}/{PAGE}")
    link = page.get_by_role("link", name="the first choice question")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{PAGE}#{registry.anchor(KEY)}")
    assert page.locator(":target .choice").get_attribute("data-part") == KEY
    page.get_by_role("link", name="on your own machine").click()
    page.wait_for_url("**/troubleshooting.html#your-own-machine")
    assert page.locator(":target h2", has_text="Your own machine").is_visible()


def test_what_is_done_is_marked_at_the_link_in_the_chapter(open_page, exercise_base):
    page = open_page(f"{exercise_base}/{PAGE}")
    check(page, RIGHT)
    page.locator(".tick[data-part='d2l-11.3.1'] input").check()
    page.goto(f"{exercise_base}/chapters/{NAME}.html")

    def line(key):
        return page.locator("p.exercise-here", has=page.locator(f"a[href$='#{registry.anchor(key)}']"))

    marks = page.get_by_role("img", name="answered or ticked")
    assert line("d2l-11.3.1").inner_text().endswith(" ✓") and line("udl-12.5").inner_text().endswith(" ✓ 1 of 2 parts")
    assert "✓" not in line("d2l-11.3.2").inner_text() and marks.count() == 2 and page.log["errors"] == []
    page.evaluate("bookProgress.forget()")
    assert marks.count() == 0


def test_it_is_legible_on_a_phone(open_page, exercise_book):
    page = open_page(f"{exercise_book.as_uri()}/{PAGE}", width=390, theme="dark")
    check(page, WRONG)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = page.locator("article :is(form input, form button, .tick input)").evaluate_all(
        "all => all.map(node => node.getBoundingClientRect().height)"
    )
    assert len(sizes) > 8 and min(sizes) >= 24
    assert page.locator(".option").first.evaluate("node => node.getBoundingClientRect().height") >= 24


# ---- the ways


def test_the_way_is_chapter_exercises_next_chapter(exercise_book):
    chapter, html = ((exercise_book / path).read_text(encoding="utf-8") for path in (f"chapters/{NAME}.html", PAGE))
    assert re.search(rf'class="right-next"\s+href="\.\./exercises/{NAME}\.html"', chapter)
    assert re.search(rf'class="left-prev"\s+href="\.\./chapters/{NAME}\.html"', html)
    assert re.search(r'class="right-next"\s+href="\.\./your_progress\.html"', html)


def test_an_exercise_page_is_no_numbered_section(exercise_book):
    html = (exercise_book / PAGE).read_text(encoding="utf-8")
    assert "section-number" not in html.partition("<article")[2].partition("</article")[0]
    chapter = (exercise_book / f"chapters/{NAME}.html").read_text(encoding="utf-8").partition("<article")[2]
    assert '<span class="section-number">3.1. ' in chapter


def test_the_address_of_the_solutions_leads_to_the_page(open_page, exercise_book):
    page = open_page(f"{exercise_book.as_uri()}/exercises/solutions/{NAME}.html", java_script_enabled=False)
    page.wait_for_url(f"**/{PAGE}")
    assert page.locator("article h1").inner_text().startswith("Exercises 03")


def test_a_mention_leads_to_the_exercise_that_it_names():
    links = sphinx_extension("exercise_links")
    tree = nodes.paragraph()
    page = "exercises/16_decoding"
    for target, text in ((page, "Exercise own-16.4"), (page, "here"), (None, "x")):
        tree += addnodes.pending_xref("", nodes.inline("", text), reftarget=target)
    links.complete_links(tree)
    assert [link.get("reftargetid") for link in tree] == ["own-16-4", None, None]


def test_a_key_in_running_text_becomes_a_link(tmp_path):
    links, solved = sphinx_extension("exercise_links"), tmp_path / "exercises" / "solutions" / f"{NAME}.ipynb"
    solved.parent.mkdir(parents=True)
    solved.write_text("")
    said = "As in udl-12.5b and d2l-11.3.1: not own-04.1, which is in no page here, nor own-99.1."
    tree = nodes.section("", nodes.paragraph("", said), nodes.paragraph("", "", nodes.literal("", "udl-12.5")))
    links.link_mentions(tree, SimpleNamespace(srcdir=str(tmp_path), docname="exercises/x"))
    made = list(tree.findall(addnodes.pending_xref))
    assert [(link.astext(), link["reftarget"], link["reftargetid"]) for link in made] == [
        ("udl-12.5b", f"exercises/{NAME}", "udl-12-5b"),
        ("d2l-11.3.1", f"exercises/{NAME}", "d2l-11-3-1"),
    ]
    assert tree[0].astext() == said


PAGES_OF_THE_BOOK = [name for name, _ in site.chapters()]


@pytest.mark.browser  # reads the built book
@pytest.mark.parametrize("name", PAGES_OF_THE_BOOK)
def test_every_exercise_is_linked_from_its_section_and_back(name, book_url):
    def read(path):
        return (BOOK / path).read_text(encoding="utf-8")

    chapter, exercises = read(f"chapters/{name}.html"), read(f"exercises/{name}.html")
    places = {key: nodes.make_id(exercise_places.places()[key].title) for key in registry.keys(name[:2])}
    lines = re.findall(r'<p class="exercise-here">.*?href="\.\./exercises/(\w+)\.html#([\w-]+)"', chapter, re.S)
    assert sorted(lines) == sorted((name, registry.anchor(key)) for key in places)
    for key, place in places.items():
        assert f'id="{registry.anchor(key)}"' in exercises and f'href="../chapters/{name}.html#{place}"' in exercises
        section = re.search(rf'<section [^>]*id="{place}"', chapter).start()
        line = re.search(rf'<p class="exercise-here">[^#]*#{registry.anchor(key)}"', chapter).start()
        inside = chapter[section:line]  # sections that begin there end there, but for its own
        assert inside.count("<section") == inside.count("</section") + 1


@pytest.mark.browser
def test_the_sidebar_is_short_and_exercises_hang_below_their_chapter(open_page, book_url):
    page = open_page(f"{book_url}/chapters/03_attention_scoring.html")
    links = page.locator("nav.bd-links a:visible")
    assert links.count() < 40
    assert page.locator("nav.bd-links .bd-toc-item").evaluate("node => node.scrollHeight") < 1800
    own = page.locator("nav.bd-links li.current:has(> details)")
    assert own.locator("> details a:visible").all_inner_texts() == ["Exercises"]
    names = page.locator("nav.bd-links summary").evaluate_all("all => all.map(n => n.getAttribute('aria-label'))")
    assert names == ["Exercises"] * len(PAGES_OF_THE_BOOK)


def test_no_page_links_to_a_page_of_solutions():
    pages = [path for path in BOOK.rglob("*.html") if "solutions" not in path.parts]
    assert pages or not BOOK.exists()
    told = [str(p) for p in pages if re.search(r'href="[^"#:]*solutions/\w+\.html', p.read_text(encoding="utf-8"))]
    assert told == []
