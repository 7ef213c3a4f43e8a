"""Versions for pip: the lower bounds of pyproject.toml, and what a pip freeze of Colab has of our packages."""

import re

import pytest

from tools import package_versions

TEXT = package_versions.PROJECT.read_text(encoding="utf-8")


def test_each_lower_bound_is_a_pin():
    found = package_versions.oldest(TEXT)
    asked = re.search(r"^dependencies = \[\n(.*?)^\]", TEXT, re.M | re.S)[1].strip().splitlines()
    assert len(asked) > 9 and {line.strip(' ",').replace(">=", "==") for line in asked} <= {*found}
    assert "pyseccomp==0.1.2" in found and not any(line.startswith(("pytest==", "setuptools==")) for line in found)


def test_of_a_pip_freeze_our_packages_are_taken():
    frozen = "absl-py==1.4.0\ntorch==2.11.0+cpu\nnumpy==2.0.2\nurl @ https://x.org\nTqdm==4.67.1\n"
    assert package_versions.of_ours(frozen, TEXT) == ["Tqdm==4.67.1", "numpy==2.0.2", "torch==2.11.0"]


@pytest.mark.parametrize("frozen", ["", "<html>404</html>", "numpy==2.0.2"])
def test_what_is_no_freeze_of_colab_is_refused(frozen):
    with pytest.raises(ValueError, match="does not name torch"):
        package_versions.of_ours(frozen, TEXT)


def test_a_project_without_bounds_is_refused():
    with pytest.raises(ValueError, match="no lower bound"):
        package_versions.oldest('[project]\nname = "x"\n[tool.x]\ny = "z>=1"\n')
