"""The directive `playground` of the page of that name: its figure, and its challenges.

Its argument is one of the two parts; its body is a line to read where nothing is built.
"""

import html

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def figure():
    """The figure, whose settings are in the page's address. Returns: str, HTML."""
    from d2lmini.figures import Playground

    return Playground(address=True)._repr_html_()


def challenges(given=None):
    """What there is to try: links that set the figure and, folded, what a reader should find. Returns: str."""
    from d2lmini.figures.playground.challenges import CHALLENGES

    return "".join(_challenge(one) for one in (CHALLENGES if given is None else given))


def _challenge(one):
    links = "".join(
        f'<li><a href="#{html.escape(f"{address}&challenge={one.name}".lstrip("&"))}">{html.escape(label)}</a></li>'
        for label, address in one.addresses.items()
    )
    task = f"{one.task_for_reader} Train for some {one.steps:,} steps."
    title, task, find = (html.escape(text or "") for text in (one.title, task, one.found()))
    begin = title if title.endswith(("?", ".")) else f"{title}."
    folded = f"<details><summary>What you should find</summary><p>{find}</p></details>" if find else ""
    return (
        f'<section class="challenge" id="challenge-{one.name}" data-challenge="{begin} {task}">'
        f"<h3>{title}</h3><p>{task}</p><ul>{links}</ul>{folded}</section>"
    )


PARTS = {"figure": figure, "challenges": challenges}


class PlaygroundPage(SphinxDirective):
    """```{playground} NAME of a part"""

    required_arguments = 1
    has_content = True

    def run(self):
        name = self.arguments[0]
        if name not in PARTS:
            raise self.error(f"the playground has no part {name!r}, only {', '.join(PARTS)}")
        self.env.note_reread()  # both parts come from the package
        return [nodes.raw("", f'<div class="playground-part">{PARTS[name]()}</div>', format="html")]


def setup(app):
    app.add_directive("playground", PlaygroundPage)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
