"""Slides: one thing to look at on each, what is said in the notes, nothing that is folded, all of it from the book."""

import io
import shutil

import pytest
from bs4 import BeautifulSoup
from conftest import ROOT, serving
from pypdf import PdfReader

from tools import site, slides

ARTICLE = """<html><head><link rel="stylesheet" href="../_static/pygments.css?v=1"><link rel="stylesheet" href="x.css">
</head><body><article class="bd-article"><section><h1>7. A chapter<a class="headerlink" href="#a">#</a></h1>
<p class="fold-switch">Open everything</p><p>After this chapter you can</p><ol><li>do it.</li></ol>
<div class="cell tag_setup">SETUP</div>
<section><h2>7.1. A problem<a class="headerlink" href="#b">#</a></h2>
<p>{long}</p><p>A second paragraph, for the notes.</p>
<p class="predict" id="q">Predict: what?</p><div class="predict-place">Commit</div>
<div class="predict-answer"><div class="cell"><div class="cell_input"><pre>code()</pre></div>
<div class="cell_output"><div class="output">printed</div></div></div><p>{short}</p></div>
<div class="cell tag_fold"><details class="fold code"><summary>Record: x</summary>HIDDEN</details>
<div class="cell_output"><p>A finding.</p></div></div>
<div class="cell tag_fold"><details class="fold code"><summary>Check: y</summary>HIDDEN</details>
<div class="cell_output"><div class="output">it agrees</div></div></div>
<div class="cell tag_no-slide"><div class="cell_input">LEFT OUT</div></div>
<section class="fold"><details class="fold"><summary><h3>Caveats</h3></summary>HIDDEN</details></section>
</section>
<section><h2>7.2. Only words</h2><p>A customer wrote:</p><blockquote><p>It squeaks.</p></blockquote>
<p>See <a href="08_b.html#x">chapter 8</a>, <a href="#fig-a">here</a>.</p>
<p>More words.</p></section>
<section><h2>7.3. Shown</h2><p>{named}</p><div class="math notranslate">\\[x\\]</div>
<div class="cell"><div class="cell_output">
<p>A lead.</p><table><td>one</td></table><svg></svg><p>Below it.</p></div></div>
<div class="cell"><div class="cell_input"><pre>draw()</pre></div>
<div class="cell_output"><figure><svg></svg></figure></div></div></section>
<section><h2>7.4. Told apart</h2><div class="cell"><div class="cell_input"><pre>one()</pre></div></div>
<p>What one shows.</p><p id="said">What comes <a id="ref" href="#x">next</a>:</p><div class="cell">
<div class="cell_input"><pre>two()</pre></div></div></section>
<section><h2>7.45. Found</h2><p class="predict">Predict: how many?</p><div class="predict-answer">
<div class="cell tag_fold">
<details class="fold code"><summary>Record: z</summary><p>HIDDEN</p></details>
<div class="cell_output"><p>Seven.</p></div></div></div><p class="predict">Predict: which?</p>
<div class="predict-answer"><svg></svg></div></section>
<section><h2>7.5. Summary</h2><ol><li>First.</li></ol><div class="cell tag_fold">
<div class="cell_output"><ol start="2"><li>Second.</li></ol></div></div></section>
</section></article></body></html>""".format(long="word " * 40, short="The answer.", named="letter " * 40)


@pytest.fixture(scope="module")
def shown():
    title, page = slides.deck(ARTICLE, "07_a")
    assert title == "7. A chapter"
    return [
        (
            one["data-kind"],
            one.h2.text,
            " ".join(one.find(class_="fit").get_text(" ").split() if one.find(class_="fit") else ""),
            str(one.aside),
        )
        for one in BeautifulSoup(page, "html.parser").select(".slides > section")
    ]


