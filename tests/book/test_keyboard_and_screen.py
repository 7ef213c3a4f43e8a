"""A page by keyboard, on a touch screen, on a phone, and without JavaScript; an address that leads nowhere."""

import itertools
import shutil

import pytest
from browser_actions import SPOKEN, faults_of

PAGE = "chapters/01_one.html"


@pytest.fixture
def page(open_page, small_book):
    return open_page(f"{small_book[1]}/{PAGE}", everything=True)


def test_the_first_tab_stop_skips_to_the_text(page):
    page.keyboard.press("Tab")
    link = page.locator(":focus")
    assert link.inner_text() == "Skip to main content" and link.is_visible()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('article')")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('article') !== null")


def test_on_the_search_page_it_skips_to_the_box(open_page, small_book):
    page = open_page(f"{small_book[1]}/search.html")
    page.locator("#pst-skip-link a").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.matches('main input[name=q]')")


def test_formulas_are_read_aloud_but_no_tab_stops(page):
    page.wait_for_selector("article mjx-container")
    assert page.locator("article mjx-assistive-mml math").count() == page.locator("article .math").count() > 1
    focusable = "all => all.filter((node) => node.tabIndex >= 0).length"
    assert page.locator("article mjx-container, article mjx-container *").evaluate_all(focusable) == 0


def test_outputs_are_no_tab_stops_and_have_no_copy_button(page):
    page.wait_for_selector("article button.copybtn")
    outputs = page.locator("article .cell_output")
    assert outputs.locator("pre").count() > 2 and outputs.locator("button").count() == 0
    assert outputs.locator("pre").evaluate_all("all => all.filter((node) => node.tabIndex >= 0).length") == 0
    assert page.locator("article .cell_input button.copybtn").count() == page.locator("article .cell_input pre").count()


@pytest.mark.parametrize("touch", [False, True])
def test_a_copy_button_is_seen_by_touch_and_by_keyboard(open_page, small_book, touch):
    page = open_page(f"{small_book[1]}/{PAGE}", everything=True, has_touch=touch, is_mobile=touch)
    button = page.locator("article .cell_input button.copybtn").first
    look = "node => { node.style.transition = 'none'; return getComputedStyle(node).opacity; }"
    assert button.evaluate(look) == ("1" if touch else "0")
    button.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert button.evaluate(look) == "1" and button.evaluate("n => getComputedStyle(n).outlineStyle") == "solid"
    assert button.bounding_box()["width"] >= 24


@pytest.mark.parametrize(("width", "title"), [(1280, 40), (390, 28)])
def test_a_heading_is_larger_than_those_below_it_and_no_lighter(open_page, small_book, width, title):
    page = open_page(f"{small_book[1]}/{PAGE}", everything=True, width=width)
    page.evaluate(
        "document.querySelector('article section').append(...['h2', 'h3', 'h4'].map((n) => document.createElement(n)))"
    )
    names = ("h1", "section > h2", "section > h3", "section > h4")
    look = "node => [parseFloat(getComputedStyle(node).fontSize), +getComputedStyle(node).fontWeight]"
    sizes, weights = zip(*(page.locator(f"article {name}").last.evaluate(look) for name in names), strict=True)
    assert sizes[0] == pytest.approx(title, abs=0.5)
    assert all(above > 1.1 * below for above, below in itertools.pairwise(sizes)), sizes
    assert list(weights) == sorted(weights, reverse=True)


def test_where_a_link_has_led_is_marked_and_not_painted(open_page, small_book):
    page = open_page(f"{small_book[1]}/{PAGE}#ideas")
    heading = page.locator(":target > h2")
    assert heading.evaluate("node => getComputedStyle(node).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert heading.evaluate("node => getComputedStyle(node).boxShadow") != "none"


def test_the_bar_of_a_phone_has_few_icons_and_the_index_fits(open_page, small_book):
    page = open_page(f"{small_book[1]}/{PAGE}", width=390)
    icons = page.locator(".bd-header-article .btn:visible")
    assert 2 <= icons.count() <= 5
    page.set_viewport_size({"width": 1280, "height": 900})
    assert icons.count() > 5
    page = open_page(f"{small_book[1]}/genindex.html", width=390)
    column = "<td><ul><li>a_long_name_of_a_function()</li></ul></td>"
    table = f'<table class="genindextable"><tr>{column * 2}</tr></table>'
    page.locator("article").evaluate("(node, table) => { node.innerHTML = table; }", table)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
@pytest.mark.parametrize("name", [PAGE, "chapters/02_two.html", "search.html?q=apricot", "genindex.html"])
def test_axe_finds_nothing_serious_in_a_page_with_all_that_is_around_the_text(
    open_page, small_book, name, theme, width
):
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(f"{small_book[1]}/{name}", theme=theme, width=width, everything=True)
    page.wait_for_load_state("networkidle")
    rules = [rule for rule in Axe().run(page).response["violations"] if rule["impact"] in ("serious", "critical")]
    assert [(rule["id"], node["html"][:120]) for rule in rules for node in rule["nodes"]] == []
    assert faults_of(page, *SPOKEN) == []


def test_a_long_word_among_the_finds_goes_on_in_the_next_line(open_page, small_book):
    page = open_page(f"{small_book[1]}/search.html?q=apricot", width=320)  # 1280 pixels at 400 per cent
    page.wait_for_selector(".book-search p")
    page.locator(".book-search p").first.evaluate("node => { node.textContent = 'a_name_of_'.repeat(9); }")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_without_javascript_formulas_are_set_and_nothing_is_dead(open_page, small_book):
    page = open_page(f"{small_book[1]}/{PAGE}", java_script_enabled=False)
    assert page.locator("article .math:visible").count() == 0 < page.locator("article .math").count()
    assert page.locator("article noscript > math:visible").count() == page.locator("article .math").count()
    assert page.locator("article noscript msup").first.is_visible()
    assert page.locator(".bd-header-article :is(button, label, .fold-switch):visible").count() == 0
    colour = "node => getComputedStyle(node).backgroundColor"
    assert page.locator(".bd-header-article").evaluate(colour) == "rgb(255, 255, 255)"
    assert "\\(" not in page.locator("article").inner_text()


def test_with_javascript_a_formula_is_there_once(page):
    page.wait_for_selector("article mjx-container")
    assert page.locator("article math").count() == page.locator("article mjx-assistive-mml > math").count() > 1
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


@pytest.mark.parametrize("place", ["missing.html", "chapters/missing.html", "exercises/solutions/missing.html"])
def test_a_page_for_an_address_that_leads_nowhere(open_page, small_book, place):
    folder, url = small_book
    (folder / place).parent.mkdir(exist_ok=True)
    shutil.copy(folder / "404.html", folder / place)  # what a host shows at this address
    page = open_page(f"{url}/{place}")
    assert page.log["errors"] == [] and page.locator("h1").inner_text() == "This page is not in the book"
    page.get_by_role("link", name="The front page").click()
    page.wait_for_url(f"{url}/intro.html")
    assert page.locator("article h1").inner_text().startswith("A small book")


def test_the_folder_leads_to_the_front_page_and_asks_for_nothing_that_is_not_there(open_page, small_book):
    page = open_page(f"{small_book[1]}/")
    page.wait_for_url(f"{small_book[1]}/intro.html")
    assert page.log["errors"] == [] and not [url for url in page.log["requests"] if url.endswith(".ico")]
    assert 'rel="icon"' in (small_book[0] / "index.html").read_text(encoding="utf-8")
