"""Where this runs: a terminal, IPython, the kernel of a notebook; for a user with a home folder, or without one.

To ask imports nothing and starts nothing.
"""

import sys
from pathlib import Path


def running_shell():
    """Returns: the IPython shell that runs this code, or None."""
    ipython = sys.modules.get("IPython")  # a running shell has imported it; asking for one would start one
    return ipython.get_ipython() if hasattr(ipython, "get_ipython") else None


def in_notebook():
    """Whether the kernel of a notebook runs this code. Returns: bool."""
    return getattr(running_shell(), "kernel", None) is not None


def folder_of_user(locate):
    """Returns: the folder that ``locate()`` gives, by means of `platformdirs`; None: the user has no home folder.

    So it is in a container whose user has no entry in its list, and where HOME is unset.
    """
    try:
        folder = Path(locate())
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None  # older versions leave "~" as it is
