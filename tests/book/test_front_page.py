"""The front page and the README: what is computed for them, and the front page in a browser."""

import html
import re

import pytest
import torch
from conftest import BOOK, ROOT, sphinx_extension
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from d2lmini import results
from d2lmini.figures.translator import translate
from d2lmini.models.weights.trained import trained
from tools import course, findings, pages, site
from tools.core import minutes

INTRO = (ROOT / "intro.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = re.search(r"```\{front-page\} look\n(.*?)\n```", INTRO, re.S)[1]
front_page = sphinx_extension("front_page")
pictograms = sphinx_extension("pictograms")


def coloured(code):
    return highlight(code, PythonLexer(), HtmlFormatter())


# ---- the translator


def test_translations_that_are_shown_are_those_of_the_model_and_good_ones():
    model = trained("translator_tatoeba")
    assert {text: translate(model, text) for text in front_page.SHOWN} == front_page.SHOWN
    page = html.unescape(front_page.PARTS["translator"]())
    assert all(said in page for said in front_page.SHOWN.values())


# ---- routes and times


@pytest.mark.parametrize(("name", "numbers"), course.routes())
def test_a_route_has_everything_that_its_chapters_need_in_order(name, numbers):
    assert numbers[0] == "01" and len(set(numbers)) == len(numbers)
    for at, number in enumerate(numbers):
        chapter = course.table()["chapters"][number]
        needs = {*chapter["needs"], *chapter.get("also", {}).get("needs", [])}
        assert needs <= set(numbers[:at]), (name, number)


def test_a_route_that_leaves_out_a_need_is_noticed():
    needs = course.table()["chapters"]["07"]["needs"]
    assert not set(needs) <= {"01", "03", "05", "06"}  # the short cut that an early draft promised


def test_three_routes_and_one_reads_everything():
    routes = dict(course.routes())
    assert list(routes) == ["From attention to GPT", "Vision", "Everything"]
    assert routes["Everything"] == list(course.NAMES)
    assert routes["From attention to GPT"][-1] == "15" and "10" in routes["Vision"]


def test_times_are_those_of_the_chapters():
    shown = front_page.PARTS["routes"](CODE, coloured)
    for name, numbers in course.routes():
        total = sum(minutes(course.NAMES[number]).core for number in numbers)
        assert f"<h3>{name}</h3>" in shown and f"{len(numbers)} chapters, {course.spent(total)}<" in shown
    cards = front_page.PARTS["chapters"](CODE, coloured)
    times = re.findall(r'class="front-time">([^<]+)', cards)
    assert times == [course.spent(minutes(name).core) for name, _ in site.chapters()]
    first = course.spent(minutes(site.chapters()[0][0]).core)
    assert f"<b>Start: chapter 1</b>, {first}</a>" in front_page.PARTS["look"](CODE, coloured)
    assert f"on Colab, {first}." in README


@pytest.mark.parametrize(("took", "words"), [(5, "5 min"), (60, "1 h"), (125, "2 h 5 min"), (0, "0 min")])
def test_minutes_in_words(took, words):
    assert course.spent(took) == words


# ---- the figure and its code


def test_eight_lines_give_the_numbers_of_the_figure():
    assert len(CODE.splitlines()) == 8 and max(map(len, CODE.splitlines())) <= 44
    names = {}
    exec(CODE, names)
    figure = front_page.plane(CODE)
    torch.testing.assert_close(names["weights"].double(), figure.weights, rtol=0, atol=1e-6)
    torch.testing.assert_close(names["output"].double(), figure.output, rtol=0, atol=1e-6)
    shown = html.unescape(front_page.PARTS["look"](CODE, coloured))
    for i, weight in enumerate(names["weights"].tolist(), 1):
        assert re.search(rf">{i}</th>.*?<td>{weight:.3f}</td></tr>", shown)


def test_every_number_that_moves_has_its_name():
    shown = front_page.highlighted(CODE, coloured)
    numbers = dict(re.findall(r'data-number="([\w.]+)">([-\d.]+)<', shown))
    names = front_page.run(CODE)
    for name in ("query", "keys", "values"):
        flat = [float(numbers[f"{name}.{i}"]) for i in range(names[name].numel())]
        torch.testing.assert_close(torch.tensor(flat), names[name].flatten())
    assert numbers["temperature.0"] == "1.0" and shown.count("data-score") == 1
    assert html.unescape(re.sub(r"<[^>]*>", "", shown)).strip() == CODE
    with pytest.raises(ValueError, match="other numbers than a query"):
        front_page.highlighted(CODE.replace("0.9, 0.6", "1, 0"), coloured)


def test_no_drawing_is_written_into_the_page_by_hand():
    assert "<svg" not in INTRO and "{raw}" not in INTRO
    assert re.findall(r"```\{front-page\} (\w+)", INTRO) == ["look", "translator", "routes", "map", "chapters"]
    assert set(front_page.PARTS) == {"look", "translator", "routes", "map", "chapters"}


# ---- cards and map


@pytest.mark.parametrize("number", course.NAMES)
def test_a_chapter_has_a_line_a_word_and_a_drawing(number):
    chapter = course.chapters()[number]
    assert 4 <= len(chapter["line"].split()) <= 14 and chapter["line"].endswith(".")
    assert 1 <= len(chapter["short"].split()) <= 2
    drawing = pictograms.pictogram(number)
    assert number in pictograms.DRAWINGS and 'aria-hidden="true"' in drawing and "<text" not in drawing
    assert not re.search(r"#[0-9a-f]{3,6}", drawing)  # colours of the theme only


def test_no_two_drawings_are_alike():
    assert len({pictograms.pictogram(number) for number in pictograms.DRAWINGS}) == len(pictograms.DRAWINGS)


def test_map_and_cards_link_every_chapter():
    wanted = [f"chapters/{name}.html" for name, _ in site.chapters()]
    drawn, listed = front_page.PARTS["map"](CODE, coloured).split('<ol class="front-map-list"')
    wide, narrow = drawn.split('<div class="narrow">')  # of the two drawings the width of the column shows one
    for shown in (wide, narrow, listed, front_page.PARTS["chapters"](CODE, coloured)):
        assert re.findall(r'href="([^"]+)"', shown) == wanted
    for number, chapter in course.chapters().items():
        after = re.search(rf">{number} [^<]*</a>(?:<span>after ([^<]*)</span>)?", listed)[1]
        assert (after.split(" and ") if after else []) == chapter["needs"]


def test_the_picture_for_a_link_is_on_the_host_of_the_book_where_that_is_known():
    name = front_page.PICTURE.rpartition("/")[2]
    assert front_page.picture("https://book.example/a/") == f"https://book.example/a/_static/{name}"
    assert front_page.picture("") == f"{site.repository()['url']}/raw/main/{front_page.PICTURE}"
    assert (ROOT / front_page.PICTURE).exists()


@pytest.mark.parametrize(
    ("config", "address"),
    [
        ("repository: {url: https://github.com/Some-One/course}\nhtml: {}", "https://some-one.github.io/course/"),
        ("repository: {url: https://github.com/a/b/}\nhtml: {baseurl: https://b.example/}", "https://b.example/"),
        ("repository: {url: https://git.example/a/b}\nhtml: {}", ""),
    ],
)
def test_the_address_of_the_book_follows_from_that_of_the_repository(tmp_path, monkeypatch, config, address):
    (tmp_path / "_config.yml").write_text(config, encoding="utf-8")
    monkeypatch.setattr(site, "ROOT", tmp_path)
    assert site.address() == address


def test_every_page_has_a_description():
    first = site.chapters()[0][0]
    say = front_page.description
    line = course.chapters()["01"]["line"]
    assert say(f"chapters/{first}", {"title": "x", "root_doc": "intro"}) == line
    assert say(f"exercises/{first}", {"title": "x", "root_doc": "intro"}).endswith(line)
    assert say("intro", {"title": "x", "root_doc": "intro"}) == front_page.ABOUT
    assert say("measured", {"title": "<i>Measured</i>", "root_doc": "intro"}).startswith("Measured. ")


# ---- findings


def test_the_pages_show_the_findings_of_the_records():
    assert len(findings.FINDINGS) == 8 and len(findings.BAIT) == 3
    assert findings.sentences() in README and findings.sentences(findings.BAIT) in INTRO


@pytest.mark.parametrize("experiment", findings.FINDINGS)
def test_a_finding_says_what_its_record_holds(experiment):
    (record,) = results.largest(experiment)
    chapter, say = findings.FINDINGS[experiment]
    text = " ".join(say(record).split())
    assert text.startswith("**") and 15 <= len(text.split()) <= 60
    notebook = (ROOT / "chapters" / f"{course.NAMES[chapter]}.ipynb").read_text(encoding="utf-8")
    assert experiment in notebook, f"chapter {chapter} does not show {experiment}"


def said(experiment):
    return " ".join(findings.FINDINGS[experiment][1](*results.largest(experiment)).split())


def test_the_numbers_of_the_findings_are_those_of_the_headlines():
    """The experiments' own summaries, written elsewhere, have the same numbers."""
    for experiment, numbers in {
        "associative_recall": ["512", "1,345,552"],
        "tokenizer_comparison": [r"4\.7"],
        "scaling": [r"2\.648", r"2\.622", "20"],
        "instruct": [r"1\.05", r"1\.21", "36"],
    }.items():
        (record,) = results.largest(experiment)
        for number in numbers:
            pattern = rf"(?<![\d.]){number}(?!\d|,\d)"
            assert re.search(pattern, said(experiment)) and re.search(pattern, record["metrics"]["headline"]), number


def test_the_titles_of_the_findings_hold():
    (record,) = results.largest("bert_sentiment")
    lead = {
        share: record["metrics"]["contestants"]["minilm"][share]["mean"]
        - record["metrics"]["contestants"]["bag"][share]["mean"]
        for share in ("1 %", "10 %", "100 %")
    }
    assert min(lead["1 %"], lead["10 %"]) > lead["100 %"] > 0
    (record,) = results.largest("scaling")
    larger = record["metrics"]["held_back"]["parameters"]["matrices"]
    assert all(run["parameters"]["matrices"] < larger for run in record["metrics"]["runs"])
    law, outcome = record["metrics"]["prediction"]["losses"]["joint"], record["metrics"]["outcome"]
    assert law["low"] < min(run["loss"] for run in record["metrics"]["runs"]) < law["high"]
    off = {key: abs(outcome[f"{key}, straight"]["error"]) for key in ("parameters, matrices", "tokens", "compute")}
    assert sum(error < abs(outcome["joint"]["error"]) for error in off.values()) == 2
    assert "two straight lines came nearer" in said("scaling")
    (record,) = results.largest("instruct")
    (run,) = record["metrics"]["runs"]
    ways = [of["measured"] for name, of in run["preferred"].items() if name.startswith("flattered")]
    shown = max(ways, key=lambda of: of["flattered"])
    assert shown["followed"] == min(of["followed"] for of in ways) and "the worst of 3 settings" in said("instruct")
    lost = {key: 1 - shown[key] / run["instructed"][key] for key in ("honest", "followed")}
    assert lost["honest"] < lost["followed"] / 3 and f"{shown['honest']:.2f}" in said("instruct")
    (record,) = results.largest("induction")
    for look in record["metrics"]["models"]["two blocks"]["look"]:  # each seed: one head costs a nat or more
        assert look["off_in_order"][1][1] > look["off_in_order"][0][1] + 1


# ---- the README


def test_the_readme_has_no_table_of_records():
    assert "| experiment |" not in README and "to be reached" not in README and "Beside its peers" not in README
    shown = sum(f"`{name}`" in README for name, _ in results.recorded())
    assert shown == 0
    assert f"[Measured]({pages.measured()})" in README
    assert len(README.split("## What is where")[0].split()) < 800


def test_the_picture_of_the_readme_is_small_and_moves():
    from PIL import Image

    (name,) = re.findall(r"!\[[^\]]{20,}\]\(([^)]+)\)", README)
    path = ROOT / name
    assert path.stat().st_size < 300_000
    with Image.open(path) as picture:
        assert picture.n_frames >= 24
    assert (ROOT / front_page.PICTURE).is_file()


def test_the_cost_is_that_of_the_records():
    assert pages.cost() in README and pages.start() in README and pages.cite() in README
    assert pages.TITLE in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert (
        INTRO.startswith(f"# {pages.TITLE}\n") and pages.TITLE in front_page.ABOUT and f"**{pages.TITLE}.**" in README
    )


# ---- in a browser


def rect(locator):
    return locator.evaluate("node => { const b = node.getBoundingClientRect(); return [b.top, b.bottom, b.right]; }")


def live(page):
    page.wait_for_selector("d2lmini-query-plane[data-ready=yes]")
    return page.locator(".front-look")


@pytest.mark.parametrize("where", ["http", "file"])
def test_the_first_screen_has_a_live_figure_its_code_and_where_to_begin(open_page, book_url, where):
    page = open_page(f"{book_url if where == 'http' else BOOK.as_uri()}/intro.html")
    look = live(page)
    for part in ("d2lmini-query-plane svg >> nth=0", "pre", ".front-start", ".front-ways"):
        assert rect(look.locator(part))[1] <= 900, part
    figure, code = look.locator("d2lmini-query-plane"), look.locator("pre")
    assert code.bounding_box()["x"] >= figure.bounding_box()["x"] + figure.bounding_box()["width"]
    assert code.evaluate("node => node.textContent.trim()") == CODE
    outside = [u for u in page.log["requests"] if not u.startswith((book_url, "data:", "blob:", "file:"))]
    assert outside == [] and page.log["errors"] == []


def test_the_code_follows_the_figure(open_page, book_url):
    page = open_page(f"{book_url}/intro.html")
    look = live(page)
    look.get_by_role("button", name=re.compile("query")).press("ArrowLeft")
    look.get_by_role("button", name=re.compile("key 3")).press("ArrowUp")
    look.get_by_role("slider", name="temperature").press("ArrowLeft")
    code = look.locator("pre").evaluate("node => node.textContent.trim()")
    assert code != CODE and len(code.splitlines()) == 8
    names = front_page.run(code)
    shown = [float(cell) for cell in look.locator("td.shade").all_inner_texts()]
    assert names["weights"].tolist() == pytest.approx(shown, abs=0.01)
    look.get_by_role("combobox", name="score").select_option("distance")
    names = front_page.run(look.locator("pre").evaluate("node => node.textContent.trim()"))
    shown = [float(cell) for cell in look.locator("td.shade").all_inner_texts()]
    assert names["weights"].tolist() == pytest.approx(shown, abs=0.01)
    look.get_by_role("button", name="Reset").click()
    assert look.locator("pre").evaluate("node => node.textContent.trim()").count("0.9, 0.6") == 1


def test_start_leads_to_the_first_chapter(open_page, book_url):
    page = open_page(f"{book_url}/intro.html")
    page.get_by_role("link", name=re.compile("^Start: chapter 1")).click()
    page.wait_for_url(f"**/{site.chapters()[0][0]}.html")


def test_every_link_of_the_parts_leads_to_a_page(open_page, book_url):
    page = open_page(f"{book_url}/intro.html")
    links = page.locator(".front-part a").evaluate_all("all => all.map((a) => a.getAttribute('href'))")
    assert len(links) > 4 * len(course.NAMES)
    assert [link for link in links if not link.startswith("#") and not (BOOK / link).is_file()] == []
    assert page.locator("#three-routes").count() == 1
    assert page.locator("meta[name=description]").get_attribute("content") == front_page.ABOUT


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_map_reads_on_a_phone_and_nothing_is_cut(open_page, book_url, theme):
    page = open_page(f"{book_url}/intro.html", width=390, theme=theme)
    live(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not page.locator(".front-map").is_visible() and page.locator(".front-map-list").is_visible()
    for part in (".front-map-list li", ".front-cards a", ".front-route", ".front-look pre"):
        for i in range(page.locator(part).count()):
            box = page.locator(part).nth(i)
            assert rect(box)[2] <= 390 and box.evaluate("n => n.scrollWidth <= n.clientWidth + 1"), part
    targets = page.locator(".front-part a").evaluate_all(
        "all => all.filter((a) => a.offsetParent).map((a) => a.getBoundingClientRect().height)"
    )
    assert min(targets) >= 24


def test_the_map_fits_the_column_of_a_wide_screen(open_page, book_url):
    page = open_page(f"{book_url}/intro.html")
    drawing = page.locator(".front-map figure")
    assert drawing.evaluate("node => node.scrollWidth <= node.clientWidth + 1")
    assert not page.locator(".front-map-list").is_visible()
    text = page.locator(".front-map svg text").first
    assert text.evaluate("node => node.getBoundingClientRect().height") >= 12


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 1440), ("light", 390), ("dark", 390)])
def test_axe_finds_nothing_serious(open_page, book_url, theme, width):
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(f"{book_url}/intro.html", theme=theme, width=width)
    live(page)
    rules = Axe().run(page, context="article").response["violations"]
    assert [
        (r["id"], n["html"][:100]) for r in rules if r["impact"] in ("serious", "critical") for n in r["nodes"]
    ] == []


def test_without_javascript_there_are_a_table_and_the_code(open_page, book_url):
    page = open_page(f"{book_url}/intro.html", java_script_enabled=False)
    look = page.locator(".front-look")
    assert "the output is" in look.locator("d2lmini-query-plane table").inner_text()
    assert look.locator("pre").is_visible() and not look.locator("[data-follows]").is_visible()


def test_start_keeps_its_box_where_the_system_chooses_the_colours(open_page, tmp_path):
    css = (ROOT / "tools/sphinx_ext/static/front_page.css").read_text(encoding="utf-8")
    (tmp_path / "page.html").write_text(f'<style>{css}</style><a class="front-start" href="#">Start</a>')
    page = open_page((tmp_path / "page.html").as_uri(), forced_colors="active")
    look = "node => [getComputedStyle(node).borderTopWidth, getComputedStyle(node).borderTopColor]"
    width, colour = page.locator(".front-start").evaluate(look)
    assert width == "2px" and colour != "rgba(0, 0, 0, 0)"
