"""What is shipped that others made: THIRD-PARTY-NOTICES.txt with the licences in full, and the tables of *Licences*.

`tools/notices.yml` says which files are whose. Licence texts come out of the installed packages that bring the files.
Whose weights are follows from what they were made of: the data sets in the record of their run.
"""

import textwrap
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import distribution
from pathlib import PurePosixPath

import yaml

from d2lmini.data.catalogue import SETS
from d2lmini.figures.live.page import FREE, made_of
from d2lmini.models.weights import files as weights
from tools._generated import ROOT, between, main, put

NOTICES, PAGE = ROOT / "licences" / "THIRD-PARTY-NOTICES.txt", ROOT / "pages" / "licences.md"
STATIC = [ROOT / "tools" / "sphinx_ext" / name for name in ("static", "built/static")]
CODE = (".py", ".js", ".css")  # in the package these are all our own
HEAD = """Third-party notices of d2lmini

What others made and this project passes on, with the licences in full. Our own code is under the MIT licence (LICENSE),
our prose and figures under CC BY-SA 4.0 (LICENSE-TEXT). Written by `make sync` from tools/notices.yml.
"""


@cache
def table():
    """What `tools/notices.yml` holds. Returns: dict with the keys texts, parts and quoted."""
    return yaml.safe_load((ROOT / "tools" / "notices.yml").read_text(encoding="utf-8"))


def of_package(name, ending=""):
    """The licence files of an installed package, or its one file whose path ends so. Returns: str.

    Raises:
        LookupError: it has none.
    """
    files = distribution(name).files or []
    inside = [file for file in files if ".dist-info/" in str(file) and "licen" in file.name.lower()]
    chosen = [file for file in files if str(file).endswith(ending)] if ending else inside
    if not chosen:
        raise LookupError(f"the package {name} brings no licence {ending}".rstrip())
    return "\n\n".join(file.read_text(encoding="utf-8").strip() for file in chosen)


def text_of(entry):
    """The licence of an entry in full, with its copyright; of licences without a text here, nothing. Returns: str."""
    if "package" in entry:
        return of_package(entry["package"])
    if "text" in entry:
        return (ROOT / entry["text"]).read_text(encoding="utf-8").strip()
    place = table()["texts"].get(entry["licence"])
    if not place:
        return ""
    if "package" in place:
        text = of_package(place["package"], place["file"])
    else:
        text = (ROOT / place["file"]).read_text(encoding="utf-8")
    return f"{entry['copyright']}\n\n{text[text.index(place.get('begins', '')) :].strip()}"


def notices():
    """All of THIRD-PARTY-NOTICES.txt, where no text comes twice. Returns: str."""
    lines, seen = [HEAD], {}
    roots = {name: part["root"] for name, part in table()["parts"].items()}
    for name, part in table()["parts"].items():
        lines.append(f"{'=' * 100}\n{part['title']}\n{'=' * 100}\n")
        for entry in (one for one in entries() if one["part"] == name):
            said = [f"{entry['name']} ({entry['licence'].removeprefix('LicenseRef-')})"]
            for root, files in ((roots[name], entry["files"]), (f"the built book, {roots['book']}", entry["served"])):
                if files:
                    said.append(f"In {root}/:\n{textwrap.fill(', '.join(files), 100, break_on_hyphens=False)}")
            if "notice" in entry:
                said.append(textwrap.fill(entry["notice"], 100, break_on_hyphens=False, break_long_words=False))
            text = text_of(entry)
            if text in seen:
                text = f"The licence is the one above, of {seen[text]}."
            elif text:
                seen[text] = entry["name"]
            lines.append("\n\n".join([*said, *([text] if text else [])]) + f"\n\n{'-' * 100}\n")
    lines += [f"{'=' * 100}\nSentences of data sets, as examples in records\n{'=' * 100}\n"]
    for name, records in table()["quoted"].items():
        files = ", ".join(f"{record}.json" for record in records)
        said = f"{SETS[name].citation}. Licence: {SETS[name].licence}. In d2lmini/results/: {files}"
        lines.append(textwrap.fill(said, 100, break_on_hyphens=False) + "\n")
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


def entries():
    """All entries as dicts, each with its ``part``, and with its weights among ``files`` and ``served``."""
    made = []
    for part, of in table()["parts"].items():
        for entry in of["entries"]:
            names = entry.get("weights", [])
            files = [*entry.get("files", []), *(f"models/weights/{name}.safetensors" for name in names)]
            served = [*entry.get("served", []), *(f"live/{name}.js" for name in names)]
            licence = entry.get("licence") or " AND ".join(sorted({SETS[name].spdx for name in entry["learned_from"]}))
            made.append(entry | {"licence": licence, "part": part, "files": files, "served": served})
    return made


def expression():
    """The licences of all that is in the package, as `pyproject.toml` has to name them: str, as SPDX writes it."""
    found = {entry["licence"] for entry in entries() if entry["part"] == "package"}
    found |= {SETS[name].spdx for name in table()["quoted"]}
    return " AND ".join(["MIT", *sorted({"CC-BY-SA-4.0", *found} - {*FREE, "public domain"})])


def our_weights():
    """Names of the weights that were made of free data alone, so that they are ours. Returns: list of str."""
    return [name for name in weights.names() if {data.spdx for data in made_of(name)} <= {*FREE}]


def foreign(paths, part):
    """Those of the paths below the root of a part that are neither ours nor in the table. Returns: list of str."""
    known = [*table()["parts"][part]["ours"]]
    known += [pattern for entry in entries() if entry["part"] == part for pattern in entry["files"]]
    if part == "book":
        known += [path.name for folder in STATIC for path in folder.iterdir()]
        known += [f"live/{name}.js" for name in our_weights()]
        known += [pattern for entry in entries() for pattern in entry["served"]]
    if part == "package":
        known += [f"*{ending}" for ending in CODE] + [f"models/weights/{name}.safetensors" for name in our_weights()]
    return [str(path) for path in paths if not any(fnmatch(str(PurePosixPath(path)), pattern) for pattern in known)]


def shipped():
    """Markdown: a row for each thing of others that is shipped."""
    rows = ["| what | licence | where |", "|---|---|---|"]
    for entry in entries():
        where = ", ".join([entry["part"], *["book"] * bool(entry["served"])])
        rows.append(f"| {entry['name']} | {entry['licence'].removeprefix('LicenseRef-')} | {where} |")
    return "\n".join(rows)


def data_sets():
    """Markdown: a row for each data set of the catalogue, and how many records repeat sentences of it."""
    rows = ["| data | licence | records |", "|---|---|---|"]
    for name, dataset in SETS.items():
        free = dataset.licence.startswith("public domain")
        count = "not counted" if free else len(table()["quoted"].get(name, [])) or "none"
        rows.append(f"| {dataset.title.partition(':')[0]} | {dataset.licence} | {count} |")
    return "\n".join(rows)


def sync(check):
    """Returns: list of the files that were out of step."""
    page = between(PAGE.read_text(encoding="utf-8"), "expression", f"`{expression()}`")
    page = between(page, "shipped", shipped())
    return [*put(NOTICES, notices(), check), *put(PAGE, between(page, "data", data_sets()), check)]


if __name__ == "__main__":
    main(sync, command="python -m tools.notices")
