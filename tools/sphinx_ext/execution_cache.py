"""Make the notebook cache depend on the package.

jupyter-cache looks at a notebook's cells alone, so a chapter would keep the outputs of an older ``d2lmini``. Here each
state of the package gets a cache folder of its own, and a page that a previous build made with another state of the
package is read again.
"""

import hashlib
from pathlib import Path

APART = ".js", ".pyc"  # pages load scripts from files: no output holds any


def package_digest(root):
    """SHA-256 over the names and bytes of every file of the package that a chapter's outputs may depend on."""
    digest = hashlib.sha256()
    for path in sorted(Path(root).rglob("*")):
        if path.is_file() and path.suffix not in APART:
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _place_cache(app, config):
    app.d2lmini_digest = package_digest(Path(app.srcdir, "d2lmini"))
    config.nb_execution_cache_path = str(Path(app.srcdir, "_build", ".jupyter_cache", app.d2lmini_digest))


def _read_again(app, env, added, changed, removed):
    stale = getattr(env, "d2lmini_digest", None) not in (None, app.d2lmini_digest)
    env.d2lmini_digest = app.d2lmini_digest
    # chapters run the package, the API page prints its docstrings
    return [name for name in env.found_docs if name.startswith("chapters/") or name == "pages/api"] if stale else []


def setup(app):
    app.connect("config-inited", _place_cache, priority=100)
    app.connect("env-get-outdated", _read_again)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
