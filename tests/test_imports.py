"""Who may import whom, and what ``import d2lmini`` costs and needs."""

import ast
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import d2lmini

PACKAGE = Path(d2lmini.__file__).parent
BASE = {
    "masks",
    "cache",
    "pooling",
    "metrics",
    "diversity",
    "tokenization",
    "measure",
    "decoding",
    "utils",
    "plot_style",
    "shell",
}
# what a module may import of ours, by the first name under d2lmini
MAY_IMPORT = {
    **{name: set() for name in BASE},
    "plotting": {"plot_style", "shell"},
    "show": {"shell"},
    "position": {"masks"},
    "objectives": {"masks"},
    "scoring": {"masks"},
    "attention": {"scoring", "masks"},
    "multi_head": {"attention", "cache", "scoring", "masks"},
    "efficient": {"attention", "scoring", "masks"},
    "transformer": {"multi_head", "cache", "position", "scoring", "masks"},
    "experts": {"transformer"},
    "layout": {"transformer", "multi_head", "masks"},
    "hooks": {"multi_head", "attention"},
    "vision": {"position", "multi_head"},
    "models": {
        *("transformer", "multi_head", "cache", "attention", "position", "masks", "decoding", "training"),
        *("vision", "objectives"),
    },
    "training": {"metrics", "plot_style", "shell", "utils"},
}
# these may import everything, and only each other (and the command line) may import them
TOP = {"figures", "experiments", "exercises"}
COMMAND_LINE = {"__main__", "selfcheck"}


def imports_of(path, package, homes):
    """The modules of ours, by first name, that a file imports anywhere in it."""
    inside = path.relative_to(package).with_suffix("").parts
    found = set()

    def add(dotted, names=()):
        parts = dotted.split(".")
        if parts[0] != "d2lmini":
            return
        if len(parts) > 1:
            found.add(parts[1])
        else:  # from d2lmini import name: a module, or a public name fetched from its module
            found.update(homes.get(name, name).split(".")[0] for name in names)

    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                add(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = ["d2lmini", *inside[: len(inside) - node.level]] if node.level else []
            add(".".join([*base, *filter(None, [node.module])]), [alias.name for alias in node.names])
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            add(str(node.args[0].value) if called == "import_module" else "")
    return found - {"__version__"}


def violations(package, homes):
    """Forbidden imports, as readable lines."""
    bad = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).with_suffix("").parts
        module = inside[0]
        imported = imports_of(path, package, homes) - {module}
        if module in TOP | COMMAND_LINE:
            allowed = imported
        elif module == "__init__":
            allowed = set()
        else:
            allowed = MAY_IMPORT.get(module, imported - TOP - COMMAND_LINE)
        bad += [f"{'/'.join(inside)}.py imports {name}" for name in sorted(imported - allowed)]
    return bad


def test_nothing_imports_what_is_above_it():
    assert len(list(PACKAGE.rglob("*.py"))) > 5
    assert violations(PACKAGE, d2lmini._HOME) == []


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("masks.py", "from .pooling import boxcar", "masks.py imports pooling"),
        ("pooling.py", "def f():\n    from . import masks", "pooling.py imports masks"),
        ("attention.py", "import d2lmini.multi_head", "attention.py imports multi_head"),
        ("attention.py", "from d2lmini import corpus_bleu", "attention.py imports metrics"),
        ("transformer.py", "from d2lmini.models.vit import ViT", "transformer.py imports models"),
        ("models/vit.py", "from ..data import images", "models/vit.py imports data"),
        ("training.py", "from .models import vit", "training.py imports models"),
        ("data/text.py", "from ..figures import base", "data/text.py imports figures"),
        (
            "efficient/tiled.py",
            "import importlib\nimportlib.import_module('d2lmini.exercises')",
            "imports exercises",
        ),
        ("__init__.py", "from . import masks", "__init__.py imports masks"),
    ],
)
def test_a_forbidden_import_is_seen(tmp_path, file, line, complaint):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(line)
    (bad,) = violations(tmp_path, {"corpus_bleu": "metrics"})
    assert bad.endswith(complaint)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("attention.py", "from .masks import as_mask"),
        ("models/vit.py", "from .swin import Swin\nfrom ..transformer import AddNorm"),
        ("exercises/one.py", "from ..scoring import masked_softmax\nfrom ..figures import base"),
        ("__main__.py", "from d2lmini import __version__\nfrom d2lmini.exercises import engine"),
        ("data/text.py", "from . import registry\nimport torch.masks"),
    ],
)
def test_an_allowed_import_is_let_pass(tmp_path, file, line):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(line)
    assert violations(tmp_path, {}) == []


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_import_needs_no_notebook_and_no_matplotlib_and_loads_no_torch():
    out = run(
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['IPython', 'ipywidgets', 'anywidget', 'matplotlib']))\n"
        "import d2lmini as d2l; print('torch' in sys.modules)\n"
        "import torch; print(d2l.masked_softmax(torch.zeros(1, 1, 2)).sum().item())\n"
        "print(d2l.show_source(d2l.boxcar).startswith('def boxcar'))"
    )
    assert out == ["False", "1.0", "True"]


@pytest.mark.slow
def test_import_takes_under_a_fifth_of_a_second_beyond_torch():
    # processor time, so that a busy machine does not matter; each round starts without any module of ours
    code = """
import sys, time, torch
for _ in range(5):
    for name in [name for name in sys.modules if name.startswith("d2lmini")]:
        del sys.modules[name]
    start = time.process_time()
    import d2lmini as d2l
    d2l.scaled_dot_product_attention
    print(time.process_time() - start)
"""
    assert statistics.median(map(float, run(code))) < 0.2


def test_every_public_name_resolves_and_is_listed():
    assert d2lmini.__all__ == sorted(set(d2lmini.__all__)) and len(d2lmini.__all__) > 20
    for name in d2lmini.__all__:
        assert getattr(d2lmini, name) is not None
        assert name in dir(d2lmini)
    assert sum(map(len, d2lmini._MODULES.values())) == len(d2lmini.__all__)  # no name in two modules


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'atention'"):
        d2lmini.atention  # noqa: B018