def test_a_slide_for_each_thing_to_look_at(shown):
    assert [(kind, title) for kind, title, *_ in shown] == [
        ("title", "7. A chapter"),
        ("list", "7. A chapter"),
        ("text", "7.1. A problem"),
        ("predict", "7.1. A problem"),
        ("code", "7.1. A problem"),
        ("finding", "7.1. A problem"),
        ("text", "7.2. Only words"),
        ("math", "7.3. Shown"),
        ("picture", "7.3. Shown"),
        ("picture", "7.3. Shown"),
        ("code", "7.3. Shown"),
        ("code", "7.4. Told apart"),
        ("code", "7.4. Told apart"),
        ("predict", "7.45. Found"),
        ("finding", "7.45. Found"),
        ("predict", "7.45. Found"),
        ("picture", "7.45. Found"),
        ("list", "7.5. Summary"),
    ]
    assert shown[1][2] == "After this chapter you can do it." and shown[2][2].split() == ["word"] * 40
    assert shown[4][2] == "code() printed" and shown[5][2] == "The answer. A finding."


def test_what_belongs_together_is_on_one_slide_and_two_pictures_are_on_two(shown):
    assert [seen for _, title, seen, _ in shown if title == "7.3. Shown"] == [
        "letter " * 40 + "\\[x\\]",  # what the letters of a formula are
        "A lead. one",
        "Below it.",
        "draw()",
    ]
    assert shown[6][2] == "A customer wrote: It squeaks."  # what is announced is there
    assert shown[-1][2] == "First. Second."  # a list goes on with numbers that a cell has found


def test_what_is_said_is_in_the_notes_and_what_is_folded_nowhere(shown):
    assert "A second paragraph" in shown[2][3] and "it agrees" in shown[5][3] and "More words" in shown[6][3]
    assert "The answer" in shown[3][3] and "The answer." in shown[3][3]  # to a prediction, for who asks
    assert "The answer:" in shown[-5][3] and "Seven." in shown[-5][3]  # also where a cell has found it
    assert "The answer:" not in shown[-3][3]  # it is a picture
    assert "What one shows" in shown[-7][3] and "What one shows" not in shown[-6][3] and "next" in shown[-6][3]
    whole = "".join(f"{seen}{notes}" for *_, seen, notes in shown)
    assert not any(word in whole for word in ("HIDDEN", "SETUP", "Commit", "LEFT", "Open"))


def test_what_is_seen_and_said_has_no_id_twice():
    _, page = slides.deck(ARTICLE, "07_a")
    found = [node["id"] for node in BeautifulSoup(page, "html.parser").select(".slides [id]")]
    assert "What comes" in page and len(found) == len({*found})


def test_links_and_sheets_lead_to_the_book():
    _, page = slides.deck(ARTICLE, "07_a")
    title = BeautifulSoup(page, "html.parser").select_one("[data-kind=title]")
    assert title.a["href"] == "../chapters/07_a.html"
    assert 'href="../chapters/07_a.html#fig-a"' in page and 'href="../chapters/08_b.html#x"' in page
    assert "../_static/pygments.css" in page and "x.css" not in page


def test_a_page_without_a_chapter_is_refused():
    with pytest.raises(ValueError, match="no article"):
        slides.deck("<html><p>Nothing</p></html>", "07_a")


@pytest.fixture(scope="module")
def written(tmp_path_factory, book_url):
    """The slides of the built book, beside a copy of what they take from it. Returns: its folder."""
    folder = tmp_path_factory.mktemp("book")
    built = ROOT / "_build" / "html"
    shutil.copytree(built / "chapters", folder / "chapters")
    (folder / "_static").symlink_to(built / "_static")
    shutil.copy(built / "lecturers.html", folder)
    slides.write(folder)
    return folder


