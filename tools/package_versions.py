"""Versions for pip under which the package has to work: the oldest that it allows, or those of Colab.

    python -m tools.package_versions oldest > versions.txt     # a file of constraints
    python -m tools.package_versions colab > versions.txt      # needs the network

It runs on every Python that the package runs on, without a package.
"""

import argparse
import re
import sys
import urllib.request
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
COLAB = "https://raw.githubusercontent.com/googlecolab/backend-info/main/pip-freeze.txt"
_AT_LEAST = re.compile(r'"([A-Za-z][\w.-]*)>=([\d.]+)[^"]*"')


def oldest(text):
    """The lower bounds of all that pyproject.toml asks for, as pins; but not of what only tests. Returns: list of str.

    Raises:
        ValueError: there is none.
    """
    head = text.partition("[tool.")[0].partition("[project]")[2]
    found = {name: version for name, version in _AT_LEAST.findall(re.sub(r"^test = .*$", "", head, flags=re.M))}
    if not found:
        raise ValueError("pyproject.toml has no lower bound")
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def of_ours(frozen, text):
    """The lines of a pip freeze that are about packages which pyproject.toml names. Returns: list of str.

    Raises:
        ValueError: torch is not among them, so this is no freeze of Colab.
    """
    ours = {pin.partition("==")[0].lower() for pin in oldest(text)}
    lines = [line.strip().partition("+")[0] for line in frozen.splitlines()]
    found = sorted({line for line in lines if "==" in line and line.partition("==")[0].lower() in ours})
    if not any(line.startswith("torch==") for line in found):
        raise ValueError("the list of versions does not name torch")
    return found


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.package_versions", description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=("oldest", "colab"), help="which versions")
    text = PROJECT.read_text(encoding="utf-8")
    try:
        if parser.parse_args().which == "oldest":
            print("\n".join(oldest(text)))
        else:
            with urllib.request.urlopen(COLAB, timeout=60) as answer:
                print("\n".join(of_ours(answer.read().decode(), text)))
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
