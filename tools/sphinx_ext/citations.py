"""Make Sphinx's citations of the links that tools/citations.py writes, and its bibliography of the list behind them."""

import re

LINK = re.compile(r"\[\[[^\[\]]*\]\]\((?:\.\./)*bibliography\.md#([\w-]+)\)")  # needs no quotes: notebooks come as JSON
LIST = re.compile(r"<!-- references -->.*<!-- end references -->", re.S)
BIBLIOGRAPHY = "```{bibliography}\n:style: plain\n```"


def _cite(app, docname, source):
    source[0] = LINK.sub(r"{cite}`\1`", source[0])
    if docname == "bibliography":
        source[0] = LIST.sub(BIBLIOGRAPHY, source[0])


def setup(app):
    app.connect("source-read", _cite)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
