"""As on Colab: the setup cell installs the package from the archive of the repository, and an exercise runs."""

import os
import shutil
import site
import subprocess
import sys
import zipfile

import pytest

from tools import setup_cell
from tools._generated import ROOT
from tools.site import archive

pytestmark = pytest.mark.slow
EXERCISE = """
import torch, d2lmini
from d2lmini import check
from d2lmini.data.images import fashion_mnist
from d2lmini.figures.query_plane import QueryPlane

print("package", d2lmini.__file__)
print("torch", torch.__file__)
wrong = lambda queries, keys, values: torch.nn.functional.scaled_dot_product_attention(queries, keys, values)
check("d2l-11.3.1", wrong, record=False)
check("d2l-11.3.1", ..., record=False)
assert d2lmini.run_time("01_queries_keys_values")
assert len(fashion_mnist("test", "shipped")[0])
assert QueryPlane(torch.ones(2), torch.eye(2), torch.eye(2))._repr_html_()  # its JavaScript is there
assert d2lmini.results.load("associative_recall", "laptop")["metrics"]
"""


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    """A Python that has torch and the rest, but not the package. Returns: its executable."""
    folder = tmp_path_factory.mktemp("colab")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    ours = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # paths in a .pth are searched, but the .pth files inside them (this checkout's) are not read
    with open(os.path.join(ours, "shared.pth"), "w", encoding="utf-8") as stream:
        stream.write("\n".join(site.getsitepackages()) + "\n")
    return python


@pytest.fixture(scope="module")
def zipped(tmp_path_factory):
    """What the repository's host serves for a tag: one folder with the tracked files. Returns: path of the zip."""
    folder = tmp_path_factory.mktemp("archive")
    top = folder / "d2lmini-tag"
    shutil.copytree(ROOT / "d2lmini", top / "d2lmini", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, top)
    shutil.copytree(ROOT / "licences", top / "licences")
    path = folder / "archive.zip"
    with zipfile.ZipFile(path, "w") as out:
        for file in sorted(top.rglob("*")):
            out.write(file, file.relative_to(folder))
    return path


def run(python, code, folder, **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "D2LMINI_STRICT")}
    # the build backend is here already, and nothing may be fetched
    clean |= {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "D2LMINI_CACHE": str(folder)}
    return subprocess.run([python, "-c", code], cwd=folder, env=clean | environment, capture_output=True, text=True)


def test_setup_cell_installs_the_archive_and_an_exercise_runs(colab, zipped, tmp_path):
    assert run(colab, "import d2lmini", tmp_path).returncode, "the fixture should not have the package yet"
    cell = setup_cell.source()
    assert cell.count(archive()) == 1
    done = run(colab, cell.replace(archive(), zipped.as_uri()), tmp_path)
    assert not done.returncode, done.stderr

    done = run(colab, EXERCISE, tmp_path)
    assert not done.returncode, done.stderr
    printed = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(("package", "torch")))
    assert printed["package"].startswith(str(colab.parent.parent)), "the checkout was imported, not the archive"
    assert not printed["torch"].startswith(str(colab.parent.parent)), "torch was installed again"
    assert "WRONG d2l-11.3.1" in done.stdout, done.stdout
    assert "NOT ATTEMPTED d2l-11.3.1" in done.stdout


def test_setup_cell_says_why_it_failed(colab, tmp_path):
    code = "import sys\nsys.modules.pop('d2lmini', None)\n" + setup_cell.source()
    code = code.replace('find_spec("d2lmini") is None', 'find_spec("d2lmini_absent") is None')
    done = run(colab, code.replace(archive(), (tmp_path / "absent.zip").as_uri()), tmp_path)
    assert done.returncode
    assert "could not install d2lmini from" in done.stderr and "absent.zip" in done.stderr
