"""Scripts made of JavaScript's modules by esbuild, which npm brings: `make check` and `make sync` install it."""

import os
import subprocess

from d2lmini.figures.live.page import runtime_script
from tools._generated import ROOT, main

FIGURES = ROOT / "d2lmini" / "figures"
SCRIPTS = ROOT / "tools" / "sphinx_ext" / "scripts"  # of the book
ESBUILD = ROOT / "node_modules" / ".bin" / "esbuild"


def bundled(source, name):
    """A script that does what a module in `d2lmini/figures` would, whose exports it gives a global.

    Args:
        source: the module's text; its imports begin with ``./``.
        name: of the global.

    Raises:
        FileNotFoundError: esbuild is not installed.
        ValueError: esbuild refuses the module; what it says.
    """
    if not ESBUILD.exists():
        raise FileNotFoundError("esbuild is missing, which makes scripts of modules: run `make node`")
    options = f"--global-name={name}", "--format=iife", "--charset=utf8", "--loader:.css=text", "--log-level=error"
    command = [ESBUILD, "--bundle", f"--tsconfig={ROOT / 'tools' / 'jsconfig.json'}", *options]
    done = subprocess.run(command, input=source, cwd=FIGURES, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return done.stdout


def runtime(code=""):
    """The runtime of the models after the code of a module in `d2lmini/figures` was run. Returns: str, JavaScript."""
    return runtime_script(bundled(f'export {{ serve }} from "./live/worker.js";\n{code}', "d2lminiRuntime"))


def host():
    """The page's side of the models, as `LIVE`. Returns: str, JavaScript."""
    return bundled('export { LIVE } from "./page/host.js";', "pageSide") + "const { LIVE } = pageSide;\n"


def sync(check):
    """Brings what is built to what the modules give. Returns: list of what was out of step; without esbuild: none."""
    if not ESBUILD.exists():
        print("not looked at: the bundles, which esbuild makes: make node, with Node on this machine")
        return []
    command = ["node", ROOT / "tools" / "bundle.mjs", *(["--check"] if check else [])]
    done = subprocess.run(command, env={**os.environ, "NO_COLOR": "1"}, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit("tools/bundle.mjs has failed")
    return done.stdout.split()


if __name__ == "__main__":
    main(sync, command="python -m tools.bundles")
