"""The first code cell of every notebook: it installs the package where it is missing, and leaves torch alone."""

from tools.site import archive

_TEMPLATE = """\
# Setup. Does nothing where d2lmini is installed; on Colab it installs it and keeps Colab's own torch.
import importlib.metadata
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("d2lmini") is None:
    torch_before = importlib.metadata.version("torch")
    url = "{url}"
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", url], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"could not install d2lmini from {{url}}: is there a network?\\n{{done.stderr[-2000:]}}")
    if importlib.metadata.version("torch") != torch_before:
        raise RuntimeError("the installation changed torch: restart the session and report this")
    importlib.invalidate_caches()"""


def source():
    """Returns: str, the cell's source."""
    return _TEMPLATE.format(url=archive())
