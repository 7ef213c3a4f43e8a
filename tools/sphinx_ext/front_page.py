"""What the front page shows beyond its text, put there when the book is built: the directive `front-page`.

In `intro.md` it names a part, and its body is a line to read where nothing is built; the body of `look` is the code
that the figure next to it is computed from. Every page gets a description, and a picture for a link to it.
"""

import html
import re
import sys
from pathlib import Path

from docutils import nodes
from html_piece import inline
from pictograms import pictogram
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))  # for the package `tools`

FLOAT = re.compile(r'(?:<span class="o">-</span>)?<span class="mf">([\d.]+)</span>')
PICTURE = "tools/sphinx_ext/static/first_look.png"
ABOUT = "Attention and Transformers, typed by you: executable chapters, live figures, exercises that check themselves."
# Sentences of our own, and translations of them that a speaker of French has no quarrel with: a test asks the model.
SHOWN = {
    "My sister reads a book in the garden.": "Ma sœur lit un livre dans le jardin.",
    "She sings better than her brother.": "Elle chante mieux que son frère.",
    "If it rains tomorrow, we will stay at home.": "S'il pleut demain, nous resterons à la maison.",
    "I forgot to close the window before the storm.": "J'ai oublié de fermer la fenêtre avant la tempête.",
    "The children are playing in the snow.": "Les enfants jouent dans la neige.",
}


def run(code):
    """What the lines of code of the first screen leave behind. Returns: dict of their names."""
    names = {}
    exec(code, names)
    return names


def plane(code):
    """The figure that the lines compute. Returns: `QueryPlane`."""
    from d2lmini.figures import QueryPlane

    names = run(code)
    return QueryPlane(names["query"], names["keys"], names["values"])


def highlighted(code, highlight):
    """The lines as HTML, in which each number and the score have a name that a script finds. Returns: str."""
    sizes = {"query": 2, "keys": 8, "values": 8, "temperature": 1}
    found = iter([f"{name}.{i}" for name, size in sizes.items() for i in range(size)])

    def named(match):
        sign = "-" if match[0].startswith('<span class="o">') else ""
        return f'<span class="mf" data-number="{next(found)}">{sign}{match[1]}</span>'

    shown = FLOAT.sub(named, highlight(code))
    if list(found):
        raise ValueError(
            "the code of the first screen has other numbers than a query, four keys and four values in 2-D"
        )
    score = re.compile(r'(<span class="n">query</span>.*?<span class="n">T</span>)')
    return score.sub(r"<span data-score>\1</span>", shown, count=1)


def _link(number):
    from tools import course

    return f"chapters/{course.NAMES[number]}.html"


def _of(numbers):
    from tools import course

    return course.spent(course.core_minutes(numbers))


def look(code, highlight):
    """The live figure, the code beside it, and where to begin."""
    from tools import course

    first = next(iter(course.chapters()))
    ways = "".join(
        f'<li><a href="#three-routes">{name}</a><span>{_of(numbers)}</span></li>' for name, numbers in course.routes()
    )
    return f"""
<div class="front-look">
<div class="front-figure">{plane(code)._repr_html_()}</div>
<div class="front-side">
{highlighted(code, highlight)}
<p>Drag the query <b>q</b>. The output moves towards the values whose keys point the way the query does.
<strong>This is attention</strong>, and these lines are all of it.
<span data-follows hidden>Their numbers follow your hand.</span></p>
<p><a class="front-start" href="{_link(first)}"><b>Start: chapter {int(first)}</b>, {_of([first])}</a></p>
<ul class="front-ways">{ways}</ul>
</div>
<script>{inline("front_look")}</script>
</div>"""


def translator(*_):
    """A trained Transformer that the reader can use, with sentences of our own that it translates well."""
    from d2lmini.figures import LiveTranslator

    return LiveTranslator("translator_tatoeba", examples=SHOWN)._repr_html_()


def routes(*_):
    """The ways through the book, each with its time and its chapters in their order."""
    from tools import course

    lines = []
    for name, numbers in course.routes():
        steps = "".join(
            f'<li><a href="{_link(n)}"><span>{n}</span> {html.escape(course.chapters()[n]["short"])}</a></li>'
            for n in numbers
        )
        lines.append(
            f'<div class="front-route"><h3>{name}</h3><p class="front-time">{len(numbers)} chapters, {_of(numbers)}</p>'
            f"<ol>{steps}</ol></div>"
        )
    return f'<div class="front-routes">{"".join(lines)}</div>'


