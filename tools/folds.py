"""Write what JupyterLab and Colab need to fold the cells that are tagged `fold`; the book folds by the tag itself.

Of a Markdown cell, which is one heading alone, the section is folded; of a code cell, which begins with `# @title ...`,
the code is folded behind that title, and the output shows.
"""

import re

HEADING = re.compile(r"#{2,6} +\S[^\n]*")  # alone: JupyterLab hides the cells after it, and nothing of its own cell
TITLE = re.compile(r"# @title +\S")  # as Colab writes it
KEYS = ("jupyter", "cellView", "jp-MarkdownHeadingCollapsed", "id")


def fold(notebook):
    """Bring a notebook's metadata in step with its tags, in place. Returns: the notebook.

    Raises:
        ValueError: a cell is tagged and has another shape, or has a title and no tag.
    """
    collapsed = []
    for cell in notebook.cells:
        for key in KEYS:
            cell.metadata.pop(key, None)
        tagged, titled = "fold" in cell.metadata.get("tags", []), bool(TITLE.match(cell.source))
        if cell.cell_type == "code" and tagged != titled:
            lacks = "begins with '# @title ...'" if tagged else "with a '# @title' is tagged fold"
            raise ValueError(f"{_where(cell)}: a code cell {'tagged fold ' if tagged else ''}{lacks}")
        if not tagged:
            continue
        if cell.cell_type == "code":
            cell.metadata |= {"jupyter": {"source_hidden": True}, "cellView": "form"}
        elif HEADING.fullmatch(cell.source.strip()) and cell.cell_type == "markdown":
            cell.metadata |= {"jp-MarkdownHeadingCollapsed": True, "id": cell.id}  # by this id Colab finds it
            collapsed.append(cell.id)
        else:
            raise ValueError(f"{_where(cell)}: a cell of text tagged fold is one heading, ## or smaller, and no more")
    notebook.metadata.pop("colab", None)
    if collapsed:
        notebook.metadata["colab"] = {"collapsed_sections": collapsed}
    return notebook


def _where(cell):
    first = cell.source.strip().partition("\n")[0]
    return f"{cell.id}, {first[:60]!r}"
