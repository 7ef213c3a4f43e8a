"""Execute the chapters that changed side by side, one on each core, before any page is read.

myst-nb executes a page's notebook while it reads the page, one after another; here it finds all of them in its cache.
Each kernel has a process and one thread to itself. jupyter-cache's executor "local-parallel" would hand out the
chapters in lots of several, and tell of a failure when all are through.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

import matplotlib.font_manager  # noqa: F401  writes its list of fonts once, where each kernel would begin with that
import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from sphinx.errors import SphinxError
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
RUN_TIMES = Path("d2lmini", "results", "run_times.json")


@contextmanager
def _one_thread():
    """Kernels inherit it: two that share the cores by threads of their own wait for each other."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


@_one_thread()
def fill(cache, paths, timeout, workers=None):
    """Execute the notebooks that are not in a cache yet, and put them there.

    Args:
        cache: a jupyter-cache.
        paths: of notebooks; they start in this order.
        timeout: seconds that a cell may take.
        workers: how many run at a time; None: one a core.

    Raises:
        SphinxError: a cell raised or took too long; its traceback was logged, and the other notebooks are in the cache.
    """
    notebooks = {path: nbformat.read(path, as_version=4) for path in paths}
    known = {record.hashkey for record in cache.list_cache_records()}
    stale = {path: nb for path, nb in notebooks.items() if cache.create_hashed_notebook(nb)[1] not in known}
    pool, failed = ThreadPoolExecutor(workers or os.cpu_count()), []
    try:
        runs = {
            pool.submit(single_nb_execution, nb, str(path.parent), timeout, allow_errors=False): path
            for path, nb in stale.items()
        }
        for run in as_completed(runs):
            path = runs[run]
            if error := run.exception() or run.result().err:
                LOGGER.error("%s: %s", path, error)
                failed.append(path.name)
                continue
            LOGGER.info("executed %s in %.0f s", path.name, run.result().time)
            bundle = CacheBundleIn(run.result().nb, str(path), data={"execution_seconds": run.result().time})
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
    finally:
        pool.shutdown(cancel_futures=True)
    if failed:
        raise SphinxError(f"a cell failed in {', '.join(failed)}")


def _longest_first(paths, root):
    """The order in which the last core is idle for the shortest time; what was never timed comes first."""
    record = json.loads((root / RUN_TIMES).read_text(encoding="utf-8")) if (root / RUN_TIMES).exists() else {}
    seconds = {name: runs["cpu"]["seconds"] for name, runs in record.items() if "cpu" in runs}
    return sorted(paths, key=lambda path: -seconds.get(path.stem, float("inf")))


def _execute(app, env, docnames):
    config = env.mystnb_config
    if config.execution_mode == "cache":
        paths = [Path(env.doc2path(name)) for name in docnames if name.startswith("chapters/")]
        paths = _longest_first(paths, Path(app.srcdir))
        fill(get_cache(config.execution_cache_path), paths, config.execution_timeout)


def setup(app):
    app.connect("env-before-read-docs", _execute)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
