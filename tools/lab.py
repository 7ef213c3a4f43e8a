"""JupyterLab in which a notebook that was only opened is not changed: `make lab`, `make lab FLAGS="--port 9000"`.

When its kernel starts, JupyterLab writes the name of the kernel and the version of Python into a notebook, and asks on
closing whether to save that. No file can foresee it; so this server hands a notebook over with both in it already.
"""

import os
import sys
from functools import cache

from ipykernel.ipkernel import IPythonKernel
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager


@cache
def metadata():
    """What JupyterLab writes into a notebook of the kernel ``python3``. Returns: dict."""
    spec = KernelSpecManager().get_kernel_spec("python3")
    kernel = {"display_name": spec.display_name, "language": spec.language, "name": "python3"}
    return {"kernelspec": kernel, "language_info": IPythonKernel.language_info}


class Contents(AsyncLargeFileManager):
    async def get(self, path, content=True, *args, **kwargs):
        model = await super().get(path, content, *args, **kwargs)
        if model["type"] == "notebook" and model["content"]:
            own = model["content"]["metadata"]
            if own.get("kernelspec", {}).get("name") == "python3":
                own.update(metadata())
        return model


def flags(more):
    """What JupyterLab is started with: ours, and then the caller's. Returns: list of str."""
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # as one is in a container
    return ["--notebook-dir", ".", "--ServerApp.contents_manager_class=tools.lab.Contents", *root, *more]


def main():
    from jupyterlab.labapp import LabApp

    LabApp.launch_instance(argv=flags(sys.argv[1:]))


if __name__ == "__main__":
    main()