def cards(*_):
    """A card for each chapter, in the parts of the table of contents."""
    from tools import course, site

    made = []
    for caption, names in site.parts():
        made.append(f'<h3>{html.escape(caption)}</h3><ul class="front-cards">')
        for number in (name[:2] for name in names):
            line = html.escape(course.chapters()[number]["line"])
            made.append(
                f'<li><a href="{_link(number)}">{pictogram(number)}<span class="front-words"><b>{number} '
                f'{html.escape(course.TITLES[number])}</b><span>{line}</span><span class="front-time">{_of([number])}'
                "</span></span></a></li>"
            )
        made.append("</ul>")
    return "".join(made)


def chapter_map(*_):
    """The map as a drawing, and as a list for a phone."""
    from tools import course

    items = "".join(
        f'<li class="{course.accent(number) or "plain"}"><a href="{_link(number)}">{number} '
        f"{html.escape(course.TITLES[number])}</a>"
        + (f"<span>after {' and '.join(course.needed(number))}</span>" if course.needed(number) else "")
        + "</li>"
        for number in course.chapters()
    )
    return (
        f'<div class="front-map">{course.book_map()._repr_html_()}</div><ol class="front-map-list" aria-label='
        f'"The chapters of this book and what each builds on">{items}</ol>'
    )


PARTS = {"look": look, "translator": translator, "routes": routes, "chapters": cards, "map": chapter_map}


class FrontPage(SphinxDirective):
    """```{front-page} NAME of a part"""

    required_arguments = 1
    has_content = True

    def run(self):
        name = self.arguments[0]
        if name not in PARTS:
            raise self.error(f"the front page has no part {name!r}, only {', '.join(PARTS)}")
        self.env.note_reread()  # times and titles come from the chapters
        self.env.metadata[self.env.docname]["html_theme.sidebar_secondary.remove"] = "true"
        shown = PARTS[name]("\n".join(self.content), self._highlight)
        return [nodes.raw("", f'<div class="front-part">{shown}</div>', format="html")]

    def _highlight(self, code):
        return self.env.app.builder.highlighter.highlight_block(code, "python")


def description(pagename, context):
    """A sentence on a page, for search engines and for those who share a link. Returns: str."""
    from tools import course

    found = re.match(r"(chapters|exercises)/(\d\d)_", pagename)
    if found and found[2] in course.chapters():
        what = {"chapters": "", "exercises": "Exercises that check themselves: "}[found[1]]
        return what + course.chapters()[found[2]]["line"]
    title = re.sub(r"<[^>]*>", "", context.get("title") or "")
    return ABOUT if pagename == context.get("root_doc", "intro") else f"{title}. {ABOUT}"


def picture(address):
    """Where the picture for a link is: on the book's own host, or in the repository while that has no address.

    Args:
        address: str, Sphinx's `html_baseurl`; "": none.
    """
    from tools import site

    if address:
        return f"{address.rstrip('/')}/_static/{Path(PICTURE).name}"
    place = site.repository()
    return f"{place['url']}/raw/{place['branch']}/{PICTURE}"


def _page(app, pagename, templatename, context, doctree):
    root = app.config.root_doc
    if pagename == root:
        app.add_css_file("front_page.css")
    said = html.escape(description(pagename, {"title": context.get("title"), "root_doc": root}))
    tags = {
        "description": said,
        "og:title": html.escape(re.sub(r"<[^>]*>", "", context.get("title") or "")),
        "og:description": said,
        "og:image": picture(app.config.html_baseurl),
    }
    have = context.get("metatags") or ""
    context["metatags"] = have + "".join(
        f'\n<meta {"property" if ":" in name else "name"}="{name}" content="{text}">' for name, text in tags.items()
    )


def _address(app, config):
    from tools import site

    config.html_baseurl = config.html_baseurl or site.address()


def setup(app):
    app.add_directive("front-page", FrontPage)
    app.connect("config-inited", _address)
    app.connect("html-page-context", _page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
