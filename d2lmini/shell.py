"""Where this runs: a terminal, IPython, the kernel of a notebook. To ask imports nothing and starts nothing."""

import sys


def running_shell():
    """Returns: the IPython shell that runs this code, or None."""
    ipython = sys.modules.get("IPython")  # a running shell has imported it; asking for one would start one
    return ipython.get_ipython() if hasattr(ipython, "get_ipython") else None


def in_notebook():
    """Whether the kernel of a notebook runs this code. Returns: bool."""
    return getattr(running_shell(), "kernel", None) is not None
