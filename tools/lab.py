"""JupyterLab in which a notebook that was only opened is not changed: `make lab`.

When its kernel starts, JupyterLab writes the name of the kernel and the version of Python into a notebook, and asks on
closing whether to save that. No file can foresee it; so this server hands a notebook over with both in it already.
"""

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


def main():
    from jupyterlab.labapp import LabApp

    LabApp.launch_instance(argv=["--notebook-dir", ".", "--ServerApp.contents_manager_class=tools.lab.Contents"])


if __name__ == "__main__":
    main()
