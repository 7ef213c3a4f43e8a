"""Who may import whom, and what ``import d2lmini`` costs and needs."""

import ast
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import d2lmini

PACKAGE = Path(d2lmini.__file__).parent
BASE = {
    "masks",
    "cache",
    "arguments",
    "renamed",
    "pooling",
    "metrics",
    "diversity",
    "tokenization",
    "measure",
    "decoding",
    "utils",
    "plot_style",
    "shell",
    "modes",
    "layers",
    "buffers",
}
# what a module may import of ours, by the first name under d2lmini
MAY_IMPORT = {
    **{name: set() for name in BASE},
    "plotting": {"plot_style", "shell"},
    "show": {"shell"},
    "rotation": {"buffers"},
    "position": {"rotation", "masks", "buffers"},
    "objectives": {"masks"},
    "inputs": {"masks"},
    "scoring": {"inputs", "masks"},
    "kernels": {"scoring", "inputs", "masks"},
    "attention": {"kernels", "scoring", "inputs", "masks"},
    "multi_head": {"attention", "kernels", "cache", "scoring", "inputs", "masks"},
    "efficient": {"kernels", "scoring", "inputs", "masks", "buffers"},
    "transformer": {"multi_head", "cache", "inputs", "masks"},
    "experts": {"transformer"},
    "decoding/fast": {"transformer", "multi_head", "cache", "masks", "layers"},
    "quantized": {"layers", "buffers"},
    "adapters": {"quantized", "layers", "buffers"},
    "hooks": {"multi_head", "attention", "modes"},
    "vision": {"position", "rotation", "multi_head"},
    "models": {
        *("transformer", "multi_head", "cache", "attention", "position", "masks", "decoding", "training", "rotation"),
        *("vision", "objectives", "modes"),
    },
    "models/weights": {"data", "tokenization"},  # weights are data, with a tokenizer; no other model has files
    "training": {"metrics", "plot_style", "shell", "utils"},
}
# these may import everything, and only each other (and the command line) may import them
ANYWHERE = {"arguments", "renamed", "utils"}  # below all: they import nothing of ours
TOP = {"figures", "experiments", "exercises"}
LAB = {"lab"}  # stands below them and above all the rest
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


def files_imported(path, package):
    """The files of ours that a file imports anywhere in it, without the packages that these lie in."""
    folder, found = path.relative_to(package).parent, set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            outer = [Path(), folder, *folder.parents][node.level] if node.level else Path()
            parts = (node.module or "").split(".") if node.module else []
            if not node.level and parts[:1] != [package.name]:
                continue
            base = package / outer / Path(*parts[1 - bool(node.level) :])
            for name in node.names:  # a file, or a name of the file that is named before
                inner = base / name.name
                files = (inner.with_suffix(".py"), inner / "__init__.py", base.with_suffix(".py"), base / "__init__.py")
                found.add(next(filter(Path.exists, files), path))
        elif isinstance(node, ast.Import):
            found |= {package.parent / Path(*a.name.split(".")).with_suffix(".py") for a in node.names}
    return {file for file in found if file.exists()} - {path, package / "__init__.py"}


def circles(package):
    """Files that import each other, by whatever way round, as sorted names."""
    graph = {path: files_imported(path, package) for path in package.rglob("*.py")}
    reach = {path: set(near) for path, near in graph.items()}
    for middle in graph:
        for start in graph:
            if middle in reach[start]:
                reach[start] |= reach[middle]
    names = {path: "/".join(path.relative_to(package).with_suffix("").parts) for path in graph}
    return sorted(names[path] for path in graph if path in reach[path])


def violations(package, homes):
    """Forbidden imports, as readable lines."""
    bad = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package).with_suffix("").parts
        module = inside[0]
        imported = imports_of(path, package, homes) - {module} - ANYWHERE
        if module in TOP | COMMAND_LINE:
            allowed = imported
        elif module == "__init__":
            allowed = set()
        else:
            above = TOP | COMMAND_LINE if module in LAB else TOP | LAB | COMMAND_LINE
            rest = MAY_IMPORT.get(module, imported - above)
            allowed = MAY_IMPORT.get("/".join(inside[:2]), rest)
        bad += [f"{'/'.join(inside)}.py imports {name}" for name in sorted(imported - allowed)]
    return bad


def test_nothing_imports_what_is_above_it():
    assert len(list(PACKAGE.rglob("*.py"))) > 5
    assert violations(PACKAGE, d2lmini._HOME) == []


def test_no_file_imports_itself_by_way_of_others():
    assert circles(PACKAGE) == []


def test_a_circle_is_seen(tmp_path):
    package = tmp_path / "d2lmini"
    (package / "models" / "pretrained").mkdir(parents=True)
    for name, text in {
        "masks.py": "import torch",
        "models/gpt.py": "from ..masks import as_mask\ndef f():\n    from .pretrained import from_transformers",
        "models/pretrained/__init__.py": "from . import from_gpt2",
        "models/pretrained/from_gpt2.py": "from d2lmini.models.gpt import GPT",
        "models/bert.py": "from .pretrained import from_transformers\nimport d2lmini.masks",
    }.items():
        (package / name).write_text(text)
    assert circles(package) == ["models/gpt", "models/pretrained/__init__", "models/pretrained/from_gpt2"]


