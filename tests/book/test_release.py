"""A version is the same wherever it is named, and naming another one changes every place."""

import shutil

import pytest

from tools import release, site


@pytest.fixture
def copy(tmp_path):
    for name in release.PLACES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(release.ROOT / name, tmp_path / name)
    log = tmp_path / "CHANGELOG.md"
    log.write_text(log.read_text(encoding="utf-8").replace("## ", "## Unreleased\n\n- Something new.\n\n## ", 1))
    return tmp_path


def test_every_place_names_one_version():
    assert {*release.read().values()} == {site.VERSION} and f"/v{site.VERSION}.zip" in site.archive()


def test_a_new_version_is_named_everywhere(copy):
    release.write("1.20.3", copy, today="2027-01-02")
    assert {*release.read(copy).values()} == {"1.20.3"}
    assert release.notes("1.20.3", copy) == "- Something new.\n"
    assert (copy / "CITATION.cff").read_text().endswith("date-released: 2027-01-02\n")
    with pytest.raises(ValueError, match='nothing under "## Unreleased"'):
        release.write("1.20.4", copy)
    log = copy / "CHANGELOG.md"
    log.write_text(log.read_text(encoding="utf-8").replace("## ", "## Unreleased\n\n- More.\n\n## ", 1))
    release.write("2.0.0", copy, today="2028-01-02")
    assert (copy / "CITATION.cff").read_text().count("date-released") == 1


@pytest.mark.parametrize(
    "version, message",
    [("0.2", "three numbers"), ("v1.0.0", "three numbers"), (site.VERSION, "does not come after"), ("0.0.9", "after")],
)
def test_what_is_no_next_version_changes_nothing(copy, version, message):
    before = {name: (copy / name).read_text(encoding="utf-8") for name in release.PLACES}
    with pytest.raises(ValueError, match=message):
        release.write(version, copy)
    assert before == {name: (copy / name).read_text(encoding="utf-8") for name in release.PLACES}


def test_a_version_without_notes_is_refused(copy):
    with pytest.raises(ValueError, match="no section 7"):
        release.notes("7", copy)


def test_a_file_without_a_version_is_named(copy):
    (copy / "pyproject.toml").write_text("[project]\n")
    with pytest.raises(ValueError, match=r"pyproject.toml names 0 versions"):
        release.read(copy)
