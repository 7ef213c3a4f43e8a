"""Each line of code is an element that knows its indentation: what is too long goes on further to the right.

The look is in book.css. What is copied from the page is the code as it was.
"""

import re

from pygments.formatters import HtmlFormatter
from sphinx.highlighting import PygmentsBridge

TAG = re.compile(r"<[^>]*>")


class LineFormatter(HtmlFormatter):
    def _format_lines(self, tokens):
        for is_code, line in super()._format_lines(tokens):
            text = TAG.sub("", line)
            indent = len(text) - len(text.lstrip(" "))
            yield is_code, f'<span class="line" style="--indent:{indent}">{line}</span>' if is_code else line


def setup(app):
    PygmentsBridge.html_formatter = LineFormatter
    return {"parallel_read_safe": True, "parallel_write_safe": True}
