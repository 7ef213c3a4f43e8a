"""Name a version, in every file that says which one this is.

    python -m tools.release            # do all places agree?
    python -m tools.release 0.2.0      # write it; afterwards commit, and tag v0.2.0

Notebooks install the archive of the tag, so `make sync` writes the version into their first cells. What the changelog
has under "Unreleased" becomes the section of the version.
"""

import argparse
import re
import subprocess
import sys
from datetime import date

from tools._generated import ROOT

PLACES = {  # file: the version, the one group of a pattern that the file has once
    "d2lmini/__init__.py": r'^__version__ = "(.+)"$',
    "pyproject.toml": r'^version = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "README.md": r"^  note   = \{Version (.+)\},$",
    "CHANGELOG.md": r"\A(?:(?!^## ).*\n)*(?:^## Unreleased\n(?:(?!^## ).*\n)*)?^## (\S+)",  # the newest one
}
_UNRELEASED = re.compile(r"^## Unreleased\n+(?=\S)(?!## )", re.M)
_NUMBER = re.compile(r"\d+\.\d+\.\d+")


def read(root=ROOT):
    """The version that each file names. Returns: dict.

    Raises:
        ValueError: a file names none, or more than one.
    """
    found = {}
    for name, pattern in PLACES.items():
        texts = re.findall(pattern, (root / name).read_text(encoding="utf-8"), re.M)
        if len(texts) != 1:
            raise ValueError(f"{name} names {len(texts)} versions, expected one as in {pattern!r}")
        found[name] = texts[0]
    return found


def write(version, root=ROOT, today=None):
    """Names a version everywhere.

    Raises:
        ValueError: it is no version, or none that comes after the present one; or the changelog says nothing of it.
    """
    present = read(root)["pyproject.toml"]
    if not _NUMBER.fullmatch(version):
        raise ValueError(f"{version!r} is no version, expected three numbers like 0.2.0")
    if _key(version) <= _key(present):
        raise ValueError(f"{version} does not come after {present}")
    log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not _UNRELEASED.search(log):
        raise ValueError('CHANGELOG.md has nothing under "## Unreleased": what is new in this version?')
    (root / "CHANGELOG.md").write_text(_UNRELEASED.sub(f"## {version}\n\n", log, count=1), encoding="utf-8")
    for name in PLACES.keys() - {"CHANGELOG.md"}:
        path = root / name
        put = lambda found: found[0].replace(found[1], version)  # noqa: E731
        path.write_text(re.sub(PLACES[name], put, path.read_text(encoding="utf-8"), flags=re.M), encoding="utf-8")
    cited = root / "CITATION.cff"
    lines = [line for line in cited.read_text(encoding="utf-8").splitlines() if not line.startswith("date-released")]
    cited.write_text("\n".join([*lines, f"date-released: {today or date.today()}"]) + "\n", encoding="utf-8")


def notes(version, root=ROOT):
    """What the changelog says of a version. Returns: str, Markdown.

    Raises:
        ValueError: it says nothing of that version.
    """
    log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(version)}\n(.*?)(?=^## |\Z)", log, re.M | re.S)
    if not found:
        raise ValueError(f"CHANGELOG.md has no section {version}")
    return found[1].strip() + "\n"


def _key(version):
    return tuple(map(int, version.split(".")))


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__.splitlines()[0])
    parser.add_argument("version", nargs="?", help="three numbers, as 0.2.0; without it the places are compared")
    parser.add_argument("--tag", help="as v0.2.0: is this that version? Prints what the changelog says of it")
    options = parser.parse_args()
    try:
        if options.version:
            write(options.version)
            subprocess.run([sys.executable, "-m", "tools.sync"], cwd=ROOT, check=True)
            return print(f"now: git commit -am 'Version {options.version}' && git tag v{options.version}")
        found = read()
    except ValueError as error:
        sys.exit(f"error: {error}")
    if options.tag:
        found["the tag"] = options.tag.removeprefix("v")
    if len({*found.values()}) > 1:
        sys.exit("error: " + ", ".join(f"{name} says {version}" for name, version in found.items()))
    print(notes(found["the tag"]).rstrip() if options.tag else found["pyproject.toml"])


if __name__ == "__main__":
    main()
