"""Single changes for `python -m tools.mutation`: which are made, the same by a seed, and who is asked about them."""

from pathlib import Path

from tools import mutation


def test_changes_of_python_are_of_one_operator():
    made = list(mutation.python_changes("def f(a, b):\n    return a + b if a < b and b is not None else 'ä' + a\n"))
    assert sorted(made) == sorted(
        f"def f(a, b):\n    return {text}\n"
        for text in (
            "a - b if a < b and b is not None else 'ä' + a",
            "a + b if a <= b and b is not None else 'ä' + a",
            "a + b if a < b or b is not None else 'ä' + a",
            "a + b if a < b and b is None else 'ä' + a",
        )
    )


def test_changes_of_javascript_leave_comments_and_imports_alone():
    made = list(mutation.javascript_changes('import { a } from "./1 < 2.js";\n// 1 < 2\nf(x < 2 && true);\n'))
    assert [text.splitlines()[2] for text in made] == ["f(x <= 2 && true);", "f(x < 2 || true);", "f(x < 2 && false);"]


def test_a_seed_gives_the_same_changes_each_time_a_third_of_each_room():
    first = mutation.changes(1, 6)
    assert first == mutation.changes(1, 6) and first != mutation.changes(2, 6)
    rooms = [path.suffix if path.suffix == ".js" else path.parts[0] for path, _ in first]
    assert rooms == ["d2lmini"] * 2 + [".js"] * 2 + ["tools"] * 2


def test_the_files_that_name_a_module_are_asked_first(tmp_path):
    for name, text in {"test_masks.py": "", "test_other.py": "import masks", "test_third.py": "x"}.items():
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "tests" / name).write_text(text)
    related, quick = list(mutation.steps(Path("d2lmini/masks.py"), tmp_path))
    assert related[-2:] == ["tests/test_masks.py", "tests/test_other.py"] and quick[-1] == "tests"
