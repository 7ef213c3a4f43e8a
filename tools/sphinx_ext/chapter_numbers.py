"""Number every chapter by its file's name: 10_vision_transformer is chapter 10 whether or not there is a chapter 9.

Sphinx counts the pages of a table of contents. This goes over its numbers once more, and takes those of the exercises
away, which hang below a chapter and are no sections of it.
"""

import re

from docutils import nodes
from sphinx_external_toc.collectors import TocTreeCollectorWithStyles as Collector


def renumber(number, chapter):
    """A section number, a sequence or None, with its first part replaced; without a chapter none."""
    return type(number)((chapter, *number[1:])) if number and chapter else None


def renumber_page(env, docname, chapter):
    """All that Sphinx has written down of a page's numbers: its sections, its table of contents, its title."""
    numbers = env.toc_secnumbers[docname]
    env.toc_secnumbers[docname] = {anchor: renumber(number, chapter) for anchor, number in numbers.items()}
    for node in [*env.tocs[docname].findall(nodes.reference), env.titles[docname]]:
        if number := renumber(node.attributes.pop("secnumber", None), chapter):
            node["secnumber"] = number


def setup(app):
    assign = Collector.assign_section_numbers

    def assign_section_numbers(self, env):
        before = env.toc_secnumbers
        assign(self, env)
        for docname in env.toc_secnumbers:
            if found := re.match(r"chapters/(\d\d)_", docname):
                renumber_page(env, docname, int(found[1]))
            elif docname.startswith("exercises/"):
                renumber_page(env, docname, None)
        return [docname for docname, numbers in env.toc_secnumbers.items() if numbers != before.get(docname)]

    Collector.assign_section_numbers = assign_section_numbers
    return {"parallel_read_safe": True, "parallel_write_safe": True}