@pytest.mark.parametrize("name", ["03_attention_scoring", "10_vision_transformer", "15_gpt"])
def test_nothing_runs_over_the_edge_of_a_slide(chromium, written, name):
    page, log = chromium.new_page(viewport={"width": 1280, "height": 720}), []
    page.on("console", lambda said: log.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: log.append(str(error)))
    page.on("request", lambda asked: log.append(asked.url) if "127.0.0.1" not in asked.url[:30] else None)
    with serving(written) as url:
        page.goto(f"{url}/slides/{name}.html")
        page.wait_for_selector("html[data-slides=ready]")
        over = page.evaluate(
            """async () => {
              const over = [], small = [], lost = [];
              for (let i = 0; i < Reveal.getTotalSlides(); i++) {
                Reveal.slide(i);
                await new Promise((done) => setTimeout(done, 50));
                const slide = Reveal.getCurrentSlide(), fit = slide.querySelector(".fit");
                const width = (node) => node.getBoundingClientRect().width, body = fit.getBoundingClientRect();
                const right = Math.max(body.right, ...[...fit.querySelectorAll("td, th, text")].map(
                  (node) => node.getBoundingClientRect().right));
                if (body.bottom > innerHeight || right > innerWidth) over.push(i);
                if (fit.style.zoom < 0.7) small.push([i, fit.style.zoom]);
                const wide = [...fit.querySelectorAll("svg, table, img, pre")].map(width);
                if (slide.dataset.kind === "picture" && !(Math.max(0, ...wide) > 200)) lost.push(i);
              }
              return [over, small, lost];
            }"""
        )
        live = page.locator("[data-ready=yes]").count()
    page.close()
    assert over == [[], [], []] and log == [] and live > 0


def test_a_deck_prints_a_sheet_for_each_slide(chromium, written):
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    with serving(written) as url:
        page.goto(f"{url}/slides/07_transformer.html?print-pdf")
        page.wait_for_selector("html[data-slides=ready]")
        page.wait_for_timeout(500)
        count = page.evaluate("Reveal.getTotalSlides()")
        sheets = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True, print_background=True))).pages
    page.close()
    texts = [sheet.extract_text() for sheet in sheets]
    assert len(texts) == count and "greedily" in texts[-1] and "Reset" in "".join(texts)


def test_the_notes_open_also_from_the_disk(chromium, written):
    page = chromium.new_page(viewport={"width": 1280, "height": 720})
    deck = written / "slides" / "07_transformer.html"
    seen = BeautifulSoup(deck.read_text(encoding="utf-8"), "html.parser").select(".slides > section")
    number, note = next((i, slide.aside.p.text) for i, slide in enumerate(seen) if i and slide.aside)
    page.goto(f"{deck.as_uri()}#/{number}")
    page.wait_for_selector("html[data-slides=ready]")
    with page.context.expect_page() as opened:
        page.keyboard.press("s")
    opened.value.wait_for_selector(f".speaker-controls-notes :text('{note[:30]}')")
    opened.value.close()
    page.close()


def test_every_chapter_has_slides_and_the_list_leads_to_them(written):
    listed = BeautifulSoup((written / "slides" / "index.html").read_text(encoding="utf-8"), "html.parser")
    assert [link["href"] for link in listed.select("li a")] == [f"{name}.html" for name, _ in site.chapters()]
    for name, _ in site.chapters():
        deck = BeautifulSoup((written / "slides" / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        ids = [node["id"] for node in deck.select(".slides [id]")]
        assert len(deck.select(".slides > section")) > 15 and len(ids) == len({*ids}), name


def test_the_page_for_lecturers_leads_to_what_was_made_and_to_nothing_else(written):
    def links():
        page = BeautifulSoup((written / "lecturers.html").read_text(encoding="utf-8"), "html.parser")
        return [
            link["href"] for link in page.select("#slides-and-paper a[href$='html'], #slides-and-paper a[href$=pdf]")
        ]

    before = links()
    assert before.count("slides/index.html") == 1
    for _ in range(2):
        site.lead_to(written, "pdf/d2lmini-core.pdf", "One PDF")
    assert sorted(links()) == sorted({*before, "pdf/d2lmini-core.pdf"})
    site.lead_to(written / "chapters", "pdf/d2lmini-core.pdf", "no such page here")
