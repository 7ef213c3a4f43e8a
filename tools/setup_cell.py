"""The first code cell of every notebook, one folded line: it installs the package where it is missing and leaves torch
alone, and then does what the page's author wrote behind the line `# This page`: imports, a seed, the run time."""

import re

from tools.site import archive

TAGS = ("setup", "fold")
_PAGE = re.compile(r"^# This page[ \t]*\n", re.M)
_TEMPLATE = """\
# @title Setup: the package, and what this page imports
# Does nothing where d2lmini is installed; on Colab it installs it and keeps Colab's own torch.
import importlib.metadata
import importlib.util
import os
import subprocess
import sys

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: threads that wait leave the cores to others
if importlib.util.find_spec("d2lmini") is None:
    torch_before = importlib.metadata.version("torch")
    url = "{url}"
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", url], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"could not install d2lmini from {{url}}: is there a network?\\n{{done.stderr[-2000:]}}")
    if importlib.metadata.version("torch") != torch_before:
        raise RuntimeError("the installation changed torch: restart the session and report this")
    importlib.invalidate_caches()"""


def source(page=""):
    """Returns: str, the cell's source.

    Args:
        page: what the cell does for its page alone.
    """
    return f"{_TEMPLATE.format(url=archive())}\n\n# This page\n{page}".rstrip("\n")


def page(source):
    """Returns: str, what a setup cell does for its page alone. Nothing that is not generated gets lost."""
    if found := _PAGE.search(f"{source}\n"):
        return source[found.end() :].strip("\n")
    # a setup cell of before, or one that is not filled in yet
    return source.rpartition(_TEMPLATE.rpartition("\n")[2])[2].strip("\n")
