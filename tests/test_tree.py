"""The tests mirror the package: d2lmini/a/b.py is tested by tests/a/test_b.py."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

import d2lmini
from d2lmini.experiments import SUBJECTS

PACKAGE, TESTS = Path(d2lmini.__file__).parent, Path(__file__).parent
ROOT = TESTS.parent
# by whom what has no file of its own is tested, and why
ELSEWHERE = {
    "inputs": ("test_attention.py", "what is wrong shows where attention is called"),
    "layers": ("test_adapters.py", "layers are found, chosen and replaced where a model is adapted"),
    "__main__": ("lab/test_parts.py", "its commands are tested with what they do"),
    "selfcheck": ("test_install.py", "what it looks at is what is installed"),
    "run_times": ("book/test_chapters.py", "it tells of chapters"),
    "data/registry": ("data/test_store.py", "it is the store's catalogue by name"),
    "data/grammar_phrases": ("data/test_grammar.py", "the inside of the grammar"),
    "data/grammar_words": ("data/test_grammar.py", "the inside of the grammar"),
    "data/playground": ("data/test_playground_data.py", "the figure's test has that name"),
    "data/playground_tasks": ("data/test_playground_data.py", "the data are made of it"),
    "exercises/reader/check": ("exercises/test_progress.py", "what a check prints is what is remembered"),
    "exercises/reader/report": ("exercises/test_progress.py", "it shows the progress"),
    "exercises/engine/model": ("exercises/test_audit.py", "the audit reads every field"),
    "exercises/engine/registry": ("exercises/test_exercises.py", "it finds the exercises"),
    "exercises/engine/source": ("exercises/test_exercises.py", "the notebooks are made by it"),
    "exercises/grading/answer": ("exercises/test_grade.py", "a folder is graded answer by answer"),
    "exercises/grading/folder": ("exercises/test_grade.py", "a folder is graded as a whole"),
    "exercises/grading/journal": ("exercises/test_grade.py", "a folder is graded as a whole"),
    "exercises/grading/fork_server": ("exercises/test_sandbox.py", "what an answer may do is tried in a sandbox"),
    "exercises/grading/process": ("exercises/test_sandbox.py", "its limits are tried in a sandbox"),
    "exercises/grading/table": ("exercises/test_grade.py", "a folder is graded as a whole"),
    "lab/fit": ("experiments/test_cuts.py", "every experiment that trains is cut inside of it"),
    "figures/playground/challenges": ("figures/test_playground_challenges.py", "the figure's test is beside it"),
    "figures/painting": ("figures/test_live_classifier.py", "what is painted is classified"),
    "models/bert_config": ("models/test_bert.py", "a configuration is what a model is made of"),
    "models/gpt_config": ("models/test_gpt.py", "a configuration is what a model is made of"),
    "models/t5_config": ("models/test_t5.py", "a configuration is what a model is made of"),
    "models/named_parts": ("models/test_gpt.py", "what is chosen shows in what chooses"),
    "models/bahdanau": ("models/test_seq2seq.py", "models of translation do alike"),
    "models/transformer_seq2seq": ("models/test_seq2seq.py", "models of translation do alike"),
    "training/state": ("training/test_checkpoint.py", "the state is what a checkpoint holds"),
}
# one test goes through all files of such a folder
EACH = {
    **{f"experiments/{subject}": "experiments/test_experiments.py" for subject in SUBJECTS},
    "figures/diagrams": "figures/test_diagrams.py",
}


def mirror(module):
    """The test file of a module, given as its path without .py."""
    folder, _, name = module.rpartition("/")
    for place in (module, folder):
        if place in ELSEWHERE:
            return ELSEWHERE[place][0]
    flat = f"{re.sub('^exercises/(engine|reader|grading)$', 'exercises', folder)}/test_{name}.py".lstrip("/")
    return flat if (TESTS / flat).exists() else EACH.get(folder, flat)


def test_every_module_has_its_test_file():
    paths = (path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py") if path.stem != "__init__")
    modules = sorted(str(path) for path in paths)
    assert len(modules) > 90
    assert [f"{name}: {test}" for name in modules if not (TESTS / (test := mirror(name))).exists()] == []
    assert [name for name in ELSEWHERE if not (PACKAGE / name).exists() and name not in modules] == []


def test_no_exception_is_stated_without_need():
    own = [TESTS / Path(name).parent / f"test_{Path(name).name}.py" for name in ELSEWHERE]
    assert [str(path) for path in own if path.exists()] == []


FOLDERS = [path.parent for path in sorted(PACKAGE.rglob("*/__init__.py"))]
# `results` holds records, no modules
MAPPED = [path for path in FOLDERS if path.name != "results"]


@pytest.mark.parametrize("folder", MAPPED, ids=lambda folder: str(folder.relative_to(PACKAGE)))
def test_the_map_of_a_folder_names_each_of_its_modules(folder):
    """In a line of its own, with what it holds. The map of d2lmini/ itself is the tree of the README."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    named = re.findall(r"^ *(\w+)(?:\.py|/) {2,}\S", text, re.M)
    inside = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    inside += [path.name for path in FOLDERS if path.parent == folder]
    assert sorted(named) == sorted(inside)


def test_the_root_is_read_in_one_glance():
    """That of a fresh clone, without what begins with a dot."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    shown = {name.partition("/")[0] for name in tracked if not name.startswith(".")}
    assert len(shown) <= 20, sorted(shown)


def test_the_tree_of_the_readme_is_that_of_the_repository():
    tree = re.search(r"## What is where\n\n```\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)[1]
    named = [
        (PACKAGE if line[0] == " " else ROOT, re.split(r" {2,}", line.strip())[0].split()) for line in tree.splitlines()
    ]
    assert [name for folder, names in named for name in names if not (folder / name).exists()] == []
    own = {Path(name).name for folder, names in named for name in names if folder == PACKAGE}
    hidden = {"__init__.py", "__main__.py", "__pycache__", "run_times.py", "selfcheck.py"}
    assert {path.name for path in PACKAGE.iterdir()} - own - hidden == set()


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "pages/troubleshooting.md", "pages/lecturers.md"])
def test_paths_that_a_page_names_are_there(page):
    """Of our folders; with placeholders left out."""
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = re.findall(
        r"[`(\s]((?:chapters|d2lmini|exercises|tests|tools|benchmarks)/[\w./]+\.(?:py|js|ipynb|json|cfg))", text
    )
    assert paths or page.startswith("pages/")
    placeholder = re.compile(r"/(name|topic|NN_topic|b|test_b|test_name)\.|name\.laptop")
    assert [path for path in paths if not placeholder.search(path) and not (ROOT / path).exists()] == []