@pytest.mark.parametrize(
    ("file", "line", "complaint"),
    [
        ("masks.py", "from .pooling import boxcar", "masks.py imports pooling"),
        ("pooling.py", "def f():\n    from . import masks", "pooling.py imports masks"),
        ("attention.py", "import d2lmini.multi_head", "attention.py imports multi_head"),
        ("attention.py", "from d2lmini import corpus_bleu", "attention.py imports metrics"),
        ("transformer.py", "from d2lmini.models.vit import ViT", "transformer.py imports models"),
        ("models/vit.py", "from ..data import images", "models/vit.py imports data"),
        ("models/weights/minilm.py", "from ...experiments import runner", "weights/minilm.py imports experiments"),
        ("training.py", "from .models import vit", "training.py imports models"),
        ("data/text.py", "from ..figures import base", "data/text.py imports figures"),
        (
            "efficient/tiles.py",
            "import importlib\nimportlib.import_module('d2lmini.exercises')",
            "imports exercises",
        ),
        ("lab/runner.py", "from ..experiments import find", "lab/runner.py imports experiments"),
        ("training/trainer.py", "from ..lab import parts", "training/trainer.py imports lab"),
        ("results/__init__.py", "from d2lmini.lab import records", "results/__init__.py imports lab"),
        ("__init__.py", "from . import masks", "__init__.py imports masks"),
    ],
)
def test_a_forbidden_import_is_seen(tmp_path, file, line, complaint):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
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
        ("experiments/vision/vit.py", "from d2lmini.lab import parts"),
        ("lab/fit.py", "from d2lmini.training import Trainer\nfrom d2lmini import results"),
    ],
)
def test_an_allowed_import_is_let_pass(tmp_path, file, line):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line)
    assert violations(tmp_path, {}) == []


# written as one writes with the package; and a program of its own
USERS = re.compile(r"experiments/\w+/|exercises/grading/endpoint\.py")


def absolute_imports(package):
    """Where a file of the package takes something of ours by its whole name, as readable lines."""
    found = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        nodes = [] if USERS.match(name) else ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        modules = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
        found += [f"{name} has from {module} import" for module in modules if module.split(".")[0] == "d2lmini"]
    return found


def test_the_package_imports_its_own_by_relative_names():
    assert absolute_imports(PACKAGE) == []


def test_an_absolute_import_is_seen(tmp_path):
    for name in ("data/text.py", "experiments/gpt/gpt_book.py", "exercises/grading/endpoint.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("import d2lmini\nfrom .store import find\nfrom d2lmini.training import Trainer")
    assert absolute_imports(tmp_path) == ["data/text.py has from d2lmini.training import"]


def privates_of(path):
    """What a file takes from our modules that begins with an underscore, as readable lines."""
    tree, ours, found = ast.parse(path.read_text(encoding="utf-8")), set(), []
    for node in ast.walk(tree):
        modules = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else [""]
        if modules[0] == "d2lmini" or getattr(node, "level", 0):
            ours |= {alias.asname or alias.name for alias in node.names}
            found += [name for name in (*modules, *(alias.name for alias in node.names)) if name.startswith("_")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ours:
            found += [f"{node.value.id}.{node.attr}"] if node.attr.startswith("_") else []
    return found


FOLDERS = [ROOT / "benchmarks", PACKAGE / "lab", PACKAGE / "experiments"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_runs_and_measures_takes_no_privates(folder):
    paths = sorted(folder.rglob("*.py"))
    assert paths and {str(path): found for path in paths if (found := privates_of(path))} == {}


def test_a_private_is_seen(tmp_path):
    path = tmp_path / "file.py"
    path.write_text(
        "from . import records\nfrom d2lmini.lab.fit import _fit\nfrom .fit import _x\nrecords._source()\nself._x"
    )
    assert sorted(privates_of(path)) == ["_fit", "_x", "records._source"]


def run(code, **environment):
    clean = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"} | environment
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=clean)
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


WAITS = """
import importlib, os, sys
class Asked:
    def find_spec(self, name, *rest):
        if name == "torch":
            waits.append(os.environ.get("OMP_WAIT_POLICY"))
            raise ImportError("it was asked for")
sys.meta_path.insert(0, Asked())
for name in {names}:
    for module in [m for m in sys.modules if m.partition(".")[0] in ("d2lmini", "benchmarks", "tools")]:
        del sys.modules[module]
    os.environ.pop("OMP_WAIT_POLICY", None)
    waits = []
    try:
        importlib.import_module(name)
    except ImportError:
        pass
    if waits:
        print(name, waits[0])
"""


def test_whatever_of_ours_loads_torch_has_said_before_how_its_threads_wait():
    files = [path for name in ("benchmarks", "tools") for path in (ROOT / name).glob("*.py")]
    names = [f"{path.parent.name}.{path.stem}" for path in files if path.stem != "__main__"]
    found = run(WAITS.format(names=["d2lmini.attention", *names]), PYTHONPATH=str(ROOT))
    assert "d2lmini.attention" in found and len(found) > 20
    assert set(found[1::2]) == {"PASSIVE"}, found
    assert run("import os, d2lmini; print(os.environ['OMP_WAIT_POLICY'])", OMP_WAIT_POLICY="ACTIVE") == ["ACTIVE"]


def test_every_public_name_resolves_and_is_listed():
    assert d2lmini.__all__ == sorted(set(d2lmini.__all__)) and len(d2lmini.__all__) > 20
    for name in d2lmini.__all__:
        assert getattr(d2lmini, name) is not None
        assert name in dir(d2lmini)
    assert sum(map(len, d2lmini._MODULES.values())) == len(d2lmini.__all__)  # no name in two modules


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'atention'"):
        d2lmini.atention  # noqa: B018
